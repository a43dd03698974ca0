"""Runs whose movements are of a kind, or of a version of it, that is not known where they are played on."""

from __future__ import annotations

from pathlib import Path

from cadenza.core import events as ev
from cadenza.core.demands import AskPerson
from cadenza.core.outcomes import Replied
from cadenza.core.performance import Performance
from cadenza.core.signals import Signal
from cadenza.core.visit import Visit
from cadenza.journal.memory import MemoryJournal
from tests.worker.helpers import TWO, completed, engine_on, kinds_with, of, outcomes, piece_in, saying


def perform_abort(visit: Visit) -> Performance[Signal]:
    yield visit.call("call", "hello")
    return Signal(kind="rule", next="ABORT", rule=2, label="bad")


def perform_asking(visit: Visit) -> Performance[Signal]:
    yield visit.need("ask", AskPerson(question=visit.put("well?")))
    return completed("asked")


async def test_a_retry_into_an_unknown_kind_is_refused_once_and_the_run_stays_as_it_ended(
    tmp_path: Path,
) -> None:
    journal = MemoryJournal()
    async with engine_on(journal, kinds=kinds_with(perform_abort)) as engine:
        run = await engine.start(piece_in(tmp_path, mine=["plan"]), "x", cwd=tmp_path)
        assert (await run.result()).status == "aborted"
    async with engine_on(journal) as engine:
        result = await (await engine.retry(run.id)).result()
        assert (result.status, result.reason) == ("aborted", "rule")
        (refused,) = of(ev.InputRefused, journal, run.id)
        assert refused.input == "run.reopened"
        assert "no movement kind 'mine'" in refused.message
        assert engine.service.state(run.id).inputs == ()
    async with engine_on(journal, kinds=kinds_with(perform_abort)) as engine:
        await (await engine.retry(run.id)).result()
        assert [v.cause for v in of(ev.VisitStarted, journal, run.id)] == ["start", "retry"]
    assert journal.verify() == []


async def test_a_restart_of_a_visit_of_an_unknown_kind_is_refused_and_the_run_stays_held(
    tmp_path: Path,
) -> None:
    journal = MemoryJournal()
    async with engine_on(journal, kinds=kinds_with(perform_asking)) as engine:
        run = await engine.start(piece_in(tmp_path, mine=["plan"]), "x", cwd=tmp_path)
        request = (await run.result()).requests[0].id
    async with engine_on(journal) as engine:
        await engine.answer(request, "yes")
        held = await engine.run(run.id).result()
        assert (held.status, held.reason) == ("held", "code_changed")
        again = await (await engine.resume(run.id, restart_visit=True)).result()
        assert (again.status, again.reason) == ("held", "code_changed")
        assert [r.input for r in of(ev.InputRefused, journal, run.id)] == ["run.resume_requested"]
    async with engine_on(journal, kinds=kinds_with(perform_asking)) as engine:
        result = await (await engine.resume(run.id)).result()
        assert result.status == "completed"  # the answer had waited
    assert journal.verify() == []


async def test_an_outcome_is_not_lost_where_the_next_movement_s_kind_is_unknown(tmp_path: Path) -> None:
    journal = MemoryJournal()
    model = saying("ok [STEP:0]")
    async with engine_on(journal, model) as engine:
        run = await engine.start(piece_in(tmp_path, TWO, mine=["build"]), "x", cwd=tmp_path)
        result = await run.result()
        assert (result.status, result.reason) == ("error", "unknown_kind")
        assert "no movement kind 'mine'" in (result.message or "")
        assert isinstance(outcomes(journal, run.id)["perform"], Replied)
    async with engine_on(journal, model, kinds=kinds_with(perform_asking)) as engine:
        parked = await (await engine.retry(run.id)).result()
        await engine.answer(parked.requests[0].id, "yes")
        assert (await engine.run(run.id).result()).status == "completed"
    assert [v.movement for v in of(ev.VisitStarted, journal, run.id)] == ["plan", "build"]
    assert len(model.requests) == 1
    assert journal.verify() == []
