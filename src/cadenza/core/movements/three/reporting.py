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
    conversation: str | None = turn.conversation
    values = variables(prompt_of_three(visit, Prepared()))
    work = visit.text(turn.output) if turn.output else ""
    for report in visit.movement.reports:
        key, item = f"report:{report.name}", _item(visit, report)
        message = report_message(item, values, visit.language)
        conversation, ask = session.say(key, message, conversation=conversation, purpose="report")
        text = _report_text(visit, (yield ask))
        if text is None:
            retry = report_retry(item, work, values, visit.language)
            conversation, ask = session.say(f"{key}:retry", retry, conversation=None, purpose="report")
            outcome: AnyOutcome = yield ask
            text = _report_text(visit, outcome)
            if text is None:
                yield Tell("report_missing", _missing(visit, report, outcome))
                continue
        written[report.name] = text
    if written and visit.folder:
        yield visit.host("reports", "save_reports", folder=visit.folder, at=visit.started.at, reports=written)
    return written


def _report_text(visit: Visit, outcome: AnyOutcome) -> Hash | None:
    """The whole trimmed answer is the report; a blank one is none."""
    if not isinstance(outcome, Replied):
        return None
    if outcome.blocked:
        raise Blocked(outcome.text)
    text = read_report(visit.text(outcome.text))
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
