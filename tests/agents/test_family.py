"""Runs that start runs: results, cancelling, budgets of the whole tree; and forks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from cadenza.core.outcomes import Usage
from cadenza.core.spending import Price, Spend, cost_of, exceeded, price_of
from cadenza.errors import UsageError
from tests.agents.stage import CHAT, Stage, ask, call, complete, give, go, results
from tests.agents.test_catalogue import CHILD, with_tools
from tests.agents.test_maestro_cases import OFF, SPIN, TWO, other

FAMILY = with_tools("spawn_task", "wait_subtasks")
SPAWN = call("spawn_task", task="small", piece="child")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    give(tmp_path, "child", CHILD)
    return Stage(tmp_path, tmp_path / "journal.sqlite")


def tell(*parent: Any, child: Any = None) -> list[Any]:
    return [
        *({"movement": "talk", **entry} for entry in parent),
        {"movement": "small", **(child or complete("s"))},
    ]


@pytest.mark.parametrize(
    ("child", "told"),
    [
        (complete("forty-two"), "completed\nforty-two"),
        (complete("too hard", "aborted"), "aborted (agent)\ntoo hard"),
        ({"text": "Hm.", "times": "forever"}, "aborted (text_only_limit)"),
    ],
)
async def test_the_parent_is_told_each_child_s_status_and_result(stage: Stage, child: Any, told: str) -> None:
    script = tell(SPAWN, call("wait_subtasks"), complete("ok"), child=child)
    result = await stage.play(FAMILY, script)
    assert result.status == "completed"
    said = next(text for text in results_of(stage, "talk") if "The sub-tasks have ended" in text)
    assert told in said


def results_of(stage: Stage, movement: str) -> list[str]:
    last = [request for request in stage.requests if request.movement == movement][-1]
    return [message.content for message in last.messages if message.role == "tool"]


async def test_a_child_s_reports_are_in_the_parent_s_conversation(stage: Stage) -> None:
    give(stage.folder, "child", CHILD.replace("Ask.}", "Ask., report: found.md}"))
    script = tell(SPAWN, call("wait_subtasks"), complete("ok"))[:-1]
    script += [
        {"movement": "small", **call("write_report", name="found.md", content="# All of it")},
        {"movement": "small", **complete("s")},
    ]
    await stage.play(FAMILY, script)
    assert any("#### found.md\n# All of it" in text for text in results_of(stage, "talk"))


async def test_waiting_for_no_child_goes_on_at_once(stage: Stage) -> None:
    result = await stage.play(FAMILY, tell(call("wait_subtasks"), complete("ok")))
    assert result.status == "completed"
    assert "No sub-task is open" in results(stage)[0]


async def test_the_same_task_asked_for_again_is_the_same_child_and_a_new_word_makes_another(
    stage: Stage,
) -> None:
    again = call("spawn_task", task="small", piece="child", new_request="second")
    script = tell(SPAWN, SPAWN, again, call("wait_subtasks"), complete("ok"))
    script[-1]["times"] = "forever"
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(FAMILY), "p", cwd=stage.folder)
        assert (await run.result()).status == "completed"
        assert len(engine.service.tree(run.id)) == 3


async def test_cancelling_a_parent_cancels_its_children(stage: Stage) -> None:
    script = tell(SPAWN, call("wait_subtasks"), child=ask("?"))
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(FAMILY), "p", cwd=stage.folder)
        assert (await run.result()).status == "waiting_subtasks"
        await (await engine.cancel(run.id, "enough")).result()
        child = engine.service.tree(run.id)[1].id
        for _ in range(100):
            await engine.idle(child)
            if engine.journal.run(child).status == "cancelled":
                break
            await asyncio.sleep(0.02)
        assert [row.status for row in engine.service.tree(run.id)] == ["cancelled", "cancelled"]


async def test_a_child_of_another_process_that_ends_resumes_the_parent(stage: Stage) -> None:
    script = tell(SPAWN, call("wait_subtasks"), complete("ok"), child=ask("?"))
    script += [{"movement": "small", **complete("s")}]
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(FAMILY), "p", cwd=stage.folder)
        await run.result()
    async with stage.engine(script) as engine:
        (request,) = engine.service.inbox()
        assert request.run != run.id
        engine.service.answer(request.id, "yes")
        await engine.worker.serve(until_idle=True)
        assert [row.status for row in engine.service.tree(run.id)] == ["completed", "completed"]


async def test_a_spun_off_task_is_nobody_s_child(stage: Stage) -> None:
    script = [{"movement": "spin", **call("spin_off_task", task="t", piece="child")}]
    script += [{"movement": "spin", **complete("ok")}, {"movement": "small", **complete("s")}]
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(SPIN), "p", cwd=stage.folder)
        await run.result()
        assert len(engine.service.tree(run.id)) == 1
        assert len(list(engine.journal.runs())) == 2


async def test_a_child_that_cannot_be_started_is_told_to_the_model(stage: Stage) -> None:
    script = tell(call("spawn_task", task="t", piece="nowhere"), complete("ok"))
    result = await stage.play(FAMILY, script)
    assert result.status == "completed"
    assert "there is no piece 'nowhere'" in results(stage)[0]


# -- budgets ----------------------------------------------------------------------------------------------


def test_prices_and_limits() -> None:
    prices = {
        "big": Price(input=2.0, output=10.0, cached=0.5),
        "big-*": Price(input=1.0),
        "*": Price(input=9.0),
    }
    assert price_of(prices, "big") == prices["big"]
    assert price_of(prices, "big-2") == prices["big-*"]
    assert price_of(prices, "small") == prices["*"]
    assert cost_of(prices["big"], Usage(input=1_000_000, output=100_000, cached=400_000)) == pytest.approx(
        2.4
    )
    assert exceeded(Spend(tokens=10), _spent(11), 0) == "tokens: 11 of 10"
    assert exceeded(Spend(tokens=10), _spent(10), 0) is None
    assert exceeded(Spend(wall_time=5), _spent(0), 6) == "wall time: 6 of 5 seconds"


def _spent(tokens: int) -> Any:
    from cadenza.core.spending import Spent

    return Spent(tokens=tokens)


USED = {"usage": {"input": 400, "output": 100}}


@pytest.mark.parametrize("attended", [True, False])
async def test_a_spent_budget_holds_the_run_where_a_person_is_attached_and_aborts_it_where_none_is(
    stage: Stage, attended: bool
) -> None:
    script = [{**call("list_dir"), **USED, "times": "forever"}]
    budget = Spend(tokens=3000)
    result = await stage.play(CHAT, script, budget=budget, interactive=attended)
    assert (result.status, result.reason) == (("held" if attended else "aborted"), "budget")
    assert "tokens" in (result.message or "")
    assert result.usage.input + result.usage.output <= 3000


async def test_a_raised_budget_lets_a_held_run_go_on(stage: Stage) -> None:
    script = [*[{**call("list_dir"), **USED}] * 5, {**complete("ok"), **USED}]
    result = await stage.play(CHAT, script, budget=Spend(tokens=2500), interactive=True)
    assert result.status == "held"
    async with stage.engine(script) as engine:
        engine.service.raise_budget(result.run, Spend(tokens=50_000))
        again = await engine.play(result.run).result()
    assert again.status == "completed"


async def test_tool_calls_are_limited_over_the_whole_tree(stage: Stage) -> None:
    script = tell(SPAWN, call("wait_subtasks"), complete("ok"))[:-1]
    script += [{"movement": "small", "times": "forever", **call("list_dir")}]
    async with stage.engine(script) as engine:
        piece = stage.piece(FAMILY)
        run = await engine.start(piece, "p", cwd=stage.folder, budget=Spend(tool_calls=4))
        await run.result()
        rows = engine.service.tree(run.id)
        assert [(row.status, row.reason) for row in rows] == [
            ("completed", "complete"),
            ("aborted", "budget"),
        ]
        assert sum(row.tool_calls for row in rows) == 4


async def test_cost_is_counted_with_the_price_table_of_the_configuration(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = stage.folder / "home"
    (home / ".config" / "cadenza").mkdir(parents=True)
    (home / ".config" / "cadenza" / "config.yaml").write_text(
        'prices:\n  "*": {input: 1000, output: 2000}\n', encoding="utf-8"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    async with stage.engine([{**complete("ok"), **USED}]) as engine:
        run = await engine.start(stage.piece(CHAT), "p", cwd=stage.folder)
        await run.result()
        assert engine.journal.run(run.id).cost == pytest.approx(0.4 + 0.2)


# -- forks ------------------------------------------------------------------------------------------------


async def test_a_fork_goes_on_from_any_event_by_itself_and_its_origin_stays_as_it_is(stage: Stage) -> None:
    script = [
        {"movement": "plan", **go("build")},
        {"movement": "build", **ask("How high?")},
        {"movement": "build", **go("check")},
        {"movement": "check", **complete("checked")},
    ]
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(TWO), "Build", cwd=stage.folder)
        parked = await run.result()
        before = engine.journal.events(run.id)
        for seq in range(1, len(before) + 1):
            fork = await engine.fork(run.id, seq)
            stood = await fork.result()
            assert stood.status == "waiting_human", seq
            assert stood.requests[0].id != parked.requests[0].id
            await engine.answer(stood.requests[0].id, f"fork {seq}")
            result = await fork.result()
            assert (result.status, result.output) == ("completed", "checked"), seq
            messages = stage.requests[-1].messages
            assert sum(f"fork {seq}" in message.content for message in messages) == 1
            assert sum("The person answered" in message.content for message in messages) == 1
        assert engine.journal.events(run.id) == before
        assert engine.journal.verify() == []


async def test_in_a_fork_a_started_effect_is_unknown_and_approvals_stay_decided(stage: Stage) -> None:
    script = [{"movement": "spin", **call("spin_off_task", **OFF)}, {"movement": "spin", **ask("And now?")}]
    script += [{"movement": "spin", **call("spin_off_task", **OFF)}, {"movement": "spin", **complete("ok")}]
    script += [{"movement": "talk", **complete("mended")}]
    async with stage.engine(script) as engine:
        other(stage, engine)
        run = await engine.start(stage.piece(SPIN), "p", cwd=stage.folder)
        engine.service.decide((await run.result()).requests[0].id, approved=True)
        asked = await engine.play(run.id).result()
        fork = await engine.fork(run.id)
        stood = await fork.result()
        (request,) = [row for row in stood.requests if row.reason == ""]
        await engine.answer(request.id, "on")
        assert (await fork.result()).status == "completed"
        assert asked.status == "waiting_human"


async def test_an_event_that_is_not_there_is_refused(stage: Stage) -> None:
    result = await stage.play(CHAT, [complete()])
    async with stage.engine([]) as engine:
        with pytest.raises(UsageError, match="has events 1 to"):
            await engine.fork(result.run, 999)


async def test_one_slot_is_enough_for_a_deep_family(stage: Stage) -> None:
    """A parent, its child and its grandchild, each waiting for the next."""
    deep = CHILD.replace("Ask.}", "Ask., allowed_tools: [spawn_task, wait_subtasks]}")
    give(stage.folder, "middle", deep.replace("small", "middle"))
    script = tell(call("spawn_task", task="m", piece="middle"), call("wait_subtasks"), complete("top"))
    script += [
        {"movement": "middle", **SPAWN},
        {"movement": "middle", **call("wait_subtasks")},
        {"movement": "middle", **complete("m")},
    ]
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(FAMILY), "p", cwd=stage.folder, play=False)
        engine.worker._slots = 1
        await asyncio.wait_for(engine.worker.serve(until_idle=True), 30)
        assert [row.status for row in engine.service.tree(run.id)] == ["completed"] * 3


async def test_an_agent_starts_pieces_by_name_and_never_one_that_it_wrote_itself(stage: Stage) -> None:
    text = FAMILY.replace("wait_subtasks]", "wait_subtasks, write_file]")
    script = tell(
        call("write_file", path="evil.yaml", content="cadenza: 1"),
        call("spawn_task", task="t", piece="./evil.yaml"),
        call("write_file", path=".cadenza/pieces/evil.yaml", content="cadenza: 1"),
        complete("ok"),
    )
    await stage.play(text, script, permission="bypassPermissions")
    said = results(stage)
    assert "agents start pieces by name only" in said[1]
    assert "lies in .cadenza, which tools do not change" in said[2]
