"""The one clock. Everything else is handed the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], float]
"""Seconds since the epoch, UTC."""


def system_clock() -> float:
    """The machine's clock, in whole milliseconds, so that what is stored is what was read."""
    return round(time.time(), 3)


def iso(at: float) -> str:
    """``2026-01-31T09:05:00.250Z`` for people and for JSON."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
