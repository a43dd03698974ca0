"""The parallel movement of ``phases: three``: every lane goes through its own phases."""

from __future__ import annotations

from typing import Any

import msgspec

from cadenza.core.demands import AskPerson
from cadenza.core.movements.gating import pass_gates, run_gates
from cadenza.core.movements.ruling import Matched, conclude
from cadenza.core.movements.three.agent import Performed, work_and_report
from cadenza.core.movements.three.monitoring import watch_reentry
from cadenza.core.movements.three.status import Work, find_rule
from cadenza.core.movements.three.turn import Session
from cadenza.core.outcomes import Answered, AnyOutcome
from cadenza.core.performance import Lanes, Performance, guarded
from cadenza.core.prompts.notices import status_not_found
from cadenza.core.prompts.phases import blocked_question
from cadenza.core.signals import LaneResult, Signal
from cadenza.core.visit import Visit
from cadenza.ids import Hash

LANE_QUESTIONS = 10
"""How often one lane may ask a person in one visit."""


class LaneEnd(msgspec.Struct, frozen=True, kw_only=True):
    """What one lane came to."""

    output: Hash | None = None
    matched: Matched = Matched(None)
    error: str | None = None
    answers: tuple[Hash, ...] = ()


def perform_parallel_three(visit: Visit) -> Performance[Signal]:
    """All lanes at once; a lane that fails does not stop the others, when all fail so does the movement."""
    branches = [visit.branch(lane) for lane in visit.movement.lanes]
    ends: list[LaneEnd] = yield Lanes({b.movement.name: guarded(_lane(b), _broken) for b in branches})
    lanes = tuple(_result(b, end) for b, end in zip(branches, ends, strict=True))
    if all(lane.error is not None for lane in lanes):
        errors = "; ".join(f"{lane.name}: {lane.error}" for lane in lanes)
        message = f"All parallel sub-movements failed: {errors}"
        return Signal(kind="failed", code="movement_failed", message=message, lanes=lanes)
    output = visit.put(_joined(visit, lanes))
    stopped = yield from pass_gates(visit, output)
    if stopped is not None:
        return stopped
    labels = [lane.label for lane in lanes]
    matched = yield from find_rule(visit, Work(output=output), labels)
    signal = yield from conclude(visit, matched, output, lanes=lanes)
    return (yield from watch_reentry(visit, signal))


def _broken(words: str) -> LaneEnd:
    return LaneEnd(error=words)


def _lane(branch: Visit) -> Performance[LaneEnd]:
    session = Session(branch)
    answers: tuple[Hash, ...] = ()
    performed: Performed = yield from work_and_report(branch, session)
    for asked in range(1, LANE_QUESTIONS + 1):
        if performed.question is None:
            break
        question = branch.put(blocked_question(branch.text(performed.question)))
        answer: AnyOutcome = yield branch.need("blocked", AskPerson(question=question, reason="blocked"))
        given: Any = answer.value if isinstance(answer, Answered) else ""
        if not str(given).strip():
            return LaneEnd(error="blocked, and no user input provided", answers=answers)
        answers = (*answers, branch.put(str(given)))
        branch.user_inputs += answers[-1:]
        branch.prefix = f"{asked + 1}:"
        performed = yield from work_and_report(branch, session)
    if performed.work is None:
        return LaneEnd(error=performed.error or "still blocked", answers=answers)
    end = yield from _judged(branch, performed.work)
    return msgspec.structs.replace(end, answers=answers)


def _judged(branch: Visit, work: Work) -> Performance[LaneEnd]:
    """A lane's own gates, then its own rules."""
    refused = yield from run_gates(branch)
    if refused is not None:
        return LaneEnd(error=refused[1])
    if not branch.movement.rules:
        return LaneEnd(output=work.output)
    matched = yield from find_rule(branch, work)
    if matched.rule is None:
        return LaneEnd(output=work.output, error=status_not_found(branch.movement.name))
    return LaneEnd(output=work.output, matched=matched)


def _result(branch: Visit, end: LaneEnd) -> LaneResult:
    rule = end.matched.rule
    return LaneResult(
        name=branch.movement.name,
        label=None if rule is None else branch.movement.rules[rule].parsed.text,
        method=end.matched.method,
        output=end.output,
        error=end.error,
        answers=end.answers,
    )


def _joined(visit: Visit, lanes: tuple[LaneResult, ...]) -> str:
    return "\n\n---\n\n".join(f"## {lane.name}\n{_shown(visit, lane)}" for lane in lanes)


def _shown(visit: Visit, lane: LaneResult) -> str:
    """What a lane said, and what was wrong with it."""
    parts = [visit.text(lane.output)] if lane.output else []
    return "\n\n".join([*parts, f"[ERROR] {lane.error}"] if lane.error else parts)
