"""Loop monitors: a judge looks at a cycle that has come too often, before the rules are read."""

from __future__ import annotations

import msgspec

from cadenza.core.loops import triggered
from cadenza.core.movements.judge import perform_judge
from cadenza.core.movements.ruling import Matched
from cadenza.core.performance import Lanes, Performance
from cadenza.core.signals import Judged, LaneResult, Signal
from cadenza.core.visit import Visit
from cadenza.ids import Hash


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the monitors: nothing, a judge that left the choice to the rules (``judged``), or the
    visit's end (``signal``)."""

    judged: Judged | None = None
    signal: Signal | None = None


def watch_loops(visit: Visit, output: Hash, lanes: tuple[LaneResult, ...] = ()) -> Performance[Judgement]:
    """Check the monitors; the judge's ``next`` replaces the movement's own rules (TAKT engine, loop
    monitors). A judge needs an iteration of its own: where none is left, the rules and the limit decide."""
    found = triggered(visit.piece.loop_monitors, (*visit.history, visit.movement.name))
    if found is None or visit.iteration >= visit.limit:
        return Judgement()
    monitor, count = found
    results = yield Lanes({monitor.name: perform_judge(visit, monitor, count, output)})
    matched: Matched = results[0]
    if matched.rule is None:
        return Judgement(judged=Judged(name=monitor.name, count=count))
    rule = monitor.judge.rules[matched.rule]
    judged = Judged(name=monitor.name, count=count, label=rule.parsed.text)
    return Judgement(
        signal=Signal(
            kind="rule",
            next=rule.next,
            rule=matched.rule,
            label=rule.parsed.text,
            method="monitor",
            output=output,
            judged=judged,
            lanes=lanes,
        )
    )
