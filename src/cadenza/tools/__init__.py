"""What carries out the tool calls of agents, and the commands of quality gates.

A package that brings tools needs :class:`Tool`, :class:`ToolContext`, :class:`ToolResult` and the definitions
:class:`ToolSpec`, :class:`Park`, :class:`Ends`.
"""

from __future__ import annotations

from cadenza.core.outcomes import Wanted
from cadenza.core.tooling import Ends, Park, Rights, ToolSpec
from cadenza.tools.base import Tool, ToolContext, ToolError, ToolResult

__all__ = ["Ends", "Park", "Rights", "Tool", "ToolContext", "ToolError", "ToolResult", "ToolSpec", "Wanted"]
