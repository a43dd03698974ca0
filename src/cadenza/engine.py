"""The Python API: an engine that starts runs and plays them in this process.

::

    async with Engine(provider="openai", model="qwen3") as engine:
        run = await engine.start("plan-build-review", "Add a --version flag")
        async for event in run.events():
            print(event.event)
        result = await run.result()
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from cadenza.clock import Clock, system_clock
from cadenza.config import Configuration
from cadenza.core.demands import StartRun
from cadenza.core.events import AnyEvent, Recorded, RunEnded
from cadenza.core.movements import KINDS, MovementKind
from cadenza.core.outcomes import Usage
from cadenza.core.retrying import RetryPolicy
from cadenza.core.signals import Status
from cadenza.core.state import RunState
from cadenza.errors import UsageError
from cadenza.journal import open_journal
from cadenza.journal.store import Decision, Journal, RequestRow, RunRow
from cadenza.piece.model import LoadedPiece, Piece
from cadenza.providers.base import ModelProvider
from cadenza.providers.registry import ProviderOptions, make_provider
from cadenza.service import Options, Service
from cadenza.settings import Settings
from cadenza.tools.base import Tool
from cadenza.worker.embedded import Embedded
from cadenza.worker.loop import Worker
from cadenza.worker.meeting import Meeting, OnText, ToolExecutor
from cadenza.worker.toolshed import Toolshed

POLL_SECONDS = 0.2


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a run stands when it goes no further by itself.

    ``status`` is ``completed``, ``aborted``, ``cancelled``, ``error``, ``held`` or ``waiting_human``;
    ``reason`` is for machines, ``message`` for people, ``output`` the last movement's text. ``requests``
    are the questions that it waits for.
    """

    run: str
    status: Status
    reason: str | None
    message: str | None
    output: str | None
    usage: Usage
    requests: tuple[RequestRow, ...] = ()

    @property
    def completed(self) -> bool:
        """Whether the piece was played to its end."""
        return self.status == "completed"


class Engine:
    """Starts runs and plays them here.

    Args:
        journal: a path, ``":memory:"``, or a journal that is open already; the person's own by default.
        provider: the name of what plays the movements (``openai``, ``scripted:PATH``), or a provider object.
            None: the one in the environment, or what each movement names.
        model: the model to ask for.
        settings: defaults; read from the environment and the configuration when not given.
        kinds: movement kinds by name, for those who add their own.
        tools: what carries out the engine's own tool calls (quality gates), by tool name.
        agent_tools: tools for agents, besides the package's and those of plug-ins, by name.
        retry: the retry policy of model calls.
        on_text: called with (run, demand, text) for streamed text.
    """

    def __init__(
        self,
        journal: Journal | str | Path | None = None,
        *,
        provider: str | ModelProvider | None = None,
        model: str | None = None,
        settings: Settings | None = None,
        kinds: Mapping[str, MovementKind] = KINDS,
        tools: Mapping[str, ToolExecutor] | None = None,
        agent_tools: Mapping[str, Tool] | None = None,
        retry: RetryPolicy | None = None,
        clock: Clock = system_clock,
        on_text: OnText | None = None,
    ) -> None:
        self.settings = settings or Configuration.load(Path.cwd()).settings()
        self._own = not isinstance(journal, Journal)
        self.journal: Journal = (
            journal if isinstance(journal, Journal) else open_journal(journal or self.settings.journal)
        )
        self._providers = Providers(provider, model, self.settings)
        self.service = Service(
            self.journal,
            actor=self.settings.actor,
            language=self.settings.language,
            kinds=kinds,
            clock=clock,
            tools=[tool.spec for tool in (agent_tools or {}).values()],
        )
        self._toolshed = Toolshed(self.journal, given=agent_tools)
        meeting = Meeting(
            self.journal,
            self._providers,
            tools=tools,
            agent_tools=self._toolshed.agent_tools(),
            starter=self._start_child,
            max_tokens=self.settings.max_tokens,
            on_text=on_text,
        )
        self.worker = Worker(
            self.journal, meeting, kinds=kinds, retry=retry, clock=clock, on_commit=self._committed
        )
        self._embedded = Embedded(self.journal, self.worker)
        self._waiting: list[asyncio.Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Engine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Hold what is being played here, and let go of everything."""
        await self._embedded.close()
        await self._providers.close()
        await self._toolshed.close()
        self.worker.close()
        if self._own:
            self.journal.close()

    async def start(
        self, piece: str | Path | LoadedPiece, task: str, *, play: bool = True, **options: Any
    ) -> Run:
        """Begin a run. ``options`` are the fields of :class:`~cadenza.service.Options`.

        Raises:
            NotFound, PieceError: the piece is not there, or cannot be played.
            InputRefused: the task cannot be taken.
            UsageError: no provider is known for a movement; the provider cannot be made.
            ConfigError: the configuration cannot be read.
        """
        wanted = self._providers.recorded(Options(**options))
        prepared = await asyncio.to_thread(self.service.prepare, piece, wanted)
        meant = self._providers.check(prepared.piece, wanted)
        specs = await self._toolshed.servers.discover(prepared.piece.mcp_servers, wanted.cwd or Path.cwd())
        wanted = msgspec.structs.replace(wanted, providers=meant, tools=specs)
        run = await asyncio.to_thread(self.service.begin, prepared, task, wanted)
        return self._handle(run, play=play)

    async def resume(self, run: str, *, restart_visit: bool = False) -> Run:
        """Let a held or an interrupted run go on (see :meth:`Service.resume`)."""
        row = await asyncio.to_thread(self.service.resume, run, restart_visit=restart_visit)
        return self._handle(row.id)

    async def retry(self, run: str, *, movement: str | None = None) -> Run:
        """Reopen an ended run (see :meth:`Service.retry`)."""
        row = await asyncio.to_thread(self.service.retry, run, movement=movement)
        return self._handle(row.id)

    async def cancel(self, run: str, reason: str = "") -> Run:
        """End a run (see :meth:`Service.cancel`)."""
        row = await asyncio.to_thread(self.service.cancel, run, reason)
        return self._handle(row.id)

    async def answer(self, request: str, value: Any, *, play: bool = True) -> Decision:
        """Answer a question; the run that waited for it goes on."""
        decision = await asyncio.to_thread(self.service.answer, request, value)
        if decision.result == "accepted":
            self._handle(decision.request.run, play=play)
        return decision

    def run(self, run: str) -> Run:
        """A handle on a run that is there. It is not played by this."""
        return Run(self, self.service.run(run).id)

    def play(self, run: str) -> Run:
        """Play a run that is there on: one that was answered elsewhere, or whose process was lost."""
        return self._handle(self.service.run(run).id)

    def interrupt(self, run: str) -> bool:
        """Save and hold a run that is being played here, with reason ``interrupted``; whether it is.

        Also one whose first turn has not begun, or that waits for the next try of a call.
        """
        return self._embedded.interrupt(run)

    async def idle(self, run: str) -> None:
        """Wait until this process plays ``run`` no longer.

        Raises:
            JournalError: what stopped it.
        """
        await self._embedded.idle(run)

    def check(self, run: str) -> None:
        """Raise what stopped ``run`` from being played here (JournalError), where something did."""
        self._embedded.check(run)

    async def fork(self, run: str, seq: int | None = None, *, play: bool = True) -> Run:
        """Begin a run as another one stood (see :meth:`Service.fork`)."""
        row = await asyncio.to_thread(self.service.fork, run, seq)
        return self._handle(row.id, play=play)

    def _start_child(self, run: str, state: RunState, demand: StartRun, task: str) -> str:
        """Begin a run for an agent, and play it here too. Called from a thread."""
        id = self.service.start_child(run, state, demand, task)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._embedded.play, id)
        return id

    def _handle(self, run: str, *, play: bool = True) -> Run:
        if play:
            self._loop = asyncio.get_running_loop()
            self._embedded.play(run)
        else:
            self.worker.notify(run)
        return Run(self, run)

    def _committed(self, run: str, state: RunState, events: tuple[AnyEvent, ...]) -> None:
        """Wake whoever waits in :meth:`changed`; look at the runs that this one handed something on to."""
        for event in events:
            if type(event) is RunEnded:
                self._family(run, state)
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _family(self, run: str, state: RunState) -> None:
        """A run has ended: its parent may go on, and children of a cancelled one are to end."""
        if self._loop is None:
            return
        parent = state.run.parent
        children = [id for id, child in state.children.items() if child.ended is None]
        cancelled = state.ended is not None and state.ended.status == "cancelled"
        for id in (*([parent] if parent else []), *(children if cancelled else [])):
            self._loop.call_soon_threadsafe(self._embedded.play, id)

    def goes_on(self, row: RunRow) -> bool:
        """Whether a run goes further by itself: it can be played, or it waits for what is being played
        here."""
        if row.status in ("queued", "running"):
            return True
        if row.status == "waiting_subtasks":
            tree = self.journal.tree(row.root)
            return any(self._embedded.is_playing(one.id) for one in tree if one.id != row.id)
        return row.wake_at is not None and row.status != "waiting_human"

    async def changed(self) -> None:
        """Wait until something was committed here, or a moment has passed."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        with suppress(TimeoutError):
            await asyncio.wait_for(future, POLL_SECONDS)


class Run:
    """A handle on one run."""

    def __init__(self, engine: Engine, id: str) -> None:
        self.engine = engine
        self.id = id

    @property
    def row(self) -> RunRow:
        """The run as a listing shows it."""
        return self.engine.journal.run(self.id)

    async def events(self, *, after: int = 0) -> AsyncIterator[Recorded]:
        """The run's events from ``after`` on, as they come, until it stands or ends.

        Raises:
            JournalError: what stopped it from being played here.
        """
        while True:
            row = self.row
            for recorded in self.engine.journal.events(self.id, after=after):
                after = recorded.seq
                yield recorded
            if row.seq <= after and not self.engine.goes_on(row):
                await self.engine.idle(self.id)
                return
            self.engine.check(self.id)
            await self.engine.changed()

    async def result(self) -> RunResult:
        """Wait until the run stands or ends.

        Raises:
            JournalError: what stopped it from being played here.
        """
        async for _ in self.events():
            pass
        row = self.row
        state = await asyncio.to_thread(self.engine.service.state, self.id)
        output = None if state.previous is None else self.engine.service.text(state.previous)
        return RunResult(
            run=self.id,
            status=row.status,
            reason=row.reason,
            message=row.message,
            output=output,
            usage=state.usage,
            requests=tuple(self.engine.journal.requests(run=self.id)),
        )

    def interrupt(self) -> bool:
        """Save and hold the run, when it is played here."""
        return self.engine.interrupt(self.id)


class Providers:
    """The providers of one engine, made once each when they are first needed."""

    def __init__(self, provider: str | ModelProvider | None, model: str | None, settings: Settings) -> None:
        self._given = None if isinstance(provider, str) else provider
        self._name = provider if isinstance(provider, str) else None
        self._model = model
        self._settings = settings
        self._made: dict[str, ModelProvider] = {}

    def __call__(self, name: str | None) -> ModelProvider:
        """The provider for a demand that names ``name``.

        Raises:
            UsageError: none is known; ProviderError, PieceError: it cannot be made.
        """
        if self._given is not None:
            return self._given
        name = name or self._name or self._settings.provider
        if name is None:
            raise UsageError(
                "no provider is chosen", hint="give --provider openai (and --model), or set CADENZA_PROVIDER"
            )
        if name not in self._made:
            kind, _, rest = name.partition(":")
            own = self._settings.base_url if kind == "openai" else None
            options = ProviderOptions(
                model=self._model or self._default_model(kind),
                script=rest or None if kind == "scripted" else None,
                base_url=own if kind == "scripted" else rest or own,
            )
            self._made[name] = make_provider(kind, options)
        return self._made[name]

    def _default_model(self, name: str) -> str | None:
        """The model of the settings, unless it was set beside another provider."""
        return self._settings.model if self._settings.provider in (None, name) else None

    def recorded(self, options: Options) -> Options:
        """The options with what this engine was told."""
        provider, model = options.provider or self._name, options.model or self._model
        anybody = options.any_provider or self._given is not None
        return msgspec.structs.replace(options, provider=provider, model=model, any_provider=anybody)

    def check(self, piece: Piece, options: Options) -> dict[str, str]:
        """Make every provider that a piece needs, so that one that cannot be made is told before the run.

        Returns what each name means here and now (``openai`` with the server's address): a run goes on with
        the server that it began with, wherever it is resumed.

        Raises:
            UsageError, ProviderError, PieceError: see :meth:`__call__`.
        """
        meant: dict[str, str] = {}
        named = [one.provider for top in piece.movements for one in (top, *top.lanes)]
        named += [monitor.judge.provider for monitor in piece.loop_monitors]
        for name in dict.fromkeys(options.provider or name for name in named):
            address = getattr(self(name), "base_url", None)
            if isinstance(address, str) and self._given is None and "@" not in address:
                kind = (name or self._name or self._settings.provider or "").partition(":")[0]
                meant[name or ""] = f"{kind}:{address}"
        return meant

    async def close(self) -> None:
        """Close every provider that was made here."""
        for provider in self._made.values():
            await provider.close()
