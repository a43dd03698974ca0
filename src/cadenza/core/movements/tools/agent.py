"""The agent movement under ``control: tools``: the loop; then gates and loop monitors, where it leads on."""

from __future__ import annotations

from msgspec.structs import replace

from cadenza.core.movements.gating import pass_gates
from cadenza.core.movements.monitoring import watch_loops
from cadenza.core.movements.tools.desk import Desk
from cadenza.core.movements.tools.loop import converse
from cadenza.core.performance import Performance
from cadenza.core.signals import Signal
from cadenza.core.visit import Visit
from cadenza.piece.vocabulary import COMPLETE


def perform_agent_tools(visit: Visit) -> Performance[Signal]:
    """One agent acts by tools until one of them ends the movement (Maestro B.2)."""
    desk = Desk(visit)
    signal = yield from converse(desk)
    goes_on = signal.kind == "moved" or (signal.kind == "sentinel" and signal.next == COMPLETE)
    if not goes_on:
        return signal
    output = signal.output or visit.put("")
    refused = yield from pass_gates(visit, output)
    if refused is not None:
        return replace(refused, carry=signal.carry)
    if signal.kind != "moved":
        return signal
    judgement = yield from watch_loops(visit, output)
    if judgement.signal is not None:
        return replace(judgement.signal, carry=signal.carry)
    return replace(signal, judged=judgement.judged)
