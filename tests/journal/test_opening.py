"""Where the journal is, and who holds a lease."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from cadenza.journal import default_journal_path, open_journal
from cadenza.journal.holders import is_gone, this_process
from cadenza.journal.memory import MemoryJournal
from cadenza.journal.sqlite import SqliteJournal


def test_the_users_journal_is_where_data_belongs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for unset in ("", "relative/path"):
        monkeypatch.setenv("XDG_DATA_HOME", unset)
        assert default_journal_path() == tmp_path / ".local/share/cadenza/journal.sqlite"
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert default_journal_path() == tmp_path / "data/cadenza/journal.sqlite"
    journal = open_journal()
    assert journal.path == str(default_journal_path())
    journal.close()


def test_a_journal_is_opened_by_its_path(tmp_path: Path) -> None:
    assert isinstance(open_journal(":memory:"), MemoryJournal)
    journal = open_journal(tmp_path / "j")
    assert isinstance(journal, SqliteJournal)
    journal.close()


def test_naming_a_journal_loads_no_database() -> None:
    code = "import sys, cadenza.journal; sys.exit('sqlite3' in sys.modules or 'msgspec' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_living_process_is_not_gone() -> None:
    assert not is_gone(this_process("w"))
    init = msgspec.structs.replace(this_process("w"), pid=1)
    assert is_gone(init) or os.getpid() == 1


@pytest.mark.parametrize("change", [{"boot": "another"}, {"boot": ""}, {"process_start": ""}])
def test_a_process_that_cannot_be_seen_is_not_called_gone(change: dict[str, str]) -> None:
    dead = msgspec.structs.replace(this_process("w"), pid=2**22 + 1)
    assert is_gone(dead)
    assert not is_gone(msgspec.structs.replace(dead, **change))


def test_a_killed_process_is_gone_even_before_its_parent_looks() -> None:
    code = (
        "import msgspec, sys, time; from cadenza.journal.holders import this_process;"
        "print(msgspec.json.encode(this_process('child')).decode(), flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        holder = msgspec.json.decode(child.stdout.readline(), type=type(this_process("w")))
        assert not is_gone(holder)
        os.kill(child.pid, signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(holder)
        child.wait()
    assert is_gone(holder)
