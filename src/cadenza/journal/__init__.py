"""The journal: what happened, append-only, and the rows that follow from it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cadenza.errors import NotFound
    from cadenza.journal.store import Journal

__all__ = ["default_journal_path", "is_there", "no_journal", "open_journal"]

MEMORY = ":memory:"


def open_journal(
    path: str | Path | None = None, *, must_exist: bool = False, read_only: bool = False
) -> Journal:
    """The journal at ``path`` (made where there is none), in memory for ``":memory:"``, the user's for None.

    ``must_exist``: one that is not there is not made. ``read_only``: nothing is written, neither the file
    nor beside it, so that a journal on read-only media can be read; what would write raises
    ``JournalReadOnly``. Such a journal is never made either.

    Raises:
        NotFound: there is none, and none is to be made.
        JournalError: it cannot be opened, is no journal, or was written by a later version.
    """
    if path == MEMORY:
        from cadenza.journal.memory import MemoryJournal

        return MemoryJournal()
    path = default_journal_path() if path is None else path
    if (must_exist or read_only) and not is_there(path):
        raise no_journal(path)
    from cadenza.journal.sqlite import SqliteJournal

    return SqliteJournal(path, read_only=read_only)


def is_there(path: str | Path) -> bool:
    """Whether there is anything at ``path``; where that cannot be told, opening it says why."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True


def no_journal(path: str | Path) -> NotFound:
    """The error for a journal that is not there and is not to be made."""
    from cadenza.errors import NotFound

    return NotFound(
        f"there is no journal at {os.path.abspath(path)}",
        hint="check the path; cadenza run PIECE TASK starts a run, and makes the journal",
    )


def default_journal_path() -> Path:
    """The user's own journal; see :func:`cadenza.settings.default_journal_path`."""
    from cadenza import settings

    return settings.default_journal_path()
