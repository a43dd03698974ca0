"""An agent's turn: the prompt is put together, the model is called, reports are taken from its answer."""

from __future__ import annotations

from typing import Any

import msgspec

from cadenza.core.outcomes import AnyOutcome, Cancelled, Failed, Replied, Returned, Unknown
from cadenza.core.performance import Performance, Tell
from cadenza.core.prompts.notices import cut_short
from cadenza.core.prompts.single import ReportItem, ReportOrder, SinglePrompt, compose
from cadenza.core.prompts.templates import reports_mentioned
from cadenza.core.report_names import ReportWanted
from cadenza.core.reports import extract
from cadenza.core.visit import Visit
from cadenza.ids import Hash
from cadenza.piece.model import Report


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent's turn came to: its output, or a code and the error."""

    output: Hash | None = None
    code: str | None = None
    error: str | None = None


def play(visit: Visit, *, cycle_count: int | None = None) -> Performance[Played]:
    """One turn of the movement's agent, in a new conversation, with its reports saved."""
    prepared = yield from prepare(visit)
    prompt = compose(prompt_of(visit, prepared.reports, cycle_count=cycle_count))
    purpose = "perform" if cycle_count is None else "loop-judge"
    outcome: AnyOutcome = yield visit.call("perform", prompt, purpose=purpose)
    if not isinstance(outcome, Replied):
        return failure(outcome)
    if outcome.finish == "length":
        yield Tell("cut_short", cut_short(visit.language, visit.movement.name))
    if visit.movement.reports and visit.folder:
        yield from save_reports(visit, visit.text(outcome.text))
    return Played(output=outcome.text)


def failure(outcome: AnyOutcome) -> Played:
    """What a call that gave no reply means for its movement."""
    if isinstance(outcome, Failed):
        return Played(code="movement_failed", error=outcome.message)
    if isinstance(outcome, Unknown):
        return Played(code="movement_unknown", error=outcome.message or "its outcome is unknown")
    assert isinstance(outcome, Cancelled)
    return Played(code="movement_cancelled", error="the call was cancelled")


class Prepared(msgspec.Struct, frozen=True):
    """The reports that a prompt quotes (None: not written yet), and where what it is made of was kept:
    paths by ``knowledge``, ``policy`` and ``previous``."""

    reports: dict[str, str | None] = {}
    snapshots: dict[str, str] = {}


def prepare(visit: Visit, *, key: str = "prepare") -> Performance[Prepared]:
    """Snapshot what the prompt is made of into the run's folder; read the reports that it quotes."""
    if not visit.folder:
        return Prepared()
    movement = visit.movement
    template = visit.text(movement.instruction) if movement.instruction else ""
    outcome: Any = yield visit.host(
        key,
        "prepare",
        folder=visit.folder,
        movement=movement.name,
        count=visit.movement_iteration,
        at=visit.started.at,
        knowledge=[facet.text for facet in movement.knowledge],
        policy=[facet.text for facet in movement.policies],
        previous=visit.previous,
        reports=list(reports_mentioned(template)),
    )
    assert isinstance(outcome, Returned)
    found: dict[str, Hash | None] = outcome.value["reports"]
    reports = {name: None if text is None else visit.text(text) for name, text in found.items()}
    return Prepared(reports, outcome.value.get("snapshots", {}))


def save_reports(visit: Visit, output: str) -> Performance[None]:
    """Take the reports from an answer and keep them (TAKT engine, extraction of reports)."""
    wanted = [ReportWanted(report.name, report.label) for report in visit.movement.reports]
    texts = {name: visit.put(text) for name, text in extract(output, wanted).items()}
    yield visit.host("reports", "save_reports", folder=visit.folder, at=visit.started.at, reports=texts)


def prompt_of(
    visit: Visit, reports: dict[str, str | None], *, cycle_count: int | None = None
) -> SinglePrompt:
    """The twelve parts, from the movement and the visit."""
    movement = visit.movement
    answers = [visit.text(answer) for answer in visit.started.answers]
    return SinglePrompt(
        persona=visit.text(movement.persona.text) if movement.persona else None,
        policies=tuple(visit.text(facet.text) for facet in movement.policies),
        knowledge=tuple(visit.text(facet.text) for facet in movement.knowledge),
        instruction=visit.text(movement.instruction) if movement.instruction else "{task}",
        task=visit.text(visit.run.task),
        previous=visit.text(visit.previous) if visit.previous else None,
        pass_previous=movement.pass_previous_response,
        answer=answers[-1] if answers else None,
        earlier_answers=tuple(answers[:-1]),
        gate=visit.gate_note(),
        cwd=visit.run.cwd,
        piece=visit.piece.name,
        movement=movement.name,
        iteration=visit.iteration,
        max_movements=visit.limit,
        movement_iteration=visit.movement_iteration,
        report_dir=visit.report_dir,
        reports=reports,
        cycle_count=cycle_count,
        report=_order(visit, movement.reports),
        rules=tuple(rule.condition for rule in movement.rules),
        language=visit.language,
    )


def _order(visit: Visit, reports: tuple[Report, ...]) -> ReportOrder | None:
    if not reports:
        return None
    items = tuple(
        ReportItem(
            name=report.name,
            label=report.label,
            format=visit.text(report.format) if report.format else None,
            order=visit.text(report.order) if report.order else None,
        )
        for report in reports
    )
    return ReportOrder(items=items)
