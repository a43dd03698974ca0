"""Effects that must not be repeated: announced before they are carried out, and never forgotten."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cadenza.core import events as ev
from cadenza.core.demands import AskPerson, CallTool
from cadenza.core.outcomes import Answered, Returned, Unknown
from cadenza.core.performance import Lanes, NextOf, Performance
from cadenza.core.signals import Signal
from cadenza.core.visit import Visit
from cadenza.journal.memory import MemoryJournal
from cadenza.journal.store import LEASE_SECONDS, POISON_CLAIMS
from cadenza.testing import FrozenClock
from tests.worker.helpers import (
    Behaving,
    Stoppable,
    Tool,
    completed,
    engine_on,
    events,
    kinds_with,
    lose_workers,
    of,
    outcomes,
    perform_write,
    piece_in,
    saying,
    until,
)


def answers(event: ev.AnyEvent) -> bool:
    return isinstance(event, ev.DemandResolved) and isinstance(event.outcome, Answered)


def perform_race(visit: Visit) -> Performance[Signal]:
    """A call races a question that is followed by a write; the visit ends with the first."""

    def call() -> Performance[str]:
        yield visit.call("call", "hi")
        return "call"

    def write() -> Performance[str]:
        yield visit.need("ask", AskPerson(question=visit.put("sure?")))
        yield visit.need("tool", CallTool(name="write", effect="write"))
        return "write"

    name, _ = yield NextOf({"call": call(), "write": write()})
    return completed(name)


async def test_no_write_is_carried_out_that_the_journal_does_not_know_of(tmp_path: Path) -> None:
    """The visit ends while the write that it has just issued is about to be announced."""
    journal = Stoppable()
    journal.stop_at = answers
    tool, gate = Tool(journal), asyncio.Event()

    async def answer(request: object) -> str:
        await gate.wait()
        return "first"

    model = Behaving(answer)
    async with engine_on(journal, model, kinds=kinds_with(perform_race), tools={"write": tool}) as engine:
        run = await engine.start(piece_in(tmp_path, mine=["plan"]), "x", cwd=tmp_path)
        await model.asked.wait()
        (request,) = engine.service.inbox(run=run.id)
        await engine.answer(request.id, "yes")
        await until(journal.stopped.is_set)
        gate.set()
        await asyncio.sleep(0.05)  # the model's answer is there before the commit is
        journal.go.set()
        assert (await run.result()).status == "completed"
    assert tool.unannounced == []
    assert set(tool.done) <= {e.id for e in of(ev.DemandStarted, journal, run.id)}
    assert journal.verify() == []


def perform_both(visit: Visit) -> Performance[Signal]:
    """A write, beside a question that is followed by a call."""

    def write() -> Performance[None]:
        yield visit.need("tool", CallTool(name="write", effect="write"))

    def ask() -> Performance[None]:
        yield visit.need("ask", AskPerson(question=visit.put("sure?")))
        yield visit.call("call", "hi")

    yield Lanes({"write": write(), "ask": ask()})
    return completed("both")


@pytest.mark.parametrize("how", ["cancel", "interrupt"])
async def test_an_outcome_that_is_known_is_recorded_before_the_run_is_stopped(
    how: str, tmp_path: Path
) -> None:
    journal = Stoppable()
    journal.stop_at = answers
    tool = Tool(journal, gated=True)
    async with engine_on(journal, kinds=kinds_with(perform_both), tools={"write": tool}) as engine:
        run = await engine.start(piece_in(tmp_path, mine=["plan"]), "x", cwd=tmp_path)
        (request,) = await until(lambda: engine.service.inbox(run=run.id))
        await tool.called.wait()
        await engine.answer(request.id, "yes")
        await until(journal.stopped.is_set)
        if how == "cancel":
            engine.service.cancel(run.id)
        else:
            run.interrupt()
        tool.gate.set()
        await until(lambda: tool.done)
        await asyncio.sleep(0.05)
        journal.go.set()
        result = await run.result()
        assert (result.status, result.reason) == {
            "cancel": ("cancelled", "cancelled"),
            "interrupt": ("held", "interrupted"),
        }[how]
        assert outcomes(journal, run.id)["write/tool"] == Returned("receipt 4711")
        if how == "interrupt":
            assert (await (await engine.resume(run.id)).result()).status == "completed"
    assert len(tool.done) == 1
    assert journal.verify() == []


async def test_a_held_run_with_a_write_under_way_is_cancelled_and_not_played_on(tmp_path: Path) -> None:
    journal = MemoryJournal()
    tool = Tool(journal, gated=True)
    async with engine_on(journal, kinds=kinds_with(perform_write), tools={"write": tool}) as engine:
        run = await engine.start(piece_in(tmp_path, mine=["plan"]), "x", cwd=tmp_path)
        await tool.called.wait()
        run.interrupt()
        held = await run.result()
        assert (held.status, held.reason) == ("held", "interrupted")
        result = await (await engine.cancel(run.id)).result()
        assert (result.status, result.reason) == ("cancelled", "cancelled")
    lost = "the run was cancelled while this was being met"
    assert outcomes(journal, run.id)["tool"] == Unknown(message=lost)
    assert of(ev.VisitEnded, journal, run.id) == []
    assert tool.done == []
    assert journal.verify() == []


async def test_a_poisonous_run_with_a_write_under_way_is_held_and_not_played_on(tmp_path: Path) -> None:
    clock = FrozenClock()
    journal = MemoryJournal(clock=clock)
    tool = Tool(journal, gated=True)
    kinds = kinds_with(perform_write)
    async with engine_on(journal, kinds=kinds, tools={"write": tool}) as engine:
        run = await engine.start(piece_in(tmp_path, mine=["plan"]), "x", cwd=tmp_path)
        await tool.called.wait()
        clock.advance(LEASE_SECONDS + 1)  # this process sleeps, and others are lost meanwhile
        lose_workers(journal, run.id, clock, POISON_CLAIMS, LEASE_SECONDS + 1)
        async with engine_on(journal, kinds=kinds, tools={"write": tool}) as other:
            held = await other.play(run.id).result()
            assert (held.status, held.reason) == ("held", "poison")
            assert isinstance(events(journal, run.id)[-1], ev.RunHeld)
            assert "tool" not in outcomes(journal, run.id)
            result = await (await other.resume(run.id)).result()
            assert result.status == "completed"
    assert isinstance(outcomes(journal, run.id)["tool"], Unknown)
    assert tool.done == []
    assert journal.verify() == []


@pytest.mark.parametrize(("effect", "outcome"), [("write", "unknown"), ("read", "failed")])
async def test_a_tool_that_raises_is_an_outcome_and_harms_nobody_else(
    effect: str, outcome: str, tmp_path: Path
) -> None:
    journal = MemoryJournal()

    def perform(visit: Visit) -> Performance[Signal]:
        met = yield visit.need("tool", CallTool(name="boom", effect=effect))  # type: ignore[arg-type]
        return completed(str(type(met).__struct_config__.tag))

    async def boom(call: CallTool, *, demand: str, run: str) -> Returned:
        raise RuntimeError("a bug of the tool")

    async with engine_on(
        journal, saying("ok [STEP:0]"), kinds=kinds_with(perform), tools={"boom": boom}
    ) as engine:
        runs = [
            await engine.start(piece_in(tmp_path, mine=mine), "x", cwd=tmp_path, play=False)
            for mine in (["plan"], [], [])
        ]
        assert await engine.worker.serve(until_idle=True) == 3
        assert [run.row.status for run in runs] == ["completed"] * 3
    found = outcomes(journal, runs[0].id)["tool"]
    assert type(found).__struct_config__.tag == outcome
    assert "the tool 'boom' broke: RuntimeError: a bug of the tool" in str(found)
