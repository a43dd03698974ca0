"""Journal files of every released format are read for ever as they were written."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cadenza.core.folding import fold_recorded
from cadenza.journal.holders import this_process
from cadenza.journal.sqlite import SqliteJournal
from tests.fixtures.make_journal import EXPECTED, FIRST, FIRST_EXPECTED, JOURNAL, expected, make
from tests.journal.by_hand import folded


@pytest.mark.parametrize(("written", "reads"), [(FIRST, FIRST_EXPECTED), (JOURNAL, EXPECTED)], ids=["1", "2"])
def test_a_format_is_read_as_it_was_written(written: Path, reads: Path, tmp_path: Path) -> None:
    shutil.copy(written, tmp_path / "j")
    journal = SqliteJournal(tmp_path / "j")
    assert journal.verify() == []
    assert_holds(expected(journal), msgspec.json.decode(reads.read_bytes()), "journal")
    for row in journal.runs():
        loaded = journal.load(row.id)
        assert fold_recorded(loaded.tail, loaded.snapshot) == folded(journal, row.id)
    journal.close()


def assert_holds(read: Any, written: Any, where: str) -> None:
    """All that was written is read; later versions may say more beside it."""
    if isinstance(written, dict):
        for key, value in written.items():
            assert_holds(read[key], value, f"{where}.{key}")
    elif isinstance(written, list):
        assert len(read) == len(written), where
        for at, (one, other) in enumerate(zip(read, written, strict=True)):
            assert_holds(one, other, f"{where}[{at}]")
    else:
        assert read == written, where


def test_a_journal_of_the_first_format_goes_on(tmp_path: Path) -> None:
    shutil.copy(FIRST, tmp_path / "j")
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
