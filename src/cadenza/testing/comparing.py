"""The canonical journal: what happened in a run, less how often it was interrupted meanwhile."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

import msgspec

from cadenza.core.events import AnyEvent, Recorded, ResumeRequested, RunHeld, RunReleased

_encode = msgspec.json.Encoder().encode


class Interruptions:
    """Tells the events of an interruption from all others, one event after the other.

    An interruption is a ``run.held`` with reason ``interrupted`` and the ``run.resume_requested`` and
    ``run.released`` that lift it. (A resume that restarts the visit is more than that, and stays.)
    """

    def __init__(self) -> None:
        self.seen = 0
        self._within = False

    def hides(self, event: AnyEvent) -> bool:
        """Whether ``event``, the next one of its run, is part of an interruption."""
        hidden = self._part(event)
        self.seen += hidden
        return hidden

    def _part(self, event: AnyEvent) -> bool:
        if isinstance(event, RunHeld) and event.reason == "interrupted":
            self._within = True
            return True
        if not self._within:
            return False
        if isinstance(event, RunReleased):
            self._within = False
            return True
        return isinstance(event, ResumeRequested) and not event.restart_visit


def canonical_events(recorded: Iterable[Recorded]) -> list[Recorded]:
    """The events that are no interruptions, renumbered from 1."""
    interruptions = Interruptions()
    kept = [item for item in recorded if not interruptions.hides(item.event)]
    return [msgspec.structs.replace(item, seq=seq) for seq, item in enumerate(kept, 1)]


def canonical(recorded: Iterable[Recorded]) -> bytes:
    """A run's canonical journal: one line of deterministic JSON for each event, envelope included.

    Claims, leases and epochs are no events, so they are not in it; interruptions are left out and the
    rest is renumbered. Two runs of which the :class:`~cadenza.testing.Driver` played the same scenario
    have the same canonical journal, byte for byte, however often one of them was killed.
    """
    return b"\n".join(map(_encode, canonical_events(recorded)))


def difference(one: bytes, other: bytes) -> str:
    """Where two canonical journals first differ, for a message; empty when they are equal."""
    lines = zip_longest(one.split(b"\n"), other.split(b"\n"), fillvalue=b"(nothing)")
    for number, (left, right) in enumerate(lines, 1):
        if left != right:
            return f"event {number}:\n  {left.decode()}\n  {right.decode()}"
    return ""
