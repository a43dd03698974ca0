"""Runs that a program plays in its own process: stopped, answered and lost at the worst of moments."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from cadenza.core import events as ev
from cadenza.errors import ProviderError
from cadenza.journal.memory import MemoryJournal
from cadenza.journal.store import LEASE_SECONDS
from cadenza.testing import FrozenClock
from cadenza.worker import embedded
from tests.worker.helpers import (
    PATIENCE,
    Behaving,
    Counting,
    engine_on,
    events,
    forever,
    of,
    piece_in,
    saying,
    until,
)


async def test_an_interrupt_while_a_cancel_waits_ends_the_run_and_does_not_spin(tmp_path: Path) -> None:
    journal = Counting()
    model = Behaving(forever)
    engine = engine_on(journal, model)
    run = await engine.start(piece_in(tmp_path), "x", cwd=tmp_path)
    await model.asked.wait()
    cancel = ev.CancelRequested(reason="from elsewhere")
    journal.append_input(run.id, cancel, at=time.time(), actor="other")
    run.interrupt()
    result = await asyncio.wait_for(run.result(), PATIENCE)
    assert (result.status, result.reason) == ("cancelled", "cancelled")
    await asyncio.wait_for(engine.close(), PATIENCE)
    assert journal.claims <= 3
    assert journal.verify() == []


async def test_a_resume_while_the_run_is_being_held_is_played_on_and_can_be_closed(tmp_path: Path) -> None:
    journal = Counting()
    model = Behaving(forever)
    engine = engine_on(journal, model)
    run = await engine.start(piece_in(tmp_path), "x", cwd=tmp_path)
    await model.asked.wait()
    run.interrupt()
    while run.row.status != "held":
        await asyncio.sleep(0)
    engine.service.resume(run.id)
    engine.play(run.id)  # while the other is still being put away
    await until(lambda: len(model.requests) == 2)
    await asyncio.wait_for(engine.close(), PATIENCE)
    assert (run.row.status, run.row.reason) == ("held", "interrupted")
    assert journal.claims <= 4
    assert journal.verify() == []


@pytest.mark.parametrize("how", ["resume", "resume and cancel", "retry"])
async def test_an_interrupt_before_the_first_turn_holds_what_was_just_reopened(
    how: str, tmp_path: Path
) -> None:
    """Nothing is left in the queue that nobody here plays: who waits for the run would wait for ever."""
    journal = Counting()
    model = Behaving(forever)
    async with engine_on(journal, model) as engine:
        run = await engine.start(piece_in(tmp_path), "x", cwd=tmp_path)
        await model.asked.wait()
        run.interrupt()
        await run.result()
        if how == "retry":
            await (await engine.cancel(run.id)).result()
            engine.service.retry(run.id)
        else:
            engine.service.resume(run.id)
            if "cancel" in how:
                engine.service.cancel(run.id)
        engine.play(run.id)
        run.interrupt()
        result = await asyncio.wait_for(run.result(), PATIENCE)
        wanted = ("cancelled", "cancelled") if "cancel" in how else ("held", "interrupted")
        assert (result.status, result.reason) == wanted
    assert journal.leases() == {}
    assert len(model.requests) == 1
    assert journal.claims <= 5
    assert journal.verify() == []


class Gazing(MemoryJournal):
    """The first look from a thread at a run that waits for a person takes long, and what it saw is old."""

    def __init__(self) -> None:
        super().__init__()
        self.looked, self.go = threading.Event(), threading.Event()

    def run(self, run: str) -> Any:
        row = super().run(run)
        elsewhere = threading.current_thread() is not threading.main_thread()
        if elsewhere and row.status == "waiting_human" and not self.looked.is_set():
            self.looked.set()
            assert self.go.wait(PATIENCE)
        return row


async def test_an_answer_between_the_last_look_and_the_end_of_playing_is_not_missed(tmp_path: Path) -> None:
    journal = Gazing()
    async with engine_on(journal, saying("q? [STEP:1]", "ok [STEP:0]")) as engine:
        run = await engine.start(piece_in(tmp_path), "x", cwd=tmp_path)
        await until(journal.looked.is_set)
        (request,) = engine.service.inbox(run=run.id)
        assert (await engine.answer(request.id, "42")).result == "accepted"
        journal.go.set()
        result = await asyncio.wait_for(run.result(), PATIENCE)
        assert result.status == "completed"


async def test_answers_given_at_once_are_never_missed(tmp_path: Path) -> None:
    journal = MemoryJournal()

    def answer(request: Any) -> str:
        return "ok [STEP:0]" if "42" in request.messages[0].content else "q? [STEP:1]"

    async with engine_on(journal, Behaving(answer)) as engine:
        piece = piece_in(tmp_path)
        for number in range(40):
            run = await engine.start(piece, "x", cwd=tmp_path)
            (request,) = await until(lambda run=run: engine.service.inbox(run=run.id))  # type: ignore[misc]
            for _ in range(number):
                await asyncio.sleep(0)
            await engine.answer(request.id, "42")
            assert (await asyncio.wait_for(run.result(), PATIENCE)).status == "completed"
        assert not engine.interrupt(run.id)


async def test_a_wait_for_the_next_try_is_no_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a call waits, the run's row is looked at; it is not claimed, loaded and given back again."""
    monkeypatch.setattr(embedded, "LOOK_SECONDS", 0.01)
    journal = Counting()

    def answer(request: Any) -> str:
        raise ProviderError("slow down", code="rate_limited", retriable=True, retry_after=300)

    async with engine_on(journal, Behaving(answer)) as engine:
        run = await engine.start(piece_in(tmp_path), "x", cwd=tmp_path)
        await until(lambda: of(ev.DemandRetried, journal, run.id))
        looks = journal.looks
        await until(lambda: journal.looks > looks + 10)
        assert journal.claims <= 2
        run.interrupt()
        assert (await run.result()).reason == "interrupted"


async def test_a_short_wait_is_lived_through_and_the_call_is_tried_again(tmp_path: Path) -> None:
    journal = Counting()

    def answer(request: Any) -> str:
        if request.attempt < 3:
            raise ProviderError("slow down", code="rate_limited", retriable=True, retry_after=0.05)
        return "ok [STEP:0]"

    async with engine_on(journal, Behaving(answer)) as engine:
        run = await engine.start(piece_in(tmp_path), "x", cwd=tmp_path)
        assert (await run.result()).status == "completed"
    assert journal.claims == 1


async def test_the_result_of_a_run_that_was_taken_over_is_what_the_other_came_to(tmp_path: Path) -> None:
    clock = FrozenClock()
    journal = MemoryJournal(clock=clock)
    gate = asyncio.Event()

    async def slow(request: Any) -> str:
        await gate.wait()
        return "mine [STEP:0]"

    model = Behaving(slow)
    async with (
        engine_on(journal, model) as one,
        engine_on(journal, saying("theirs [STEP:0]")) as two,
    ):
        run = await one.start(piece_in(tmp_path), "x", cwd=tmp_path)
        await model.asked.wait()
        clock.advance(LEASE_SECONDS + 1)  # one's machine slept
        assert (await two.play(run.id).result()).status == "completed"
        gate.set()
        result = await run.result()
        assert (result.status, result.output) == ("completed", "theirs [STEP:0]")
    assert [type(e) for e in events(journal, run.id)].count(ev.RunEnded) == 1
    assert journal.verify() == []
