"""What the runs of an SQLite journal share: screens, budgets of trees, workspaces; and how one is handed an
input."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from cadenza.core.spending import Spend, Spent, exceeded
from cadenza.journal import projections, queries, refusals, sqlite_rows
from cadenza.journal.database import Database
from cadenza.journal.store import RequestRow, RunRow, Workspace

_SQL = queries.load("sqlite.sql")


class SharedThings:
    """The part of the store that is about more than one run."""

    _database: Database

    def now(self) -> float:
        """The database's clock, in epoch seconds."""
        raise NotImplementedError

    def resolve_screen(
        self, screen: str, value: Any, *, at: float, actor: str, reason: str = "captcha"
    ) -> list[RequestRow]:
        """Decide every open request that waits for a screen; those that were."""
        with self._database.write() as connection:
            connection.execute(_SQL["solve_screen"], (screen,))
            found = connection.execute(_SQL["open_requests_of_screen"], (screen, reason)).fetchall()
            resumed = []
            for row in map(sqlite_rows.request, found):
                ref, seq, _, standing = connection.execute(_SQL["run_for_input"], (row.run,)).fetchone()
                resumed.append(
                    append_decision(
                        connection, ref, seq + 1, row, value, at=at, actor=actor, standing=standing
                    )
                )
        return resumed

    def generation(self, screen: str) -> int:
        """How often a screen has been solved."""
        with self._database.read() as connection:
            return generation_of(connection, screen)

    def tree(self, root: str) -> list[RunRow]:
        """A run and all that belong to its tree. Raises NotFound."""
        with self._database.read() as connection:
            found = connection.execute(_SQL["tree"], (root,)).fetchall()
        if not found:
            raise refusals.no_run(root)
        return [sqlite_rows.run(row) for row in found]

    def reserve(self, root: str, demand: str, want: Spent) -> str | None:
        """Set something aside of a tree's budget; None, or which limit is against it."""
        with self._database.read() as connection:
            budget, began = connection.execute(_SQL["budget"], (root,)).fetchone() or (None, 0.0)
        if budget is None:
            return None
        with self._database.write() as connection:
            (budget, _) = connection.execute(_SQL["budget"], (root,)).fetchone()
            limits = sqlite_rows.decode_json(budget or "{}", type=Spend)
            spent = Spent.of(connection.execute(_SQL["spent"], (root,)).fetchone())
            reserved = Spent.of(connection.execute(_SQL["reserved"], (root, demand)).fetchone())
            words = exceeded(limits, spent + reserved + want, self.now() - began)
            if words is None:
                values = (demand, root, want.tokens, want.cost, want.tool_calls)
                connection.execute(_SQL["put_reservation"], values)
        return words

    def put_workspace(self, workspace: Workspace) -> None:
        """Name a folder."""
        with self._database.write() as connection:
            connection.execute(_SQL["put_workspace"], msgspec.structs.astuple(workspace))

    def workspaces(self) -> list[Workspace]:
        """All named folders."""
        with self._database.read() as connection:
            found = connection.execute(_SQL["workspaces"]).fetchall()
        return [
            Workspace(name=name, path=path, shared=bool(shared), owner=owner, added_at=at)
            for name, path, shared, owner, at in found
        ]


def generation_of(connection: sqlite3.Connection, screen: str) -> int:
    """How often a screen has been solved."""
    found = connection.execute(_SQL["screen"], (screen,)).fetchone()
    return int(found[0]) if found is not None else 0


def append_decision(
    connection: sqlite3.Connection,
    ref: int,
    seq: int,
    row: RequestRow,
    value: Any,
    *,
    at: float,
    actor: str,
    standing: projections.Standing = None,
) -> RequestRow:
    """Append a decision as the run's event ``seq``."""
    event, payload = refusals.decision(row.id, value)
    append_queued(connection, (ref, seq, at, actor, payload), wakes=projections.wakes(event, standing))
    row = projections.decided(row, event, at=at, actor=actor)
    connection.execute(_SQL["put_request"], sqlite_rows.of_request(ref, row))
    return row


def append_queued(
    connection: sqlite3.Connection, row: tuple[int, int, float, str, str], *, wakes: bool
) -> int:
    """Append an input event; its seq."""
    ref, seq, at, _, _ = row
    connection.execute(_SQL["insert_event"], row)
    connection.execute(_SQL["queue_run" if wakes else "touch_run"], (seq, at, ref))
    return seq
