"""Carries tool calls out: arguments held against the schema, time and size limited, secrets taken out.

Whatever happens inside a tool, the model gets a result that it can act on.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from typing import Any

from msgspec.structs import replace

from cadenza.core.arguments import problems_of
from cadenza.tools.base import Tool, ToolContext, ToolError, ToolResult, failed
from cadenza.tools.redaction import Redactor

GRACE = 10.0
"""How many seconds longer than its own limit a call may take before it is given up."""

MOST_DATA = 64 * 1024


class WorkTools:
    """Executes tools.

    Args:
        redactor: takes secrets out; by default those of this process's environment.
    """

    def __init__(self, redactor: Redactor | None = None) -> None:
        self._redactor = redactor or Redactor(os.environ)

    async def execute(self, tool: Tool, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """What came of a call."""
        problems = problems_of(tool.spec.parameters, arguments)
        if problems:
            told = f"{tool.spec.name} was not called: {'; '.join(problems)}"
            return self._cleaned(failed(told, "bad_arguments"), context)
        return self._cleaned(await self._run(tool, arguments, context), context)

    async def _run(self, tool: Tool, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        name, limit = tool.spec.name, context.rights.seconds + GRACE
        try:
            async with asyncio.timeout(limit):
                made = await _executed(tool, arguments, context)
        except TimeoutError:
            return failed(f"{name} did not come back within {limit:g} seconds and was given up", "timeout")
        except ToolError as error:
            return failed(f"{name}: {error}", error.code)
        except OSError as error:
            return failed(f"{name}: {_os_words(error)}", "os_error")
        except Exception as error:
            return failed(f"{name} broke: {type(error).__name__}: {error}", "broke")
        if isinstance(made, ToolResult):
            return made
        return failed(f"{name} gave a {type(made).__name__} instead of a ToolResult", "broke")

    def _cleaned(self, result: ToolResult, context: ToolContext) -> ToolResult:
        """Without secrets, and no longer than the call may be."""
        from dataclasses import replace as changed

        wants = result.wants
        if wants is not None:
            wants = replace(wants, question=self._redactor.text(wants.question))
        data = self._redactor.value(result.data)
        if data is not None and len(str(data)) > MOST_DATA:
            data = {"left_out": f"{len(str(data)):,} characters"}
        text = cut(self._redactor.text(result.text), context.rights.bytes)
        return changed(result, text=text, data=data, wants=wants)


async def _executed(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
    """What the tool itself gives; a plain function works in a thread of its own."""
    if tool.execute is None:
        return ToolResult(text="done" if context.decision is None else str(context.decision))
    if inspect.iscoroutinefunction(tool.execute):
        return await tool.execute(arguments, context)
    made = await asyncio.to_thread(tool.execute, arguments, context)
    return await made if inspect.isawaitable(made) else made


def cut(text: str, limit: int) -> str:
    """The beginning and the end of a text that is longer than ``limit`` characters, saying what is left
    out."""
    if len(text) <= limit:
        return text
    half = limit // 2
    left = len(text) - 2 * half
    how = "ask for a part of it, or narrow the call"
    return f"{text[:half]}\n[{left:,} characters left out; {how}]\n{text[-half:]}"


def _os_words(error: OSError) -> str:
    where = f" ({os.path.basename(str(error.filename))})" if error.filename else ""
    return f"{error.strerror or error}{where}"
