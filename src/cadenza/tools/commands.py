"""Runs the command of a quality gate: in a shell, in a process group of its own, within its time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import Any

from cadenza.core.demands import CallTool
from cadenza.core.outcomes import AnyOutcome, Failed, Returned

OUTPUT_BYTES = 64 * 1024
"""How much of a command's output is kept: its end."""


class CommandGate:
    """The executor of ``command_gate``: arguments ``command``, ``cwd`` (a path), ``timeout`` (seconds).

    The outcome is ``{"exit_code": int, "output": text}``; ``failed`` when the command could not be started
    or took too long (its whole process group is killed then, and when the run is cancelled).
    """

    async def __call__(self, call: CallTool, *, demand: str, run: str) -> AnyOutcome:
        command, cwd = call.arguments["command"], call.arguments["cwd"]
        try:
            process = await asyncio.create_subprocess_shell(
                command,
                cwd=cwd,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return Failed(code="not_started", message=f"{command!r} could not be started in {cwd}: {error}")
        return await _watch(process, call.arguments)


async def _watch(process: asyncio.subprocess.Process, arguments: dict[str, Any]) -> AnyOutcome:
    timeout = float(arguments["timeout"])
    try:
        async with asyncio.timeout(timeout):
            output = await _tail(process)
            code = await process.wait()
    except TimeoutError:
        return Failed(
            code="timeout", message=f"{arguments['command']!r} took longer than {timeout:g} seconds"
        )
    finally:
        kill_group(process)
    return Returned({"exit_code": code, "output": output})


async def _tail(process: asyncio.subprocess.Process) -> str:
    """Read to the end, keeping the last :data:`OUTPUT_BYTES`."""
    assert process.stdout is not None
    kept = b""
    while chunk := await process.stdout.read(OUTPUT_BYTES):
        kept = (kept + chunk)[-OUTPUT_BYTES:]
    return kept.decode("utf-8", "replace").replace("\0", "\ufffd")


async def end(process: asyncio.subprocess.Process) -> None:
    """End whatever is left of a command's process group, and wait until it is gone."""
    kill_group(process)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), 5)


def kill_group(process: asyncio.subprocess.Process) -> None:
    """End whatever is left of the command's process group."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
