"""Tools that run commands: a program with its arguments, or in mode full a shell's line."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from cadenza.core.tooling import ToolSpec
from cadenza.tools.base import Tool, ToolContext, ToolError, ToolResult
from cadenza.tools.commands import end
from cadenza.tools.guard import inside
from cadenza.tools.sandbox import bubblewrap, wrapped
from cadenza.tools.schemas import number, schema, text, texts

KEPT_VARIABLES = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "TERM", "TZ", "USER", "SHELL")
"""What a command inherits, besides PATH: nothing that could be a secret."""

ROOM = 512
"""What is told beside an output has room within the limit of a result."""

CHUNK = 64 * 1024


async def _run(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    argv = list(arguments["argv"])
    _check_program(argv[0], context)
    return await _watched(argv, arguments, context)


async def _shell(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    return await _watched(["/bin/sh", "-c", arguments["command"]], arguments, context)


def _check_program(program: str, context: ToolContext) -> None:
    commands = context.rights.commands
    if commands is None and context.rights.permission == "full":
        return
    allowed = commands or ()
    if program not in allowed:
        known = ", ".join(allowed) or "none"
        raise ToolError(
            f"the program {program!r} is not allowed here; allowed are: {known}", code="not_allowed"
        )


async def _watched(argv: list[str], arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    cwd = inside(context.workspace, arguments.get("cwd", "."))
    seconds = min(float(arguments.get("seconds", context.rights.seconds)), context.rights.seconds)
    command = wrapped(argv, cwd, context.workspace, context.rights, context.environment)
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=cwd,
            env=_environment(context.environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ToolError(f"{argv[0]!r} could not be started: {error}", code="not_started") from error
    kept, late = Kept(context.rights.bytes - ROOM), False
    try:
        async with asyncio.timeout(seconds):
            assert process.stdout is not None
            while chunk := await process.stdout.read(CHUNK):
                kept.add(chunk)
            await process.wait()
    except TimeoutError:
        late = True
    finally:
        await end(process)
    return _result(argv, kept, None if late else process.returncode, seconds)


def _result(argv: list[str], kept: Kept, code: int | None, seconds: float) -> ToolResult:
    output = kept.text()
    data = {"exit_code": code, "bytes": kept.total, "sandbox": bubblewrap() is not None}
    if code is None:
        told = f"{argv[0]} was stopped after {seconds:g} seconds. Its output so far:\n{output}"
        return ToolResult(text=told, error=True, code="timeout", data=data)
    if code != 0:
        return ToolResult(text=f"exit code {code}\n{output}", error=True, code="exit_code", data=data)
    return ToolResult(text=output or "(no output)", data=data)


class Kept:
    """The beginning and the end of an output; how long it was."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._head, self._tail = bytearray(), bytearray()
        self.total = 0

    def add(self, chunk: bytes) -> None:
        """Take more."""
        self.total += len(chunk)
        room = self._half - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        self._tail = (self._tail + chunk)[-self._half :]

    def text(self) -> str:
        """What was kept, saying how much was not."""
        dropped = self.total - len(self._head) - len(self._tail)
        head = bytes(self._head).decode("utf-8", "replace")
        tail = bytes(self._tail).decode("utf-8", "replace")
        if not dropped:
            return (bytes(self._head) + bytes(self._tail)).decode("utf-8", "replace")
        return f"{head}\n[{dropped:,} bytes left out]\n{tail}"


def _environment(environment: Path | None) -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    path = os.environ.get("PATH", os.defpath)
    if environment is not None and environment.is_dir():
        path = f"{environment / 'bin'}{os.pathsep}{path}"
        kept["VIRTUAL_ENV"] = str(environment)
    return {**kept, "PATH": path}


_SECONDS = number("Stop it after so many seconds.")
_CWD = text("The folder to run it in; leave it out for the workspace.")

RUNNING: tuple[Tool, ...] = (
    Tool(
        ToolSpec(
            name="run_command",
            description="Run a program with its arguments, without a shell: no pipes, no wildcards.",
            parameters=schema(
                ("argv",), argv=texts("The program and its arguments."), cwd=_CWD, seconds=_SECONDS
            ),
            effect="write",
            permission="edit",
        ),
        _run,
    ),
    Tool(
        ToolSpec(
            name="shell",
            description="Run a line in a shell.",
            parameters=schema(("command",), command=text("The line."), cwd=_CWD, seconds=_SECONDS),
            effect="write",
            permission="full",
        ),
        _shell,
    ),
)
"""The tools that run commands, in their order."""
