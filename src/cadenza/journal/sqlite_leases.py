"""Leases in SQLite: who may write a run's events, under which epoch, until when by the database's clock."""

from __future__ import annotations

import sqlite3
from itertools import islice
from typing import Any

from cadenza.clock import Clock
from cadenza.journal import holders, queries, refusals
from cadenza.journal.database import Database
from cadenza.journal.store import Holder, Lease

_SQL = queries.load("sqlite.sql")


class Leases:
    """Claims, renewals and releases. A lease lasts ``seconds``; ``clock`` replaces the database's."""

    def __init__(self, database: Database, seconds: float, clock: Clock | None) -> None:
        self._database = database
        self._seconds = seconds
        self._clock = clock

    def now(self) -> float:
        """The clock that decides."""
        with self._database.read() as connection:
            return self._now(connection)

    def claim(self, holder: Holder, run: str | None) -> Lease | None:
        """Take a lease. Looks without the write lock first: an idle worker costs the others nothing."""
        if run is not None:
            with self._database.read() as connection:
                if connection.execute(_SQL["run_ref"], (run,)).fetchone() is None:
                    raise refusals.no_run(run)
        return next(iter(self._claim(holder, run, 1)), None)

    def claim_many(self, holder: Holder, limit: int) -> list[Lease]:
        """Take up to ``limit`` leases in one transaction."""
        return self._claim(holder, None, limit)

    def _claim(self, holder: Holder, run: str | None, limit: int) -> list[Lease]:
        with self._database.read() as connection:
            if not self._candidates(connection, holder, run, self._now(connection), 1):
                return []
        with self._database.write() as connection:
            now = self._now(connection)
            found = self._candidates(connection, holder, run, now, limit)
            return [self._take(connection, row, holder, now) for row in found]

    def renew(self, lease: Lease) -> Lease:
        """Extend a lease that nobody else has taken, even one that ran out."""
        with self._database.write() as connection:
            expires = self._now(connection) + self._seconds
            ref = self._ref(connection, lease.run)
            done = connection.execute(_SQL["renew_lease"], (expires, ref, lease.epoch))
            if done.rowcount == 0:
                raise refusals.lost(lease)
            claims = connection.execute(_SQL["lease"], (ref,)).fetchone()[3]
        return Lease(run=lease.run, epoch=lease.epoch, worker=lease.worker, expires=expires, claims=claims)

    def release(self, lease: Lease) -> None:
        """Give a lease back, where it still is one."""
        with self._database.write() as connection:
            ref = self._ref(connection, lease.run)
            connection.execute(_SQL["release_lease"], (ref, lease.epoch))

    def live(self) -> dict[str, Lease]:
        """Leases that have not run out and whose process is not known to be gone, by run."""
        with self._database.read() as connection:
            rows = connection.execute(_SQL["live_leases"], (self._now(connection),)).fetchall()
        gone: dict[tuple[str, ...], bool] = {}
        return {
            run: Lease(run=run, epoch=epoch, worker=process[0], expires=expires, claims=claims)
            for run, epoch, expires, claims, *process in rows
            if not _is_gone(tuple(process), gone)
        }

    def _now(self, connection: sqlite3.Connection) -> float:
        if self._clock is not None:
            return self._clock()
        now: float = connection.execute(_SQL["now"]).fetchone()[0]
        return now

    def _ref(self, connection: sqlite3.Connection, run: str) -> int:
        found = connection.execute(_SQL["run_ref"], (run,)).fetchone()
        return int(found[0]) if found else 0

    def _candidates(
        self, connection: sqlite3.Connection, holder: Holder, run: str | None, now: float, limit: int
    ) -> list[tuple[Any, ...]]:
        values = (now, holder.boot, holder.pid, holder.process_start)
        if run is None:
            rows = connection.execute(_SQL["due_runs"], values)
        else:
            rows = connection.execute(_SQL["playable_run"], (*values, run))
        gone: dict[tuple[str, ...], bool] = {}
        try:
            return list(islice((row for row in rows if _is_free(row, now, gone)), limit))
        finally:
            rows.close()

    def _take(
        self, connection: sqlite3.Connection, found: tuple[Any, ...], holder: Holder, now: float
    ) -> Lease:
        ref, run, epoch, claims, *_ = found
        epoch, claims, expires = (epoch or 0) + 1, (claims or 0) + 1, now + self._seconds
        connection.execute(
            _SQL["put_lease"],
            (ref, epoch, holder.worker, holder.pid, holder.boot, holder.process_start, expires, claims),
        )
        return Lease(run=run, epoch=epoch, worker=holder.worker, expires=expires, claims=claims)


def _is_free(row: tuple[Any, ...], now: float, gone: dict[tuple[str, ...], bool]) -> bool:
    """Whether a row of ``due_runs`` can be claimed; ``gone`` as for :func:`_is_gone`."""
    _, _, epoch, _, expires, *process = row
    return epoch is None or expires <= now or _is_gone(tuple(process), gone)


def _is_gone(process: tuple[Any, ...], gone: dict[tuple[str, ...], bool]) -> bool:
    """Whether a lease's process is known to be gone; ``gone`` keeps what was found out about processes."""
    if process not in gone:
        worker, pid, boot, start = process
        gone[process] = holders.is_gone(Holder(worker=worker, pid=pid, boot=boot, process_start=start))
    return gone[process]
