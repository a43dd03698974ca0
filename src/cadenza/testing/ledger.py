"""What was really done, written down outside the journal: the witness in the crash matrix."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path


class Ledger:
    """A file to which every executor appends its demand's id, synced to the disk, when it does its work.

    Each line is ``<once|again> <demand>``: ``once`` for a demand that must not be met twice.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def note(self, demand: str, *, once: bool) -> None:
        """Write down that ``demand`` is being met, now."""
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{'once' if once else 'again'} {demand}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)

    def lines(self) -> list[tuple[str, str]]:
        """All notes in order: (``once`` or ``again``, demand)."""
        if not self.path.exists():
            return []
        pairs = (line.split(" ", 1) for line in self.path.read_text(encoding="utf-8").splitlines())
        return [(kind, demand) for kind, demand in pairs]

    def counts(self) -> Counter[str]:
        """How often each demand was met."""
        return Counter(demand for _, demand in self.lines())

    def repeated(self) -> list[str]:
        """Demands that must not be met twice and were."""
        counts = Counter(demand for kind, demand in self.lines() if kind == "once")
        return [demand for demand, count in counts.items() if count > 1]
