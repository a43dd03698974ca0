"""How a worker meets demands: one function per kind of demand, each giving an outcome and new texts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from cadenza.core.demands import (
    AnyDemand,
    AskPerson,
    CallModel,
    CallTool,
    Host,
    StartRun,
    WaitForRuns,
    WaitUntil,
)
from cadenza.core.movements.gating import GATE_TOOL
from cadenza.core.outcomes import BUDGET, NO_PROVIDER, AnyOutcome, Failed, Replied, Returned, Unknown, Usage
from cadenza.core.spending import Spent, cost_of, price_of
from cadenza.core.state import OpenDemand, RunState
from cadenza.errors import CadenzaError, HostError, JournalError, ProviderError
from cadenza.host.executor import HostExecutor
from cadenza.ids import Hash, text_hash
from cadenza.journal.store import Journal
from cadenza.providers.base import CallKey, ModelProvider, ModelReply, ModelRequest
from cadenza.tools.commands import CommandGate
from cadenza.worker.agent_tools import AgentTools, Met, storable
from cadenza.worker.talking import chat, earlier_messages, stored_calls

log = logging.getLogger("cadenza.prompt_cache")
"""One line a call: ``prompt_cache reused=TOKENS pct=PART OF THE REQUEST BEFORE``."""

MOST_TOKENS = 10**12
"""No call is taken to have used more."""

OnText = Callable[[str, OpenDemand, str], None]
"""Called with (run, demand, text) for every piece of streamed text."""


class ToolExecutor(Protocol):
    """Carries out a tool call. ``demand`` is the id to use as idempotency key."""

    async def __call__(self, call: CallTool, *, demand: str, run: str) -> AnyOutcome:
        """The outcome of the call."""
        ...


Starter = Callable[[str, RunState, StartRun, str], str]
"""Called with (run, its state, the demand, the task's text); gives the id of the run that was begun."""


class Meeting:
    """Meets the demands of any run.

    Args:
        journal: where texts and conversations are read.
        models: gives the provider for a name (None: the default one).
        tools: carries out tool calls by name, besides those of the package.
        agent_tools: carries out the tool calls of agents.
        starter: begins another run for a :class:`~cadenza.core.demands.StartRun`; its id.
        max_tokens: the longest answer that a model may give.
        on_text: is told of streamed text.
    """

    def __init__(
        self,
        journal: Journal,
        models: Callable[[str | None], ModelProvider],
        *,
        tools: Mapping[str, ToolExecutor] | None = None,
        agent_tools: AgentTools | None = None,
        starter: Starter | None = None,
        max_tokens: int | None = None,
        on_text: OnText | None = None,
    ) -> None:
        self._journal = journal
        self._models = models
        self._tools: dict[str, ToolExecutor] = {GATE_TOOL: CommandGate(), **(tools or {})}
        self._agent_tools = agent_tools
        self._starter = starter
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
            return await self._tool(run, state, opened, demand, texts)
        if isinstance(demand, StartRun):
            return await self._start(run, state, demand, texts)
        if isinstance(demand, WaitUntil):
            return Met(Returned())
        assert isinstance(demand, AskPerson | WaitForRuns)
        raise ValueError("a person's answer, or a child's end, comes through the journal, not by a worker")

    async def _model(
        self, run: str, state: RunState, opened: OpenDemand, demand: CallModel, texts: Mapping[Hash, str]
    ) -> Met:
        try:
            meant = state.run.providers.get(demand.provider or "")
            provider = self._models(meant or demand.provider)
        except CadenzaError as error:
            return Met(Failed(code=NO_PROVIDER, message=str(error)))
        request = self._request(run, state, opened, demand, texts)
        if state.budget:
            refused = await self._reserve(run, state, opened, _estimate(request, state))
            if refused is not None:
                return refused
        return await self._ask(run, state, opened, provider, request)

    async def _reserve(self, run: str, state: RunState, opened: OpenDemand, want: Spent) -> Met | None:
        """Set aside what a demand may cost at most; what stands against it otherwise."""
        root = state.run.root or run
        words = await asyncio.to_thread(self._journal.reserve, root, opened.id, want)
        return (
            None
            if words is None
            else Met(Failed(code=BUDGET, message=f"the budget does not allow the next step ({words})"))
        )

    async def _ask(
        self, run: str, state: RunState, opened: OpenDemand, provider: ModelProvider, request: ModelRequest
    ) -> Met:
        demand = opened.demand
        assert isinstance(demand, CallModel)
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
        _log_cache(run, state, demand, reply)
        return _replied(reply, opened.id)

    def _request(
        self, run: str, state: RunState, opened: OpenDemand, demand: CallModel, texts: Mapping[Hash, str]
    ) -> ModelRequest:
        before = earlier_messages(self._journal, run, state, opened, demand)
        messages = chat((*before, *demand.append), texts)
        tools = msgspec.json.decode(texts[demand.tools]) if demand.tools else ()
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
            tools=tuple(tools),
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

    async def _start(self, run: str, state: RunState, demand: StartRun, texts: Mapping[Hash, str]) -> Met:
        if self._starter is None:
            return Met(Failed(code="no_starter", message="no other run can be started from here"))
        try:
            id = await asyncio.to_thread(self._starter, run, state, demand, texts[demand.task])
        except JournalError:
            raise
        except CadenzaError as error:
            return Met(Failed(code="not_started", message=str(error)))
        except Exception as error:
            message = f"the run could not be started: {type(error).__name__}: {error}"
            return Met(Failed(code="internal", message=message))
        return Met(Returned({"run": id}))

    async def _tool(
        self, run: str, state: RunState, opened: OpenDemand, demand: CallTool, texts: Mapping[Hash, str]
    ) -> Met:
        if state.budget:
            refused = await self._reserve(run, state, opened, Spent(tool_calls=1))
            if refused is not None:
                return refused
        executor = self._tools.get(demand.name)
        if executor is None and self._agent_tools is not None:
            return await self._agent_tools.meet(run, state, opened, demand, texts)
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


def _log_cache(run: str, state: RunState, demand: CallModel, reply: ModelReply) -> None:
    """How much of the conversation's request before the server had still."""
    before = state.prompts.get(demand.conversation)
    if demand.tools is None or not before:
        return
    reused = reply.usage.cached
    pct = 100 * min(reused, before) / before
    log.info("run=%s movement=%s prompt_cache reused=%d pct=%.1f", run, demand.movement, reused, pct)


ANSWER_TOKENS = 1024
"""What an answer without a limit of its own is taken to need, for budgets."""


def _estimate(request: ModelRequest, state: RunState) -> Spent:
    """What a call may cost: four characters a token, and the longest answer."""
    said = sum(len(m.content) + sum(len(call.arguments) for call in m.calls) for m in request.messages)
    usage = Usage(input=said // 4, output=request.max_tokens or ANSWER_TOKENS)
    cost = cost_of(price_of(state.run.prices, request.model), usage)
    return Spent(tokens=usage.input + usage.output, cost=cost)


def _call_key(joined: str) -> CallKey:
    key: CallKey = msgspec.json.decode(joined, type=CallKey)
    return key


def _replied(reply: ModelReply, demand: str) -> Met:
    text = storable(reply.text)
    if reply.status == "error":
        return Met(Failed(code="agent_error", message=text))
    calls = stored_calls(reply.calls, demand) if reply.calls else None
    outcome: Any = Replied(
        text=text_hash(text),
        usage=countable(reply.usage),
        model=reply.model,
        finish=reply.finish,
        blocked=reply.status == "blocked",
        blank=not text.strip(),
        calls=None if calls is None else text_hash(calls),
    )
    made = {outcome.text: text}
    return Met(outcome, made if calls is None else {**made, outcome.calls: calls})


def countable(usage: Usage) -> Usage:
    """``usage`` within what any database counts: servers have been seen to answer nonsense."""
    return Usage(*(max(0, min(count, MOST_TOKENS)) for count in (usage.input, usage.output, usage.cached)))
