"""What one session does with calls under way when somebody else appends to its run."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import msgspec

from cadenza.core import events as ev
from cadenza.core.demands import CallModel, CallTool
from cadenza.core.outcomes import AnyOutcome, Unknown
from cadenza.journal.store import Journal
from cadenza.providers.base import ModelReply, ModelRequest, OnText
from cadenza.testing import MemoryJournal, Script, ScriptedProvider
from cadenza.testing.probes import WRITE_PROBE
from cadenza.worker.meeting import ToolExecutor
from tests.crash.kinds import fan
from tests.crash.scenarios import full
from tests.crash.test_worker import changed, engine_of, events


class Meddling(ScriptedProvider):
    """A model during whose answer somebody decides an open question of the run: its commit is refused."""

    def __init__(self, script: Script, journal: Journal) -> None:
        super().__init__(script)
        self.journal = journal
        self.calls: Counter[str] = Counter()
        self.decided = 0

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        self.calls[request.demand] += 1
        reply = await super().complete(request, on_text)
        for asked in self.journal.requests()[:1]:
            self.decided += self.journal.decide(asked.id, "yes", at=0.0, actor="ann").result == "accepted"
        return reply


def test_an_outcome_whose_commit_is_refused_is_resolved_again_and_not_met_again(lab: Path) -> None:
    journal = MemoryJournal()
    scenario = fan()
    provider = Meddling(scenario.script, journal)

    async def play() -> str:
        async with engine_of(journal, lab, scenario, provider) as engine:
            run = await engine.start(scenario.piece, scenario.task, cwd=lab / "work")
            result = await run.result()
            while result.requests:
                await engine.answer(result.requests[0].id, "yes")
                result = await run.result()
            assert result.status == "completed"
            return run.id

    run = asyncio.run(play())
    assert provider.decided >= 1
    calls = [
        e.id
        for e in events(journal, run)
        if isinstance(e, ev.DemandIssued) and isinstance(e.demand, CallModel)
    ]
    assert provider.calls == Counter(calls)
    lines = Counter((lab / "writes").read_text().splitlines())
    assert set(lines.values()) == {1}
    assert journal.verify() == []


class Hanging:
    """A tool that never comes back."""

    def __init__(self) -> None:
        self.called = asyncio.Event()

    async def __call__(self, call: CallTool, *, demand: str, run: str) -> AnyOutcome:
        self.called.set()
        await asyncio.Event().wait()
        raise AssertionError("it hangs")


def test_a_cancel_records_what_was_under_way_as_unknown(lab: Path) -> None:
    journal = MemoryJournal()

    async def play() -> None:
        tool = Hanging()
        tools: Mapping[str, ToolExecutor] = {WRITE_PROBE: tool}
        scenario = msgspec.structs.replace(full(), tools=lambda folder: tools)
        async with engine_of(journal, lab, scenario) as engine:
            run = await engine.start(scenario.piece, scenario.task, cwd=lab / "work")
            await engine.answer((await run.result()).requests[0].id, "SQLite")
            await tool.called.wait()
            result = await (await engine.cancel(run.id, "enough")).result()
            assert (result.status, result.reason) == ("cancelled", "cancelled")
            found = events(journal, run.id)
        started = next(e.id for e in found if isinstance(e, ev.DemandStarted))
        outcomes = {e.id: e.outcome for e in found if isinstance(e, ev.DemandResolved)}
        assert outcomes[started] == Unknown(message="the run was cancelled while this was being met")
        assert isinstance(found[-1], ev.RunEnded)

    asyncio.run(play())
    assert journal.verify() == []


def test_a_restarted_visit_opens_new_conversations(lab: Path) -> None:
    """Nothing is sent into a conversation that the first try of the visit has begun."""
    journal = MemoryJournal()

    async def play() -> str:
        async with engine_of(journal, lab, full()) as engine:
            run = await engine.start(full().piece, "Go.", cwd=lab / "work")
            request = (await run.result()).requests[0].id
        async with engine_of(journal, lab, changed(full(), "agent")) as engine:
            await engine.answer(request, "SQLite")
            assert (await engine.run(run.id).result()).reason == "code_changed"
            result = await (await engine.resume(run.id, restart_visit=True)).result()
            assert result.status == "completed"
        return run.id

    run = asyncio.run(play())
    begun = Counter(
        e.demand.conversation
        for e in events(journal, run)
        if isinstance(e, ev.DemandIssued) and isinstance(e.demand, CallModel)
    )
    assert set(begun.values()) == {1}
