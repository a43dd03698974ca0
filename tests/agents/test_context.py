"""How full the context is: a warning, an urging, and a handover (issue: context use)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.agents.stage import CHAT, Stage, call, complete, go

WINDOW = "name: chat\n    context: {window: 1000}\n"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def at(percent: int, entry: dict[str, Any]) -> dict[str, Any]:
    return {**entry, "usage": {"input": percent * 10 - 10, "output": 10}}


def said(stage: Stage, number: int = -1) -> list[str]:
    return [message.content for message in stage.requests[number].messages if message.role == "user"]


async def test_at_70_percent_the_agent_is_warned_and_at_85_urged_each_once(stage: Stage) -> None:
    script = [at(p, call("list_dir")) for p in (50, 72, 74, 86, 90)] + [complete("ok")]
    result = await stage.play(CHAT.replace("name: chat\n", WINDOW), script)
    assert result.status == "completed"
    told = said(stage)
    assert sum("Be brief" in text for text in told) == 1
    assert sum("Finish now" in text for text in told) == 1
    assert any("72 %" in text for text in told)


TWO = """
    cadenza: 1
    name: two
    context: {window: 1000}
    movements:
      - name: dig
        instruction: Dig.
        default_next: tell
        rules: [{condition: found, next: tell}]
      - {name: tell, instruction: Tell.}
"""


async def test_at_95_percent_a_transition_to_default_next_is_forced_by_a_handover(stage: Stage) -> None:
    script = [
        {"movement": "dig", **at(96, call("list_dir"))},
        {"movement": "dig", "purpose": "handover", "text": "Found: gold at 3, 4."},
        {"movement": "tell", **complete("gold")},
    ]
    result = await stage.play(TWO, script, "Find gold")
    assert (result.status, result.output) == ("completed", "gold")
    last = stage.requests[-1]
    assert [message.role for message in last.messages] == ["system", "user"]
    assert "Found: gold at 3, 4." in last.messages[1].content
    assert "Find gold" in last.messages[1].content
    assert last.messages[0] == stage.requests[0].messages[0]
    assert last.tools == stage.requests[0].tools


@pytest.mark.parametrize("piece", ["rules: []", "default_next: COMPLETE"])
async def test_without_a_movement_to_go_to_the_handover_stays_in_the_same_movement(
    stage: Stage, piece: str
) -> None:
    script = [
        at(96, call("list_dir")),
        {"purpose": "handover", "text": "Half is done."},
        complete("the other half"),
    ]
    text = CHAT.replace("name: chat\n", WINDOW).replace("rules: []", piece)
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(text), "Do", cwd=stage.folder)
        result = await run.result()
        assert engine.service.state(run.id).visits == 1
    assert (result.status, result.output) == ("completed", "the other half")
    assert "Half is done." in said(stage)[0]


async def test_a_server_that_says_the_prompt_is_too_long_forces_the_handover_too(stage: Stage) -> None:
    full = {"error": {"code": "context_full", "message": "too long"}}
    script = [call("list_dir"), full, complete("after all")]
    result = await stage.play(CHAT, script)
    assert (result.status, result.output) == ("completed", "after all")
    assert "was cut off" in said(stage)[0]


@pytest.mark.parametrize(("session", "roles"), [("refresh", 2), ("continue", 5), ("handover", 2)])
async def test_a_movement_says_whether_it_goes_on_in_the_conversation(
    stage: Stage, session: str, roles: int
) -> None:
    text = TWO.replace("instruction: Tell.", f"instruction: Tell., session: {session}")
    script = [
        {"movement": "dig", **go("tell", "the gold is here")},
        {"movement": "tell", "purpose": "handover", "text": "Dug everything."},
        {"movement": "tell", **complete("told")},
    ]
    result = await stage.play(text, script)
    assert result.status == "completed"
    last = stage.requests[-1].messages
    assert len(last) == roles
    if session == "refresh":
        assert "the gold is here" in last[-1].content
    if session == "handover":
        assert "Dug everything." in last[-1].content
