"""One turn of an agent: what it may call, what it is told when it may not, and that the transcript stays
valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cadenza.core.tooling import ToolSpec
from cadenza.tools.base import Tool, ToolContext, ToolResult
from tests.agents.stage import CHAT, Stage, call, complete, go, results
from tests.agents.test_maestro_cases import TWO


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "a.txt").write_text("hello\n", encoding="utf-8")
    return Stage(tmp_path)


def calls(*made: dict[str, Any]) -> dict[str, Any]:
    return {"calls": [one["calls"][0] for one in made]}


def answered(stage: Stage) -> None:
    """Every call in the last request has exactly one result, right behind it."""
    messages = stage.requests[-1].messages
    for at, message in enumerate(messages):
        if message.calls:
            behind = messages[at + 1 : at + 1 + len(message.calls)]
            assert [one.call for one in behind] == [one.id for one in message.calls]


async def test_ordinary_calls_run_in_order_up_to_the_first_control_call_which_wins(stage: Stage) -> None:
    turn = calls(call("read_file", path="a.txt"), go("build"), call("read_file", path="a.txt"), go("build"))
    script = [
        {"movement": "plan", **turn},
        {"movement": "build", **go("check")},
        {"movement": "check", **complete("ok")},
    ]
    result = await stage.play(TWO, script)
    assert result.status == "completed"
    said = results(stage)
    assert said[0] == "hello\n"
    assert "build is next" in said[1]
    assert said[2] == said[3]
    assert "Not executed" in said[2]
    answered(stage)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (call("fly"), "There is no tool fly"),
        (call("write_file", path="x", content="y"), "There is no tool write_file"),
        ({"calls": [{"name": "read_file", "arguments": "{path: a.txt}"}]}, "not valid JSON"),
        ({"calls": [{"name": "read_file", "arguments": "[1]"}]}, "must be a JSON object"),
        ({"calls": [{"name": "read_file", "arguments": '{"path": "a", "path": "b"}'}]}, "stands there twice"),
        (call("read_file"), "'path' is a required property"),
        (call("read_file", path=3), "3 is not of type 'string'"),
        (call("read_file", path="a.txt", mode="r"), "Additional properties are not allowed"),
        (call("read_file", path="gone.txt"), "there is no file gone.txt"),
        (call("read_file", path="../outside"), "leads out of the workspace"),
        (call("complete", status="maybe", result="x"), "'maybe' is not one of"),
        (call("complete", status="success"), "'result' is a required property"),
    ],
)
async def test_a_call_that_cannot_be_made_is_answered_and_the_movement_goes_on(
    stage: Stage, made: dict[str, Any], told: str
) -> None:
    result = await stage.play(CHAT, [made, complete("after all")])
    assert (result.status, result.output) == ("completed", "after all")
    assert told in results(stage)[0]
    answered(stage)


async def test_a_tool_that_another_movement_may_use_is_refused_naming_what_this_one_may(stage: Stage) -> None:
    text = TWO.replace("instruction: Build.", "instruction: Build.\n        allowed_tools: [write_file]")
    script = [
        {"movement": "plan", **call("write_file", path="x", content="y")},
        {"movement": "plan", **go("build")},
        {"movement": "build", **call("write_file", path="x", content="y")},
        {"movement": "build", **go("check")},
        {"movement": "check", **complete("ok")},
    ]
    result = await stage.play(text, script, permission="acceptEdits")
    assert result.status == "completed"
    said = results(stage)
    assert "This movement may not use write_file. It may use:" in said[0]
    assert "read_file" in said[0]
    assert (stage.folder / "x").read_text(encoding="utf-8") == "y"


async def test_without_the_permission_a_changing_tool_is_refused(stage: Stage) -> None:
    text = CHAT.replace("rules: []", "allowed_tools: [write_file]")
    script = [call("write_file", path="x", content="y"), complete("no")]
    await stage.play(text, script)
    assert "needs the permission edit; this movement runs with readonly" in results(stage)[0]
    assert not (stage.folder / "x").exists()


async def test_a_model_that_answers_with_nothing_is_nudged_and_then_stopped(stage: Stage) -> None:
    result = await stage.play(CHAT, [{"text": "", "times": "forever"}])
    assert (result.status, result.reason) == ("aborted", "text_only_limit")
    assert all(message.content for message in stage.requests[-1].messages)


async def test_a_call_resets_the_count_of_turns_without_one(stage: Stage) -> None:
    text = {"text": "Thinking."}
    result = await stage.play(CHAT, [text, text, call("list_dir"), text, text, text, complete("ok")])
    assert result.status == "completed"


def tool(name: str, execute: Any, effect: Any = "read") -> Tool:
    spec = ToolSpec(name=name, description="A tool.", parameters={"type": "object"}, effect=effect)
    return Tool(spec, execute)


def _raises(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    raise RuntimeError("boom")


def _huge(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    return ToolResult(text="x" * 50_000_000)


def _wrong(arguments: dict[str, Any], context: ToolContext) -> Any:
    return 42


@pytest.mark.parametrize(
    ("execute", "told"),
    [(_raises, "RuntimeError: boom"), (_huge, "characters left out"), (_wrong, "instead of a ToolResult")],
)
async def test_a_tool_that_misbehaves_gives_a_result_the_model_can_act_on(
    stage: Stage, execute: Any, told: str
) -> None:
    text = CHAT.replace("rules: []", "allowed_tools: [odd]")
    result = await stage.play(text, [call("odd"), complete("ok")], tools=[tool("odd", execute)])
    assert result.status == "completed"
    assert told in results(stage)[0]
    assert len(results(stage)[0]) < 100_000


async def test_a_command_that_writes_without_end_and_one_that_never_ends_are_stopped(stage: Stage) -> None:
    text = CHAT.replace("rules: []", "allowed_tools: [run_command]\n        allowed_commands: [yes, sleep]")
    script = [
        call("run_command", argv=["yes"], seconds=1),
        call("run_command", argv=["sleep", "60"], seconds=1),
        call("run_command", argv=["rm", "a.txt"]),
        complete("ok"),
    ]
    result = await stage.play(text, script, permission="acceptEdits")
    assert result.status == "completed"
    said = results(stage)
    assert "stopped after 1 seconds" in said[0]
    assert "bytes left out" in said[0]
    assert "stopped after 1 seconds" in said[1]
    assert "the program 'rm' is not allowed here; allowed are: yes, sleep" in said[2]


async def test_a_tool_whose_executor_is_gone_stays_listed_and_says_so(stage: Stage) -> None:
    text = CHAT.replace("rules: []", "allowed_tools: [odd]")
    odd = tool("odd", lambda arguments, context: ToolResult(text="fine"))
    async with stage.engine([call("odd"), complete("ok")], [odd]) as engine:
        run = await engine.start(stage.piece(text), "Do", cwd=stage.folder, play=False)
    async with stage.engine([call("odd"), complete("ok")]) as engine:
        result = await engine.play(run.id).result()
    assert result.status == "completed"
    assert "listed, but nothing here carries it out" in results(stage)[0]
    assert "odd" in [one["name"] for one in stage.requests[-1].tools]


async def test_reports_are_owed_before_the_movement_can_end(stage: Stage) -> None:
    text = CHAT.replace("rules: []", "report: notes.md")
    script = [
        complete("done"),
        call("write_report", name="other.md", content="x"),
        call("write_report", name="notes.md", content="# Notes"),
        complete("done"),
    ]
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(text), "Do", cwd=stage.folder)
        result = await run.result()
        assert engine.service.reports(run.id) == {"notes.md": "# Notes"}
    assert result.status == "completed"
    said = results(stage)
    assert "not written yet: notes.md" in said[0]
    assert "owes no report other.md" in said[1]


async def test_a_piece_that_may_not_complete_in_a_movement_cannot_skip_what_comes_after(stage: Stage) -> None:
    text = TWO.replace("instruction: Plan.", "instruction: Plan.\n        may_complete: false")
    script = [
        {"movement": "plan", **complete("all done already")},
        {"movement": "plan", **go("build")},
        {"movement": "build", **go("check")},
        {"movement": "check", **complete("ok")},
    ]
    result = await stage.play(text, script)
    assert (result.status, result.output) == ("completed", "ok")
    assert "cannot end the work here" in results(stage)[0]


async def test_secrets_of_the_environment_reach_neither_model_nor_journal(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "swordfish-12345")
    (stage.folder / "leak.txt").write_text("the key is swordfish-12345.", encoding="utf-8")
    result = await stage.play(CHAT, [call("read_file", path="leak.txt"), complete("ok")])
    assert results(stage)[0] == "the key is [secret SOME_API_KEY]."
    texts = json.dumps([message.content for message in stage.requests[-1].messages])
    assert "swordfish" not in texts
    assert result.status == "completed"
