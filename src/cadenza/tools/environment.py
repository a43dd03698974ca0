"""A run's own Python environment: where a package goes that a person approved."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

from cadenza.core.tooling import ToolSpec
from cadenza.tools.base import Tool, ToolContext, ToolError, ToolResult
from cadenza.tools.commands import end
from cadenza.tools.running import Kept
from cadenza.tools.schemas import schema, text

INSTALL = "install_package"
SECONDS = 600.0

REQUIREMENT = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
    r"(?:\[[A-Za-z0-9._, -]*\])?"
    r"(?:\s*(?:==|>=|<=|~=|!=|>|<)\s*[A-Za-z0-9.*+!_-]+(?:\s*,\s*(?:==|>=|<=|~=|!=|>|<)\s*[A-Za-z0-9.*+!_-]+)*)?"
)
"""A package by its name, with extras and versions: no address, no path, no option of the installer."""


async def _install(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    requirement = arguments["requirement"].strip()
    if not REQUIREMENT.fullmatch(requirement):
        message = f"{requirement!r} is no package name; give a name, or a name with a version as name==1.2"
        raise ToolError(message, code="bad_package")
    if context.environment is None:
        raise ToolError("this run has no environment to install into", code="no_environment")
    await ensure(context.environment)
    python = str(context.environment / "bin" / "python")
    command = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", requirement]
    code, output = await _run(command)
    data = {"requirement": requirement, "exit_code": code, "environment": str(context.environment)}
    if code != 0:
        told = f"{requirement} could not be installed (exit code {code}):\n{output}"
        return ToolResult(text=told, error=True, code="not_installed", data=data)
    return ToolResult(text=output.strip().splitlines()[-1] if output.strip() else "done", data=data)


async def ensure(environment: Path) -> None:
    """Make the environment where there is none; one that was half made is made anew.

    Raises:
        ToolError: it cannot be made.
    """
    if (environment / "ready").is_file():
        return
    code, output = await _run([sys.executable, "-m", "venv", "--clear", str(environment)])
    if code != 0:
        raise ToolError(f"the environment {environment} could not be made:\n{output}", code="no_environment")
    (environment / "ready").touch()


async def _run(command: list[str]) -> tuple[int | None, str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    process = await asyncio.create_subprocess_exec(
        *command,
        env=variables,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    kept = Kept(16 * 1024)
    try:
        async with asyncio.timeout(SECONDS):
            assert process.stdout is not None
            while chunk := await process.stdout.read(65536):
                kept.add(chunk)
            await process.wait()
    except TimeoutError:
        return None, kept.text() + f"\n(stopped after {SECONDS:g} seconds)"
    finally:
        await end(process)
    return process.returncode, kept.text()


INSTALLER = Tool(
    ToolSpec(
        name=INSTALL,
        description="Install a package into the run's own environment, after a person approved it.",
        parameters=schema(("requirement",), requirement=text("The package.")),
        effect="idempotent",
        permission="edit",
    ),
    _install,
)
"""The engine's own tool behind ``request_package``; no model is offered it."""
