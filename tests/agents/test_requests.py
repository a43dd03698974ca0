"""Requests: what an answer must be, who answers first, deadlines, reminders, lanes that ask."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from cadenza.core.events import RequestOpened, RequestReminded
from cadenza.errors import Conflict, InputRefused
from cadenza.testing import FrozenClock, MemoryJournal
from tests.agents.stage import CHAT, Stage, ask, call, complete, go, results
from tests.agents.test_maestro_cases import OFF, SPIN, other


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path, tmp_path / "journal.sqlite")


async def asked(stage: Stage, script: list[Any], piece: str = CHAT, **options: Any) -> Any:
    result = await stage.play(piece, script, **options)
    assert result.status == "waiting_human"
    return result


# -- what an answer must be -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "good", "bad"),
    [
        (ask("Which?"), "blue", {"colour": "blue"}),
        (ask("Which?", choices=["red", "blue"]), "blue", "green"),
        (call("spin_off_task", **OFF), {"approved": True, "note": "go"}, "yes"),
        (call("spin_off_task", **OFF), {"approved": False}, {"approved": "no"}),
    ],
    ids=["text", "choice", "approved", "declined"],
)
async def test_an_answer_is_held_against_its_schema_before_anything_moves(
    stage: Stage, question: Any, good: Any, bad: Any
) -> None:
    piece = SPIN
    script = [question, complete("ok"), {"movement": "talk", **complete("child")}]
    async with stage.engine(script) as engine:
        other(stage, engine)
        run = await engine.start(stage.piece(piece), "Do", cwd=stage.folder)
        (request,) = (await run.result()).requests
        seq = engine.journal.run(run.id).seq
        with pytest.raises(InputRefused):
            await engine.answer(request.id, bad)
        assert engine.journal.run(run.id).seq == seq
        assert (await engine.answer(request.id, good)).result == "accepted"
        assert (await run.result()).status == "completed"


async def test_an_answer_without_an_id_is_refused_when_several_are_open(stage: Stage) -> None:
    result = await asked(stage, [{"movement": name, **ask(name)} for name in ("left", "right")], LANES)
    async with stage.engine([]) as engine:
        with pytest.raises(Conflict, match="waits for 2 answers"):
            engine.service.answer_run(result.run, "yes")
        assert len(engine.journal.requests(run=result.run)) == 2


# -- who is first -----------------------------------------------------------------------------------------


async def test_of_two_deciders_one_counts_the_same_again_is_equal_another_is_a_conflict(stage: Stage) -> None:
    result = await asked(stage, [ask()])
    (request,) = result.requests
    async with stage.engine([complete("ok")]) as engine:
        decide = engine.service.answer
        made = await asyncio.gather(*(asyncio.to_thread(decide, request.id, f"answer {n}") for n in range(8)))
        assert sorted(one.result for one in made) == ["accepted"] + ["conflict"] * 7
        (first,) = {one.request.value for one in made}
        assert decide(request.id, first).result == "equal"


async def test_a_decision_for_a_cancelled_run_is_late(stage: Stage) -> None:
    result = await asked(stage, [ask()])
    (request,) = result.requests
    async with stage.engine([]) as engine:
        await (await engine.cancel(result.run)).result()
        decision = engine.service.answer(request.id, "blue")
    assert (decision.result, decision.request.closed_reason) == ("late", "cancelled")


async def test_a_screen_that_was_solved_before_the_park_is_committed_wakes_the_run_at_once(
    stage: Stage,
) -> None:
    from tests.agents.test_maestro_cases import SCREEN, browser

    tool = browser()
    journal = MemoryJournal()
    late = Stage(stage.folder, journal)

    def browse(arguments: Any, context: Any) -> Any:
        made = tool.execute(arguments, context)  # type: ignore[misc]
        if context.decision is None:
            journal.resolve_screen(context.screen, {"solved": True}, at=1.0, actor="ann")
        return made

    from cadenza.tools.base import Tool

    result = await late.play(SCREEN, [call("browse"), complete("read")], tools=[Tool(tool.spec, browse)])
    assert (result.status, result.output) == ("completed", "read")


# -- deadlines and reminders ------------------------------------------------------------------------------

TIMED = CHAT.replace(
    "name: chat\n", "name: chat\n    requests: {deadline: 60, on_deadline: %s, remind: 20}\n"
)


@pytest.mark.parametrize("policy", ["resume", "abort"])
async def test_a_deadline_resumes_with_a_note_or_aborts_and_a_late_answer_is_refused(
    tmp_path: Path, policy: str
) -> None:
    clock = FrozenClock()
    stage = Stage(tmp_path, MemoryJournal(clock=clock))
    stage.clock = clock
    result = await asked(stage, [ask()], TIMED % policy)
    (request,) = result.requests
    assert request.deadline == pytest.approx(clock() + 60, abs=1)
    clock.advance(61)
    async with stage.engine([ask(), complete("alone")]) as engine:
        late = engine.service.answer(request.id, "too late")  # nobody has swept yet
        assert late.result == "expired"
        await engine.worker.serve(until_idle=True)
        row = engine.journal.run(result.run)
        assert engine.service.answer(request.id, "too late").result == "expired"
    if policy == "abort":
        assert (row.status, row.reason) == ("aborted", "deadline")
    else:
        assert row.status == "completed"
        assert "Nobody answered in time" in results(stage)[-1]


async def test_reminders_are_events_and_the_request_stays_open(tmp_path: Path) -> None:
    clock = FrozenClock()
    stage = Stage(tmp_path, MemoryJournal(clock=clock))
    stage.clock = clock
    result = await asked(stage, [ask()], TIMED % "resume")
    async with stage.engine([]) as engine:
        for _ in range(2):
            clock.advance(20.5)
            await engine.worker.serve(until_idle=True)
        reminded = [
            r.event for r in engine.journal.events(result.run) if isinstance(r.event, RequestReminded)
        ]
        assert [event.count for event in reminded] == [1, 2]
        (request,) = engine.journal.requests(run=result.run)
        assert (request.status, request.reminders) == ("open", 2)


async def test_without_a_deadline_a_request_waits_for_ever(stage: Stage) -> None:
    result = await asked(stage, [ask()])
    async with stage.engine([]) as engine:
        assert engine.journal.run(result.run).wake_at is None


# -- lanes ------------------------------------------------------------------------------------------------

LANES = """
    cadenza: 1
    name: lanes
    movements:
      - name: review
        parallel:
          - {name: left, instruction: Left., rules: [{condition: fine}, {condition: bad}]}
          - {name: right, instruction: Right., rules: [{condition: fine}, {condition: bad}]}
        rules: [{condition: all("fine"), next: report}, {condition: any("bad"), next: review}]
      - {name: report, instruction: Report.}
"""


async def test_lanes_park_alone_their_cards_are_open_at_once_and_only_unanswered_ones_stay(
    stage: Stage,
) -> None:
    script = [
        {"movement": "left", **ask("left?")},
        {"movement": "right", **ask("right?")},
        {"movement": "left", **complete("l", label="fine")},
        {"movement": "right", **complete("r", label="fine")},
        {"movement": "report", **complete("both fine")},
    ]
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(LANES), "Do", cwd=stage.folder)
        first = await run.result()
        assert {request.lane for request in first.requests} == {"left", "right"}
        assert len({request.id for request in first.requests}) == 2
        left = next(request for request in first.requests if request.lane == "left")
        await engine.answer(left.id, "l!")
        second = await run.result()
        assert [request.lane for request in second.requests] == ["right"]
        await engine.answer(second.requests[0].id, "r!")
        result = await run.result()
        opened = [r.event for r in engine.journal.events(run.id) if isinstance(r.event, RequestOpened)]
    assert (result.status, result.output) == ("completed", "both fine")
    assert len(opened) == 2
    assert "all parallel" not in (result.message or "")


async def test_a_lane_goes_on_while_another_waits(stage: Stage) -> None:
    script = [
        {"movement": "left", **ask("left?")},
        {"movement": "right", **call("list_dir")},
        {"movement": "right", **complete("r", label="fine")},
    ]
    await asked(stage, script, LANES)
    assert [request.movement for request in stage.requests].count("right") == 2


async def test_in_a_lane_moving_on_is_refused_and_the_label_must_be_one_of_its_own(stage: Stage) -> None:
    script = [
        {"movement": "left", **complete("l", label="excellent")},
        {"movement": "left", **go("report")},
        {"movement": "left", **complete("l", label="fine")},
        {"movement": "right", **complete("r", label="fine")},
        {"movement": "report", **complete("ok")},
    ]
    result = await stage.play(LANES, script)
    assert result.status == "completed"
    left = [request for request in stage.requests if request.movement == "left"][-1]
    told = [message.content for message in left.messages if message.role == "tool"]
    assert "The label must be one of: fine, bad." in told[0]
    assert "cannot move on" in told[1]


async def test_an_aborted_lane_is_a_failed_lane_and_the_others_count(stage: Stage) -> None:
    script = [
        {"movement": "left", **complete("cannot", "aborted")},
        {"movement": "right", **complete("r", label="bad")},
        {"purpose": "rules", "json": {"rule": None}},
        {"movement": "left", **complete("l", label="fine")},
        {"movement": "right", **complete("r", label="fine")},
        {"movement": "report", **complete("second time")},
    ]
    result = await stage.play(LANES, script)
    assert (result.status, result.output) == ("completed", "second time")


# -- tools and packages -----------------------------------------------------------------------------------


@pytest.mark.parametrize("approved", [True, False])
async def test_an_approved_tool_can_be_used_and_a_declined_one_is_not_asked_for_twice(
    stage: Stage, approved: bool
) -> None:
    text = CHAT.replace("rules: []", "allowed_tools: [request_tool, read_file]")
    want = call("request_tool", name="write_file", reason="to write")
    use = call("use_tool", name="write_file", arguments={"path": "x", "content": "y"})
    script = [use, want, want, use, complete("ok")]
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(text), "Do", cwd=stage.folder, permission="acceptEdits")
        (request,) = (await run.result()).requests
        assert engine.service.decide(request.id, approved=approved, note="fine").result == "accepted"
        result = await engine.play(run.id).result()
        cards = engine.journal.requests(run=run.id, status=("open", "decided", "closed"))
    assert (result.status, len(cards)) == ("completed", 1)
    said = results(stage)
    assert (stage.folder / "x").exists() is approved
    if approved:
        assert "Granted." in said[1]
        assert "yours already" in said[2]
    else:
        assert said[1] == said[2]
        assert "declined. fine" in said[1]
    assert len({repr(request.tools) for request in stage.requests}) == 1


async def test_an_approved_package_is_really_installed_in_the_run_s_own_environment(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    make_wheel(wheels)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    text = CHAT.replace(
        "rules: []", "allowed_tools: [request_package, run_command]\n        allowed_commands: [python]"
    )
    script = [
        call("request_package", name="tinything", reason="to test"),
        call("run_command", argv=["python", "-c", "import tinything; print(tinything.SAID)"]),
        complete("ok"),
    ]
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(text), "Do", cwd=stage.folder, permission="acceptEdits")
        (request,) = (await run.result()).requests
        engine.service.decide(request.id, approved=True)
        result = await engine.play(run.id).result()
    assert result.status == "completed"
    said = results(stage)
    assert "Installed: tinything" in said[0]
    assert said[1].strip() == "hello from a package"


def make_wheel(folder: Path) -> None:
    """A package with one module, as an installer takes it."""
    import zipfile

    info = "tinything-1.0.dist-info"
    with zipfile.ZipFile(folder / "tinything-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tinything.py", "SAID = 'hello from a package'\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tinything\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(
            f"{info}/RECORD", f"tinything.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )


async def test_a_package_that_is_no_name_is_refused_after_approval_and_nothing_is_installed(
    stage: Stage,
) -> None:
    text = CHAT.replace("rules: []", "allowed_tools: [request_package]")
    script = [call("request_package", name="git+https://x/y", reason="r"), complete("ok")]
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(text), "Do", cwd=stage.folder, permission="acceptEdits")
        (request,) = (await run.result()).requests
        engine.service.decide(request.id, approved=True)
        result = await engine.play(run.id).result()
    assert result.status == "completed"
    assert "is no package name" in results(stage)[0]
    assert not list(stage.folder.glob(".cadenza/environments/*/ready"))


def test_an_index_serves_the_screens(stage: Stage) -> None:
    from cadenza.journal import open_journal

    path = stage.folder / "journal.sqlite"
    open_journal(path).close()
    with sqlite3.connect(path) as connection:
        names = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'")
        }
    assert "requests_screen" in names
