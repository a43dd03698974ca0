"""Ways to open a journal again and again, as a process does that was killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cadenza.clock import Clock
from cadenza.journal.memory import MemoryJournal
from cadenza.journal.sqlite import SqliteJournal
from cadenza.journal.store import Journal

JournalFactory = Callable[[Path, Clock | None], Journal]
"""Opens the journal that belongs to a folder: the same one each time. The clock decides over leases;
None is the journal's own."""

FILE = "journal.sqlite"


def sqlite_journals(folder: Path, clock: Clock | None = None) -> Journal:
    """``folder/journal.sqlite``, opened from the disk each time."""
    return SqliteJournal(folder / FILE, clock=clock)


def memory_journals() -> JournalFactory:
    """Journals in memory, one for each folder; what was committed survives whoever wrote it, and
    nothing else does. A folder that was emptied begins anew."""
    made: dict[Path, MemoryJournal] = {}

    def journal(folder: Path, clock: Clock | None = None) -> Journal:
        marker = folder / ".memory"
        if folder not in made or not marker.exists():
            marker.touch()
            made[folder] = MemoryJournal(clock=clock)
        return made[folder]

    return journal
