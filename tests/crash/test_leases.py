"""Workers that are lost, that come back too late, and code that is another one by then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from cadenza.core import events as ev
from cadenza.core.movements import MovementKind
from cadenza.core.outcomes import Unknown
from cadenza.errors import Conflict, LeaseLost, SequenceConflict
from cadenza.journal.holders import this_process
from cadenza.journal.store import LEASE_SECONDS, POISON_CLAIMS, Commit, Journal
from cadenza.testing import (
    Driver,
    FrozenClock,
    Killed,
    MemoryJournal,
    Point,
    Retry,
    Scenario,
    Script,
    memory_journals,
    sqlite_journals,
)
from cadenza.testing.probes import PROBE_KINDS, WRITE_PROBE
from tests.crash.scenarios import altered, forty, full, linear

Open = Callable[[], Journal]


@pytest.fixture(params=["memory", "sqlite"])
def journal(request: pytest.FixtureRequest, lab: Path) -> Journal:
    lab.mkdir(parents=True, exist_ok=True)
    open_journal = memory_journals() if request.param == "memory" else sqlite_journals
    return open_journal(lab, CLOCK)


CLOCK = FrozenClock()


def dies_at(where: str, *, nth: int = 0) -> Callable[[Point], None]:
    count = 0

    def at_point(point: Point) -> None:
        nonlocal count
        if point.where == where and (count := count + 1) > nth:
            raise Killed(str(point))

    return at_point


def events(journal: Journal, scenario: Scenario) -> list[ev.AnyEvent]:
    return [item.event for item in journal.events(scenario.run)]


def test_a_zombies_commit_after_a_new_claim_is_refused(journal: Journal, lab: Path) -> None:
    scenario = linear()
    Driver(scenario, journal, lab).open()
    zombie = journal.claim(this_process("zombie"), run=scenario.run)
    assert zombie is not None
    assert journal.claim(this_process("other"), run=scenario.run) is None
    CLOCK.advance(LEASE_SECONDS + 1)
    fresh = journal.claim(this_process("other"), run=scenario.run)
    assert fresh is not None
    assert fresh.epoch > zombie.epoch
    before = journal.events(scenario.run)
    driver = Driver(scenario, journal, lab)
    driver.open()
    opened = driver.state.met_by_worker[0]
    step = driver.conductor.hold(driver.state, "interrupted", "", driver.now(), demand=opened.id)
    commit = Commit(
        run=scenario.run,
        epoch=zombie.epoch,
        after=driver.state.seq,
        events=step.events,
        state=step.state,
        at=driver.now(),
    )
    with pytest.raises(LeaseLost):
        journal.commit(commit)
    with pytest.raises(LeaseLost):
        journal.renew(zombie)
    assert journal.events(scenario.run) == before
    journal.release(zombie)
    assert journal.leases()[scenario.run].epoch == fresh.epoch
    with pytest.raises(SequenceConflict):
        journal.commit(msgspec.structs.replace(commit, epoch=fresh.epoch, after=commit.after - 1))
    journal.commit(msgspec.structs.replace(commit, epoch=fresh.epoch))


def test_a_zombie_that_wakes_in_the_middle_of_its_work_stops(journal: Journal, lab: Path) -> None:
    scenario = linear()

    def steal(point: Point) -> None:
        if point.where == "d":
            CLOCK.advance(LEASE_SECONDS + 1)
            Driver(scenario, journal, lab).play()

    with pytest.raises(LeaseLost):
        Driver(scenario, journal, lab, at_point=steal).play()
    assert journal.run(scenario.run).status == "completed"
    assert journal.verify() == []


def test_a_run_whose_worker_is_lost_three_times_is_held_as_poison(journal: Journal, lab: Path) -> None:
    scenario = full()
    for _ in range(POISON_CLAIMS):
        CLOCK.advance(LEASE_SECONDS + 1)
        with pytest.raises(Killed):
            Driver(scenario, journal, lab, at_point=dies_at("c")).play()
    CLOCK.advance(LEASE_SECONDS + 1)
    driver = Driver(scenario, journal, lab)
    state = driver.play()
    assert state.held is not None
    assert state.held.reason == "poison"
    assert state.held.message == "its worker was lost 3 times in a row at demand 'folder'"
    assert state.held.demand == next(iter(state.open))
    journal.append_input(scenario.run, ev.ResumeRequested(), at=driver.now(), actor="person")
    assert Driver(scenario, journal, lab).play().status == "completed"
    assert journal.verify() == []


def test_a_lost_worker_that_committed_something_does_not_count(journal: Journal, lab: Path) -> None:
    scenario = forty()
    for _ in range(3 * POISON_CLAIMS):
        CLOCK.advance(LEASE_SECONDS + 1)
        with pytest.raises(Killed):
            Driver(scenario, journal, lab, at_point=dies_at("d", nth=2)).play()
    CLOCK.advance(LEASE_SECONDS + 1)
    assert Driver(scenario, journal, lab).play().status == "completed"


def older(scenario: Scenario) -> Scenario:
    """The same scenario, with a write probe of another version."""
    kind = PROBE_KINDS[WRITE_PROBE]
    kinds = {**PROBE_KINDS, WRITE_PROBE: MovementKind(kind.perform, version=2)}
    return msgspec.structs.replace(scenario, kinds=kinds)


def until_the_write(journal: Journal, lab: Path, where: str) -> None:
    """A worker dies after the write was issued (b), or after it was started (c)."""
    found: list[Point] = []
    Driver(full(), MemoryJournal(), lab / "rehearsal", at_point=found.append).play()
    write = next(point.demands[0] for point in found if point.started)

    def at_point(point: Point) -> None:
        if point.where == where and write in point.demands:
            raise Killed(str(point))

    with pytest.raises(Killed):
        Driver(full(), journal, lab, at_point=at_point).play()
    CLOCK.advance(LEASE_SECONDS + 1)


def test_other_code_holds_the_run_and_restarting_the_visit_goes_on(journal: Journal, lab: Path) -> None:
    scenario = older(full())
    until_the_write(journal, lab, "b")
    driver = Driver(scenario, journal, lab)
    state = driver.play()
    assert state.held is not None
    assert state.held.reason == "code_changed"
    assert "version 1 of 'write_probe' movements; this is version 2" in state.held.message
    journal.append_input(scenario.run, ev.ResumeRequested(), at=driver.now(), actor="person")
    state = Driver(scenario, journal, lab).play()
    assert state.held is not None, "resuming alone does not make the code fit"
    before = state.visit
    assert before is not None
    journal.append_input(
        scenario.run, ev.ResumeRequested(restart_visit=True), at=driver.now(), actor="person"
    )
    state = Driver(scenario, journal, lab).play()
    assert state.status == "completed"
    restarted = next(
        e for e in events(journal, scenario) if isinstance(e, ev.VisitStarted) and e.attempt == 2
    )
    assert (restarted.visit, restarted.movement, restarted.cause, restarted.version) == (
        before.started.visit,
        "deploy",
        "restart",
        2,
    )
    assert restarted.iteration == before.started.iteration
    assert restarted.movement_iteration == before.started.movement_iteration
    assert journal.verify() == []


def test_a_started_write_under_other_code_is_held_too(journal: Journal, lab: Path) -> None:
    until_the_write(journal, lab, "c")
    state = Driver(older(full()), journal, lab).play()
    assert state.held is not None
    assert state.held.reason == "code_changed"
    opened = next(iter(state.open.values()))
    assert opened.started
    CLOCK.advance(LEASE_SECONDS + 1)
    at = FrozenClock()()
    resume = ev.ResumeRequested(restart_visit=True)
    journal.append_input(full().run, resume, at=at, actor="person")
    state = Driver(older(full()), journal, lab).play()
    assert state.status == "completed"
    lost = next(e for e in events(journal, full()) if isinstance(e, ev.DemandResolved) and e.id == opened.id)
    assert lost.outcome == Unknown(message="the visit was restarted while this was being met")
    assert journal.verify() == []


def test_retry_after_an_abort_reopens_at_the_failed_movement(journal: Journal, lab: Path) -> None:
    script = Script.from_entries(
        [
            {"movement": "plan", "text": "A plan. [STEP:0]", "times": "forever"},
            {"movement": "build", "text": "No. [STEP:1]"},
            {"movement": "build", "text": "Yes. [STEP:0]"},
        ]
    )
    scenario = msgspec.structs.replace(linear(), script=script, inputs=(Retry(),))
    state = Driver(scenario, journal, lab).play()
    assert state.status == "completed"
    visits = [e for e in events(journal, scenario) if isinstance(e, ev.VisitStarted)]
    assert [(v.visit, v.movement, v.iteration, v.movement_iteration, v.cause, v.limit) for v in visits] == [
        (1, "plan", 1, 1, "start", 0),
        (2, "build", 2, 1, "rule", 0),
        (3, "build", 3, 2, "retry", 0),
    ]
    ends = [e for e in events(journal, scenario) if isinstance(e, ev.RunEnded)]
    assert [(e.status, e.reason) for e in ends] == [("aborted", "rule"), ("completed", "complete")]


def test_retry_after_the_limit_grants_as_many_movements_again(journal: Journal, lab: Path) -> None:
    short = altered(linear().piece, max_movements=1)
    scenario = msgspec.structs.replace(linear(), piece=short, inputs=(Retry(),))
    state = Driver(scenario, journal, lab).play()
    assert state.status == "completed"
    visits = [e for e in events(journal, scenario) if isinstance(e, ev.VisitStarted)]
    assert [(v.movement, v.iteration, v.cause, v.limit) for v in visits] == [
        ("plan", 1, "start", 0),
        ("build", 2, "retry", 2),
    ]
    ends = [e.reason for e in events(journal, scenario) if isinstance(e, ev.RunEnded)]
    assert ends == ["max_movements", "complete"]


def test_a_completed_run_takes_no_cancel(journal: Journal, lab: Path) -> None:
    Driver(linear(), journal, lab).play()
    with pytest.raises(Conflict):
        journal.append_input(linear().run, ev.CancelRequested(), at=0.0, actor="person")
