"""``doctor --verify`` and ``--rebuild`` for the SQLite journal."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator

from cadenza.core.events import Recorded
from cadenza.errors import JournalError
from cadenza.ids import Hash
from cadenza.journal import doctor, projections, queries, sqlite_rows
from cadenza.journal.database import Database
from cadenza.journal.doctor import Told
from cadenza.journal.store import Loaded, Problem

_SQL = queries.load("sqlite.sql")


def verify(database: Database) -> list[Problem]:
    """Everything that is not as the events say, at one moment of the journal."""
    with database.read_snapshot() as connection:
        return [*_damage(connection), *_wrong_rows(connection)]


def _damage(connection: sqlite3.Connection) -> Iterator[Problem]:
    for (said,) in connection.execute("PRAGMA integrity_check").fetchall():
        if said != "ok":
            yield Problem(run=None, what=f"the file is damaged: {said}")
    for (ref,) in connection.execute(_SQL["stray_events"]).fetchall():
        yield Problem(run=None, what=f"there are events of a run {ref} that has no row")


def _wrong_rows(connection: sqlite3.Connection) -> Iterator[Problem]:
    known: set[Hash] = set()
    pieces: dict[Hash, str] = {}
    try:
        for hash, body in connection.execute(_SQL["all_texts"]):
            known.add(hash)
            yield from doctor.wrong_texts([(hash, body)])
    except sqlite3.Error as error:
        yield Problem(run=None, what=f"a text cannot be read: {error}")
    requests = messages = unreadable = 0
    for ref, run in connection.execute(_SQL["all_runs"]).fetchall():
        try:
            recorded = sqlite_rows.events(connection, ref, run, 0)
            told = doctor.tell(run, recorded)
            yield from doctor.differences(told, _stored(connection, ref, told, recorded))
        except (JournalError, sqlite3.Error) as error:
            yield Problem(run=run, what=getattr(error, "message", str(error)))
            unreadable += 1
            continue
        yield from doctor.missing_texts(run, recorded, known)
        pinned = doctor.pinned(recorded)
        if pinned in known and pinned not in pieces:
            query = _SQL["texts"]
            pieces[pinned] = connection.execute(query, (json.dumps([pinned]),)).fetchone()[1]
        requests, messages = requests + len(told.requests), messages + len(told.messages)
    yield from doctor.missing_of_pieces(pieces, known)
    if not unreadable:
        yield from _strays(connection, "requests", requests)
        yield from _strays(connection, "messages", messages)


def _strays(connection: sqlite3.Connection, what: str, told: int) -> Iterator[Problem]:
    stored = connection.execute(_SQL[f"count_{what}"]).fetchone()[0]
    if stored != told:
        yield Problem(run=None, what=f"there are {stored} {what} in all, the events say {told}")


def _stored(connection: sqlite3.Connection, ref: int, told: Told, recorded: list[Recorded]) -> Told:
    """The rows that the journal holds about the run that ``told`` is about."""
    run = told.row.id
    standing, marked, budget = connection.execute(_SQL["run_standing"], (ref,)).fetchone()
    messages = []
    for conversation in dict.fromkeys(message.conversation for message in told.messages):
        rows = connection.execute(_SQL["run_messages"], (conversation, ref)).fetchall()
        messages += [projections.MessageRow(*row) for row in rows]
    state = sqlite_rows.snapshot(connection, ref)
    if state is not None and state.seq != marked:
        raise doctor.Unfoldable(f"its snapshot is of event {state.seq}, its row says {marked}")
    after = state.seq if state is not None else 0
    loaded = Loaded(snapshot=state, tail=tuple(recorded[after:]))
    return Told(
        row=sqlite_rows.run(connection.execute(_SQL["run"], (run,)).fetchone()),
        standing=standing,
        budget=budget,
        requests=tuple(map(sqlite_rows.request, connection.execute(_SQL["requests_of_run"], (ref,)))),
        messages=tuple(messages),
        state=doctor.stored_state(loaded),
    )


def rebuild(database: Database) -> int:
    """Write every row anew from the events, in one transaction; the number of runs.

    Raises:
        JournalCorrupt: a run's events cannot be read, or contradict each other; nothing was changed.
    """
    with database.write() as connection:
        for name in ("delete_requests", "delete_messages", "delete_snapshots"):
            connection.execute(_SQL[name])
        runs = connection.execute(_SQL["all_runs"]).fetchall()
        for ref, run in runs:
            _rebuild_run(connection, ref, doctor.tell(run, sqlite_rows.events(connection, ref, run, 0)))
    return len(runs)


def _rebuild_run(connection: sqlite3.Connection, ref: int, told: Told) -> None:
    connection.execute(_SQL["rewrite_run"], sqlite_rows.of_run(told.row, told.standing, told.budget))
    messages = [sqlite_rows.of_message(ref, message) for message in told.messages]
    connection.executemany(_SQL["insert_message"], messages)
    requests = [sqlite_rows.of_request(ref, request) for request in told.requests]
    connection.executemany(_SQL["put_request"], requests)
    connection.execute(_SQL["mark_snapshot"], (0, ref))
    if projections.snapshot_due(told.state, 0):
        sqlite_rows.put_snapshot(connection, ref, told.state)
