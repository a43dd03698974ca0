"""Interrupts, resumes, answers and a cancel at moments that a seed decides: nothing hangs or is lost."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cadenza.core import events as ev
from cadenza.core.demands import CallTool
from cadenza.core.outcomes import AnyOutcome, Returned
from cadenza.errors import Conflict
from cadenza.journal.memory import MemoryJournal
from tests.crash.kinds import fan
from tests.worker.helpers import PATIENCE, Behaving, engine_on, of

MEDDLINGS = 12


class Slow:
    """A tool that takes a moment and notes what it did, and what it came to."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.begun: Counter[str] = Counter()
        self.done: Counter[str] = Counter()

    async def __call__(self, call: CallTool, *, demand: str, run: str) -> AnyOutcome:
        self.begun[demand] += 1
        await asyncio.sleep(self.rng.choice([0, 0.001, 0.003]))
        self.done[demand] += 1
        return Returned(call.name)


@pytest.mark.parametrize("seed", range(300))
async def test_whatever_people_do_a_run_comes_to_its_end(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    journal = MemoryJournal()
    scenario = fan()
    tool = Slow(rng)

    async def answer(request: Any) -> str:
        await asyncio.sleep(rng.choice([0, 0.001, 0.003]))
        return "Done. [STEP:0]"

    engine = engine_on(journal, Behaving(answer), kinds=scenario.kinds, tools={"write_probe": tool})
    run = await engine.start(scenario.piece, "Go.", cwd=tmp_path)
    for _ in range(MEDDLINGS):
        await asyncio.sleep(rng.choice([0, 0, 0.001, 0.002, 0.004]))
        deed = rng.choice(["interrupt", "interrupt", "resume", "resume", "restart", "answer", "answer"])
        if deed == "interrupt":
            run.interrupt()
        elif deed == "answer":
            for request in engine.service.inbox(run=run.id)[:1]:
                await engine.answer(request.id, "yes")
        else:
            with suppress(Conflict):
                await engine.resume(run.id, restart_visit=deed == "restart")
    if seed % 5 == 0:
        with suppress(Conflict):
            await engine.cancel(run.id)
    async with asyncio.timeout(PATIENCE):
        result = await run.result()
        while result.status in ("held", "waiting_human"):
            if result.status == "held":
                await engine.resume(run.id)
            else:
                await engine.answer(result.requests[0].id, "yes")
            result = await run.result()
        await engine.close()
    ends = {"completed", "cancelled"} if seed % 5 == 0 else {"completed"}  # it may have been just too late
    assert result.status in ends
    assert journal.leases() == {}
    assert journal.verify() == []
    _nothing_is_lost(journal, run.id, tool)


def _nothing_is_lost(journal: MemoryJournal, run: str, tool: Slow) -> None:
    writes = {
        e.id
        for e in of(ev.DemandIssued, journal, run)
        if isinstance(e.demand, CallTool) and e.demand.effect == "write"
    }
    found = {e.id: e.outcome for e in of(ev.DemandResolved, journal, run)}
    started = {e.id for e in of(ev.DemandStarted, journal, run)}
    begun = {demand for demand in tool.begun if demand in writes}
    assert begun <= started
    assert started <= found.keys()
    assert all(tool.begun[demand] <= 1 for demand in writes)
    for demand in writes & found.keys():
        assert isinstance(found[demand], Returned) == (tool.done[demand] == 1)
