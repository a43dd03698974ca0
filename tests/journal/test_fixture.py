"""A journal file of format 1 is read for ever as it was written."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from cadenza.core.state import fold_recorded
from cadenza.journal.holders import this_process
from cadenza.journal.sqlite import SqliteJournal
from tests.fixtures.make_journal import EXPECTED, JOURNAL, expected, make
from tests.journal.by_hand import folded


def test_the_first_format_is_read_as_it_was_written(tmp_path: Path) -> None:
    shutil.copy(JOURNAL, tmp_path / "j")
    journal = SqliteJournal(tmp_path / "j")
    assert journal.verify() == []
    assert expected(journal) == msgspec.json.decode(EXPECTED.read_bytes())
    for row in journal.runs():
        loaded = journal.load(row.id)
        assert fold_recorded(loaded.tail, loaded.snapshot) == folded(journal, row.id)
    journal.close()


def test_a_journal_of_the_first_format_goes_on(tmp_path: Path) -> None:
    shutil.copy(JOURNAL, tmp_path / "j")
    journal = SqliteJournal(tmp_path / "j")
    (request,) = journal.requests()
    assert journal.decide(request.id, "on we go", at=2e9, actor="ann").result == "accepted"
    lease = journal.claim(this_process("w"), run="parked")
    assert lease is not None
    assert journal.rebuild() == len(list(journal.runs()))
    assert journal.verify() == []
    journal.close()


def test_this_version_writes_what_the_fixture_holds(tmp_path: Path) -> None:
    """Where this fails before the release: ``python -m tests.fixtures.make_journal``; after: a migration."""
    assert make(tmp_path / "j") == msgspec.json.decode(EXPECTED.read_bytes())
