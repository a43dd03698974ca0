"""Loop monitors of ``phases: three``: a judge looks when a cycle is about to be entered once more."""

from __future__ import annotations

import msgspec

from cadenza.core.loops import triggered
from cadenza.core.movements.judge import judge_movement
from cadenza.core.movements.ruling import Matched
from cadenza.core.movements.three.status import Work, find_rule
from cadenza.core.movements.three.turn import Session, take_turn
from cadenza.core.performance import Lanes, Performance
from cadenza.core.signals import Judged, Signal
from cadenza.core.visit import Visit
from cadenza.ids import Hash
from cadenza.piece.model import LoopMonitor


def watch_reentry(visit: Visit, signal: Signal) -> Performance[Signal]:
    """The signal, or the judge's instead: only where the movement's own choice enters the cycle again, so
    that no judge ever overrides a COMPLETE. A judge that fails or matches nothing leaves the choice as it
    is (TAKT's command-line engine, as corrected later)."""
    if signal.kind != "rule" or visit.iteration >= visit.limit:
        return signal
    monitors = [m for m in visit.piece.loop_monitors if m.cycle[0] == signal.next]
    found = triggered(monitors, (*visit.history, visit.movement.name))
    if found is None:
        return signal
    monitor, count = found
    results = yield Lanes({monitor.name: _judge(visit, monitor, count, signal.output)})
    matched: Matched = results[0]
    if matched.rule is None:
        judged = Judged(name=monitor.name, count=count)
        return msgspec.structs.replace(signal, judged=judged)
    rule = monitor.judge.rules[matched.rule]
    judged = Judged(name=monitor.name, count=count, label=rule.parsed.text)
    return msgspec.structs.replace(
        signal, next=rule.next, rule=matched.rule, label=rule.parsed.text, method="monitor", judged=judged
    )


def _judge(visit: Visit, monitor: LoopMonitor, count: int, output: Hash | None) -> Performance[Matched]:
    """The judge is performed like a movement, in a session of its own."""
    judge = visit.branch(judge_movement(visit, monitor), iteration=visit.iteration + 1)
    judge.cycle_count = count
    judge.previous = output
    turn = yield from take_turn(judge, Session(judge))
    if turn.output is None or turn.blocked:
        return Matched(None)
    return (yield from find_rule(judge, Work(output=turn.output)))
