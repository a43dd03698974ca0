"""How movements that are no single agent's turn end: reports, loop monitors and rules, in either mode."""

from __future__ import annotations

from cadenza.core.movements.gating import pass_gates
from cadenza.core.movements.monitoring import watch_loops
from cadenza.core.movements.playing import save_reports
from cadenza.core.movements.ruling import conclude, match_rules
from cadenza.core.movements.three.agent import ask_blocked
from cadenza.core.movements.three.monitoring import watch_reentry
from cadenza.core.movements.three.reporting import Blocked, write_reports
from cadenza.core.movements.three.status import Work, find_rule
from cadenza.core.movements.three.turn import Session, Turn
from cadenza.core.performance import Performance
from cadenza.core.signals import Signal
from cadenza.core.visit import Visit
from cadenza.ids import Hash


def finish(
    visit: Visit, output: Hash, *, session: Session | None = None, turn: Turn | None = None
) -> Performance[Signal]:
    """The signal of a movement whose work came to ``output``.

    ``session`` and ``turn`` are whose conversation reports are asked for in (``phases: three``); without
    them there is no report phase, and the evaluator of Phase 1 decides (arpeggio).
    """
    if visit.piece.phases == "single":
        return (yield from _finish_single(visit, output))
    reports: dict[str, Hash] = {}
    if session is not None and turn is not None:
        try:
            reports = yield from write_reports(visit, session, turn)
        except Blocked as blocked:
            return (yield from ask_blocked(visit, blocked.output))
    stopped = yield from pass_gates(visit, output)
    if stopped is not None:
        return stopped
    work = Work(output=output, reports=reports)
    matched = yield from find_rule(visit, work, None if session is not None else [])
    signal = yield from conclude(visit, matched, output)
    return (yield from watch_reentry(visit, signal))


def _finish_single(visit: Visit, output: Hash) -> Performance[Signal]:
    if visit.movement.reports and visit.folder:
        yield from save_reports(visit, visit.text(output))
    stopped = yield from pass_gates(visit, output)
    if stopped is not None:
        return stopped
    judgement = yield from watch_loops(visit, output)
    if judgement.signal is not None:
        return judgement.signal
    matched = yield from match_rules(visit, visit.movement, output)
    return (yield from conclude(visit, matched, output, judged=judgement.judged))
