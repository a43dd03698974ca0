"""Old journals, read by this version: from stored JSON to an event.

A change of an event's spelling comes with an *upcaster*: a function on the raw JSON object, registered
under the type that the old journal holds. It must leave an object of today's spelling alone, because both
spellings bear the same type unless the type itself was renamed.

::

    @upcaster("visit.started")  # 0.3 called the movement a step
    def step_to_movement(raw: dict[str, Any]) -> None:
        rename(raw, "step", "movement")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from cadenza.core import events as ev
from cadenza.errors import JournalCorrupt, JournalNewer

Upcaster = Callable[[dict[str, Any]], None]
"""Changes a raw event in place."""

UPCASTERS: dict[str, list[Upcaster]] = {}
"""By stored type, in the order in which they are applied."""

KNOWN: frozenset[str] = frozenset(str(kind.__struct_config__.tag) for kind in ev.AnyEvent.__args__)

_raw = msgspec.json.Decoder(dict[str, Any]).decode


def upcaster(stored_type: str) -> Callable[[Upcaster], Upcaster]:
    """Register an upcaster for events that the journal holds under ``stored_type``."""

    def register(function: Upcaster) -> Upcaster:
        UPCASTERS.setdefault(stored_type, []).append(function)
        return function

    return register


def rename(raw: dict[str, Any], old: str, new: str) -> None:
    """Give a field its new name, unless the object has it already."""
    if old in raw:
        raw.setdefault(new, raw.pop(old))


def read(payload: str | bytes, *, run: str, seq: int) -> ev.AnyEvent:
    """An event from its stored JSON, in today's spelling.

    Raises:
        JournalNewer: no version up to this one knows the type.
        JournalCorrupt: it is no event; the message names run, seq and what is wrong.
    """
    try:
        if not UPCASTERS:
            return ev.decode(payload)
        return _read_upcast(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unreadable(payload, run, seq, error) from error


def _read_upcast(payload: str | bytes) -> ev.AnyEvent:
    raw = _raw(payload)
    upcasters = UPCASTERS.get(raw.get("type", ""))
    if not upcasters:
        return ev.decode(payload)
    for change in upcasters:
        change(raw)
    event: ev.AnyEvent = msgspec.convert(raw, ev.AnyEvent)
    return event


def _unreadable(payload: str | bytes, run: str, seq: int, error: Exception) -> Exception:
    where = f"run {run}, event {seq}"
    try:
        stored_type = _raw(payload).get("type")
    except (msgspec.DecodeError, UnicodeDecodeError):
        stored_type = None
    if isinstance(stored_type, str) and stored_type not in KNOWN and stored_type not in UPCASTERS:
        return JournalNewer(
            f"{where} is of type {stored_type!r}, which this version of Cadenza does not know.",
            hint="Open the journal with the version that wrote it, or a later one.",
        )
    return JournalCorrupt(
        f"{where} ({stored_type or 'no type'}) cannot be read: {error}",
        hint="Its stored text was left as it is. Restore the journal from a backup.",
    )
