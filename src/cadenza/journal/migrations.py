"""How a journal file becomes one of this version: a list of functions, run in order, each one once.

``user_version`` in the file's header counts those that it has seen; ``application_id`` says that the file
is a journal at all. A released migration is never changed: the next schema is a new function.
"""

from __future__ import annotations

from collections.abc import Callable
from sqlite3 import Connection, sqlite_version

from cadenza.journal import queries

APPLICATION_ID = 0x43444E5A
"""``CDNZ``: what ``file`` and ``PRAGMA application_id`` show of a journal."""


def _create(connection: Connection) -> None:
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    for statement in queries.load("sqlite-0001.sql").values():
        connection.execute(statement)


def _second(connection: Connection) -> None:
    for statement in queries.load("sqlite-0002.sql").values():
        connection.execute(statement)


MIGRATIONS: list[Callable[[Connection], None]] = [_create, _second]


def version_of(connection: Connection) -> int:
    """How many migrations the file has seen."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def migrate(connection: Connection) -> None:
    """Run what is missing. The caller holds a write transaction."""
    for number in range(version_of(connection), len(MIGRATIONS)):
        MIGRATIONS[number](connection)
        connection.execute(f"PRAGMA user_version = {number + 1}")


def versions() -> dict[str, str]:
    """The schema that this version writes, and the library that writes it: for ``cadenza doctor``."""
    return {"schema": str(len(MIGRATIONS)), "sqlite": sqlite_version}
