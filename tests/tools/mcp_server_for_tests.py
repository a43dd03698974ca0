"""A server of the Model Context Protocol for the tests; words: ``--noise``, ``--many``."""

from __future__ import annotations

import asyncio
import os
import sys

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("tests")


class Colour(BaseModel):
    """What the person is asked for."""

    colour: str


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def pid() -> str:
    """Say who serves."""
    return str(os.getpid())


@server.tool()
def environment(name: str) -> str:
    """Say what a variable holds."""
    return os.environ.get(name, "(not there)")


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("it went wrong")


@server.tool()
def die() -> str:
    """End the process in the middle of a call."""
    os._exit(3)


@server.tool()
async def hang() -> str:
    """Never come back."""
    await asyncio.sleep(3600)
    return "late"


@server.tool()
def huge() -> str:
    """Say very much."""
    return "x" * 2_000_000


@server.tool()
async def ask(context: Context) -> str:
    """Ask the person."""
    answer = await context.elicit("Which colour?", Colour)
    return f"the person said {answer.action}"


if "--many" in sys.argv:
    for number in range(300):
        server.tool(name=f"tool.{number:03}", description="One of many.")(lambda: "one")
if "--noise" in sys.argv:
    print("this is no protocol message", flush=True)

server.run("stdio")
