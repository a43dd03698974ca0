"""Finding cycles in the history of movements (TAKT engine, loop monitors)."""

from __future__ import annotations

from collections.abc import Sequence

from cadenza.piece.model import LoopMonitor


def repetitions(history: Sequence[str], cycle: Sequence[str]) -> int:
    """How many times in a row ``cycle`` stands at the end of ``history``."""
    size, count = len(cycle), 0
    if size == 0:
        return 0
    end = len(history)
    while end >= size and list(history[end - size : end]) == list(cycle):
        count += 1
        end -= size
    return count


def triggered(monitors: Sequence[LoopMonitor], history: Sequence[str]) -> tuple[LoopMonitor, int] | None:
    """The first monitor whose cycle has come ``threshold`` times in a row, and how often it came."""
    for monitor in monitors:
        count = repetitions(history, monitor.cycle)
        if count >= monitor.threshold:
            return monitor, count
    return None


def window(monitors: Sequence[LoopMonitor]) -> int:
    """How much history the monitors can ever need."""
    return max((len(m.cycle) * (m.threshold + 1) for m in monitors), default=0)
