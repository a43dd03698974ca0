"""The demands that are being met right now: one task each, and a way to wait for the next to end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any

from cadenza.core.state import OpenDemand
from cadenza.worker.agent_tools import Met


class InFlight:
    """Tasks by demand. Not for use from other threads."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[Met | None], OpenDemand] = {}
        self._ids: set[str] = set()
        self._finished: deque[asyncio.Task[Met | None]] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, demand: str) -> bool:
        return demand in self._ids

    def start(self, opened: OpenDemand, meeting: Coroutine[Any, Any, Met | None]) -> None:
        """Begin to meet a demand; ``meeting`` gives None where it turned out not to be wanted any more."""
        task = asyncio.create_task(meeting, name=opened.key)
        self._tasks[task] = opened
        self._ids.add(opened.id)
        task.add_done_callback(self._note)

    def stir(self) -> None:
        """End the present :meth:`wait`."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self, seconds: float) -> bool:
        """Wait until a task has ended, something stirs, or ``seconds`` have passed; whether one has ended."""
        if not self._finished:
            loop = asyncio.get_running_loop()
            self._waiter = loop.create_future()
            timer = loop.call_later(seconds, self.stir)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None
        return bool(self._finished)

    def take(self) -> tuple[OpenDemand, Met] | None:
        """The next outcome that is there.

        Raises:
            JournalError: what a demand refers to could not be read.
        """
        while self._finished:
            task = self._finished.popleft()
            opened = self._tasks.pop(task)
            self._ids.discard(opened.id)
            if not task.cancelled() and (met := task.result()) is not None:
                return opened, met
        return None

    async def stop(self) -> None:
        """Cancel every task and wait for it to end. Those that came to an outcome can still be taken."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    def _note(self, task: asyncio.Task[Met | None]) -> None:
        self._finished.append(task)
        self.stir()
