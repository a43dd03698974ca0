"""``all(...)`` and ``any(...)`` over the results of a parallel movement.

Source of behaviour: TAKT engine, "Parallel Movement rule evaluation (Aggregate)"; its command-line
engine where that is silent (counts must be equal, no sub-movements is false).

A *label* is the condition that a sub-movement's own rules matched, as written in the piece, or ``None``
when it matched nothing or failed. ``None`` equals nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cadenza.piece.conditions import Condition


def holds(condition: Condition, labels: Sequence[str | None]) -> bool:
    """Whether an aggregate is true of the sub-movements' ``labels`` (in the order of the piece).

    ``all`` with one argument: every sub-movement matched it. ``all`` with several: the first matched
    the first, the second the second, and there are as many of one as of the other. ``any``: some
    sub-movement matched one of the arguments. A condition that is no aggregate never holds.
    """
    match condition.kind:
        case "all":
            return _all(condition.args, labels)
        case "any":
            return any(label in condition.args for label in labels)
        case _:
            return False


def first_holding(conditions: Iterable[Condition], labels: Sequence[str | None]) -> int | None:
    """The index of the first condition, from the top, that holds."""
    return next((at for at, condition in enumerate(conditions) if holds(condition, labels)), None)


def _all(args: tuple[str, ...], labels: Sequence[str | None]) -> bool:
    if not labels:
        return False
    if len(args) == 1:
        return all(label == args[0] for label in labels)
    return tuple(labels) == args
