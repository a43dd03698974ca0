"""From a visit's signal to what comes next: the reducer between two movements."""

from __future__ import annotations

import msgspec

from cadenza.core.signals import CATALOGUE, ENDED, EndStatus, Signal
from cadenza.ids import Hash
from cadenza.piece.model import Piece


class Enter(msgspec.Struct, frozen=True, kw_only=True):
    """Visit ``movement`` next; ``cause`` is what :class:`~cadenza.core.events.VisitStarted` will say."""

    movement: str
    cause: str
    answers: tuple[Hash, ...] = ()
    note: Hash | None = None


class End(msgspec.Struct, frozen=True, kw_only=True):
    """The run is over."""

    status: EndStatus
    reason: str
    message: str = ""


Decision = Enter | End


def route(piece: Piece, movement: str, answers: tuple[Hash, ...], signal: Signal) -> Decision:
    """What a signal leads to (TAKT engine, state transitions).

    ``movement`` is the one that ended and ``answers`` are those that its visit had been given.
    """
    if signal.kind == "again":
        given = (signal.answer,) if signal.answer is not None else ()
        if signal.method == "gate":
            return Enter(movement=movement, cause="gate", answers=answers, note=signal.answer)
        return Enter(movement=movement, cause="answer", answers=(*answers, *given))
    if signal.kind == "moved":
        return Enter(movement=signal.next or "", cause=_CAUSES[signal.method or "tool"], note=signal.note)
    if signal.kind == "rule":
        return _follow(piece, movement, signal)
    return _sentinel(movement, signal) if signal.kind == "sentinel" else _stopped(movement, signal)


def _stopped(movement: str, signal: Signal) -> End:
    """A visit that came to no way out."""
    if signal.kind == "no_match":
        return End(status="aborted", reason="rule_no_match", message=signal.message or "")
    if signal.kind == "failed":
        message = f'Movement "{movement}" failed: {signal.message}'
        return End(status="aborted", reason=signal.code or "movement_failed", message=message)
    message = f'Movement "{movement}" broke: {signal.message}'
    return End(status="error", reason="movement_broken", message=message)


_CAUSES = {"tool": "rule", "children": "children", "context": "context"}


def _sentinel(movement: str, signal: Signal) -> End:
    """The end that a row of the catalogue means; a tool that settled nothing is an error (Maestro B.3)."""
    row = CATALOGUE.get(signal.next or "")
    status = signal.status or (row.status if row is not None and not row.parks else None)
    message = signal.message or ""
    if signal.next is None or status not in ENDED:
        told = message or f"{signal.next!r} ends no movement"
        return End(
            status="error", reason=signal.code or "unsettled", message=f'Movement "{movement}": {told}'
        )
    ended: EndStatus = msgspec.convert(status, EndStatus)
    return End(status=ended, reason=signal.code or status, message=message)


def _follow(piece: Piece, movement: str, signal: Signal) -> Decision:
    target = signal.next
    if target in piece.by_name:
        return Enter(movement=target or "", cause="monitor" if signal.method == "monitor" else "rule")
    row = CATALOGUE.get(target or "")
    if row is None or row.parks:
        message = (
            f'Movement "{movement}": the rule "{signal.label}" leads to {target!r}, which is no movement'
        )
        return End(status="aborted", reason="rule_no_next", message=message)
    if row.status == "completed":
        return End(status="completed", reason="complete", message=signal.label or "")
    message = f'Piece aborted by movement "{movement}": {signal.label}'
    return End(status="aborted", reason="rule", message=message)
