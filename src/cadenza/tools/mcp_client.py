"""Tools of servers that speak the Model Context Protocol, through the official ``mcp`` package.

The package is imported at the first server. One task owns each server: it connects, carries out calls one
after another, and is the one that closes. A server that is gone answers with an error; it is tried again at
the next call. Its tools stay listed as they were when the run began.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import msgspec

from cadenza.core.tooling import ToolSpec
from cadenza.errors import UsageError
from cadenza.piece.model import McpServer
from cadenza.tools.base import ToolContext, ToolResult, failed

LONGEST_NAME = 64
LONGEST_DESCRIPTION = 2_000
"""How much of a server's description of a tool a model is shown, in characters."""

MOST_PAGES = 100
CONNECT_SECONDS = 30.0
BACK_OFF = 2.0
"""Seconds for which a server that could not be reached is not tried again."""

GONE = "its tools stay listed, and the next call tries again"


class McpClients:
    """The servers that this process talks to, each connected when it is first needed."""

    def __init__(self) -> None:
        self._links: dict[str, _Link] = {}

    async def discover(self, servers: Sequence[McpServer], cwd: Path) -> tuple[ToolSpec, ...]:
        """The tools of all servers, by server in their order and by name: twice the same is the same, byte
        for
        byte.

        Raises:
            UsageError: a server cannot be reached, or the ``mcp`` package is not installed.
        """
        found: list[ToolSpec] = []
        for server in servers:
            link = self._link(server, cwd)
            try:
                tools = await link.ask(("list", None), CONNECT_SECONDS)
            except _Gone as gone:
                where = " ".join(server.command) or server.url
                raise UsageError(
                    f"the server {server.name!r} ({where}) cannot be reached: {gone}",
                    hint="start it by hand to see what it says, or take it out of mcp_servers:",
                ) from gone
            found += specs_of(server.name, tools)
        return tuple(found)

    async def call(
        self, server: McpServer, spec: ToolSpec, arguments: dict[str, Any], context: ToolContext
    ) -> ToolResult:
        """Call a tool. A server that is gone, late or confused is a result that the model can act on."""
        link = self._link(server, context.workspace)
        try:
            return _result(await link.ask((spec.name, arguments), server.timeout))
        except _Late:
            told = f"the server {server.name} did not answer within {server.timeout:g} seconds; {GONE}"
            return failed(told, "timeout")
        except _Refused as refused:
            return failed(f"the server {server.name} refused the call: {refused}", "tool_error")
        except _NoTool:
            return failed(f"the server {server.name} does not have this tool any more", "unknown_tool")
        except _Gone as gone:
            return failed(f"the server {server.name} cannot be reached: {gone}; {GONE}", "mcp_unavailable")

    def _link(self, server: McpServer, cwd: Path) -> _Link:
        key = f"{server.model_dump_json()} {cwd}"
        if key not in self._links:
            self._links[key] = _Link(server, cwd)
        return self._links[key]

    async def close(self) -> None:
        """End every connection, and the processes behind them."""
        links, self._links = self._links, {}
        await asyncio.gather(*(link.close() for link in links.values()), return_exceptions=True)


class _Gone(Exception):
    """The server cannot be reached."""


class _Refused(Exception):
    """It answered with an error."""


class _Late(Exception):
    """It did not answer in time."""


class _NoTool(Exception):
    """It has no such tool."""


_Job = tuple[str, dict[str, Any] | None]


class _Link:
    """One server. Its task lives as long as the connection does."""

    def __init__(self, server: McpServer, cwd: Path) -> None:
        self._server = server
        self._cwd = cwd
        self._jobs: asyncio.Queue[tuple[_Job, asyncio.Future[Any]]] | None = None
        self._task: asyncio.Task[None] | None = None
        self._failed_at = float("-inf")
        self._why = ""

    async def ask(self, job: _Job, seconds: float) -> Any:
        """Have a job done. Raises _Gone, _Late, _Refused or _NoTool."""
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done():
            if loop.time() - self._failed_at < BACK_OFF:
                raise _Gone(self._why)
            self._jobs = asyncio.Queue()
            self._task = asyncio.create_task(self._serve(self._jobs), name=f"mcp {self._server.name}")
        assert self._jobs is not None
        answer: asyncio.Future[Any] = loop.create_future()
        self._jobs.put_nowait((job, answer))
        try:
            async with asyncio.timeout(seconds + (CONNECT_SECONDS if job[0] != "list" else 0)):
                return await answer
        except TimeoutError:
            await self.close()
            raise _Late from None
        except asyncio.CancelledError:
            await self.close()  # the server is in the middle of what nobody wants any more
            raise

    async def close(self) -> None:
        """End the connection."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await asyncio.wait_for(asyncio.shield(task), 10)
        self._failed_at = float("-inf")

    async def _serve(self, jobs: asyncio.Queue[tuple[_Job, asyncio.Future[Any]]]) -> None:
        why = "it ended"
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
            try:
                async with AsyncExitStack() as stack:
                    client = await _connect(self._server, self._cwd, said, stack)
                    names = await _names(client, self._server.name)
                    while True:
                        job, answer = await jobs.get()
                        await self._do(client, names, job, answer)
            except asyncio.CancelledError:
                why = "the connection was closed"
                raise
            except BaseException as error:
                why = _words(error, said)
            finally:
                self._failed_at, self._why = asyncio.get_running_loop().time(), why
                while not jobs.empty():
                    _, answer = jobs.get_nowait()
                    if not answer.done():
                        answer.set_exception(_Gone(why))

    async def _do(self, client: Any, names: dict[str, str], job: _Job, answer: asyncio.Future[Any]) -> None:
        name, arguments = job
        if answer.done():
            return
        try:
            if name == "list":
                answer.set_result(await _tools(client))
            elif name not in names:
                answer.set_exception(_NoTool())
            else:
                call = client.call_tool(names[name], arguments, read_timeout_seconds=self._server.timeout)
                result = await asyncio.wait_for(call, self._server.timeout)
                if not answer.done():
                    answer.set_result(result)
        except TimeoutError:
            if not answer.done():
                answer.set_exception(_Late())
            raise
        except Exception as error:
            if _is_answer(error):
                if not answer.done():
                    answer.set_exception(_Refused(str(error)))
                return
            if not answer.done():
                answer.set_exception(_Gone(f"{type(error).__name__}: {error}"))
            raise


def _is_answer(error: Exception) -> bool:
    """Whether the server itself answered with an error, so that the connection is good."""
    from mcp.shared.exceptions import MCPError

    return isinstance(error, MCPError) and "closed" not in str(error).lower()


async def _connect(server: McpServer, cwd: Path, said: Any, stack: AsyncExitStack) -> Any:
    try:
        from mcp import Client
        from mcp.client.stdio import StdioServerParameters, stdio_client
    except ImportError as error:
        raise UsageError(
            "servers of tools need the package mcp, which is not installed", hint="pip install 'cadenza[mcp]'"
        ) from error
    if server.command:
        program, *rest = server.command
        environment = {name: os.environ[name] for name in server.env if name in os.environ}
        parameters = StdioServerParameters(command=program, args=rest, env=environment, cwd=cwd)
        transport: Any = stdio_client(parameters, errlog=said)
    else:
        transport = await _http(server, stack)
    client = Client(transport, read_timeout_seconds=server.timeout, elicitation_callback=_decline)
    async with asyncio.timeout(CONNECT_SECONDS):
        return await stack.enter_async_context(client)


async def _http(server: McpServer, stack: AsyncExitStack) -> Any:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    headers = {name: _filled(value) for name, value in server.headers.items()}
    http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=server.timeout))
    return streamable_http_client(server.url or "", http_client=http)


def _filled(value: str) -> str:
    """A header's value, with environment variables in it."""
    return re.sub(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", lambda found: os.environ.get(found[1], ""), value)


async def _decline(context: Any, params: Any) -> Any:
    """Nobody is asked through a tool call: it would hold a worker for as long as a person takes."""
    from mcp_types import ElicitResult

    return ElicitResult(action="decline")


async def _tools(client: Any) -> list[Any]:
    tools: list[Any] = []
    cursor = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return tools


async def _names(client: Any, server: str) -> dict[str, str]:
    """The server's own name of each tool, by ours."""
    return dict(zip(_own_names(server, tools := await _tools(client)), _sorted_names(tools), strict=True))


def _sorted_names(tools: Iterable[Any]) -> list[str]:
    return sorted({tool.name for tool in tools})


def _own_names(server: str, tools: Iterable[Any]) -> list[str]:
    """``mcp__SERVER__TOOL`` for each tool by name, in the letters that model servers take; names that
    would be
    the same are told apart by number."""
    used: set[str] = set()
    names = []
    for name in _sorted_names(tools):
        plain = re.sub("[^a-zA-Z0-9_-]", "_", f"mcp__{server}__{name}")[:LONGEST_NAME]
        own, number = plain, 2
        while own in used:
            own, number = f"{plain[: LONGEST_NAME - 3]}_{number}", number + 1
        used.add(own)
        names.append(own)
    return names


def specs_of(server: str, tools: Sequence[Any]) -> list[ToolSpec]:
    """The definitions of a server's tools, by name. A name that is listed twice counts once, the first
    time."""
    first = {tool.name: tool for tool in reversed(tools)}
    return [
        _spec(server, own, first[name])
        for own, name in zip(_own_names(server, tools), _sorted_names(tools), strict=True)
    ]


def _spec(server: str, name: str, tool: Any) -> ToolSpec:
    """What a server says about itself decides nothing but how a call is repeated: a tool that is said to read
    only may be used where nothing may be changed."""
    hints = tool.annotations
    reads = hints is not None and hints.read_only_hint is True
    again = hints is not None and hints.idempotent_hint is True
    schema = dict(tool.input_schema or {})
    return ToolSpec(
        name=name,
        description=(tool.description or tool.name)[:LONGEST_DESCRIPTION],
        parameters={**schema, "type": "object"},
        effect="read" if reads else "idempotent" if again else "write",
        permission="readonly" if reads else "edit",
        origin=f"mcp:{server}",
    )


def _result(result: Any) -> ToolResult:
    parts = [_content(item) for item in result.content or ()]
    structured = getattr(result, "structured_content", None)
    text = "\n".join(part for part in parts if part)
    if not text and structured is not None:
        text = json.dumps(structured, ensure_ascii=False)
    data = {"structured": msgspec.to_builtins(structured)} if structured is not None else None
    error = bool(getattr(result, "is_error", False))
    return ToolResult(
        text=text or "(no output)", error=error, code="tool_error" if error else None, data=data
    )


def _content(item: Any) -> str:
    """An item of a result in words; what is no text is named."""
    if item.type == "text":
        return str(item.text)
    if item.type == "resource":
        return str(getattr(item.resource, "text", f"[resource {item.resource.uri}]"))
    if item.type == "resource_link":
        return f"[resource {item.uri}]"
    return f"[{item.type}, {getattr(item, 'mime_type', 'of unknown type')}]"


def _words(error: BaseException, said: Any) -> str:
    """Why a connection failed, with the last of what the server wrote to its error output."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    with suppress(OSError, ValueError):
        said.seek(0)
        tail = said.read()[-500:].strip()
        words += f"; it wrote: {tail}" if tail else ""
    return words
