"""The one retry policy for model calls. It only computes; each try is an event of the journal."""

from __future__ import annotations

import msgspec

from cadenza.core.outcomes import Failed
from cadenza.core.state import OpenDemand
from cadenza.ids import jitter


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how long. Times in seconds.

    ``tries`` counts the first one. Waits grow from ``first`` by ``factor`` to ``longest``, each shortened
    by up to half at random (from the run's seed). A server's ``retry-after`` replaces the wait. When the
    waits of one demand would add up to more than ``budget``, it fails instead.
    """

    tries: int = 6
    first: float = 1.0
    factor: float = 2.0
    longest: float = 60.0
    budget: float = 900.0

    def wait(self, opened: OpenDemand, failed: Failed, seed: str) -> float | None:
        """Seconds to wait before the next try, or None to give up."""
        if not failed.retriable or opened.attempt >= self.tries:
            return None
        wait = failed.retry_after
        if wait is None:
            full = min(self.longest, self.first * self.factor ** (opened.attempt - 1))
            wait = full * (1 - jitter(seed, opened.id, opened.attempt) / 2)
        wait = round(max(0.0, wait), 3)
        return wait if opened.waited + wait <= self.budget else None
