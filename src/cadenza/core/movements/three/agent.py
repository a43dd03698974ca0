"""The agent movement of ``phases: three``."""

from __future__ import annotations

from typing import Any

import msgspec

from cadenza.core.demands import AskPerson
from cadenza.core.movements.gating import pass_gates
from cadenza.core.movements.ruling import Matched, conclude
from cadenza.core.movements.three.monitoring import watch_reentry
from cadenza.core.movements.three.reporting import Blocked, write_reports
from cadenza.core.movements.three.status import Work, find_rule
from cadenza.core.movements.three.turn import Session, Turn, take_turn
from cadenza.core.outcomes import Answered, AnyOutcome
from cadenza.core.performance import Performance
from cadenza.core.prompts.phases import blocked_question
from cadenza.core.signals import Signal
from cadenza.core.visit import Visit
from cadenza.ids import Hash


class Performed(msgspec.Struct, frozen=True, kw_only=True):
    """Phases 1 and 2: the work, or the text of an agent that asks, or a code and an error."""

    work: Work | None = None
    question: Hash | None = None
    code: str | None = None
    error: str | None = None


def perform_agent_three(visit: Visit) -> Performance[Signal]:
    """Work, reports, status; then the loop monitors look at where it would lead."""
    performed: Performed = yield from work_and_report(visit, Session(visit))
    if performed.question is not None:
        return (yield from ask_blocked(visit, performed.question))
    if performed.work is None:
        return Signal(kind="failed", code=performed.code, message=performed.error)
    work = performed.work
    stopped = yield from pass_gates(visit, work.output)
    if stopped is not None:
        return stopped
    matched: Matched = yield from find_rule(visit, work)
    signal: Signal = yield from conclude(visit, matched, work.output)
    return (yield from watch_reentry(visit, signal))


def work_and_report(visit: Visit, session: Session) -> Performance[Performed]:
    """Phase 1 and, when it is done, Phase 2."""
    turn: Turn = yield from take_turn(visit, session)
    if turn.output is None:
        return Performed(code=turn.code, error=turn.error)
    if turn.blocked:
        return Performed(question=turn.output)
    try:
        reports = yield from write_reports(visit, session, turn)
    except Blocked as blocked:
        return Performed(question=blocked.output)
    return Performed(work=Work(output=turn.output, reports=reports))


def ask_blocked(visit: Visit, output: Hash) -> Performance[Signal]:
    """A person is asked what the agent needs; the answer performs the movement anew, an empty one aborts."""
    question = visit.put(blocked_question(visit.text(output)))
    answer: AnyOutcome = yield visit.need("blocked", AskPerson(question=question, reason="blocked"))
    given: Any = answer.value if isinstance(answer, Answered) else ""
    if not str(given).strip():
        message = "Piece blocked and no user input provided"
        return Signal(kind="failed", code="blocked", message=message, output=output)
    return Signal(kind="again", answer=visit.put(str(given)), label="blocked", output=output)
