"""Group commit: one thread per process writes what many runs hand in, whatever waits in one transaction.

The disk is waited for once a batch, so the more runs are at work, the less each of them waits.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from types import TracebackType

from cadenza.errors import JournalError
from cadenza.journal.store import Commit, Journal

_BATCH = 256

_Submitted = tuple[Commit, "Future[None] | asyncio.Future[None]"]


class Writer:
    """Commits in the background, in the order of :meth:`submit`. A context manager that closes itself."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._queue: SimpleQueue[_Submitted | None] = SimpleQueue()
        self._closing = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="cadenza-writer", daemon=True)
        self._thread.start()

    def submit(self, commit: Commit) -> Future[None]:
        """Hand in a commit. The future is done when it is on the disk, or holds why it was not written.

        Once handed in, a commit is written; cancelling the future does nothing.

        Raises:
            JournalError: the writer was closed.
        """
        future: Future[None] = Future()
        future.set_running_or_notify_cancel()
        self._hand_in((commit, future))
        return future

    async def commit(self, commit: Commit) -> None:
        """Hand in a commit and wait until it is on the disk. It is written even when the wait is cancelled.

        Raises:
            JournalError: why it was not written.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._hand_in((commit, future))
        await future

    def _hand_in(self, submitted: _Submitted) -> None:
        with self._closing:
            if self._closed:
                raise JournalError("The journal's writer was closed.")
            self._queue.put(submitted)

    def close(self) -> None:
        """Write what was handed in, then stop. Safe to call again."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        while True:
            first = self._queue.get()
            if first is None:
                return
            batch, more = self._gather(first)
            self._write(batch)
            if not more:
                return

    def _gather(self, first: _Submitted) -> tuple[list[_Submitted], bool]:
        """All that waits, and whether there can be more."""
        batch = [first]
        with suppress(Empty):
            while len(batch) < _BATCH:
                item = self._queue.get_nowait()
                if item is None:
                    return batch, False
                batch.append(item)
        return batch, True

    def _write(self, batch: Sequence[_Submitted]) -> None:
        results: Sequence[BaseException | None]
        try:
            results = self._journal.commit_many([commit for commit, _ in batch])
        except BaseException as error:
            results = [error] * len(batch)
        waiting: dict[asyncio.AbstractEventLoop, list[_Settled]] = {}
        for (_, future), refused in zip(batch, results, strict=True):
            if isinstance(future, asyncio.Future):
                waiting.setdefault(future.get_loop(), []).append((future, refused))
            else:
                _settle(future, refused)
        for loop, settled in waiting.items():
            with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                loop.call_soon_threadsafe(_settle_all, settled)


_Settled = tuple["asyncio.Future[None]", BaseException | None]


def _settle_all(settled: Sequence[_Settled]) -> None:
    """In the loop's own thread: one call a batch, however many wait."""
    for future, refused in settled:
        if not future.done():
            _settle(future, refused)


def _settle(future: Future[None] | asyncio.Future[None], refused: BaseException | None) -> None:
    if refused is None:
        future.set_result(None)
    else:
        future.set_exception(refused)
