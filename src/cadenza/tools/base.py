"""What every tool's executor is given, and what it gives back.

An executor never waits for a person: where it needs one it says so with :attr:`ToolResult.wants`, the run
parks, and the executor is called again with the decision. Whatever it raises becomes a result that the
model can act on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cadenza.core.outcomes import Wanted
from cadenza.core.tooling import Rights, ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """Where and under what a call is carried out.

    ``demand`` is the call's id: the same when it is repeated after a crash, so the key for whatever must not
    happen twice. ``workspace`` is the run's working directory; ``environment`` the run's own Python
    environment, where it has one. ``decision`` is the answer that a person gave to what the call wanted, None
    before. ``screen`` names the confirmation screen of the run's workspace, and ``generation`` tells how
    often a screen has been solved.
    """

    run: str
    demand: str
    workspace: Path
    rights: Rights = field(default_factory=Rights)
    environment: Path | None = None
    decision: Any = None
    screen: str = ""
    generation: Callable[[str], int] = lambda screen: 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What the model is told. ``error``: the call did not do what was asked, ``code`` says why for machines;
    ``data`` is JSON for software (checks, audits). ``wants``: a person is needed first. ``again``: not
    yet."""

    text: str
    error: bool = False
    code: str | None = None
    data: Any = None
    wants: Wanted | None = None
    again: bool = False


Execute = Callable[[dict[str, Any], ToolContext], "ToolResult | Awaitable[ToolResult]"]
"""Arguments have passed the tool's schema. A plain function is called in a thread of its own."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool and what carries it out. ``execute`` may be None for a terminal tool, or a park tool whose
    answer is told to the model as it is."""

    spec: ToolSpec
    execute: Execute | None = None


class ToolError(Exception):
    """A call that cannot be carried out: the text tells the model why and what it may do instead."""

    def __init__(self, message: str, *, code: str = "failed") -> None:
        self.code = code
        super().__init__(message)


def failed(message: str, code: str = "failed", data: Any = None) -> ToolResult:
    """A result that says what went wrong."""
    return ToolResult(text=message, error=True, code=code, data=data)
