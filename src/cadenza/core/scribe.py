"""One step of a conductor in the making."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cadenza.core.events import AnyEvent, InputEvent
from cadenza.core.folding import apply
from cadenza.core.state import RunState
from cadenza.core.visit import Book
from cadenza.ids import Hash


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What follows from what happened: the events to record, the texts they name, and the state after
    them, whose open demands are what is needed next. ``sends`` are inputs for other runs, by run."""

    events: tuple[AnyEvent, ...]
    texts: Mapping[Hash, str]
    state: RunState
    sends: tuple[tuple[str, InputEvent], ...] = ()


class Scribe:
    """Collects the events of one step, folding each as it is added; the given state stays as it is."""

    def __init__(self, state: RunState, book: Book, now: float) -> None:
        self.state = state.copy()
        self.now = now
        self._book = book
        self._events: list[AnyEvent] = []
        self._sends: list[tuple[str, InputEvent]] = []

    def add(self, event: AnyEvent) -> None:
        """Record ``event``."""
        apply(self.state, event)
        self._events.append(event)

    def send(self, run: str, event: InputEvent) -> None:
        """Hand another run an input, in the same transaction."""
        self._sends.append((run, event))

    def step(self) -> Step:
        """Everything so far."""
        return Step(
            events=tuple(self._events), texts=dict(self._book.new), state=self.state, sends=tuple(self._sends)
        )
