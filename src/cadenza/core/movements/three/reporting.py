"""Phase 2: one call per report, in the session of Phase 1, without tools."""

from __future__ import annotations

from cadenza.core.movements.playing import Prepared
from cadenza.core.movements.three.turn import Session, Turn, prompt_of_three
from cadenza.core.outcomes import AnyOutcome, Failed, Replied
from cadenza.core.performance import Performance, Tell
from cadenza.core.prompts.phases import read_report, report_message, report_retry
from cadenza.core.prompts.report_order import ReportItem
from cadenza.core.prompts.three import variables
from cadenza.core.visit import Visit
from cadenza.ids import Hash
from cadenza.piece.model import Report


class Blocked(Exception):
    """An agent asked for a person instead of writing its report."""

    def __init__(self, output: Hash) -> None:
        super().__init__(output)
        self.output = output


def write_reports(visit: Visit, session: Session, turn: Turn) -> Performance[dict[str, Hash]]:
    """The movement's reports, by name, saved. One that cannot be had is missing, and the run goes on.

    Raises:
        Blocked: the agent asks for a person.
    """
    written: dict[str, Hash] = {}
    try:
        for report in visit.movement.reports:
            text = yield from _write(visit, session, turn, report)
            if text is not None:
                written[report.name] = text
    except Blocked:
        yield from _save(visit, written)
        raise
    yield from _save(visit, written)
    return written


def _write(visit: Visit, session: Session, turn: Turn, report: Report) -> Performance[Hash | None]:
    """One report, asked for where the work was done, and once more in a new session."""
    item, values = _item(visit, report), variables(prompt_of_three(visit, Prepared()))
    work = visit.text(turn.output) if turn.output else ""
    told = report_retry(item, work, values, visit.language)
    message = report_message(item, values, visit.language) if session.conversation else told
    text = _report_text(
        visit, session, (yield session.say(f"report:{report.name}", message, purpose="report"))
    )
    if text is not None:
        return text
    session.conversation = None
    outcome: AnyOutcome = yield session.say(f"report-retry:{report.name}", told, purpose="report")
    text = _report_text(visit, session, outcome)
    if text is None:
        yield Tell("report_missing", _missing(visit, report, outcome))
    return text


def _save(visit: Visit, written: dict[str, Hash]) -> Performance[None]:
    if written and visit.folder:
        yield visit.host("reports", "save_reports", folder=visit.folder, at=visit.started.at, reports=written)


def _report_text(visit: Visit, session: Session, outcome: AnyOutcome) -> Hash | None:
    """The whole trimmed answer is the report; a blank one is none."""
    answer = session.hear(outcome)
    if answer is None:
        return None
    if isinstance(outcome, Replied) and outcome.blocked:
        raise Blocked(outcome.text)
    text = read_report(answer)
    return None if text is None else visit.put(text)


def _item(visit: Visit, report: Report) -> ReportItem:
    return ReportItem(
        name=report.name,
        label=report.label,
        format=visit.text(report.format) if report.format else None,
        order=visit.text(report.order) if report.order else None,
    )


def _missing(visit: Visit, report: Report, outcome: AnyOutcome) -> str:
    why = outcome.message if isinstance(outcome, Failed) else "the answer was empty twice"
    return f'movement "{visit.movement.name}": report {report.name} is missing ({why})'
