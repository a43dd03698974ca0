"""Plays one run in this process while a view watches, and turns signals into an orderly stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from cadenza.cli.asking import ask_here
from cadenza.cli.context import Context
from cadenza.cli.output import out
from cadenza.cli.task import is_attended
from cadenza.cli.views import View
from cadenza.core.state import OpenDemand
from cadenza.engine import Engine, Run, RunResult
from cadenza.errors import JournalError

INTERRUPTED = 130

Begin = Callable[[Engine], Awaitable[Run]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to play: ``begin`` starts or continues it. ``run`` names one that is there already; what came
    after event ``after`` (its last one now) is shown."""

    context: Context
    begin: Begin
    view: Callable[[Context], View]
    run: str | None = None
    after: int | None = None
    provider: str | None = None
    model: str | None = None


def play(plan: Plan) -> RunResult:
    """Play until the run stands or ends; the view has shown all of it.

    Raises:
        CadenzaError: it could not be begun, or the journal failed.
        KeyboardInterrupt: a signal came before there was a run, or the run goes on in another process.
    """
    return asyncio.run(_Driver(plan).play())


class _Driver:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._view = plan.view(plan.context)
        self._engine: Engine | None = None
        self._run: Run | None = None
        self._following: asyncio.Task[None] | None = None
        self._settling: asyncio.Task[None] | None = None
        self._signals = 0

    async def play(self) -> RunResult:
        plan = self._plan
        settings = plan.context.settings()
        async with Engine(
            provider=plan.provider, model=plan.model, settings=settings, on_text=self._text
        ) as engine:
            self._engine = engine
            with self._listening():
                return await self._begun(engine)

    async def _begun(self, engine: Engine) -> RunResult:
        after = 0
        if self._plan.run is not None:
            row = await asyncio.to_thread(engine.service.run, self._plan.run)
            after = row.seq if self._plan.after is None else self._plan.after
        run = await self._plan.begin(engine)
        self._run = run
        try:
            while True:
                with self._view.showing(engine.service, run.id):
                    await self._follow(engine, run, after)
                result = await run.result()
                if not await self._asked(engine, result):
                    break
                after = engine.journal.run(run.id).seq - len(result.requests)
        except JournalError:
            out.note(f"run {run.id} stands where it was saved last: {self._resume(run)}")
            raise
        self._view.end(engine.service, result)
        return result

    async def _asked(self, engine: Engine, result: RunResult) -> bool:
        """Ask the person at the terminal right here what the run waits for; whether something was
        answered."""
        if not self._view.asks or not result.requests or not is_attended() or self._signals:
            return False
        return await ask_here(engine, result)

    async def _follow(self, engine: Engine, run: Run, after: int) -> None:
        if after:
            self._view.catch_up(engine.journal.events(run.id)[:after])
        self._following = asyncio.create_task(self._consume(run, after))
        if self._signals:
            self._settle()
        try:
            await self._following
        except asyncio.CancelledError:
            out.note(f"run {run.id} is being played by another process, and goes on there")
            raise KeyboardInterrupt from None

    async def _consume(self, run: Run, after: int) -> None:
        async for recorded in run.events(after=after):
            self._view.event(recorded)

    def _text(self, run: str, opened: OpenDemand, text: str) -> None:
        self._view.text(opened.id, text)

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        """While the run is played, signals are requests."""
        loop = asyncio.get_running_loop()
        numbers = (signal.SIGINT, signal.SIGTERM)
        for number in numbers:
            loop.add_signal_handler(number, self._signalled)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _signalled(self) -> None:
        self._signals += 1
        if self._signals > 1:
            self._stop_at_once()
        out.note("stopping: the run is being saved (once more stops at once)")
        if self._following is not None:
            self._settle()

    def _settle(self) -> None:
        self._settling = asyncio.create_task(self._hold())

    async def _hold(self) -> None:
        """Save and hold the run; where another process plays it, only look away."""
        engine, run, following = self._engine, self._run, self._following
        assert engine is not None
        assert run is not None
        assert following is not None
        run.interrupt()
        with contextlib.suppress(JournalError):  # the follower meets it too
            await engine.idle(run.id)
            if (await asyncio.to_thread(engine.journal.run, run.id)).wake_at is not None:
                following.cancel()

    def _stop_at_once(self) -> None:
        self._view.close()
        if self._run is not None:
            out.note(f"stopped at once; go on with: {self._resume(self._run)}")
        os._exit(INTERRUPTED)

    def _resume(self, run: Run) -> str:
        return self._plan.context.command("resume", run.id)
