"""The reference: the rows of given commits, written by plain sqlite3 in the same grouping.

The rows are worked out beforehand; what is timed is only their writing. The file is a copy of the journal
as it stood before the commits, so tables, indexes and settings are the same too, and :func:`same` proves
afterwards that both files hold the same.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cadenza.core import events as ev
from cadenza.journal import projections, queries, sqlite_rows
from cadenza.journal.store import Commit, RequestRow

SQL = queries.load("sqlite.sql")
TABLES = ("events", "texts", "conversations", "requests", "runs", "snapshots")

Statement = tuple[str, Sequence[Any]]
"""SQL, and the parameters of each row."""


class Rows:
    """Works out what commits write; keeps what later commits depend on."""

    def __init__(self, refs: dict[str, int]) -> None:
        self.refs = refs
        self.calls: dict[str, str] = {}
        self.requests: dict[str, dict[str, RequestRow]] = {}
        self.snapshots: dict[str, int] = {}

    def begun(self, run: str, events: Iterable[ev.AnyEvent]) -> None:
        """Note the events with which a run began."""
        self.calls.update(projections.calls(events))

    def asked(self, requests: Iterable[RequestRow]) -> None:
        """Note requests that are open already."""
        for row in requests:
            self.requests.setdefault(row.run, {})[row.id] = row

    def answered(self, item: ev.Recorded) -> list[Statement]:
        """The statements of an answer, and of the claim that follows it."""
        ref, event = self.refs[item.run], item.event
        assert isinstance(event, ev.RequestDecided)
        row = projections.decided(self.requests[item.run][event.id], event, at=item.at, actor=item.actor)
        self.requests[item.run][event.id] = row
        payload = ev.encode(event).decode()
        lease = (ref, item.seq, "bench", 1, "boot", "start", item.at, 0)
        return [
            (SQL["insert_event"], [(ref, item.seq, item.at, item.actor, payload)]),
            (SQL["queue_run"], [(item.seq, item.at, ref)]),
            (SQL["put_request"], [sqlite_rows.of_request(ref, row)]),
            (SQL["put_lease"], [lease]),
        ]

    def of(self, commit: Commit) -> list[Statement]:
        """The statements of one commit."""
        ref, first, state = self.refs[commit.run], commit.after + 1, commit.state
        payloads = [ev.encode(event).decode() for event in commit.events]
        rows = [(ref, seq, commit.at, commit.actor, text) for seq, text in enumerate(payloads, first)]
        found: list[Statement] = [(SQL["insert_event"], rows)]
        if commit.texts:
            found.append((SQL["insert_text"], list(commit.texts.items())))
        messages = projections.project(commit.events, first, self.calls.get).messages
        if messages:
            found.append((SQL["insert_message"], [sqlite_rows.of_message(ref, row) for row in messages]))
        self.calls.update(projections.calls(commit.events))
        found += self._requests(commit, ref)
        values = sqlite_rows.of_commit(projections.derive(state), ref, state.seq, commit.at)
        found.append((SQL["update_run"], [values]))
        return found + self._snapshot(commit, ref)

    def _requests(self, commit: Commit, ref: int) -> list[Statement]:
        rows = self.requests.setdefault(commit.run, {})
        changed = projections.project_requests(
            rows, commit.events, run=commit.run, at=commit.at, actor=commit.actor
        )
        if not changed:
            return []
        return [(SQL["put_request"], [sqlite_rows.of_request(ref, row) for row in changed.values()])]

    def _snapshot(self, commit: Commit, ref: int) -> list[Statement]:
        state = commit.state
        if not projections.snapshot_due(state, self.snapshots.get(commit.run, 0)):
            return []
        self.snapshots[commit.run] = state.seq
        text = sqlite_rows.encode_json(state).decode()
        return [
            (SQL["put_snapshot"], [(ref, state.seq, projections.SNAPSHOT_VERSION, text)]),
            (SQL["mark_snapshot"], [(state.seq, ref)]),
        ]


def copy(journal: Path, target: Path) -> None:
    """A copy of a journal that nobody writes to at the moment."""
    connection = sqlite3.connect(journal)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    shutil.copyfile(journal, target)


def connect(path: Path) -> sqlite3.Connection:
    """A connection as durable as the journal's."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA journal_size_limit = {16 * 1024 * 1024}")
    return connection


def write(connection: sqlite3.Connection, group: Iterable[Statement]) -> None:
    """One transaction."""
    connection.execute("BEGIN IMMEDIATE")
    for sql, rows in group:
        connection.executemany(sql, rows)
    connection.execute("COMMIT")


def replay(path: Path, groups: Iterable[Sequence[Statement]]) -> tuple[float, float]:
    """CPU and wall seconds of writing ``groups``, a transaction each."""
    connection = connect(path)
    cpu, wall = time.process_time(), time.perf_counter()
    for group in groups:
        write(connection, group)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    connection.close()
    return cpu, wall


def refs(path: Path) -> dict[str, int]:
    """The numbers that stand for the runs of a journal."""
    connection = sqlite3.connect(path)
    try:
        return {run: ref for ref, run in connection.execute(SQL["all_runs"])}
    finally:
        connection.close()


def same(first: Path, second: Path) -> bool:
    """Whether two journals hold the same rows, leases aside."""
    return all(_rows(first, table) == _rows(second, table) for table in TABLES)


def _rows(path: Path, table: str) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
    finally:
        connection.close()
