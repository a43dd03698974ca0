"""The agent movement: in ``phases: single`` prompt, call, reports; loop monitors; rules."""

from __future__ import annotations

from cadenza.core.movements.gating import pass_gates
from cadenza.core.movements.monitoring import watch_loops
from cadenza.core.movements.playing import Played, play
from cadenza.core.movements.ruling import conclude, match_rules
from cadenza.core.movements.three.agent import perform_agent_three
from cadenza.core.movements.tools.agent import perform_agent_tools
from cadenza.core.performance import Performance
from cadenza.core.signals import Signal
from cadenza.core.visit import Visit


def perform_agent(visit: Visit) -> Performance[Signal]:
    """One agent performs the movement (TAKT engine, normal movement; the order is the state diagram's:
    output, reports, loop monitors, rules)."""
    if visit.piece.control == "tools":
        return (yield from perform_agent_tools(visit))
    if visit.piece.phases == "three":
        return (yield from perform_agent_three(visit))
    played: Played = yield from play(visit)
    if played.output is None:
        return Signal(kind="failed", code=played.code, message=played.error)
    stopped = yield from pass_gates(visit, played.output)
    if stopped is not None:
        return stopped
    judgement = yield from watch_loops(visit, played.output)
    if judgement.signal is not None:
        return judgement.signal
    matched = yield from match_rules(visit, visit.movement, played.output)
    return (yield from conclude(visit, matched, played.output, judged=judgement.judged))
