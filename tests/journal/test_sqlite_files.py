"""The journal file: opened, damaged, full, read-only, of another version."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cadenza import cli
from cadenza.cli.context import Context
from cadenza.core.events import DemandResolved
from cadenza.core.outcomes import Returned
from cadenza.errors import (
    JournalBusy,
    JournalCorrupt,
    JournalError,
    JournalFull,
    JournalNewer,
    JournalReadOnly,
    NotFound,
)
from cadenza.journal import migrations, open_journal, projections
from cadenza.journal.holders import this_process
from cadenza.journal.sqlite import SqliteJournal
from cadenza.journal.store import Journal
from tests.journal.by_hand import ByHand, first_demand, folded


def filled(path: Path, runs: int = 3) -> Path:
    """A closed journal with some runs in it."""
    journal = SqliteJournal(path, synchronous="OFF")
    for number in range(runs):
        run = ByHand(journal, f"r{number}").begin().claim()
        run.park("which way? " * 500)
    journal.close()
    return path


def open_and_verify(path: Path) -> None:
    """What a person does who wonders about a file."""
    journal = SqliteJournal(path)
    try:
        assert journal.verify() == []
    finally:
        journal.close()


def change(path: Path, *statements: str) -> None:
    """Change a journal file behind its back."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


# -- opening ----------------------------------------------------------------------------------------------


def test_opening_makes_the_folders_and_a_file_that_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "journal.sqlite"
    SqliteJournal(path).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (migrations.APPLICATION_ID,)
        assert connection.execute("PRAGMA user_version").fetchone() == (len(migrations.MIGRATIONS),)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert [entry.name for entry in path.parent.iterdir()] == ["journal.sqlite"]


def test_what_one_opening_wrote_the_next_one_reads(tmp_path: Path) -> None:
    path = filled(tmp_path / "j")
    journal = SqliteJournal(path)
    assert [row.id for row in journal.runs()] == ["r2", "r1", "r0"]
    assert journal.verify() == []
    journal.close()


def test_a_model_call_issued_before_a_restart_is_answered_after_it(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "j")
    run = ByHand(journal).begin().claim()
    call = run.call("hi")
    run.commit(call, run.host())
    journal.close()
    run.journal = journal = SqliteJournal(tmp_path / "j")
    run.commit(run.reply(call.id, "hello"))
    assert [message.role for message in journal.messages("c-r1")] == ["user", "assistant"]
    assert journal.verify() == []
    journal.close()


def test_a_closed_journal_says_so(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "j")
    journal.close()
    journal.close()
    with pytest.raises(JournalError, match="is closed"):
        journal.run("r1")
    with pytest.raises(JournalError, match="is closed"):
        ByHand(journal).begin()


def test_the_size_counts_the_log_beside_the_file(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "j")
    before = journal.size()
    ByHand(journal).begin()
    assert journal.size() > before > 0
    journal.close()


# -- damage -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"this is no database\n" * 100, b"x", b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_garbage_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "j"
    path.write_bytes(content)
    with pytest.raises(JournalCorrupt, match=str(path)):
        SqliteJournal(path)
    assert path.read_bytes() == content


def test_the_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "j"
    change(path, "CREATE TABLE runs (id TEXT)")
    content = path.read_bytes()
    with pytest.raises(JournalCorrupt, match="not a Cadenza journal"):
        SqliteJournal(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("kept", [50, 100, 512, 4096, 5000, 0.3, 0.6, 0.9, 0.99])
def test_a_truncated_file_gives_a_clear_error_and_never_less_than_the_truth(
    tmp_path: Path, kept: float
) -> None:
    path = filled(tmp_path / "j", runs=20)
    size = path.stat().st_size
    os.truncate(path, int(kept if kept > 1 else size * kept))
    with pytest.raises(JournalCorrupt, match="damaged"):
        open_and_verify(path)


def test_a_newer_journal_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = filled(tmp_path / "j")
    change(path, f"PRAGMA user_version = {len(migrations.MIGRATIONS) + 1}")
    content = path.read_bytes()
    with pytest.raises(JournalNewer, match=f"format {len(migrations.MIGRATIONS) + 1}") as caught:
        SqliteJournal(path)
    assert "Update Cadenza" in str(caught.value)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("payload", "error", "says"),
    [
        ('{"type":"visit.started"}', JournalCorrupt, r"event 2 \(visit.started\) cannot be read"),
        ('{"type":"moon.risen"}', JournalNewer, "run r0, event 2 is of type 'moon.risen'"),
        ('{"kind":"x"}', JournalCorrupt, "no type"),
        ("[]", JournalCorrupt, "event 2"),
    ],
)
def test_an_unreadable_event_is_named(
    tmp_path: Path, payload: str, error: type[Exception], says: str
) -> None:
    path = filled(tmp_path / "j")
    change(path, f"UPDATE events SET payload = '{payload}' WHERE run = 1 AND seq = 2")
    journal = SqliteJournal(path)
    with pytest.raises(error, match=says):
        journal.events("r0")
    assert journal.events("r1")
    assert [problem.run for problem in journal.verify()] == ["r0"]
    with pytest.raises(error):
        journal.rebuild()
    assert journal.run("r0").status == "waiting_human"
    journal.close()


@pytest.mark.parametrize("garbage", [b'["type":"visit', b'{"type":"vis\xff\xff'])
def test_a_payload_of_garbage_is_named_as_damage(tmp_path: Path, garbage: bytes) -> None:
    path = filled(tmp_path / "j")
    content = path.read_bytes()
    path.write_bytes(content.replace(b'{"type":"visit', garbage))
    journal = SqliteJournal(path)
    with pytest.raises(JournalCorrupt):
        journal.events("r0")
    assert {problem.run for problem in journal.verify()} >= {"r0", "r1", "r2"}
    journal.close()


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE snapshots SET version = {projections.SNAPSHOT_VERSION + 1}",
        "UPDATE snapshots SET state = '{'",
        "UPDATE snapshots SET state = '[]'",
    ],
)
def test_a_snapshot_that_cannot_be_read_is_no_loss(tmp_path: Path, statement: str) -> None:
    path = filled(tmp_path / "j")
    change(path, statement)
    journal = SqliteJournal(path)
    loaded = journal.load("r0")
    assert loaded.snapshot is None
    assert len(loaded.tail) == 6
    assert journal.verify() == []
    journal.close()


# -- no space, no permission, no time ---------------------------------------------------------------------


def fill_up(run: ByHand) -> int:
    """Commit until there is no space; the seq of the last commit that was taken."""
    seq = run.state.seq
    for number in range(10_000):
        demand = first_demand(run)
        body = f"{number} " + "x" * 5000
        event = run.call(body, conversation="c")
        try:
            run.commit(run.reply(demand, "r") if number else _done(demand), event)
        except JournalFull:
            return seq
        seq = run.state.seq
    raise AssertionError("the journal never filled up")


def _done(demand: str) -> DemandResolved:
    return DemandResolved(id=demand, outcome=Returned())


def goes_on(run: ByHand, seq: int) -> None:
    """After space was freed the run goes on at its last commit, and ends."""
    assert run.journal.run("r1").seq == seq
    run.reload()
    assert run.state.seq == seq
    run.commit(run.ended())
    assert run.journal.run("r1").status == "completed"
    assert run.journal.verify() == []


def test_a_full_journal_keeps_what_it_has_and_goes_on_with_more_space(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "j", synchronous="OFF")
    run = ByHand(journal).begin().claim()
    with journal._database.write() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    journal._database._writer.execute(f"PRAGMA max_page_count = {pages + 40}")  # type: ignore[union-attr]
    seq = fill_up(run)
    assert seq > 3
    with pytest.raises(JournalFull):
        ByHand(journal, "r2", workspace="x" * 200_000).begin()
    assert journal.find_runs("r2") == []
    journal._database._writer.execute("PRAGMA max_page_count = 1000000")  # type: ignore[union-attr]
    goes_on(run, seq)
    journal.close()


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Mounts a small file system of its own; skips where that is not permitted."""
    mounted: list[Path] = []

    def make(options: str, path: Path | None = None) -> Path:
        folder = path or tmp_path / f"mount{len(mounted)}"
        folder.mkdir(exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        if path is not None:
            command = ["mount", "-o", options, str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            pytest.skip("there is no mount command here")
        if done.returncode:
            pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
        if path is None:
            mounted.append(folder)
        return folder

    yield make
    for folder in mounted:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_full_disk_loses_nothing_and_the_run_ends_when_space_is_freed(mount: Callable[..., Path]) -> None:
    folder = mount("size=1m")
    ballast = folder / "ballast"
    ballast.write_bytes(b"x" * 300_000)
    journal = SqliteJournal(folder / "j")
    run = ByHand(journal).begin().claim()
    seq = fill_up(run)
    assert seq > 3
    with pytest.raises(JournalFull, match="Free some space"):
        run.reload().commit(run.call("y" * 5000))
    ballast.unlink()
    goes_on(run, seq)
    journal.close()


@pytest.mark.parametrize("name", ["j", "a/new"])
def test_a_disk_that_was_full_before_is_named_at_opening(mount: Callable[..., Path], name: str) -> None:
    folder = mount("size=512k")
    content = filled(folder / "j").read_bytes()
    with contextlib.suppress(OSError), (folder / "ballast").open("wb", buffering=0) as ballast:
        while ballast.write(b"x" * 4096):
            pass
    with pytest.raises(JournalFull, match=str(folder)):
        SqliteJournal(folder / name)
    assert (folder / "j").read_bytes() == content
    (folder / "ballast").unlink()
    open_and_verify(folder / name)


def test_a_read_only_disk_is_named(mount: Callable[..., Path]) -> None:
    folder = mount("size=4m")
    filled(folder / "j")
    mount("remount,ro", folder)
    with pytest.raises(JournalReadOnly, match="writable"):
        SqliteJournal(folder / "j")
    with pytest.raises(JournalReadOnly):
        SqliteJournal(folder / "new" / "j")


def test_a_folder_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere; the read-only mount stands for this")
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    with pytest.raises(JournalReadOnly):
        SqliteJournal(folder / "j")


@pytest.mark.parametrize("where", ["", "file/j", "\0"])
def test_a_path_that_can_hold_no_journal_is_named(tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("a file")
    with pytest.raises(JournalError):
        SqliteJournal(tmp_path / where if where != "\0" else tmp_path / "a\0b")


def test_a_journal_that_another_holds_for_too_long_is_busy_and_works_afterwards(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "j", busy_timeout=0.05)
    run = ByHand(journal).begin().claim()
    other = sqlite3.connect(tmp_path / "j", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    commit = run.prepare(run.call("hi"))
    with pytest.raises(JournalBusy, match="too long"):
        journal.commit(commit)
    assert journal.run("r1").seq == 3
    other.execute("ROLLBACK")
    other.close()
    journal.commit(commit)
    assert folded(journal, "r1") == run.state
    journal.close()


def test_a_copy_of_the_file_is_a_journal(tmp_path: Path) -> None:
    shutil.copy(filled(tmp_path / "j"), tmp_path / "copy")
    journal = SqliteJournal(tmp_path / "copy")
    assert len(list(journal.runs())) == 3
    journal.close()


# -- queries that must stay cheap -------------------------------------------------------------------------


def test_parked_runs_cost_a_claim_nothing(sqlite: SqliteJournal) -> None:
    for number in range(300):
        run = ByHand(sqlite, f"r{number}").begin().claim()
        run.park()
    with sqlite._database.read() as connection:
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        connection.set_progress_handler(count, 10)
        assert sqlite._leases._candidates(connection, this_process("w"), None, 2e9, 4) == []
        connection.set_progress_handler(None, 0)
    assert steps < 10


def test_a_person_can_query_the_file(tmp_path: Path) -> None:
    path = filled(tmp_path / "j", runs=1)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        types = connection.execute(
            "SELECT type FROM events JOIN runs ON ref = run WHERE id = 'r0' ORDER BY events.seq"
        ).fetchall()
        asked = connection.execute("SELECT body FROM texts JOIN requests ON question = hash").fetchone()
    assert [type for (type,) in types] == [
        "run.started", "visit.started", "demand.issued", "demand.resolved", "demand.issued", "request.opened",
    ]  # fmt: skip
    assert asked[0].startswith("which way?")


# -- reading where nothing may be written -----------------------------------------------------------------


def reads_all(journal: Journal, runs: int = 3) -> None:
    """What runs, show, events, inbox, report and doctor --verify do, and what no reader can do."""
    assert [row.id for row in journal.runs()] == [f"r{number}" for number in reversed(range(runs))]
    assert len(journal.requests()) == runs
    assert journal.texts({row.question for row in journal.requests()})
    assert journal.load("r0").snapshot is not None
    assert journal.events("r0")
    assert journal.verify() == []
    assert journal.now() > 0
    for write in (journal.rebuild, lambda: ByHand(journal, "new").begin()):
        with pytest.raises(JournalReadOnly, match="reading only"):
            write()


def test_a_journal_on_a_read_only_disk_can_be_read(mount: Callable[..., Path]) -> None:
    folder = mount("size=4m")
    filled(folder / "j ?#%")
    mount("remount,ro", folder)
    journal = open_journal(folder / "j ?#%", read_only=True)
    reads_all(journal)
    journal.close()
    assert os.listdir(folder) == ["j ?#%"]


@pytest.mark.parametrize("kept", [("-wal", "-shm"), ("-wal",)])
def test_the_log_beside_it_is_read_too_or_missed_aloud(
    mount: Callable[..., Path], tmp_path: Path, kept: tuple[str, ...]
) -> None:
    journal = SqliteJournal(tmp_path / "j", synchronous="OFF")
    for number in range(3):
        ByHand(journal, f"r{number}").begin().claim().park("which way?")
    folder = mount("size=4m")
    for suffix in ("", *kept):
        shutil.copy(tmp_path / f"j{suffix}", folder / f"j{suffix}")
    journal.close()
    mount("remount,ro", folder)
    if "-shm" in kept:
        reader = open_journal(folder / "j", read_only=True)
        reads_all(reader)
        reader.close()
    else:
        with pytest.raises(JournalReadOnly, match="log beside it") as caught:
            open_journal(folder / "j", read_only=True)
        assert "Copy" in (caught.value.hint or "")


def test_reading_only_makes_nothing_where_it_could(tmp_path: Path) -> None:
    journal = open_journal(filled(tmp_path / "j"), read_only=True)
    reads_all(journal)
    journal.close()
    for content in (b"", b"a text, and a long one"):
        (tmp_path / "other").write_bytes(content)
        with pytest.raises(JournalError):
            open_journal(tmp_path / "other", read_only=True)
        assert (tmp_path / "other").read_bytes() == content


def test_commands_read_a_read_only_disk(mount: Callable[..., Path]) -> None:
    folder = mount("size=4m")
    filled(folder / "j")
    mount("remount,ro", folder)
    with Context(journal=folder / "j").service() as service:
        reads_all(service.journal)


# -- what is no journal file ------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [{"must_exist": True}, {"read_only": True}])
def test_what_must_be_there_is_not_made(tmp_path: Path, arguments: dict[str, bool]) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("j", "folder/j", "link", "link/j"):
        with pytest.raises(NotFound, match="there is no journal at /") as caught:
            open_journal(tmp_path / name, **arguments)
        assert "cadenza run" in (caught.value.hint or "")
    assert os.listdir(tmp_path) == ["link"]
    filled(tmp_path / "j")
    open_journal(tmp_path / "j", **arguments).close()


def test_a_folder_pipe_socket_or_device_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(os.path.relpath(tmp_path / "socket"))
        for path, what in (
            (tmp_path / "pipe", "a pipe"),
            (tmp_path / "link", "a pipe"),
            (tmp_path / "folder", "a folder"),
            (tmp_path / "socket", "a socket"),
            (Path("/dev/null"), "a device"),
        ):
            for read_only in (False, True):
                with pytest.raises(JournalError, match=f"{path} is {what}, and a journal is a file"):
                    open_journal(path, read_only=read_only)


# -- which journal a command opens ------------------------------------------------------------------------


def test_a_journal_that_was_named_must_be_there_for_those_that_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("CADENZA_JOURNAL", raising=False)
    with pytest.raises(NotFound, match=r"no journal at .*/typo"), Context(journal=Path("typo")).service():
        pass
    with Context().service() as service:
        assert service.runs() == []
    monkeypatch.setenv("CADENZA_JOURNAL", "mistyped")
    with pytest.raises(NotFound, match=r"no journal at .*/mistyped"), Context().service():
        pass
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("command", ["resume", "retry", "cancel", "answer", "runs", "show", "events"])
def test_commands_make_no_journal_at_a_mistyped_path(
    tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = {"runs": [], "answer": ["q", "yes"]}.get(command, ["last"])
    monkeypatch.setattr(sys, "argv", ["cadenza", "--journal", "typo", command, *words])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 2
    assert "there is no journal at" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_no_command_keeps_its_journal_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["cadenza", "--journal", ":memory:", "runs"])
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 2
    assert "a journal in memory" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []
