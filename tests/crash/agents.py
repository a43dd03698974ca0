"""A scenario of agents with tools: calls of every effect class, cards, children, and lanes that ask."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cadenza.core.demands import Effect
from cadenza.core.tooling import ToolSpec
from cadenza.providers.models.script import Script
from cadenza.testing import Answer, Scenario
from cadenza.tools.base import Tool, ToolContext, ToolResult

AGENTS = """
cadenza: 1
name: agents
max_movements: 20
initial_movement: work
movements:
  - name: work
    instruction: Work.
    allowed_tools: [look, put, charge, request_tool, spawn_task, wait_subtasks]
    rules: [{condition: worked, next: review}]
  - name: review
    parallel:
      - {name: left, instruction: Left., allowed_tools: [look], rules: [{condition: ok}, {condition: bad}]}
      - {name: right, instruction: Right., allowed_tools: [charge], rules: [{condition: ok}, {condition:
      bad}]}
    rules: [{condition: all("ok"), next: tell}, {condition: any("bad"), next: work}]
  - {name: tell, instruction: Tell., allowed_tools: [charge]}
"""

CHILD = """
cadenza: 1
name: small
movements: [{name: small, instruction: Be small., allowed_tools: [look, charge]}]
"""


def _tool(name: str, effect: Effect, folder: Path) -> Tool:
    """A tool that notes each call: a write that was repeated would stand in the file twice."""

    def execute(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        with (folder / f"{name}s").open("a", encoding="utf-8") as file:
            file.write(f"{context.demand}\n")
        return ToolResult(text=f"{name} done")

    spec = ToolSpec(name=name, description=f"The tool {name}.", parameters={"type": "object"}, effect=effect)
    return Tool(spec, execute)


def effects(folder: Path) -> Mapping[str, Tool]:
    """One tool of each effect class."""
    classes: dict[str, Effect] = {"look": "read", "put": "idempotent", "charge": "write"}
    return {name: _tool(name, effect, folder) for name, effect in classes.items()}


def _call(movement: str, *made: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"movement": movement, "calls": [{"name": name, "arguments": given} for name, given in made]}


def agents() -> Scenario:
    """Tools, a question, an approval, a child, lanes of which one asks, and an unrepeatable effect in
    each."""
    done: dict[str, Any] = {"status": "success", "result": "done"}
    question: dict[str, Any] = {"status": "needs_user_input", "result": "Which?"}
    spawn: dict[str, Any] = {"task": "small", "piece": "child"}
    want: dict[str, Any] = {"name": "glob", "reason": "r"}
    ok, go = {**done, "label": "ok"}, {"next": "review", "reason": "it is"}
    script = Script.from_entries(
        [
            _call("work", ("look", {}), ("put", {}), ("charge", {})),
            _call("work", ("complete", question), ("look", {})),
            _call("work", ("request_tool", want)),
            {"movement": "work", "text": "Hm."},
            _call("work", ("spawn_task", spawn), ("spawn_task", spawn), ("wait_subtasks", {})),
            _call("work", ("transition", go)),
            _call("small", ("look", {}), ("charge", {})),
            _call("small", ("complete", done)),
            _call("left", ("look", {}), ("complete", question)),
            _call("left", ("complete", ok)),
            _call("right", ("charge", {})),
            _call("right", ("complete", ok)),
            _call("tell", ("charge", {}), ("complete", done)),
        ]
    )
    from tests.crash.scenarios import piece_of

    inputs = (Answer(value="blue"), Answer(value={"approved": True}), Answer(value="left"))
    return Scenario(
        name="agents",
        piece=piece_of(AGENTS),
        script=script,
        inputs=inputs,
        agent_tools=effects,
        files={".cadenza/pieces/child.yaml": CHILD},
    )
