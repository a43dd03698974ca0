"""Both journals under one suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cadenza.journal.memory import MemoryJournal
from cadenza.journal.sqlite import SqliteJournal
from cadenza.journal.store import Journal

Clocked = Callable[..., Journal]


@pytest.fixture(params=["memory", "sqlite"])
def make_journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Clocked]:
    """Opens a journal of one kind; keyword arguments are its own (``lease_seconds``, ``clock``)."""
    opened: list[Journal] = []

    def make(**arguments: object) -> Journal:
        if request.param == "memory":
            journal: Journal = MemoryJournal(**arguments)  # type: ignore[arg-type]
        else:
            path = tmp_path / "journal.sqlite"
            journal = SqliteJournal(path, synchronous="OFF", **arguments)  # type: ignore[arg-type]
        opened.append(journal)
        return journal

    yield make
    for journal in opened:
        journal.close()


@pytest.fixture
def journal(make_journal: Clocked) -> Journal:
    """An empty journal of each kind."""
    return make_journal()


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteJournal]:
    """An empty journal file."""
    journal = SqliteJournal(tmp_path / "journal.sqlite", synchronous="OFF")
    yield journal
    journal.close()
