"""What a piece says about agents with tools: guards, requests, budgets, servers, and how control flows.

Source of behaviour: Maestro, guards and load rules; our own format only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cadenza.piece.dialects.fields import Fields, mapping_of, names_of, text_of
from cadenza.piece.model import Budget, Guards, McpServer, RequestPolicy
from cadenza.piece.problems import Problems
from cadenza.piece.source import Node
from cadenza.piece.vocabulary import Control

CONTROLS = ("tags", "tools")
ON_DEADLINE = ("resume", "abort")
STABLE = ("piece", "movement")
BY_TAGS = ("team_leader", "arpeggio")
"""Kinds of movements whose agents answer with text only."""

SERVER_NAME = re.compile("[a-z0-9_-]{1,64}")
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

GUARDS = {
    "text_only_limit": "turns in a row with text and no tool call",
    "max_iterations": "model calls of one movement",
    "max_revisits": "how often a movement may be entered again",
    "ask_limit": "questions of the agents that park the run",
    "ask_limit_deflections": "further questions that are sent back",
}
CONTEXT = {
    "window": "the model's context window, in tokens",
    "warn": "percent of it at which the agent is warned",
    "urge": "percent at which it is urged to finish",
    "force": "percent at which it must hand over",
}
REQUESTS = {
    "deadline": "how long an answer may take: seconds, or 30m, 2h, 3d",
    "on_deadline": "resume (told that nobody answered) or abort",
    "remind": "how often it is said that nobody has answered",
}
BUDGET = {
    "tokens": "prompt and answer tokens",
    "cost": "in the currency of the price table",
    "tool_calls": "tool calls",
    "wall_time": "time since the first run began: seconds, or 30m, 2h, 3d",
}
SERVER = {
    "command": "the program and its arguments",
    "url": "the server's address",
    "env": "environment variables that are handed on",
    "headers": "HTTP headers; ${NAME} stands for an environment variable",
    "timeout": "how long one call may take",
}


def control_of(fields: Fields, phases: str, kinds: Sequence[str], *, native: bool) -> Control:
    """How movements say where they lead. In our own format by tools, unless the piece has what is played by
    tags only."""
    said = fields.choice("control", CONTROLS)
    by_tags = next((kind for kind in BY_TAGS if kind in kinds), None)
    if said != "tools":
        tools = native and said is None and phases == "single" and by_tags is None
        return "tools" if tools else "tags"
    at, fix = fields.at("control"), "write control: tags, or leave it out"
    if not native:
        fix = "write the piece in Cadenza's own format (cadenza: 1), or leave it out"
        fields.problems.error(at, "control by tools belongs to Cadenza's own format", "tools", fix)
    elif phases == "three":
        fields.problems.error(at, "phases: three asks for the status by tags", "tools", fix)
    elif by_tags is not None:
        fields.problems.error(at, f"a {by_tags} is played by tags", "tools", fix)
    else:
        return "tools"
    return "tags"


def read_guards(fields: Fields) -> Guards:
    """The limits of a piece, each with its default."""
    known = Guards()
    found: dict[str, int] = {
        name: fields.count(name, default=getattr(known, name), least=0 if "ask" in name else 1)
        for name in GUARDS
    }
    block = fields.mapping("context")
    if block is None:
        return Guards(**found)
    block.check_keys(CONTEXT, strict=True)
    found["context_window"] = block.count("window", default=0)
    levels = {}
    for name in ("warn", "urge", "force"):
        levels[name] = block.count(name, default=getattr(known, f"context_{name}"), most=100)
    if not levels["warn"] < levels["urge"] < levels["force"]:
        shown = ", ".join(f"{name} {percent}" for name, percent in levels.items())
        fix = "write them in growing order, as 70, 85, 95"
        fields.problems.error(block.node, "the levels of context do not grow", shown, fix)
    return Guards(**found, **{f"context_{name}": percent for name, percent in levels.items()})


def read_requests(fields: Fields) -> RequestPolicy:
    """What holds for every request of a piece."""
    block = fields.mapping("requests")
    if block is None:
        return RequestPolicy()
    block.check_keys(REQUESTS, strict=True)
    return RequestPolicy(
        deadline=duration(block, "deadline"),
        on_deadline=block.choice("on_deadline", ON_DEADLINE) or "resume",
        remind=duration(block, "remind"),
    )


def read_budget(fields: Fields) -> Budget:
    """What a run of the piece, with all its children, may spend."""
    block = fields.mapping("budget")
    if block is None:
        return Budget()
    block.check_keys(BUDGET, strict=True)
    return Budget(
        tokens=_limit(block, "tokens"),
        cost=_number(block, "cost"),
        tool_calls=_limit(block, "tool_calls"),
        wall_time=duration(block, "wall_time"),
    )


def _limit(block: Fields, name: str) -> int | None:
    return block.count(name, default=1) if block.get(name) is not None else None


def _number(block: Fields, name: str) -> float | None:
    node = block.get(name)
    if node is None:
        return None
    value = node.value
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf"):
        return float(value)
    block.problems.error(node, f"{name} must be a number above 0", node.text or node.kind, "write 1.5")
    return None


def duration(block: Fields, name: str) -> float | None:
    """A time in seconds: a number, or a number with s, m, h or d behind it."""
    node = block.get(name)
    if node is None:
        return None
    seconds = _seconds(node)
    if seconds is None or not 0 < seconds < 10**9:
        what = f"{name} must be a time above 0"
        block.problems.error(node, what, node.text or node.kind, "write seconds, or 30m, 2h, 3d")
        return None
    return seconds


def _seconds(node: Node) -> float | None:
    value: Any = node.value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    found = DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    return None if found is None else float(found[1]) * _UNITS[found[2]]


def read_servers(fields: Fields) -> tuple[McpServer, ...]:
    """The servers whose tools the piece uses, in their order."""
    section = fields.mapping("mcp_servers")
    if section is None:
        return ()
    return tuple(_server(str(key), node, fields.problems) for key, node in section)


def _server(name: str, node: Node, problems: Problems) -> McpServer:
    if not SERVER_NAME.fullmatch(name):
        fix = "use a-z, 0-9, _ and -, at most 64"
        problems.error(node, "a server cannot be called so", name, fix)
    block = mapping_of(node, problems, f"the server {name}")
    if block is None:
        return McpServer(name=name)
    block.check_keys(SERVER, strict=True)
    command, url = names_of(block, "command") or (), block.text("url")
    if bool(command) == bool(url):
        fix = "write command: [program, argument] or url: http://…"
        problems.error(node, "a server has either a command or a url", name, fix)
    return McpServer(
        name=name,
        command=command,
        url=url,
        env=names_of(block, "env") or (),
        headers=_headers(block),
        timeout=duration(block, "timeout") or McpServer(name=name).timeout,
    )


def _headers(block: Fields) -> dict[str, str]:
    section = block.mapping("headers")
    if section is None:
        return {}
    found = {}
    for key, node in section:
        text = text_of(node, block.problems, f"the header {key}")
        if text is not None:
            found[str(key)] = text
            if "${" not in text and re.search("auth|key|token|secret", str(key), re.IGNORECASE):
                what = "a secret does not belong into a piece"
                block.problems.warning(node, what, str(key), "write ${NAME} for an environment variable")
    return found


@dataclass(frozen=True, slots=True)
class MovementLimits:
    """The limits that a movement sets for itself, None where the piece's hold."""

    text_only_limit: int | None
    max_iterations: int | None
    max_revisits: int | None


def read_limits(fields: Fields) -> MovementLimits:
    """A movement's own limits."""

    def limit(name: str) -> int | None:
        return fields.count(name, default=1) if fields.get(name) is not None else None

    return MovementLimits(limit("text_only_limit"), limit("max_iterations"), limit("max_revisits"))
