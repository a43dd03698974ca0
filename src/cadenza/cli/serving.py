"""A worker process: plays whatever the journal holds, until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal

from cadenza.cli.context import Context
from cadenza.cli.ending import headline
from cadenza.cli.output import out
from cadenza.cli.words import one_line, plural, tokens
from cadenza.core.events import AnyEvent
from cadenza.core.state import RunState
from cadenza.engine import Providers
from cadenza.errors import CadenzaError
from cadenza.journal import open_journal
from cadenza.service import Service
from cadenza.worker.loop import Worker
from cadenza.worker.meeting import Meeting
from cadenza.worker.toolshed import Toolshed

INTERRUPTED = 130


def serve(context: Context, slots: int, *, until_idle: bool = False) -> None:
    """Serve until told to stop, or with ``until_idle`` until there is nothing left to play.

    Raises:
        JournalError: the journal cannot be used.
    """
    asyncio.run(_serve(context, slots, until_idle=until_idle))


async def _serve(context: Context, slots: int, *, until_idle: bool) -> None:
    settings = context.settings()
    providers = Providers(None, None, settings)
    journal = open_journal(settings.journal)
    try:
        toolshed = Toolshed(journal)
        service = Service(journal, actor=settings.actor, language=settings.language)
        meeting = Meeting(
            journal,
            providers,
            agent_tools=toolshed.agent_tools(),
            starter=service.start_child,
            max_tokens=settings.max_tokens,
        )
        worker = Worker(journal, meeting, slots=slots, on_commit=_told, on_error=_stuck)
        out.note(f"serving {journal.path} with {plural(slots, 'slot')}; Ctrl-C stops")
        try:
            played = await worker.serve(_stop_on_signal(), until_idle=until_idle)
        finally:
            worker.close()
            await toolshed.close()
            await providers.close()
        out.note(f"stopped; {plural(played, 'turn')} played")
    finally:
        journal.close()


def _stop_on_signal() -> asyncio.Event:
    """Set by the first signal: what is being played is saved and given back. The second stops at once."""
    stop = asyncio.Event()

    def signalled() -> None:
        if stop.is_set():
            os._exit(INTERRUPTED)
        stop.set()
        out.note(
            "stopping: runs are saved and given back, for any worker to go on with (once more stops at once)"
        )

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, signalled)
    return stop


def _stuck(run: str, error: BaseException) -> None:
    """A line for a run that could not be played. It is left alone for a while; the others go on."""
    words = one_line(error.message if isinstance(error, CadenzaError) else f"{type(error).__name__}: {error}")
    hint = error.hint if isinstance(error, CadenzaError) and error.hint else f"cadenza show {run}"
    out.note(f"{run} could not be played: {words} ({one_line(hint, 200)})")


def _told(run: str, state: RunState, events: tuple[AnyEvent, ...]) -> None:
    """A line when a run ends or stands."""
    if not events or not state.stands:
        return
    message = state.ended.message if state.ended is not None else state.held and state.held.message
    head = headline(state.status, state.wait_reason, (message or "").partition("\n")[0])
    usage = state.usage
    figures = tokens(usage.input, usage.output, usage.cached)
    out.line(f"{run} {state.run.name}: {head}; iteration {state.iteration}, {figures}")
