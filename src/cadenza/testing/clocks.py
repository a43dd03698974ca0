"""A clock that stands still, and a seed that is no accident: what makes two runs of a test the same run."""

from __future__ import annotations

import hashlib

T0 = 1_767_225_600.0
"""2026-01-01T00:00:00Z: when time begins in tests."""


class FrozenClock:
    """A clock that moves only when it is told to; pass it wherever a ``clock`` is taken.

    Args:
        at: seconds since the epoch.
    """

    def __init__(self, at: float = T0) -> None:
        self.at = at

    def __call__(self) -> float:
        """The time, in seconds since the epoch."""
        return self.at

    def advance(self, seconds: float) -> float:
        """Move on by ``seconds``; the new time."""
        self.at = round(self.at + seconds, 3)
        return self.at


def fixed_seed(name: str = "cadenza") -> str:
    """A run seed (128 bits in hex) that follows from ``name``, so that all ids of a run do."""
    return hashlib.sha256(name.encode("utf-8")).hexdigest()[:32]
