"""The real worker under the same troubles: lost workers, other code, a broken kind, and fifty kills."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import pytest

from cadenza.core import events as ev
from cadenza.core.demands import AskPerson
from cadenza.core.movements import MovementKind
from cadenza.core.outcomes import Unknown
from cadenza.core.performance import Need, Performance
from cadenza.core.signals import Signal
from cadenza.core.visit import Visit
from cadenza.engine import Engine
from cadenza.ids import derive
from cadenza.journal.holders import this_process
from cadenza.journal.store import LEASE_SECONDS, POISON_CLAIMS, Journal
from cadenza.providers.models.scripted import ScriptedProvider
from cadenza.settings import Settings
from cadenza.testing import Driver, FrozenClock, Killed, MemoryJournal, Point, Scenario, sqlite_journals
from cadenza.testing.probes import PROBE_KINDS, WRITE_PROBE
from tests.crash.kinds import fan
from tests.crash.nursery import Nursery
from tests.crash.scenarios import FORTY_PROBES, SCENARIOS, forty, full, linear

KILLS = 50
LONGEST_LIFE = 0.1


def engine_of(
    journal: Journal, lab: Path, scenario: Scenario, provider: ScriptedProvider | None = None
) -> Engine:
    (lab / "work").mkdir(parents=True, exist_ok=True)
    for name, content in scenario.files.items():
        (lab / "work" / name).write_text(content, encoding="utf-8")
    return Engine(
        journal,
        provider=provider or ScriptedProvider(scenario.script),
        settings=Settings(journal=lab / "unused"),
        kinds=scenario.kinds,
        tools=scenario.tools(lab),
        retry=scenario.retry,
    )


def events(journal: Journal, run: str) -> list[ev.AnyEvent]:
    return [item.event for item in journal.events(run)]


def paths(found: list[ev.AnyEvent]) -> list[tuple[object, ...]]:
    """The visits and how each ended, which is the same in whatever order lanes were played."""
    ends = {e.visit: e.signal for e in found if isinstance(e, ev.VisitEnded)}
    starts = [e for e in found if isinstance(e, ev.VisitStarted)]
    return [(e.visit, e.movement, e.iteration, e.movement_iteration, e.cause, ends[e.visit]) for e in starts]


WORKED = [linear, full, fan, *(SCENARIOS[name] for name in ("nomatch", "team", "arpeggio", "three"))]


@pytest.mark.parametrize("make", WORKED)
def test_the_worker_comes_to_where_the_driver_comes(make: Callable[[], Scenario], lab: Path) -> None:
    scenario = make()
    reference = MemoryJournal()
    answers = scenario.inputs or full().inputs * 2
    Driver(scenario.but(*answers), reference, lab).play()
    journal = MemoryJournal()

    async def play() -> str:
        async with engine_of(journal, lab, scenario) as engine:
            run = await engine.start(scenario.piece, scenario.task, cwd=lab / "work")
            result = await run.result()
            while result.requests:
                await engine.answer(result.requests[0].id, "SQLite")
                result = await run.result()
            return run.id

    run = asyncio.run(play())
    found, wanted = events(journal, run), events(reference, scenario.run)
    assert [p[:5] for p in paths(found)] == [p[:5] for p in paths(wanted)]
    assert [
        (e.signal.kind, e.signal.label, e.signal.method) for e in found if isinstance(e, ev.VisitEnded)
    ] == [(e.signal.kind, e.signal.label, e.signal.method) for e in wanted if isinstance(e, ev.VisitEnded)]
    assert journal.run(run).status == reference.run(scenario.run).status
    assert journal.verify() == []


def test_the_worker_holds_a_poisonous_run_and_resume_lifts_it(lab: Path) -> None:
    clock = FrozenClock()
    journal = MemoryJournal(clock=clock)

    async def play() -> None:
        async with engine_of(journal, lab, linear()) as engine:
            run = await engine.start(linear().piece, "Go.", play=False, cwd=lab / "work")
            for _ in range(POISON_CLAIMS):
                assert journal.claim(this_process("lost"), run=run.id) is not None
                clock.advance(LEASE_SECONDS + 1)
            await engine.worker.play(run.id)
            row = journal.run(run.id)
            assert (row.status, row.reason) == ("held", "poison")
            assert row.message is not None
            assert "lost 3 times in a row at demand 'folder'" in row.message
            assert (await (await engine.resume(run.id)).result()).status == "completed"

    asyncio.run(play())
    assert journal.verify() == []


def changed(scenario: Scenario, kind: str) -> Scenario:
    perform = scenario.kinds[kind].perform
    return msgspec.structs.replace(scenario, kinds={**scenario.kinds, kind: MovementKind(perform, version=2)})


@pytest.mark.parametrize("restart", [False, True])
def test_an_answer_that_finds_other_code_holds_the_run_and_waits(restart: bool, lab: Path) -> None:
    """The run parks, Cadenza is upgraded, somebody answers: the answer is not lost and nothing crashes."""
    journal = MemoryJournal()
    other = changed(full(), "agent")

    async def park() -> tuple[str, str]:
        async with engine_of(journal, lab, full()) as engine:
            run = await engine.start(full().piece, "Go.", cwd=lab / "work")
            return run.id, (await run.result()).requests[0].id

    async def answer(run: str, request: str) -> None:
        async with engine_of(journal, lab, other) as engine:
            await engine.answer(request, "SQLite")
            result = await engine.run(run).result()
            assert (result.status, result.reason) == ("held", "code_changed")

    async def go_on(run: str) -> None:
        async with engine_of(journal, lab, other if restart else full()) as engine:
            result = await (await engine.resume(run, restart_visit=restart)).result()
            assert result.status == "completed"

    run, request = asyncio.run(park())
    asyncio.run(answer(run, request))
    asyncio.run(go_on(run))
    found = events(journal, run)
    taken = [e for e in found if isinstance(e, ev.DemandResolved) and e.id == _demand_of(found, request)]
    assert len(taken) == (0 if restart else 1)
    closed = [e.reason for e in found if isinstance(e, ev.RequestClosed)]
    assert closed == (["visit_restarted"] if restart else [])
    assert journal.verify() == []


def _demand_of(found: list[ev.AnyEvent], request: str) -> str:
    return next(e.demand for e in found if isinstance(e, ev.RequestOpened) and e.id == request)


def test_a_started_write_that_finds_other_code_is_held_and_told_of(lab: Path) -> None:
    clock = FrozenClock()
    journal = MemoryJournal(clock=clock)
    scenario = full()

    def at_point(point: Point) -> None:
        if point.where == "c" and point.started:
            raise Killed(str(point))

    with pytest.raises(Killed):
        Driver(scenario, journal, lab, at_point=at_point).play()
    clock.advance(LEASE_SECONDS + 1)

    async def play() -> None:
        async with engine_of(journal, lab, changed(scenario, WRITE_PROBE)) as engine:
            await engine.worker.play(scenario.run)
            assert journal.run(scenario.run).reason == "code_changed"
            result = await (await engine.resume(scenario.run, restart_visit=True)).result()
            assert result.status == "completed"

    asyncio.run(play())
    lost = [
        e.outcome.message
        for e in events(journal, scenario.run)
        if isinstance(e, ev.DemandResolved) and isinstance(e.outcome, Unknown)
    ]
    assert lost == ["the visit was restarted while this was being met"]
    assert journal.verify() == []


def perform_broken(visit: Visit) -> Performance[Signal]:
    yield Need("ask", AskPerson(question=visit.put("Well?")))
    raise RuntimeError("this kind is broken")


def test_a_kind_that_raises_ends_its_run_and_no_other(lab: Path) -> None:
    journal = MemoryJournal()
    kinds: Mapping[str, MovementKind] = {**PROBE_KINDS, WRITE_PROBE: MovementKind(perform_broken)}
    scenario = msgspec.structs.replace(full(), kinds=kinds)

    async def play() -> None:
        async with engine_of(journal, lab, scenario) as engine:
            run = await engine.start(scenario.piece, "Go.", cwd=lab / "work")
            result = await run.result()
            while result.requests:
                await engine.answer(result.requests[0].id, "SQLite")
                result = await run.result()
            assert (result.status, result.reason) == ("error", "movement_broken")
            assert result.message == 'Movement "deploy" broke: RuntimeError: this kind is broken'

    asyncio.run(play())
    assert journal.verify() == []


@pytest.mark.slow
def test_forty_movements_survive_fifty_random_kills(nursery: Nursery, lab: Path) -> None:
    lab.mkdir(parents=True)
    rng = random.Random(20260101)
    killed = 0
    for _ in range(3 * KILLS):
        killed += nursery.play(lab, rng.uniform(0, LONGEST_LIFE)) == -signal.SIGKILL
        if killed == KILLS:
            break
    assert killed == KILLS
    assert nursery.play(lab, None) == 0

    reference = MemoryJournal()
    Driver(forty(), reference, lab / "undisturbed").play()
    wanted = [(p[0], p[1], p[2], p[3], p[4]) for p in paths(events(reference, forty().run))]

    journal = sqlite_journals(lab)
    runs = list(journal.runs())
    assert [run.status for run in runs] == ["completed"]
    found = events(journal, runs[0].id)
    assert journal.verify() == []
    assert [p[:5] for p in paths(found)] == wanted
    assert len(wanted) == 40
    assert Counter(e.visit for e in found if isinstance(e, ev.VisitEnded)) == Counter(range(1, 41))
    _each_demand_once(found, lab)
    journal.close()


def _each_demand_once(found: list[ev.AnyEvent], lab: Path) -> None:
    """Every demand has one outcome; of the writes, each was done at most once, and done if it says so."""
    issued = Counter(e.id for e in found if isinstance(e, ev.DemandIssued))
    outcomes = {e.id: e.outcome for e in found if isinstance(e, ev.DemandResolved)}
    assert set(issued.values()) == {1}
    assert Counter(e.id for e in found if isinstance(e, ev.DemandResolved)) == issued
    written = (lab / "writes").read_text().splitlines()
    ids = Counter(line.split()[0] for line in written)
    assert set(ids.values()) <= {1}
    writes = [e.id for e in found if isinstance(e, ev.DemandIssued) and e.key == "write"]
    assert len(writes) == len(FORTY_PROBES)
    for demand in writes:
        assert demand in ids or isinstance(outcomes[demand], Unknown)
    seed = next(e.seed for e in found if isinstance(e, ev.RunStarted))
    assert writes[0] == derive(seed, "demand", int(FORTY_PROBES[0][1:]), 1, "write")
