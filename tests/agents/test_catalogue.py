"""The catalogue of sentinels, row by row, with ``rules: []`` where no rule is needed (Maestro B.3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cadenza.core.signals import CATALOGUE
from cadenza.core.tooling import Ends, ToolSpec
from cadenza.engine import RunResult
from cadenza.tools.base import Tool
from tests.agents.stage import CHAT, Stage, ask, call, complete, give
from tests.agents.test_maestro_cases import browser

ANY: dict[str, Any] = {"type": "object"}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def with_tools(*names: str, piece: str = CHAT) -> str:
    return piece.replace("rules: []", f"rules: []\n        allowed_tools: [{', '.join(names)}]")


CHILD = """
cadenza: 1
name: child
movements: [{name: small, instruction: Ask.}]
"""

FOREVER = {"times": "forever"}
GUARDS = {
    "text_only_limit": (CHAT, [{"text": "Hm.", **FOREVER}]),
    "max_iterations": (
        CHAT.replace("rules: []", "max_iterations: 3"),
        [{**call("list_dir"), **FOREVER}],
    ),
    "ask_limit_reached": (
        CHAT.replace("name: chat\n", "name: chat\n    ask_limit: 0\n"),
        [{**ask(), **FOREVER}],
    ),
}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ([complete("fine")], ("completed", "complete", "fine")),
        ([complete("no way", "aborted")], ("aborted", "agent", "no way")),
    ],
    ids=["COMPLETE", "ABORT by complete"],
)
async def test_terminal_rows(stage: Stage, script: list[Any], expected: tuple[str, str, str]) -> None:
    result = await stage.play(CHAT, script)
    assert (result.status, result.reason, result.output) == expected
    assert "transition" not in [tool["name"] for tool in stage.requests[0].tools]


@pytest.mark.parametrize("reason", GUARDS)
async def test_each_guard_aborts_with_its_own_reason(stage: Stage, reason: str) -> None:
    text, script = GUARDS[reason]
    result = await stage.play(text, script)
    assert (result.status, result.reason) == ("aborted", reason)


async def test_max_revisits_aborts_with_its_own_reason(stage: Stage) -> None:
    text = """
        cadenza: 1
        name: round
        max_movements: 50
        max_revisits: 2
        movements:
          - {name: one, instruction: One., rules: [{condition: go, next: two}]}
          - {name: two, instruction: Two., rules: [{condition: go, next: one}]}
    """
    script = [
        {"movement": "one", "times": "forever", **call("transition", next="two", reason="r")},
        {"movement": "two", "times": "forever", **call("transition", next="one", reason="r")},
    ]
    result = await stage.play(text, script)
    assert (result.status, result.reason) == ("aborted", "max_revisits")
    assert [request.movement for request in stage.requests].count("one") == 3


async def parked(stage: Stage, text: str, script: list[Any], **options: Any) -> RunResult:
    result = await stage.play(text, script, **options)
    assert "transition" not in [tool["name"] for tool in stage.requests[0].tools]
    assert result.status == CATALOGUE[options.pop("row", "ASK")].status if "row" in options else True
    return result


async def test_ask_parks_without_a_reason(stage: Stage) -> None:
    result = await parked(stage, CHAT, [ask()])
    assert (result.status, result.reason) == ("waiting_human", None)
    assert [request.sentinel for request in result.requests] == ["ASK"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("request_tool", {"name": "make_dir", "reason": "r"}),
        ("request_package", {"name": "x", "reason": "r"}),
    ],
)
async def test_tool_requests_park_with_their_reason(
    stage: Stage, tool: str, arguments: dict[str, Any]
) -> None:
    text = with_tools(tool)
    result = await parked(stage, text, [call(tool, **arguments)], permission="acceptEdits")
    assert (result.status, result.reason) == ("waiting_human", "tool_request")
    assert [request.sentinel for request in result.requests] == ["WAITING_HUMAN_TOOL_REQUEST"]


async def test_a_spawn_request_parks_with_its_reason(stage: Stage) -> None:
    script = [call("spin_off_task", task="t", workspace="w")]
    result = await parked(stage, with_tools("spin_off_task"), script)
    assert (result.status, result.reason) == ("waiting_human", "spawn_request")
    assert [request.sentinel for request in result.requests] == ["WAITING_HUMAN_SPAWN_REQUEST"]


async def test_without_a_workspace_a_task_is_started_at_once_and_no_card_is_shown(stage: Stage) -> None:
    script = [call("spin_off_task", task="t"), complete("off"), complete("alone")]
    result = await stage.play(with_tools("spin_off_task"), script)
    assert result.status == "completed"
    assert result.requests == ()


@pytest.mark.parametrize("reason", ["browser_login", "captcha"])
async def test_the_browser_parks_with_both_reasons_on_one_sentinel(stage: Stage, reason: str) -> None:
    result = await parked(stage, with_tools("browse"), [call("browse")], tools=[browser(reason)])
    assert (result.status, result.reason) == ("waiting_human", reason)
    assert [request.sentinel for request in result.requests] == ["WAITING_HUMAN_BROWSER"]


async def test_wait_subtasks_by_tool_parks_while_a_child_waits_and_the_child_shows_on_the_parent(
    stage: Stage,
) -> None:
    text = with_tools("spawn_task", "wait_subtasks")
    give(stage.folder, "child", CHILD)
    script = [
        {"movement": "talk", **call("spawn_task", task="child", piece="child")},
        {"movement": "talk", **call("wait_subtasks")},
        {"movement": "small", **ask("Which?")},
    ]
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(text), "parent", cwd=stage.folder)
        result = await run.result()
        assert (result.status, result.reason) == ("waiting_subtasks", None)
        assert [row.status for row in engine.service.tree(run.id)] == ["waiting_subtasks", "waiting_human"]


async def test_a_tool_of_another_package_ends_the_run_as_its_definition_says(stage: Stage) -> None:
    ends = Ends(sentinel="GIVE_UP", status="aborted", reason="gave_up", result="why")
    spec = ToolSpec(name="give_up", description="Stop.", parameters=ANY, kind="terminal", ends=ends)
    result = await stage.play(with_tools("give_up"), [call("give_up", why="too hard")], tools=[Tool(spec)])
    assert (result.status, result.reason, result.output) == ("aborted", "gave_up", "too hard")
