"""Runs that a program plays in its own process: one task each, from now until the run stands or ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from cadenza.errors import LeaseLost
from cadenza.journal.store import Journal
from cadenza.worker.loop import Worker

LOOK_SECONDS = 0.25
"""How often a run that another worker plays, or that waits for a retry, is looked at."""


class Embedded:
    """Plays runs here, each until it waits for somebody else or ends; also through waits for a retry."""

    def __init__(self, journal: Journal, worker: Worker) -> None:
        self._journal = journal
        self._worker = worker
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._holding: set[str] = set()
        self._woken: dict[str, asyncio.Event] = {}
        self._errors: dict[str, Exception] = {}

    def play(self, run: str) -> None:
        """Play ``run`` from now on, or look at it once more where it is being played already."""
        self._worker.notify(run)
        self._holding.discard(run)
        if run in self._tasks:
            self._again.add(run)
            self._woken[run].set()
            return
        self._errors.pop(run, None)
        self._woken[run] = asyncio.Event()
        self._tasks[run] = asyncio.create_task(self._play(run), name=f"play {run}")

    def is_playing(self, run: str) -> bool:
        """Whether ``run`` is being played here."""
        return run in self._tasks

    def interrupt(self, run: str) -> bool:
        """Save and hold a run that is being played here, wherever it stands; whether it is."""
        if run not in self._tasks:
            return False
        self._holding.add(run)
        self._worker.interrupt(run)
        self._woken[run].set()
        return True

    async def idle(self, run: str) -> None:
        """Wait until ``run`` is not played here any more; see :meth:`check`."""
        task = self._tasks.get(run)
        if task is not None:
            await asyncio.shield(task)
        self.check(run)

    def check(self, run: str) -> None:
        """Raise what stopped ``run`` from being played here, where something did: a JournalError or a bug."""
        error = self._errors.pop(run, None)
        if error is not None:
            raise error

    async def close(self) -> None:
        """Hold everything that is being played here, and wait until it is."""
        for run in list(self._tasks):
            self.interrupt(run)
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _play(self, run: str) -> None:
        try:
            await self._rounds(run)
        except Exception as error:  # whoever waits for the run is told
            self._errors[run] = error
        finally:
            del self._tasks[run], self._woken[run]
            self._holding.discard(run)

    async def _rounds(self, run: str) -> None:
        another = True
        while another:
            self._again.discard(run)
            hold = run in self._holding
            with suppress(LeaseLost):
                await self._worker.play(run, hold=hold)
            another = await self._another(run, hold)

    async def _another(self, run: str, hold: bool) -> bool:
        """Whether the run is to be played once more here; while it waits, only its row is looked at."""
        waited = False
        while True:
            row = await asyncio.to_thread(self._journal.run, run)
            # Nothing else runs between here and the end of this task, so no wish can be missed.
            if run in self._again or hold != (run in self._holding):
                return True
            if hold or row.wake_at is None or row.status == "waiting_human":
                return False
            due = row.wake_at - self._journal.now()
            if waited and due <= 0:
                return True
            await self._look_later(run, due)
            waited = True

    async def _look_later(self, run: str, due: float) -> None:
        """Wait until the run is due, something was appended for it here, or it is time to look."""
        woken = self._woken[run]
        woken.clear()
        seconds = max(0.02, min(due, LOOK_SECONDS)) if due > 0 else LOOK_SECONDS
        with suppress(TimeoutError):
            await asyncio.wait_for(woken.wait(), seconds)
