"""Maestro's conformance cases, each in its words (``spec/maestro.md``)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cadenza.core.events import AskDeflected, RequestOpened
from cadenza.core.outcomes import Wanted
from cadenza.core.tooling import Park, ToolSpec
from cadenza.errors import PieceError
from cadenza.tools.base import Tool, ToolContext, ToolResult
from tests.agents.stage import CHAT, Stage, ask, call, complete, give, go, results

LIMITED = CHAT.replace("name: chat\n", "name: chat\n    ask_limit: 2\n    ask_limit_deflections: 2\n")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, tmp_path / "journal.sqlite")


async def test_m01_a_chat_piece_without_rules_completes_and_its_result_is_what_the_user_sees(
    stage: Stage,
) -> None:
    result = await stage.play(CHAT, [complete("The sky scatters blue.")])
    assert (result.status, result.reason, result.output) == (
        "completed",
        "complete",
        "The sky scatters blue.",
    )
    assert "transition" not in [tool["name"] for tool in stage.requests[0].tools]
    assert "complete" in [tool["name"] for tool in stage.requests[0].tools]


async def test_m02_needs_user_input_parks_on_the_current_movement_and_the_answer_is_in_the_conversation(
    stage: Stage,
) -> None:
    script = [ask("Which colour?"), complete("Blue it is.")]
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(CHAT), "Paint", cwd=stage.folder)
        parked = await run.result()
        assert (parked.status, parked.reason) == ("waiting_human", None)
        assert engine.journal.run(run.id).movement == "talk"
        assert engine.journal.leases() == {}  # the worker is free
        (request,) = parked.requests
        decision = await engine.answer(request.id, "blue")
        assert decision.result == "accepted"
        result = await run.result()
        assert engine.service.state(run.id).visits == 1  # the same visit went on
    assert (result.status, result.output) == ("completed", "Blue it is.")
    assert "blue" in results(stage)[-1]


async def asks(stage: Stage, script: list[Any], *, restart: bool) -> Any:
    """Play a script that asks and asks; every question that parks is answered, by the same or another
    process."""
    engine = stage.engine(script)
    run = await engine.start(stage.piece(LIMITED), "Do", cwd=stage.folder)
    parked = 0
    while (result := await run.result()).requests:
        parked += 1
        if restart:
            await engine.close()
            engine = stage.engine(script)
        await engine.answer(result.requests[0].id, "you decide")
        run = engine.run(result.run)
    events = [recorded.event for recorded in engine.journal.events(result.run)]
    deflected = sum(isinstance(event, AskDeflected) for event in events)
    await engine.close()
    return result, parked, deflected


@pytest.mark.parametrize("restart", [False, True], ids=["m03", "m04-restarted-between-asks"])
async def test_m03_m04_asks_one_and_two_park_three_and_four_bounce_the_fifth_aborts(
    stage: Stage, restart: bool
) -> None:
    result, parked, deflected = await asks(stage, [ask()] * 5, restart=restart)
    assert (parked, deflected) == (2, 2)
    assert (result.status, result.reason) == ("aborted", "ask_limit_reached")


PARENT = """
    cadenza: 1
    name: parent
    initial_movement: split
    movements:
      - name: split
        instruction: Split.
        allowed_tools: [spawn_task, wait_subtasks]
        default_next: report
        rules: [{condition: started, next: WAIT_SUBTASKS}]
      - name: report
        instruction: Report.
        rules: []
"""


async def test_m05_one_worker_with_one_slot_finishes_a_parent_that_waits_for_its_child(stage: Stage) -> None:
    script = [
        {"movement": "split", **call("spawn_task", task="count", piece="child")},
        {"movement": "split", **call("wait_subtasks")},
        {"movement": "split", **complete("all counted")},
        {"movement": "talk", **complete("42")},
    ]
    give(stage.folder, "child", CHAT)
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(PARENT), "Count", cwd=stage.folder, play=False)
        engine.worker._slots = 1
        await asyncio.wait_for(engine.worker.serve(until_idle=True), 30)
        result = await engine.run(run.id).result()
    assert (result.status, result.output) == ("completed", "all counted")
    assert any("42" in text for text in results(stage))


@pytest.mark.parametrize("by", ["rule", "tool"])
async def test_m06_wait_subtasks_by_rule_resumes_in_default_next_by_tool_in_the_calling_movement(
    stage: Stage, by: str
) -> None:
    wait = go("WAIT_SUBTASKS") if by == "rule" else call("wait_subtasks")
    last = "report" if by == "rule" else "split"
    give(stage.folder, "child", CHAT)
    script = [
        {"movement": "split", **call("spawn_task", task="count", piece="child")},
        {"movement": "split", **wait},
        {"movement": last, **complete("told")},
        {"movement": "talk", **complete("42")},
    ]
    result = await stage.play(PARENT, script)
    assert (result.status, result.output) == ("completed", "told")
    told = "\n".join(message.content for message in stage.requests[-1].messages)
    assert stage.requests[-1].movement == last
    assert "42" in told


async def test_m07_wait_subtasks_by_rule_with_default_next_complete_ends_without_another_call(
    stage: Stage,
) -> None:
    text = PARENT.replace("default_next: report", "default_next: COMPLETE")
    give(stage.folder, "child", CHAT)
    script = [
        {"movement": "split", **call("spawn_task", task="count", piece="child")},
        {"movement": "split", **go("WAIT_SUBTASKS")},
        {"movement": "talk", **complete("42")},
    ]
    result = await stage.play(text, script)
    assert result.status == "completed"
    assert [request.movement for request in stage.requests].count("split") == 2


async def test_m08_children_that_have_ended_before_the_parent_waits_resume_it_exactly_once(
    stage: Stage,
) -> None:
    give(stage.folder, "child", CHAT)
    script = [
        {"movement": "split", **call("spawn_task", task="count", piece="child")},
        {"movement": "split", "delay": 1.0, **call("wait_subtasks")},
        {"movement": "split", **complete("once")},
        {"movement": "talk", **complete("42")},
    ]
    result = await stage.play(PARENT, script)
    assert (result.status, result.output) == ("completed", "once")
    assert [request.movement for request in stage.requests].count("split") == 3


SCREEN = """
    cadenza: 1
    name: look
    movements:
      - name: look
        instruction: Look it up.
        allowed_tools: [browse]
"""


def browser(reason: str = "captcha") -> Tool:
    """A stand-in for the browser: it needs a person once, for the screen of its run's workspace."""

    def browse(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        if context.decision is not None:
            return ToolResult(text="the page")
        screen = context.screen if reason == "captcha" else None
        seen = context.generation(context.screen)
        wants = Wanted(question="Solve the screen.", reason=reason, screen=screen, generation=seen)
        return ToolResult(text="a person is needed", wants=wants)

    spec = ToolSpec(
        name="browse",
        description="Open a page.",
        parameters={"type": "object", "properties": {}},
        effect="read",
        park=Park(sentinel="WAITING_HUMAN_BROWSER", reason=reason, needed=False),
    )
    return Tool(spec, browse)


async def looking(stage: Stage, workspace: str, reason: str = "captcha", **options: Any) -> str:
    result = await stage.play(
        SCREEN, [call("browse"), complete("read")], workspace=workspace, tools=[browser(reason)], **options
    )
    assert (result.status, result.reason) == ("waiting_human", reason)
    return result.run


async def test_m09_resolving_a_screen_queues_exactly_the_runs_that_stopped_on_it(stage: Stage) -> None:
    on_x = [await looking(stage, "x", shared=True) for _ in range(3)]
    others = [await looking(stage, "y", shared=True), await looking(stage, "x", "browser_login", shared=True)]
    async with stage.engine([complete("read")] * 9, [browser()]) as engine:
        resumed = engine.service.resolve_screen("shared:x")
        assert sorted(row.run for row in resumed) == sorted(on_x)
        assert engine.service.resolve_screen("shared:x") == []
        assert all(engine.journal.run(run).status == "queued" for run in on_x)
        assert all(engine.journal.run(run).status == "waiting_human" for run in others)


async def test_m10_a_personal_workspace_s_run_is_resolved_by_its_own_screen(stage: Stage) -> None:
    run = await looking(stage, "default")
    async with stage.engine([call("browse"), complete("read")], [browser()]) as engine:
        (resumed,) = engine.service.resolve_screen("personal:default")
        assert resumed.run == run
        result = await engine.play(run).result()
    assert (result.status, result.output) == ("completed", "read")


SPIN = """
    cadenza: 1
    name: spin
    movements:
      - name: spin
        instruction: Spin off.
        allowed_tools: [spin_off_task]
"""
OFF = {"task": "mend the roof", "workspace": "other", "piece": "child"}


def other(stage: Stage, engine: Any) -> None:
    folder = stage.folder / "other"
    folder.mkdir(exist_ok=True)
    give(folder, "child", CHAT)
    engine.service.add_workspace("other", folder)


@pytest.mark.parametrize("restart", [False, True], ids=["resumed", "restarted-from-its-head"])
@pytest.mark.parametrize("approved", [True, False], ids=["approved", "declined"])
async def test_m11_a_repeated_spin_off_finds_what_was_decided_one_card_one_spawn(
    stage: Stage, approved: bool, restart: bool
) -> None:
    script = [{"movement": "spin", **call("spin_off_task", **OFF)}]
    script += [{"movement": "spin", **ask("Shall I?")}] if restart else []
    script += [{"movement": "spin", **call("spin_off_task", **OFF)}, {"movement": "spin", **complete("spun")}]
    script += [{"movement": "talk", **complete("mended")}]
    async with stage.engine(script) as engine:
        other(stage, engine)
        run = await engine.start(stage.piece(SPIN), "Spin", cwd=stage.folder)
        parked = await run.result()
        assert (parked.status, parked.reason) == ("waiting_human", "spawn_request")
        engine.service.decide(parked.requests[0].id, approved=approved)
        result = await engine.play(run.id).result()
        if restart:
            assert (result.status, result.reason) == ("waiting_human", None)
            engine.service.resume(run.id, restart_visit=True)
            result = await engine.play(run.id).result()
        runs = list(engine.journal.runs())
        cards = engine.journal.requests(run=run.id, status=("open", "decided", "closed"))
    assert (result.status, result.output) == ("completed", "spun")
    assert len([card for card in cards if card.reason == "spawn_request"]) == 1
    assert len(runs) == (2 if approved else 1)
    said = [text for text in results(stage) if "by itself as" in text or "declined" in text]
    assert len(set(said)) == 1
    assert len(said) == (1 if restart else 2)
    assert ("by itself as" in said[0]) is approved


async def test_m12_a_repeat_while_the_request_is_pending_finds_the_same_card(stage: Stage) -> None:
    script = [{"movement": "spin", **call("spin_off_task", **OFF)}] * 2
    script += [{"movement": "spin", **complete("spun")}, {"movement": "talk", **complete("mended")}]
    async with stage.engine(script) as engine:
        other(stage, engine)
        run = await engine.start(stage.piece(SPIN), "Spin", cwd=stage.folder)
        first = await run.result()
        engine.service.resume(run.id, restart_visit=True)
        again = await engine.play(run.id).result()
        assert [row.id for row in again.requests] == [row.id for row in first.requests]
        engine.service.decide(first.requests[0].id, approved=True)
        result = await engine.play(run.id).result()
        assert (result.status, result.output) == ("completed", "spun")
        opened = [r.event for r in engine.journal.events(run.id) if isinstance(r.event, RequestOpened)]
        assert len(opened) == 1
        assert len(list(engine.journal.runs())) == 2


async def test_a_card_decided_while_nobody_waits_for_it_answers_whoever_asks_again(stage: Stage) -> None:
    script = [{"movement": "spin", **call("spin_off_task", **OFF)}, {"movement": "spin", **ask("Hm?")}]
    script += [{"movement": "spin", **call("spin_off_task", **OFF)}, {"movement": "spin", **complete("spun")}]
    script += [{"movement": "talk", **complete("mended")}]
    async with stage.engine(script) as engine:
        other(stage, engine)
        run = await engine.start(stage.piece(SPIN), "Spin", cwd=stage.folder)
        card = (await run.result()).requests[0]
        engine.service.resume(run.id, restart_visit=True)
        asked = await engine.play(run.id).result()
        assert {row.reason for row in asked.requests} == {"spawn_request", ""}
        engine.service.decide(card.id, approved=True)
        await engine.play(run.id).result()
        question = engine.journal.requests(run=run.id)[0]
        await engine.answer(question.id, "go on")
        result = await engine.run(run.id).result()
        assert (result.status, result.output) == ("completed", "spun")
        assert len(list(engine.journal.runs())) == 2


TWO = """
    cadenza: 1
    name: two
    initial_movement: plan
    movements:
      - name: plan
        instruction: Plan.
        rules: [{condition: planned, next: build}]
      - name: build
        instruction: Build.
        rules: [{condition: built, next: check}, {condition: unclear, next: plan}]
      - name: check
        instruction: Check.
        rules: []
"""


async def test_m13_a_transition_to_another_movement_s_target_is_answered_with_the_choices(
    stage: Stage,
) -> None:
    script = [
        {"movement": "plan", **go("check")},
        {"movement": "plan", **go("build")},
        {"movement": "build", **go("check")},
        {"movement": "check", **complete("checked")},
    ]
    result = await stage.play(TWO, script)
    assert (result.status, result.output) == ("completed", "checked")
    said = results(stage)
    assert "cannot go to check" in said[0]
    assert "build" in said[0]


@pytest.mark.parametrize("target", ["COMPLETE", "ABORT", "ASK", "WAITING_HUMAN_BROWSER"])
def test_m14_sentinels_in_rules_are_refused_naming_movement_and_rule(stage: Stage, target: str) -> None:
    with pytest.raises(PieceError) as refused:
        stage.piece(TWO.replace("next: check", f"next: {target}"))
    assert 'the rule "built" of movement build' in str(refused.value)
    assert target in str(refused.value)


def test_m14_wait_subtasks_is_accepted(stage: Stage) -> None:
    assert stage.piece(TWO.replace("next: check", "next: WAIT_SUBTASKS")).piece.control == "tools"


async def test_m15_tools_stay_the_same_bytes_and_messages_only_grow(stage: Stage) -> None:
    script = [
        {"movement": "plan", **go("build")},
        {"movement": "build", **ask("How high?")},
        {"movement": "build", **go("check")},
        {"movement": "check", **complete("checked")},
    ]
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(TWO), "Build", cwd=stage.folder)
        parked = await run.result()
    async with stage.engine(script) as engine:
        await engine.answer(parked.requests[0].id, "two storeys")
        result = await engine.run(run.id).result()
    assert result.status == "completed"
    assert len(stage.requests) == 4
    assert len({repr(request.tools) for request in stage.requests}) == 1
    for before, after in zip(stage.requests, stage.requests[1:], strict=False):
        assert after.messages[: len(before.messages)] == before.messages
        assert len(after.messages) > len(before.messages)


async def test_text_only_turns_past_the_limit_abort(stage: Stage) -> None:
    result = await stage.play(CHAT, [{"text": "Hm.", "times": "forever"}])
    assert (result.status, result.reason) == ("aborted", "text_only_limit")
    assert len(stage.requests) == 4


async def test_a_cancel_while_it_runs_is_cancelled_and_not_aborted(stage: Stage) -> None:
    async with stage.engine([{"delay": 30, **complete()}]) as engine:
        run = await engine.start(stage.piece(CHAT), "Do", cwd=stage.folder)
        await asyncio.sleep(0.2)
        await engine.cancel(run.id, "enough")
        result = await run.result()
    assert (result.status, result.reason) == ("cancelled", "cancelled")


async def test_a_movement_that_a_tool_left_unsettled_is_an_error(stage: Stage) -> None:
    spec = ToolSpec(
        name="shrug", description="Settle nothing.", parameters={"type": "object"}, kind="terminal"
    )
    text = CHAT.replace("rules: []", "allowed_tools: [shrug]")
    result = await stage.play(text, [call("shrug")], tools=[Tool(spec)])
    assert (result.status, result.reason) == ("error", "unsettled")
