"""What went wrong with waiting for people in comparable products, and what happens here
(``docs/lessons.md``, K)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cadenza.core.tooling import ToolSpec
from cadenza.errors import InputRefused
from cadenza.tools.base import Tool, ToolContext, ToolResult
from tests.agents.stage import CHAT, Stage, ask, call, complete, give, results
from tests.agents.test_catalogue import CHILD, with_tools
from tests.agents.test_requests import LANES


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    give(tmp_path, "child", CHILD)
    return Stage(tmp_path, tmp_path / "journal.sqlite")


def counter(seen: list[str]) -> Tool:
    def count(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        seen.append(context.demand)
        return ToolResult(text=f"call {len(seen)}")

    return Tool(
        ToolSpec(name="count", description="Count.", parameters={"type": "object"}, effect="write"), count
    )


async def test_what_was_done_before_a_question_is_not_done_again_when_it_is_answered(stage: Stage) -> None:
    seen: list[str] = []
    tool = counter(seen)
    script = [call("count"), ask("One?"), call("count"), ask("Two?"), complete("ok")]
    text = with_tools("count")
    result = await stage.play(text, script, tools=[tool])
    for answer in ("first", "second"):
        async with stage.engine(script, [tool]) as engine:  # another process each time
            await engine.answer(result.requests[0].id, answer)
            result = await engine.run(result.run).result()
    assert (result.status, len(seen)) == ("completed", 2)
    assert results(stage) == [
        "call 1",
        "The person answered:\nfirst",
        "call 2",
        "The person answered:\nsecond",
    ]


async def test_a_second_question_raised_after_a_resume_is_shown(stage: Stage) -> None:
    script = [ask("One?"), ask("Two?"), complete("ok")]
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(CHAT), "Do", cwd=stage.folder)
        first = await run.result()
        await engine.answer(first.requests[0].id, "1")
        second = await run.result()
        assert [engine.service.text(request.question) for request in second.requests] == ["Two?"]
        assert second.requests[0].id != first.requests[0].id


async def test_several_questions_can_be_answered_in_one_go_and_each_gets_its_own_answer(stage: Stage) -> None:
    script = [{"movement": name, **ask(f"{name}?")} for name in ("left", "right")]
    script += [{"movement": name, **complete(name, label="fine")} for name in ("left", "right")]
    script += [{"movement": "report", **complete("ok")}]
    result = await stage.play(LANES, script)
    async with stage.engine(script) as engine:
        for request in result.requests:
            engine.service.answer(request.id, f"to {request.lane}")
        assert engine.service.inbox() == []
        again = await engine.play(result.run).result()
    assert again.status == "completed"
    for lane in ("left", "right"):
        last = [request for request in stage.requests if request.movement == lane][-1]
        told = [message.content for message in last.messages if message.role == "tool"]
        assert told == [f"The person answered:\nto {lane}"]


async def test_a_child_s_question_is_its_own_and_its_answer_restarts_nothing_of_the_parent(
    stage: Stage,
) -> None:
    script = [
        {"movement": "talk", **call("spawn_task", task="t", piece="child")},
        {"movement": "talk", **call("wait_subtasks")},
        {"movement": "talk", **complete("ok")},
        {"movement": "small", **ask("Child?")},
        {"movement": "small", **complete("s")},
    ]
    async with stage.engine(script) as engine:
        run = await engine.start(
            stage.piece(with_tools("spawn_task", "wait_subtasks")), "p", cwd=stage.folder
        )
        await run.result()
        (request,) = engine.service.inbox()
        assert request.run == engine.service.tree(run.id)[1].id
        await engine.answer(request.id, "to the child")
        assert (await run.result()).status == "completed"
    assert [one.movement for one in stage.requests].count("talk") == 3
    assert not any("to the child" in m.content for m in stage.requests[-1].messages if m.role == "user")


async def test_a_stored_decision_wins_over_asking_again(stage: Stage) -> None:
    text = CHAT.replace("rules: []", "allowed_tools: [request_tool]")
    want = call("request_tool", name="make_dir", reason="r")
    result = await stage.play(text, [want], permission="acceptEdits")
    async with stage.engine([want, ask("Hm?"), want, complete("ok")]) as engine:
        engine.service.decide(result.requests[0].id, approved=False)
        asked = await engine.play(result.run).result()
        assert engine.service.inbox() == list(asked.requests)
        engine.service.resume(result.run, restart_visit=True)
        again = await engine.play(result.run).result()
    assert again.status == "completed"
    assert "declined" in results(stage)[0]


async def test_without_a_person_a_question_waits_and_is_never_taken_for_a_yes(stage: Stage) -> None:
    text = CHAT.replace("rules: []", "allowed_tools: [request_tool]")
    script = [call("request_tool", name="make_dir", reason="r"), complete("ok")]
    result = await stage.play(text, script, permission="acceptEdits", interactive=False)
    assert (result.status, result.reason) == ("waiting_human", "tool_request")
    async with stage.engine(script) as engine:
        assert await asyncio.wait_for(engine.worker.serve(until_idle=True), 5) == 0
        assert engine.service.state(result.run).granted == ()


@pytest.mark.parametrize(
    "value", [None, "yes", True, {}, {"approved": "yes"}, {"approved": True, "all": True}]
)
async def test_a_decision_that_is_none_changes_nothing(stage: Stage, value: Any) -> None:
    text = CHAT.replace("rules: []", "allowed_tools: [request_tool]")
    script = [call("request_tool", name="make_dir", reason="r"), complete("ok")]
    result = await stage.play(text, script, permission="acceptEdits")
    async with stage.engine(script) as engine:
        with pytest.raises(InputRefused):
            engine.service.answer(result.requests[0].id, value)
        assert engine.service.inbox()[0].status == "open"


async def test_invalid_arguments_are_refused_before_anybody_is_asked(stage: Stage) -> None:
    text = CHAT.replace("rules: []", "allowed_tools: [request_tool, spin_off_task]")
    script = [
        call("request_tool", name="no_such_tool", reason="r"),
        call("request_tool", name="make_dir"),
        call("spin_off_task", workspace="w"),
        complete("ok"),
    ]
    result = await stage.play(text, script, permission="acceptEdits")
    assert (result.status, result.requests) == ("completed", ())
    said = results(stage)
    assert "no tool no_such_tool that could be granted" in said[0]
    assert "'reason' is a required property" in said[1]
    assert "'task' is a required property" in said[2]


async def test_two_engines_on_one_journal_keep_their_runs_apart(stage: Stage) -> None:
    script = [ask("?"), complete("ok")]
    first = await stage.play(CHAT, script)
    second = await stage.play(CHAT, script)
    async with stage.engine(script) as one, stage.engine(script) as two:
        await asyncio.gather(
            one.answer(first.requests[0].id, "to one"), two.answer(second.requests[0].id, "to two")
        )
        done = await asyncio.gather(one.run(first.run).result(), two.run(second.run).result())
    assert [result.status for result in done] == ["completed", "completed"]
    told = [[m.content for m in r.messages if m.role == "tool"] for r in stage.requests[-2:]]
    assert sorted(told) == [["The person answered:\nto one"], ["The person answered:\nto two"]]


async def test_stable_tools_by_movement_shows_each_movement_its_own(stage: Stage) -> None:
    from tests.agents.stage import go
    from tests.agents.test_maestro_cases import TWO

    text = TWO.replace("name: two\n", "name: two\n    stable_tools: movement\n")
    text = text.replace("instruction: Build.", "instruction: Build.\n        allowed_tools: [grep]")
    script = [
        {"movement": "plan", **go("build")},
        {"movement": "build", **go("check")},
        {"movement": "check", **complete("ok")},
    ]
    await stage.play(text, script)
    names = [{tool["name"] for tool in request.tools} for request in stage.requests]
    assert names[1] == {"transition", "complete", "grep"}
    assert "read_file" in names[0]
