"""One SQLite file, opened for several threads and processes: connections, transactions, clear errors."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Literal
from urllib.parse import quote

from cadenza.errors import (
    CadenzaError,
    JournalBusy,
    JournalCorrupt,
    JournalError,
    JournalFull,
    JournalNewer,
    JournalReadOnly,
)
from cadenza.journal import migrations, refusals

Synchronous = Literal["FULL", "NORMAL", "OFF", "EXTRA"]

_MINIMUM = (3, 35, 0)
_WAL_LIMIT = 16 * 1024 * 1024


class Database:
    """A writing and a reading connection, each behind a lock: readers never wait for a writer's disk.

    ``busy_timeout`` is in seconds. ``read_only``: there is no writing connection, and nothing is made. Any
    sqlite3 error leaves as a :class:`~cadenza.errors.JournalError`.
    """

    def __init__(
        self, path: str, *, synchronous: Synchronous, busy_timeout: float, read_only: bool = False
    ) -> None:
        self.path = path
        self._read_only = read_only
        self._busy_timeout = busy_timeout
        self._synchronous = synchronous
        self._writing, self._reading = threading.RLock(), threading.RLock()
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        _check_kind(path)
        if not read_only:
            _make_folder(path)
        _check_header(path)
        with self._translated():
            if read_only:
                self._reader = self._open_reader()
                return
            self._writer = self._open_writer()
            self._reader = self._connect()
            self._reader.execute("PRAGMA query_only = ON")

    def write(self) -> Transaction:
        """A transaction that holds the file's write lock from its beginning; rolled back by any exception."""
        return Transaction(self)

    def begin(self) -> sqlite3.Connection:
        """How a :class:`Transaction` begins."""
        self._writing.acquire()
        try:
            if self._read_only:
                raise JournalReadOnly(f"The journal {self.path} was opened for reading only.", hint=_WRITABLE)
            connection = self._opened(self._writer)
            connection.execute("BEGIN IMMEDIATE")
        except BaseException as error:
            self._writing.release()
            if isinstance(error, sqlite3.Error):
                raise translate(error, self.path) from error
            raise
        return connection

    def commit(self, connection: sqlite3.Connection) -> None:
        """How a :class:`Transaction` ends well."""
        try:
            connection.execute("COMMIT")
        except BaseException as error:
            self._roll_back(connection)
            if isinstance(error, sqlite3.Error):
                raise translate(error, self.path) from error
            raise
        finally:
            self._writing.release()

    def roll_back(self, connection: sqlite3.Connection, error: BaseException) -> None:
        """How a :class:`Transaction` ends that ``error`` broke."""
        try:
            self._roll_back(connection)
        finally:
            self._writing.release()
        translation = translated(error, self.path)
        if translation is not error:
            raise translation from error

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """The reading connection; each statement sees what is committed when it starts."""
        with self._reading, self._translated():
            yield self._opened(self._reader)

    @contextmanager
    def read_snapshot(self) -> Iterator[sqlite3.Connection]:
        """The reading connection in a transaction: all statements see the journal at one moment."""
        with self.read() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close both connections; the last process to do so leaves one file without a log beside it."""
        with self._writing, self._reading:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    with suppress(sqlite3.Error):
                        connection.close()
            self._reader = self._writer = None

    def size(self) -> int:
        """Bytes of the file and of the log beside it."""
        total = 0
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                total += os.stat(self.path + suffix).st_size
        return total

    def _opened(self, connection: sqlite3.Connection | None) -> sqlite3.Connection:
        if connection is None:
            raise JournalError(f"The journal {self.path} is closed.")
        return connection

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        """SQLite may have rolled back by itself; a connection that cannot is replaced."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                connection.close()
                self._writer = self._open_writer()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=self._busy_timeout, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        return connection

    def _open_writer(self) -> sqlite3.Connection:
        if sqlite3.sqlite_version_info < _MINIMUM:
            needed = ".".join(map(str, _MINIMUM))
            raise JournalError(
                f"SQLite {sqlite3.sqlite_version} is too old for the journal; {needed} is needed.",
                hint="Use a Python that was built with a newer SQLite.",
            )
        connection = self._connect()
        try:
            if self._check(connection) < len(migrations.MIGRATIONS):
                self._migrate(connection)
            _until_free(connection, "PRAGMA journal_mode = WAL", self._busy_timeout)
            connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
            connection.execute("PRAGMA foreign_keys = OFF")
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_reader(self) -> sqlite3.Connection:
        """The one connection of a journal that is only read.

        SQLite reads a journal whose log (``-wal``) is beside it through ``-shm``. Where that file is not
        there and cannot be made, and there is nothing in the log, the file is read as it is: as one that
        nobody changes, which holds on read-only media.
        """
        uri = f"file:{quote(os.path.abspath(self.path))}?mode=ro"
        try:
            return self._check_reader(uri)
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
                raise
            if _holds_something(f"{self.path}-wal"):
                raise JournalReadOnly(
                    f"The journal {self.path} has a log beside it (-wal) that cannot be read in this place.",
                    hint="Copy the journal and the files beside it into a folder that can be written, and "
                    "name the copy with --journal.",
                ) from error
        return self._check_reader(f"{uri}&immutable=1")

    def _check_reader(self, uri: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            uri, uri=True, timeout=self._busy_timeout, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("PRAGMA query_only = ON")
            if self._check(connection) < len(migrations.MIGRATIONS):
                raise JournalReadOnly(
                    f"The journal {self.path} is of an earlier format, or empty, and cannot be changed here.",
                    hint=_WRITABLE,
                )
        except BaseException:
            connection.close()
            raise
        return connection

    def _check(self, connection: sqlite3.Connection) -> int:
        """The version of the file, which is a journal or empty."""
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = migrations.version_of(connection)
        if application != migrations.APPLICATION_ID:
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if application or version or tables:
                raise JournalCorrupt(
                    f"{self.path} is an SQLite database, but not a Cadenza journal.",
                    hint="Name another file with --journal; this one was not changed.",
                )
        if version > len(migrations.MIGRATIONS):
            raise JournalNewer(
                f"The journal {self.path} has format {version}; this version of Cadenza reads up to "
                f"{len(migrations.MIGRATIONS)}.",
                hint="Update Cadenza, or name another file with --journal; this one was not changed.",
            )
        return version

    def _migrate(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            if self._check(connection) < len(migrations.MIGRATIONS):
                migrations.migrate(connection)
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeEncodeError) as error:
            raise translated(error, self.path) from error


class Transaction:
    """One write transaction, as a context manager (a plain class: every durable step pays for it)."""

    __slots__ = ("_connection", "_database")

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> sqlite3.Connection:
        self._connection = self._database.begin()
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._database.commit(self._connection)
        else:
            self._database.roll_back(self._connection, error)


def translated(error: BaseException, path: str) -> BaseException:
    """An error of SQLite, or of a text that UTF-8 cannot hold, as ours; any other as it is."""
    if isinstance(error, sqlite3.Error):
        return translate(error, path)
    if isinstance(error, UnicodeEncodeError):
        return refusals.lone_surrogate(error)
    return error


def translate(error: sqlite3.Error, path: str) -> CadenzaError:
    """The error that a person can act on."""
    name = getattr(error, "sqlite_errorname", "") or ""
    said = f"({error}{f', {name}' if name else ''})"
    if name.startswith("SQLITE_FULL") or (name.startswith("SQLITE_IOERR") and _is_full(path)):
        return JournalFull(
            f"There is no space left for the journal {path}; nothing of this write was kept {said}.",
            hint="Free some space, then resume the run: nothing recorded before was lost.",
        )
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        return JournalReadOnly(f"The journal {path} cannot be opened for writing {said}.", hint=_WRITABLE)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return JournalBusy(
            f"Another process held the journal {path} for too long {said}.",
            hint="Try again; if it lasts, look for a process that hangs with the journal open.",
        )
    if _says_corrupt(error, name):
        return JournalCorrupt(
            f"{path} is damaged, or is not a journal {said}.",
            hint="Restore it from a backup, or name another file with --journal.",
        )
    return JournalError(f"The journal {path} could not be read or written {said}.")


_WRITABLE = "Make the file and its folder writable, or name another file with --journal."


def _says_corrupt(error: sqlite3.Error, name: str) -> bool:
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_FORMAT", "SQLITE_MISMATCH")):
        return True
    said = str(error)
    return said.startswith(("no such table", "no such column", "Could not decode", "malformed JSON"))


def _is_full(path: str) -> bool:
    try:
        space = os.statvfs(os.path.dirname(path) or ".")
    except OSError:
        return False
    return space.f_bavail * space.f_frsize < 65536


def _make_folder(path: str) -> None:
    folder = Path(path).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        said = f"The folder {folder} of the journal cannot be made ({error.strerror})."
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise JournalFull(said, hint="Free some space and try again.") from error
        raise JournalReadOnly(said, hint=_WRITABLE) from error


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _check_kind(path: str) -> None:
    """Refuse what is no file before it is opened: to open a pipe would wait for a writer."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return  # not there yet, or its opening says what is wrong
    for is_kind, what in _KINDS:
        if is_kind(mode):
            raise JournalError(
                f"{path} is {what}, and a journal is a file.", hint="Name a file with --journal."
            )


def _holds_something(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


def _check_header(path: str) -> None:
    """SQLite takes a file of a few bytes for an empty one and would write over it; this does not."""
    try:
        with open(path, "rb") as file:
            start = file.read(16)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise JournalReadOnly(f"The journal {path!r} cannot be opened ({error}).", hint=_WRITABLE) from error
    if start and start != b"SQLite format 3\0":
        raise JournalCorrupt(
            f"{path} is damaged, or is not a journal.",
            hint="Name another file with --journal; it was not changed.",
        )


def _until_free(connection: sqlite3.Connection, statement: str, timeout: float) -> None:
    """Run a statement that SQLite refuses at once, without waiting, while another process holds the file."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            connection.execute(statement)
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
