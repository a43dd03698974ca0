"""Where a worker finds the executors of tools: the package's, plug-ins', servers', and those it was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cadenza.core.state import RunState
from cadenza.core.tooling import read_toolbox
from cadenza.journal.store import Journal
from cadenza.piece.model import Piece, read_piece
from cadenza.tools import registry
from cadenza.tools.base import Tool, ToolContext, ToolResult
from cadenza.tools.executor import WorkTools
from cadenza.tools.mcp_client import McpClients
from cadenza.worker.agent_tools import AgentTools


class Toolshed:
    """Finds tools by name, for a run.

    Args:
        given: tools that this process carries out besides those that are installed; they win.
        environments: the folder that holds the runs' own Python environments.
    """

    def __init__(
        self, journal: Journal, *, given: Mapping[str, Tool] | None = None, environments: Path | None = None
    ) -> None:
        self._journal = journal
        self._given = dict(given or {})
        self._environments = environments
        self.servers = McpClients()

    def agent_tools(self) -> AgentTools:
        """What meets the tool calls of agents."""
        return AgentTools(
            self.find,
            WorkTools(),
            generation=self._journal.generation,
            environment=self.environment,
        )

    def environment(self, run: str, state: RunState) -> Path:
        """Where a run's own Python environment is, or would be: in its project, out of the way of its
        files."""
        folder = self._environments or Path(state.run.cwd) / ".cadenza" / "environments"
        return folder / run

    def find(self, name: str, state: RunState) -> Tool | None:
        """The tool of a name. One that the run has pinned and nothing here carries out is none."""
        if name in self._given:
            return self._given[name]
        if name.startswith("mcp__"):
            return self._of_server(name, state)
        return registry.find(name)

    def _of_server(self, name: str, state: RunState) -> Tool | None:
        if state.run.tools is None:
            return None
        pinned = state.run.tools
        spec = read_toolbox(self._journal.texts([pinned])[pinned]).by_name.get(name)
        piece = self._piece(state)
        server = spec.origin.removeprefix("mcp:") if spec is not None else ""
        config = next((known for known in piece.mcp_servers if known.name == server), None)
        if spec is None or config is None:
            return None
        call: Callable[[dict[str, Any], ToolContext], Any] = partial(self.servers.call, config, spec)
        return Tool(spec, _awaited(call))

    def _piece(self, state: RunState) -> Piece:
        pinned = state.run.piece
        return read_piece(self._journal.texts([pinned])[pinned], pinned)

    async def close(self) -> None:
        """End the servers that were started."""
        await self.servers.close()


def _awaited(call: Callable[[dict[str, Any], ToolContext], Any]) -> Any:
    async def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        result: ToolResult = await call(arguments, context)
        return result

    return execute
