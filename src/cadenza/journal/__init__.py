"""The journal: what happened, append-only, and the rows that follow from it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cadenza.journal.store import Journal

__all__ = ["default_journal_path", "open_journal"]

MEMORY = ":memory:"


def open_journal(path: str | Path | None = None) -> Journal:
    """The journal at ``path`` (made where there is none), in memory for ``":memory:"``, the user's for None.

    Raises:
        JournalError: it cannot be opened, is no journal, or was written by a later version.
    """
    if path == MEMORY:
        from cadenza.journal.memory import MemoryJournal

        return MemoryJournal()
    from cadenza.journal.sqlite import SqliteJournal

    return SqliteJournal(default_journal_path() if path is None else path)


def default_journal_path() -> Path:
    """``$XDG_DATA_HOME/cadenza/journal.sqlite``, or under ``~/.local/share`` where that is not set.

    Raises:
        ConfigError: neither that variable nor a home directory is known.
    """
    data = os.environ.get("XDG_DATA_HOME", "")
    if os.path.isabs(data):
        return Path(data) / "cadenza" / "journal.sqlite"
    try:
        return Path.home() / ".local" / "share" / "cadenza" / "journal.sqlite"
    except RuntimeError as error:
        from cadenza.errors import ConfigError

        raise ConfigError(
            "No home directory is known for the journal.", hint="Set XDG_DATA_HOME, or pass --journal FILE."
        ) from error
