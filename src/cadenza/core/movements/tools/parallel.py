"""The parallel movement under ``control: tools``: several agents at once, each in a branch of the
conversation.

In a lane, ``complete`` gives its label, an abort or an error makes it a failed lane, moving on is refused,
and a question parks that lane alone (DESIGN, lanes).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from cadenza.core.aggregates import holds
from cadenza.core.demands import Message
from cadenza.core.movements.gating import pass_gates, run_gates
from cadenza.core.movements.monitoring import watch_loops
from cadenza.core.movements.ruling import Matched, ask_judge, conclude
from cadenza.core.movements.tools.desk import Desk
from cadenza.core.movements.tools.loop import converse
from cadenza.core.movements.tools.talk import SESSION
from cadenza.core.performance import Lanes, Performance, guarded
from cadenza.core.signals import LaneResult, Signal
from cadenza.core.visit import Visit
from cadenza.ids import Hash
from cadenza.piece.vocabulary import COMPLETE


def perform_parallel_tools(visit: Visit) -> Performance[Signal]:
    """All lanes at once; loop monitors; the parent's rules over the lanes' labels."""
    branches = [visit.branch(lane) for lane in visit.movement.lanes]
    lanes: list[LaneResult] = yield Lanes(
        {b.movement.name: guarded(_lane(b), _broken(b.movement.name)) for b in branches}
    )
    signal = yield from _decide(visit, tuple(lanes))
    return replace(signal, carry=_carried(visit, signal))


def _carried(visit: Visit, signal: Signal) -> tuple[Message, ...]:
    """What the run's conversation owes: what it owed before, and what came of the lanes."""
    if SESSION not in visit.sessions or signal.output is None:
        return visit.carry
    return (*visit.carry, Message("user", signal.output))


def _decide(visit: Visit, lanes: tuple[LaneResult, ...]) -> Performance[Signal]:
    if all(lane.error is not None for lane in lanes):
        errors = "; ".join(f"{lane.name}: {lane.error}" for lane in lanes)
        message = f"all parallel sub-movements failed: {errors}"
        return Signal(kind="failed", code="movement_failed", message=message, lanes=lanes)
    output = visit.put(_joined(visit, lanes))
    refused = yield from pass_gates(visit, output)
    if refused is not None:
        return refused
    judgement = yield from watch_loops(visit, output, lanes)
    if judgement.signal is not None:
        return judgement.signal
    matched = yield from _rules(visit, lanes, output)
    return (yield from conclude(visit, matched, output, judged=judgement.judged, lanes=lanes))


def _broken(name: str) -> Callable[[str], LaneResult]:
    return lambda words: LaneResult(name=name, error=words)


def _lane(branch: Visit) -> Performance[LaneResult]:
    """One lane: its label from ``complete``, or why it failed."""
    desk = Desk(branch)
    signal = yield from converse(desk)
    name, answers = branch.movement.name, tuple(desk.answers)
    if signal.kind != "sentinel" or signal.next != COMPLETE:
        error = signal.message or signal.code or "it did not complete"
        return LaneResult(name=name, error=error, output=signal.output, answers=answers)
    refused = yield from run_gates(branch)
    if refused is not None:
        return LaneResult(name=name, error=refused[1], output=signal.output, answers=answers)
    return LaneResult(name=name, label=signal.label, method="tool", output=signal.output, answers=answers)


def _joined(visit: Visit, lanes: tuple[LaneResult, ...]) -> str:
    """The outcomes as one text, in the order of the piece."""
    parts = []
    for lane in lanes:
        said = (
            f"[ERROR] {lane.error}"
            if lane.error is not None
            else visit.text(lane.output)
            if lane.output
            else ""
        )
        parts.append(f"## {lane.name}" + (f" ({lane.label})" if lane.label else "") + f"\n{said}")
    return "\n\n---\n\n".join(parts)


def _rules(visit: Visit, lanes: tuple[LaneResult, ...], output: Hash) -> Performance[Matched]:
    labels = [None if lane.error is not None else lane.label for lane in lanes]
    for index, rule in enumerate(visit.movement.rules):
        if holds(rule.parsed, labels):
            return Matched(index, "aggregate")
    plain = {i: r for i, r in enumerate(visit.movement.rules) if r.parsed.kind in ("label", "ai")}
    return (yield from ask_judge(visit, plain, output))
