"""How full the model's context is, and what follows: a warning, an urging, a handover."""

from __future__ import annotations

from cadenza.core.movements.tools.desk import Desk
from cadenza.core.movements.tools.talk import HANDOVER_TOKENS
from cadenza.core.outcomes import AnyOutcome, Failed, Replied, Usage
from cadenza.core.performance import Performance
from cadenza.core.prompts.guidance import fill

OVERFLOW = "context_full"
"""The code of a model call that failed because the conversation is longer than the model can read."""


class Gauge:
    """Watches one visit's use of the context window. A window that is not known is never full."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._guards = desk.visit.piece.guards
        self._told = 0
        self.percent = 0

    def read(self, usage: Usage) -> None:
        """Note what the last call used."""
        window = self._guards.context_window
        self.percent = 100 * (usage.input + usage.output) // window if window else 0

    @property
    def is_full(self) -> bool:
        """Whether it is time for another conversation."""
        return self.percent >= self._guards.context_force

    def overflow(self, outcome: AnyOutcome) -> bool:
        """Whether a call failed for want of room."""
        return isinstance(outcome, Failed) and outcome.code == OVERFLOW

    def tell(self) -> None:
        """Say once that it is getting full, and once that it is nearly so."""
        words = self._desk.words
        levels = ((self._guards.context_urge, words.urge), (self._guards.context_warn, words.warn))
        for level, text in levels:
            if self.percent >= level:
                if self._told < level:
                    self._told = level
                    self._desk.talk.say(fill(text, percent=str(self.percent)))
                return

    def empty(self) -> None:
        """A new conversation has begun."""
        self._told = self.percent = 0


def summarise(desk: Desk, key: str, *, ask: bool = True) -> Performance[str]:
    """What the old conversation hands over: its own summary, or where none can be had its last words."""
    if ask:
        desk.talk.say(desk.words.handover_ask)
        outcome: AnyOutcome = yield desk.talk.ask(key, purpose="handover", max_tokens=HANDOVER_TOKENS)
        if isinstance(outcome, Replied) and not outcome.blank and outcome.calls is None:
            return desk.visit.text(outcome.text).strip()
    last = desk.visit.text(desk.talk.replied) if desk.talk.replied is not None else "-"
    return fill(desk.words.handover_lost, last=last.strip() or "-")
