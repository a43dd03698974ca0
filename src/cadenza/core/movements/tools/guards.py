"""What ends an agent that does not end by itself, each with its own reason (Maestro B.5)."""

from __future__ import annotations

from collections.abc import Mapping

from cadenza.core.signals import Signal
from cadenza.piece import vocabulary as words
from cadenza.piece.model import Movement, Piece


def text_only_limit(piece: Piece, movement: Movement) -> int:
    """Turns in a row with text and no call, after which the next one ends the run."""
    return piece.guards.text_only_limit if movement.text_only_limit is None else movement.text_only_limit


def max_iterations(piece: Piece, movement: Movement) -> int:
    """Model calls of one movement."""
    return piece.guards.max_iterations if movement.max_iterations is None else movement.max_iterations


def max_revisits(piece: Piece, movement: Movement) -> int:
    """How often a movement may be entered again."""
    return piece.guards.max_revisits if movement.max_revisits is None else movement.max_revisits


def too_many_visits(piece: Piece, name: str, counts: Mapping[str, int]) -> str | None:
    """Why ``name`` cannot be entered once more, given how often each movement has been; None when it can."""
    if piece.control != "tools":
        return None
    limit = max_revisits(piece, piece.by_name[name])
    if counts.get(name, 0) <= limit:
        return None
    return f'movement "{name}" would be entered again for the {counts[name]}th time; the limit is {limit}'


def aborted(code: str, message: str) -> Signal:
    """A guard's end of the run."""
    return Signal(kind="sentinel", next=words.ABORT, code=code, message=message)
