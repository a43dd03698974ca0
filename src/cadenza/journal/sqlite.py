"""The journal in one SQLite file: several processes and threads, every commit on the disk when it returns."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cadenza.clock import Clock
from cadenza.core.demands import Message
from cadenza.core.events import AnyEvent, BudgetRaised, InputEvent, Recorded, RequestOpened
from cadenza.core.state import Origin, RunState
from cadenza.errors import Conflict, InputRefused, JournalError
from cadenza.ids import Hash
from cadenza.journal import projections, queries, refusals, sqlite_doctor, sqlite_rows
from cadenza.journal.database import Database, Synchronous
from cadenza.journal.sqlite_leases import Leases
from cadenza.journal.sqlite_shared import SharedThings, append_decision, append_queued, generation_of
from cadenza.journal.store import (
    LEASE_SECONDS,
    SOLVED,
    Commit,
    Decision,
    Holder,
    Lease,
    Loaded,
    Problem,
    RequestRow,
    RunRow,
)

_SQL = queries.load("sqlite.sql")
_ADVANCE_RUN = _SQL["advance_run"]
_INSERT_EVENT, _INSERT_TEXT = _SQL["insert_event"], _SQL["insert_text"]
_INSERT_MESSAGE = _SQL["insert_message"]
_PAGE = 500
_REMEMBERED = 10_000


class SqliteJournal(SharedThings):
    """The journal file at ``path``; made, with its folders, where there is none.

    ``synchronous`` is SQLite's: FULL survives a power cut, OFF is for tests. ``busy_timeout`` and
    ``lease_seconds`` are in seconds. ``clock`` replaces the database's clock in tests. ``read_only``: the
    file must be there, and nothing is written, neither to it nor beside it.

    Raises:
        JournalError: the file cannot be opened, is no journal, or is a newer version's.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Synchronous = "FULL",
        busy_timeout: float = 15.0,
        lease_seconds: float = LEASE_SECONDS,
        clock: Clock | None = None,
        read_only: bool = False,
    ) -> None:
        self.path = str(path)
        self._database = Database(
            self.path, synchronous=synchronous, busy_timeout=busy_timeout, read_only=read_only
        )
        self._leases = Leases(self._database, lease_seconds, clock)
        self._calls: dict[str, str] = {}
        self._known: dict[str, _Known] = {}

    # -- writing ------------------------------------------------------------------------------------------

    def create(
        self,
        run: str,
        events: Sequence[AnyEvent],
        state: RunState,
        texts: Mapping[Hash, str],
        *,
        at: float,
        actor: str,
    ) -> None:
        """Begin a run. Raises Conflict where there is one of that id."""
        first = Commit(
            run=run, epoch=0, after=0, events=tuple(events), state=state, at=at, actor=actor, texts=texts
        )
        payloads = refusals.payloads(events)
        row = projections.run_row(run, state, created_at=at, updated_at=at, actor=actor)
        with self._database.write() as connection:
            if connection.execute(_SQL["run_ref"], (run,)).fetchone() is not None:
                raise refusals.run_exists(run)
            values = sqlite_rows.of_run(row, projections.derive(state).standing, projections.budget_of(state))
            ref = connection.execute(_SQL["insert_run"], values).lastrowid or 0
            _, calls = self._append(connection, _Known(ref, 0, 0, False), first, payloads)
            if projections.snapshot_due(state, 0):
                sqlite_rows.put_snapshot(connection, ref, state)
        self._calls.update(calls)

    def commit(self, commit: Commit) -> None:
        """Append a lease holder's events. Raises LeaseLost or SequenceConflict."""
        payloads = refusals.payloads(commit.events)
        with self._database.write() as connection:
            written = self._write(connection, commit, payloads)
        if isinstance(written, Exception):
            raise written
        self._remember(commit.run, written)

    def commit_many(self, commits: Sequence[Commit]) -> list[Exception | None]:
        """Several commits in one transaction; the refusal of each, or None."""
        results: list[Exception | None] = [None] * len(commits)
        prepared: list[_Prepared] = []
        for index, commit in enumerate(commits):
            try:
                prepared.append((index, commit, refusals.payloads(commit.events)))
            except InputRefused as refused:
                results[index] = refused
        while prepared:
            try:
                self._write_many(prepared, results)
                break
            except _Unwritable as unwritable:
                results[prepared.pop(unwritable.position)[0]] = unwritable.error
        return results

    def _write_many(self, prepared: Sequence[_Prepared], results: list[Exception | None]) -> None:
        done: list[tuple[str, _Written]] = []
        with self._database.write() as connection:
            for position, (index, commit, payloads) in enumerate(prepared):
                try:
                    written = self._write(connection, commit, payloads)
                except UnicodeEncodeError as error:
                    raise _Unwritable(position, refusals.lone_surrogate(error)) from error
                except (sqlite3.Error, JournalError):
                    raise
                except Exception as error:
                    raise _Unwritable(position, error) from error
                if isinstance(written, Exception):
                    results[index] = written
                else:
                    results[index] = None
                    done.append((commit.run, written))
        for run, written in done:
            self._remember(run, written)

    def _write(
        self, connection: sqlite3.Connection, commit: Commit, payloads: Sequence[str]
    ) -> _Written | Exception:
        state, derived = commit.state, projections.derive(commit.state)
        known = self._known.get(commit.run)
        if known is None or known.epoch != commit.epoch:
            found = self._look(connection, commit)
            if isinstance(found, Exception):
                return found
            known = found
        values = sqlite_rows.of_commit(derived, known.ref, state.seq, commit.at)
        if not connection.execute(_ADVANCE_RUN, (*values, commit.after, commit.epoch)).rowcount:
            refused = self._look(connection, commit)
            return refused if isinstance(refused, Exception) else refusals.no_run(commit.run)
        asking, calls = self._append(connection, known, commit, payloads)
        snapshot = known.snapshot
        if projections.is_due(state.stands, state.seq - snapshot):
            sqlite_rows.put_snapshot(connection, known.ref, state)
            snapshot = state.seq
        if commit.release:
            connection.execute(_SQL["release_lease"], (known.ref, commit.epoch))
        if commit.sends or commit.settles:
            self._hand_on(connection, commit)
        if asking:
            self._wake_solved(connection, known.ref, commit)
        if state.stands:
            return None, calls
        return _Known(known.ref, known.epoch, snapshot, asking), calls

    def _hand_on(self, connection: sqlite3.Connection, commit: Commit) -> None:
        """Inputs for other runs, in this transaction; and what was reserved and is spent now."""
        for send in commit.sends:
            found = connection.execute(_SQL["run_for_input"], (send.run,)).fetchone()
            if found is None or projections.refusal(send.event, found[2], found[3]) is not None:
                continue
            ref, seq, _, standing = found
            (payload,) = refusals.payloads([send.event])
            wakes = projections.wakes(send.event, standing)
            append_queued(connection, (ref, seq + 1, commit.at, commit.actor, payload), wakes=wakes)
        connection.executemany(_SQL["settle"], [(demand,) for demand in commit.settles])

    def _wake_solved(self, connection: sqlite3.Connection, ref: int, commit: Commit) -> None:
        """A request for a screen that was solved after it was looked at is decided at once."""
        seq = commit.state.seq
        for event in commit.events:
            if type(event) is not RequestOpened or event.screen is None:
                continue
            if generation_of(connection, event.screen) <= event.generation:
                continue
            row = sqlite_rows.request(connection.execute(_SQL["request"], (event.id,)).fetchone())
            seq += 1
            append_decision(connection, ref, seq, row, SOLVED, at=commit.at, actor="screen")

    def _look(self, connection: sqlite3.Connection, commit: Commit) -> _Known | Exception:
        """What this process learns about a run at its first commit under an epoch, or why it is refused.

        The claims are forgotten here: no later commit under the epoch finds any.
        """
        found = connection.execute(_SQL["run_for_commit"], (commit.run,)).fetchone()
        if found is None:
            return refusals.no_run(commit.run)
        ref, seq, snapshot, epoch, expires, worker = found
        if epoch != commit.epoch or not expires:
            return refusals.not_yours(commit.run, commit.epoch, worker if expires else None)
        if seq != commit.after:
            return refusals.out_of_sequence(commit, seq)
        connection.execute(_SQL["forget_claims"], (ref,))
        return _Known(ref, epoch, snapshot, True)

    def _append(
        self, connection: sqlite3.Connection, known: _Known, commit: Commit, payloads: Sequence[str]
    ) -> tuple[bool, dict[str, str]]:
        """The events of a commit and what follows from them, but for the run's own row.

        Returns whether the run may have open requests now, and the conversations of the calls issued.
        """
        ref, seq, at, actor = known.ref, commit.after + 1, commit.at, commit.actor
        rows = [(ref, number, at, actor, payload) for number, payload in enumerate(payloads, seq)]
        connection.executemany(_INSERT_EVENT, rows)
        if commit.texts:
            connection.executemany(_INSERT_TEXT, commit.texts.items())
        projected = projections.project(
            commit.events, seq, lambda demand: self._conversation_of(connection, ref, demand)
        )
        if projected.messages:
            connection.executemany(_INSERT_MESSAGE, [(ref, *message) for message in projected.messages])
        asking = known.asking
        if projected.opens or (asking and projected.settles):
            asking = self._put_requests(connection, ref, commit)
        return asking, projected.calls

    def _put_requests(self, connection: sqlite3.Connection, ref: int, commit: Commit) -> bool:
        """Bring a run's requests up to date; whether one is open then."""
        found = connection.execute(_SQL["open_requests_of_run"], (ref,)).fetchall()
        rows = {row[0]: sqlite_rows.request(row) for row in found}
        changed = projections.project_requests(
            rows, commit.events, run=commit.run, at=commit.at, actor=commit.actor
        )
        if changed:
            values = [sqlite_rows.of_request(ref, row) for row in changed.values()]
            connection.executemany(_SQL["put_request"], values)
        return any(row.status == "open" for row in rows.values())

    def _conversation_of(self, connection: sqlite3.Connection, ref: int, demand: str) -> str | None:
        """The conversation of a model call: from memory, or after a restart from the events."""
        conversation = self._calls.pop(demand, None)
        if conversation is not None:
            return conversation
        for seq, payload in connection.execute(_SQL["events_backwards"], (ref,)):
            issued = projections.calls([sqlite_rows.event(payload, ref, seq)])
            if demand in issued:
                return issued[demand]
        return None

    def _remember(self, run: str, written: _Written) -> None:
        """Keep what the next commit would otherwise look up: never needed, always found again."""
        known, calls = written
        if known is not None:
            self._known[run] = known
        else:
            self._known.pop(run, None)
        self._calls.update(calls)
        if len(self._calls) > _REMEMBERED:
            self._calls.clear()
        if len(self._known) > _REMEMBERED:
            self._known.clear()

    # -- inputs -------------------------------------------------------------------------------------------

    def append_input(self, run: str, event: InputEvent, *, at: float, actor: str) -> int:
        """Queue an input event; its seq. Raises NotFound or Conflict."""
        (payload,) = refusals.payloads([event])
        with self._database.write() as connection:
            found = connection.execute(_SQL["run_for_input"], (run,)).fetchone()
            if found is None:
                raise refusals.no_run(run)
            ref, seq, status, standing = found
            refused = projections.refusal(event, status, standing)
            if refused is not None:
                raise Conflict(f"Run {run} {refused}.")
            if isinstance(event, BudgetRaised):
                connection.execute(_SQL["put_budget"], (projections.budget_text(event.budget), ref))
            wakes = projections.wakes(event, standing)
            return append_queued(connection, (ref, seq + 1, at, actor, payload), wakes=wakes)

    def decide(self, request: str, value: Any, *, at: float, actor: str) -> Decision:
        """Answer a request, once. Raises NotFound."""
        event, payload = refusals.decision(request, value)
        with self._database.write() as connection:
            found = connection.execute(_SQL["request"], (request,)).fetchone()
            if found is None:
                raise refusals.no_request(request)
            row = sqlite_rows.request(found)
            settled = projections.settled(row, event.value, self.now() if row.deadline else 0.0)
            if settled is not None:
                return settled
            ref, seq, _, standing = connection.execute(_SQL["run_for_input"], (row.run,)).fetchone()
            wakes = projections.wakes(event, standing)
            append_queued(connection, (ref, seq + 1, at, actor, payload), wakes=wakes)
            row = projections.decided(row, event, at=at, actor=actor)
            connection.execute(_SQL["put_request"], sqlite_rows.of_request(ref, row))
        return Decision(result="accepted", request=row)

    # -- leases -------------------------------------------------------------------------------------------

    def claim(self, holder: Holder, *, run: str | None = None) -> Lease | None:
        """Take a lease; None where nothing is claimable. Raises NotFound for a ``run`` that is not there."""
        return self._leases.claim(holder, run)

    def claim_many(self, holder: Holder, limit: int) -> list[Lease]:
        """Take the leases of up to ``limit`` runs in one transaction."""
        return self._leases.claim_many(holder, limit)

    def renew(self, lease: Lease) -> Lease:
        """Extend a lease. Raises LeaseLost."""
        return self._leases.renew(lease)

    def release(self, lease: Lease) -> None:
        """Give a lease back."""
        self._leases.release(lease)

    def leases(self) -> dict[str, Lease]:
        """Live leases by run."""
        return self._leases.live()

    def now(self) -> float:
        """The database's clock, in epoch seconds."""
        return self._leases.now()

    # -- reading ------------------------------------------------------------------------------------------

    def load(self, run: str) -> Loaded:
        """Snapshot and tail. Raises NotFound."""
        with self._database.read() as connection:
            return sqlite_rows.load(connection, _ref(connection, run), run)

    def events(self, run: str, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        """A run's events in order. Raises NotFound."""
        with self._database.read() as connection:
            ref = _ref(connection, run)
            return sqlite_rows.events(connection, ref, run, after, -1 if limit is None else limit)

    def texts(self, hashes: Iterable[Hash]) -> dict[Hash, str]:
        """Texts by hash. Raises JournalCorrupt when one is missing."""
        wanted = list(dict.fromkeys(hashes))
        if not wanted:
            return {}
        with self._database.read() as connection:
            found = dict(connection.execute(_SQL["texts"], (json.dumps(wanted),)).fetchall())
        missing = [hash for hash in wanted if hash not in found]
        if missing:
            raise refusals.missing_text(self.path, missing[0])
        return {hash: found[hash] for hash in wanted}

    def messages(
        self,
        conversation: str,
        *,
        before_demand: str | None = None,
        run: str | None = None,
        origins: Sequence[Origin] = (),
    ) -> list[Message]:
        """The messages of a conversation in order, or those before a demand's own."""
        with self._database.read() as connection:
            return projections.messages_of(
                lambda name: connection.execute(_SQL["messages"], (name,)).fetchall(),
                conversation,
                before_demand,
                run,
                origins,
            )

    def run(self, run: str) -> RunRow:
        """One run. Raises NotFound."""
        with self._database.read() as connection:
            found = connection.execute(_SQL["run"], (run,)).fetchone()
        if found is None:
            raise refusals.no_run(run)
        return sqlite_rows.run(found)

    def find_runs(self, prefix: str) -> list[str]:
        """Ids that begin with ``prefix``, newest first, at most 20."""
        with self._database.read() as connection:
            return [id for (id,) in connection.execute(_SQL["find_runs"], (prefix,)).fetchall()]

    def runs(
        self, *, workspace: str | None = None, status: Sequence[str] = (), limit: int | None = None
    ) -> Iterator[RunRow]:
        """Runs, newest first, read a page at a time."""
        before, left = 2**63 - 1, limit
        statuses = json.dumps(list(status)) if status else None
        while left is None or left > 0:
            size = _PAGE if left is None else min(left, _PAGE)
            with self._database.read() as connection:
                page = connection.execute(_SQL["runs"], (before, workspace, statuses, size)).fetchall()
            yield from map(sqlite_rows.run, page)
            if len(page) < size:
                return
            before, left = page[-1][-1], None if left is None else left - size

    def request(self, request: str) -> RequestRow:
        """One request. Raises NotFound."""
        with self._database.read() as connection:
            found = connection.execute(_SQL["request"], (request,)).fetchone()
        if found is None:
            raise refusals.no_request(request)
        return sqlite_rows.request(found)

    def requests(
        self, *, status: Sequence[str] = ("open",), run: str | None = None, workspace: str | None = None
    ) -> list[RequestRow]:
        """Requests, oldest first."""
        with self._database.read() as connection:
            if tuple(status) == ("open",):
                found = connection.execute(_SQL["open_requests"], (run, workspace)).fetchall()
            else:
                values = (run, workspace, json.dumps(list(status)))
                found = connection.execute(_SQL["requests"], values).fetchall()
        return [sqlite_rows.request(row) for row in found]

    # -- the file -----------------------------------------------------------------------------------------

    def verify(self) -> list[Problem]:
        """Compare every row with what the events say; the file and its texts too."""
        return sqlite_doctor.verify(self._database)

    def rebuild(self) -> int:
        """Write every projection anew; the number of runs."""
        return sqlite_doctor.rebuild(self._database)

    def size(self) -> int:
        """Bytes of the file and of the log beside it."""
        return self._database.size()

    def close(self) -> None:
        """Close the file."""
        self._database.close()


class _Known(NamedTuple):
    """What stays true of a run as long as this process writes it under ``epoch``.

    ``snapshot`` is the seq of its snapshot; ``asking`` says that it may have open requests (only the lease
    holder opens any).
    """

    ref: int
    epoch: int
    snapshot: int
    asking: bool


_Prepared = tuple[int, Commit, list[str]]
"""A commit's place among those handed in, the commit, its events as JSON."""

_Written = tuple[_Known | None, dict[str, str]]
"""What a commit taught: see :class:`_Known` (None for a run that stands: ten thousand of them cost nothing);
and the conversations of the model calls that it issued."""


class _Unwritable(Exception):
    """One commit of several cannot be written; the others can, in a transaction without it."""

    def __init__(self, position: int, error: Exception) -> None:
        self.position, self.error = position, error
        super().__init__(position)


def _ref(connection: sqlite3.Connection, run: str) -> int:
    found = connection.execute(_SQL["run_ref"], (run,)).fetchone()
    if found is None:
        raise refusals.no_run(run)
    return int(found[0])
