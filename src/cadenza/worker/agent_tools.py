"""The tool calls of agents: where each executor is found, and what its result becomes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from cadenza.core.arguments import parse_arguments
from cadenza.core.demands import CallTool
from cadenza.core.outcomes import AnyOutcome, Did
from cadenza.core.state import OpenDemand, RunState
from cadenza.core.tooling import Rights
from cadenza.errors import JournalError
from cadenza.ids import Hash, text_hash
from cadenza.tools.base import Tool, ToolContext, ToolResult, failed


class Met(msgspec.Struct, frozen=True):
    """What came of a demand."""

    outcome: AnyOutcome
    texts: Mapping[Hash, str] = {}


class Executor(Protocol):
    """Carries a call out within its limits; see :class:`cadenza.tools.executor.WorkTools`."""

    async def execute(self, tool: Tool, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """What came of it."""
        ...


class AgentTools:
    """Meets the tool calls of agents.

    Args:
        tools: gives the tool of a name, for a run; None where nothing here carries it out.
        executor: holds the limits, the schema check and the redaction.
        generation: how often a screen has been solved.
        environment: where a run's own Python environment is, or would be.
    """

    def __init__(
        self,
        tools: Callable[[str, RunState], Tool | None],
        executor: Executor,
        *,
        generation: Callable[[str], int] = lambda screen: 0,
        environment: Callable[[str, RunState], Path] | None = None,
    ) -> None:
        self._tools = tools
        self._executor = executor
        self._generation = generation
        self._environment = environment

    async def meet(
        self, run: str, state: RunState, opened: OpenDemand, demand: CallTool, texts: Mapping[Hash, str]
    ) -> Met:
        """Carry a call out. Whatever goes wrong is a result that the model can act on."""
        try:
            result = await self._result(run, state, opened, demand, texts)
        except JournalError:
            raise
        except Exception as error:
            result = failed(f"{demand.name} broke: {type(error).__name__}: {error}", "broke")
        text = storable(result.text)
        outcome = Did(
            text=text_hash(text),
            error=result.error,
            code=result.code,
            data=result.data,
            wants=result.wants,
            again=result.again,
        )
        return Met(outcome, {outcome.text: text})

    async def _result(
        self, run: str, state: RunState, opened: OpenDemand, demand: CallTool, texts: Mapping[Hash, str]
    ) -> ToolResult:
        arguments = _arguments(demand, texts)
        if isinstance(arguments, str):
            return failed(arguments, "bad_arguments")
        tool = await asyncio.to_thread(self._tools, demand.name, state)
        if tool is None:
            message = f"{demand.name} is listed, but nothing here carries it out; go on without it"
            return failed(message, "unavailable")
        return await self._executor.execute(tool, arguments, self._context(run, state, opened, demand))

    def _context(self, run: str, state: RunState, opened: OpenDemand, demand: CallTool) -> ToolContext:
        return ToolContext(
            run=run,
            demand=opened.id,
            workspace=Path(state.run.cwd),
            rights=msgspec.convert(demand.rights, Rights),
            environment=None if self._environment is None else self._environment(run, state),
            decision=demand.decision,
            screen=screen_of(state),
            generation=self._generation,
        )


def screen_of(state: RunState) -> str:
    """The confirmation screen that a run shares with others: its workspace's, or where that is nobody else's,
    the person's own (Maestro B.7: a personal workspace has no id that could be the key)."""
    started = state.run
    return f"shared:{started.workspace}" if started.shared else f"personal:{started.workspace}"


def _arguments(demand: CallTool, texts: Mapping[Hash, str]) -> dict[str, Any] | str:
    """A call's arguments: from the demand, or from the model's own message."""
    if demand.calls is None:
        return demand.arguments
    calls: list[dict[str, str]] = msgspec.json.decode(texts[demand.calls])
    arguments = parse_arguments(calls[demand.index]["arguments"])
    if isinstance(arguments, dict) and demand.wrapped:
        inner: dict[str, Any] = arguments.get("arguments") or {}
        return inner
    return arguments


def storable(text: str) -> str:
    """``text`` without what no database takes: NUL and lone surrogates become U+FFFD."""
    if text.isascii() and "\0" not in text:
        return text
    clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return clean.replace("\0", "\ufffd")
