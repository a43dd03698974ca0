"""What people append: kept, taken once, refused where it cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cadenza.core import events as ev
from cadenza.core.demands import CallModel
from cadenza.errors import InputRefused, ProviderError
from cadenza.journal.memory import MemoryJournal
from tests.worker.helpers import Behaving, engine_on, forever, of, piece_in, saying

PERSONA = """
name: sessions
phases: three
max_movements: 6
movements:
  - name: plan
    persona: coder
    instruction_template: plan it
    rules: [{condition: planned, next: build}]
  - name: build
    persona: coder
    instruction_template: build it
    rules: [{condition: built, next: COMPLETE}]
"""


async def test_a_retry_has_the_answer_that_the_failed_visit_had(tmp_path: Path) -> None:
    journal = MemoryJournal()
    said = iter(["which db? [STEP:1]", None, "ok [STEP:0]"])

    def answer(request: Any) -> str:
        text = next(said)
        if text is None:
            raise ProviderError("bad gateway", code="server")
        return text

    model = Behaving(answer)
    async with engine_on(journal, model) as engine:
        run = await engine.start(piece_in(tmp_path), "x", cwd=tmp_path)
        await engine.answer((await run.result()).requests[0].id, "USE-POSTGRES")
        assert (await run.result()).status == "aborted"
        assert (await (await engine.retry(run.id)).result()).status == "completed"
    assert ["USE-POSTGRES" in r.messages[0].content for r in model.requests] == [False, True, True]
    answers = [len(visit.answers) for visit in of(ev.VisitStarted, journal, run.id)]
    assert answers == [0, 1, 1]


async def test_a_retry_from_another_movement_has_no_answer(tmp_path: Path) -> None:
    journal = MemoryJournal()
    model = saying("which db? [STEP:1]", "no [STEP:2]", "ok [STEP:0]")
    async with engine_on(journal, model) as engine:
        run = await engine.start(piece_in(tmp_path), "x", cwd=tmp_path)
        await engine.answer((await run.result()).requests[0].id, "USE-POSTGRES")
        assert (await run.result()).status == "aborted"
        await (await engine.retry(run.id)).result()
        assert run.row.status == "completed"
        await (await engine.retry(run.id, movement="plan")).result()
    contents = [request.messages[0].content for request in model.requests]
    assert ["USE-POSTGRES" in content for content in contents[:3]] == [False, True, True]


@pytest.mark.parametrize("first", [True, False])
async def test_of_two_queued_resumes_the_one_that_restarts_is_kept(first: bool, tmp_path: Path) -> None:
    journal = MemoryJournal()
    model = Behaving(forever)
    async with engine_on(journal, model) as engine:
        run = await engine.start(piece_in(tmp_path), "x", cwd=tmp_path)
        await model.asked.wait()
        run.interrupt()
        await run.result()
        model.answer = lambda request: "ok [STEP:0]"
        engine.service.resume(run.id, restart_visit=first)
        journal.append_input(run.id, ev.ResumeRequested(restart_visit=not first), at=1.0, actor="other")
        assert (await engine.play(run.id).result()).status == "completed"
    assert [v.cause for v in of(ev.VisitStarted, journal, run.id)] == ["start", "restart"]
    assert len(of(ev.RunReleased, journal, run.id)) == 1
    assert journal.verify() == []


@pytest.mark.parametrize("value", [{"a": [1, None, True]}, True, None, [], 7, ["x" * 3_000_000]])
async def test_an_answer_that_is_no_text_is_refused_and_the_question_stays_open(
    value: object, tmp_path: Path
) -> None:
    journal = MemoryJournal()
    async with engine_on(journal, saying("q? [STEP:1]", "ok [STEP:0]")) as engine:
        run = await engine.start(piece_in(tmp_path), "x", cwd=tmp_path)
        (request,) = (await run.result()).requests
        with pytest.raises(InputRefused, match="takes a text"):
            await engine.answer(request.id, value)
        assert [row.id for row in engine.service.inbox(run=run.id)] == [request.id]
        await engine.answer(request.id, "a text")
        assert (await run.result()).status == "completed"
    assert len(of(ev.RequestDecided, journal, run.id)) == 1


@pytest.mark.parametrize("movement", ["plan", "build"])
async def test_a_restarted_visit_of_phases_three_starts_a_fresh_conversation(
    movement: str, tmp_path: Path
) -> None:
    """Nothing follows the message of the first try, which nobody has answered."""
    journal = MemoryJournal()
    model = Behaving(lambda r: forever(r) if r.movement == movement else "done")
    async with engine_on(journal, model) as engine:
        run = await engine.start(piece_in(tmp_path, PERSONA), "x", cwd=tmp_path)
        while not any(request.movement == movement for request in model.requests):
            model.asked.clear()
            await model.asked.wait()
        run.interrupt()
        await run.result()
        model.answer = lambda request: "done"
        result = await (await engine.resume(run.id, restart_visit=True)).result()
        assert result.status == "completed"
    calls = [
        e.demand
        for e in of(ev.DemandIssued, journal, run.id)
        if isinstance(e.demand, CallModel) and e.demand.movement == movement
    ]
    first, second = calls
    assert first.continues == (movement == "build")
    assert not second.continues
    assert first.conversation != second.conversation
    sent = [request.messages for request in model.requests if request.movement == movement][-1]
    assert [message.role for message in sent] == ["system", "user"]
    assert journal.verify() == []


@pytest.mark.parametrize("movement", ["plan", "build"])
async def test_nobody_goes_on_in_a_conversation_that_ends_in_a_failed_call(
    movement: str, tmp_path: Path
) -> None:
    failing = True

    def answer(request: Any) -> str:
        if failing and request.movement == movement:
            raise ProviderError("no", code="auth")
        return "done"

    journal = MemoryJournal()
    model = Behaving(answer)
    async with engine_on(journal, model) as engine:
        run = await engine.start(piece_in(tmp_path, PERSONA), "x", cwd=tmp_path)
        assert (await run.result()).status == "aborted"
        failing = False
        assert (await (await engine.retry(run.id)).result()).status == "completed"
    for request in model.requests:
        roles = [message.role for message in request.messages[1:]]
        assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    assert journal.verify() == []
