"""How a worker meets demands: one function per kind of demand, each giving an outcome and new texts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from cadenza.core.demands import AnyDemand, AskPerson, CallModel, CallTool, Host, Message, WaitUntil
from cadenza.core.movements.gating import GATE_TOOL
from cadenza.core.outcomes import NO_PROVIDER, AnyOutcome, Failed, Replied, Returned, Unknown, Usage
from cadenza.core.state import OpenDemand, RunState
from cadenza.errors import CadenzaError, HostError, JournalError, ProviderError
from cadenza.host.executor import HostExecutor
from cadenza.ids import Hash, text_hash
from cadenza.journal.store import Journal
from cadenza.providers.base import CallKey, ChatMessage, ModelProvider, ModelReply, ModelRequest
from cadenza.tools.commands import CommandGate

MOST_TOKENS = 10**12
"""No call is taken to have used more."""

OnText = Callable[[str, OpenDemand, str], None]
"""Called with (run, demand, text) for every piece of streamed text."""


class Met(msgspec.Struct, frozen=True):
    """What came of a demand."""

    outcome: AnyOutcome
    texts: Mapping[Hash, str] = {}


class ToolExecutor(Protocol):
    """Carries out a tool call. ``demand`` is the id to use as idempotency key."""

    async def __call__(self, call: CallTool, *, demand: str, run: str) -> AnyOutcome:
        """The outcome of the call."""
        ...


class Meeting:
    """Meets the demands of any run.

    Args:
        journal: where texts and conversations are read.
        models: gives the provider for a name (None: the default one).
        tools: carries out tool calls by name, besides those of the package.
        max_tokens: the longest answer that a model may give.
        on_text: is told of streamed text.
    """

    def __init__(
        self,
        journal: Journal,
        models: Callable[[str | None], ModelProvider],
        *,
        tools: Mapping[str, ToolExecutor] | None = None,
        max_tokens: int | None = None,
        on_text: OnText | None = None,
    ) -> None:
        self._journal = journal
        self._models = models
        self._tools: dict[str, ToolExecutor] = {GATE_TOOL: CommandGate(), **(tools or {})}
        self._host = HostExecutor()
        self._max_tokens = max_tokens
        self._on_text = on_text

    async def meet(self, run: str, state: RunState, opened: OpenDemand, texts: Mapping[Hash, str]) -> Met:
        """Meet one demand. Errors of the outside world become ``failed`` outcomes.

        Raises:
            JournalError: what the demand refers to could not be read.
        """
        demand: AnyDemand = opened.demand
        if isinstance(demand, CallModel):
            return await self._model(run, state, opened, demand, texts)
        if isinstance(demand, Host):
            return await asyncio.to_thread(self._meet_host, run, state, demand, texts)
        if isinstance(demand, CallTool):
            return await self._tool(run, opened, demand)
        if isinstance(demand, WaitUntil):
            return Met(Returned())
        assert isinstance(demand, AskPerson)
        raise ValueError("a question to a person is answered through the journal, not by a worker")

    async def _model(
        self, run: str, state: RunState, opened: OpenDemand, demand: CallModel, texts: Mapping[Hash, str]
    ) -> Met:
        try:
            meant = state.run.providers.get(demand.provider or "")
            provider = self._models(meant or demand.provider)
        except CadenzaError as error:
            return Met(Failed(code=NO_PROVIDER, message=str(error)))
        return await self._ask(run, opened, demand, provider, self._request(opened, demand, texts))

    async def _ask(
        self, run: str, opened: OpenDemand, demand: CallModel, provider: ModelProvider, request: ModelRequest
    ) -> Met:
        try:
            async with asyncio.timeout(demand.timeout):
                reply = await provider.complete(request, lambda text: self._stream(run, opened, text))
        except JournalError:
            raise
        except TimeoutError:
            within = f" within {demand.timeout:g} seconds" if demand.timeout else " in time"
            return Met(Failed(code="timeout", message=f"no answer{within}", retriable=not demand.timeout))
        except ProviderError as error:
            return Met(
                Failed(
                    code=NO_PROVIDER if error.code == "script" else error.code,
                    message=str(error),
                    retriable=error.retriable,
                    retry_after=error.retry_after,
                )
            )
        except CadenzaError as error:
            return Met(Failed(code="provider", message=str(error)))
        except Exception as error:
            message = f"the provider {provider.name!r} broke: {type(error).__name__}: {error}"
            return Met(Failed(code="internal", message=message))
        if not isinstance(reply, ModelReply):
            message = f"the provider {provider.name!r} answered a {type(reply).__name__}, not a ModelReply"
            return Met(Failed(code="internal", message=message))
        return _replied(reply)

    def _request(self, opened: OpenDemand, demand: CallModel, texts: Mapping[Hash, str]) -> ModelRequest:
        before: list[Message] = []
        if demand.continues:
            before = self._journal.messages(demand.conversation, before_demand=opened.id)
        messages = tuple(ChatMessage(m.role, texts[m.text]) for m in (*before, *demand.append))
        schema = msgspec.json.decode(texts[demand.schema]) if demand.schema else None
        return ModelRequest(
            messages=messages,
            demand=opened.id,
            movement=demand.movement,
            persona=demand.persona,
            purpose=demand.purpose,
            model=demand.model,
            schema=schema,
            max_tokens=demand.max_tokens or self._max_tokens,
            attempt=opened.attempt,
            earlier={_call_key(key): count for key, count in opened.earlier.items()},
        )

    def _stream(self, run: str, opened: OpenDemand, text: str) -> None:
        if self._on_text is not None:
            self._on_text(run, opened, text)

    def _meet_host(self, run: str, state: RunState, demand: Host, texts: Mapping[Hash, str]) -> Met:
        try:
            value, made = self._host(demand, run=run, cwd=state.run.cwd, text=texts.__getitem__)
        except JournalError:
            raise
        except HostError as error:
            return Met(Failed(code=error.code, message=str(error)))
        except Exception as error:
            return Met(Failed(code="internal", message=f"{demand.op} broke: {type(error).__name__}: {error}"))
        return Met(Returned(value), made)

    async def _tool(self, run: str, opened: OpenDemand, demand: CallTool) -> Met:
        executor = self._tools.get(demand.name)
        if executor is None:
            known = ", ".join(sorted(self._tools)) or "none"
            message = f"there is no tool {demand.name!r}; known here: {known}"
            return Met(Failed(code="unknown_tool", message=message))
        try:
            return Met(await executor(demand, demand=opened.id, run=run))
        except JournalError:
            raise
        except Exception as error:
            broke = f"the tool {demand.name!r} broke: {type(error).__name__}: {error}"
            if demand.effect == "write":
                return Met(Unknown(message=broke))
            return Met(Failed(code="internal", message=broke))


def _call_key(joined: str) -> CallKey:
    key: CallKey = msgspec.json.decode(joined, type=CallKey)
    return key


def _replied(reply: ModelReply) -> Met:
    text = storable(reply.text)
    if reply.status == "error":
        return Met(Failed(code="agent_error", message=text))
    outcome: Any = Replied(
        text=text_hash(text),
        usage=countable(reply.usage),
        model=reply.model,
        finish=reply.finish,
        blocked=reply.status == "blocked",
        blank=not text.strip(),
    )
    return Met(outcome, {outcome.text: text})


def countable(usage: Usage) -> Usage:
    """``usage`` within what any database counts: servers have been seen to answer nonsense."""
    return Usage(*(max(0, min(count, MOST_TOKENS)) for count in (usage.input, usage.output, usage.cached)))


def storable(text: str) -> str:
    """``text`` without what no database takes: NUL and lone surrogates become U+FFFD."""
    if text.isascii() and "\0" not in text:
        return text
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return clean.replace("\0", "\ufffd")
