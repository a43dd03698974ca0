"""Team leaders, arpeggios and command gates on a bare conductor (pieces built in Python)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from cadenza.core import events as ev
from cadenza.core.demands import CallModel, CallTool, WaitUntil
from cadenza.core.outcomes import AnyOutcome, Failed, Returned
from cadenza.ids import text_hash
from cadenza.piece.model import Arpeggio, CommandGate, LoadedPiece, Movement, Piece, Rule, TeamLeader
from tests.core.play import Play, Reply, scripted

Mode = Literal["single", "three"]
BOTH = pytest.mark.parametrize("phases", ["single", "three"])


def piece_of(phases: Mode, texts: dict[str, str], **movement: Any) -> LoadedPiece:
    instruction = "split {task}"
    rules = (Rule(condition="done", next="COMPLETE"),)
    first = Movement(name="work", instruction=text_hash(instruction), rules=rules, **movement)
    piece = Piece(name="p", phases=phases, initial_movement="work", movements=(first,))
    return LoadedPiece(piece=piece, texts={text_hash(instruction): instruction, **texts}, path="p")


def parts(*ids: str, timeout: int | None = None) -> str:
    made = [
        {"id": i, "title": f"T {i}", "instruction": f"do {i} {{task}}", "timeout_ms": timeout} for i in ids
    ]
    return json.dumps({"parts": made})


def more(*ids: str) -> str:
    return json.dumps({"done": not ids, "reasoning": "r", **json.loads(parts(*ids))})


def team(replies: Callable[[str], str | AnyOutcome], leader: list[str]) -> Reply:
    """The leader's answers in order; parts by their id; any judge says the first rule."""
    left = list(leader)

    def reply(call: CallModel, prompt: str) -> str | AnyOutcome:
        if call.purpose == "rules":
            return json.dumps({"rule": 0, "reason": "r"})
        if call.movement == "work":
            return left.pop(0)
        return replies(call.movement.removeprefix("work."))

    return reply


@BOTH
def test_parts_are_worked_off_and_refilled(tmp_path: Path, phases: Mode) -> None:
    loaded = piece_of(phases, {}, kind="team_leader", team_leader=TeamLeader(refill_threshold=2))
    leader = [parts("1", "2", "3"), more("4", "5"), more("6", "7"), more()]
    play = Play(loaded, team(lambda id: f"did {id}", leader), tmp_path, task="it {x}").run()
    assert play.state.status == "completed"
    called = [call.movement for call, _ in play.calls if call.movement != "work"]
    assert sorted(called) == [f"work.{i}" for i in range(1, 8)]
    output = play.texts[play.signals[0].output]
    assert output.startswith("## decomposition\n")
    assert [f"## {i}: T {i}\ndid {i}" in output for i in range(1, 8)] == [True] * 7
    part = play.prompts("work.1")[0]
    assert "do 1 {task}" in part  # data is never a template
    assert "it {x}" in part


def test_no_more_than_max_parts_are_worked_on_at_once(tmp_path: Path) -> None:
    loaded = piece_of("three", {}, kind="team_leader", team_leader=TeamLeader(max_parts=2))
    play = Play(loaded, team(lambda id: id, [parts("1", "2"), more()]), tmp_path)
    most = 0
    while play.state.ended is None:
        working = [d for d in play.state.met_by_worker if d.lane.startswith("part-")]
        most = max(most, len(working))
        opened = play.state.met_by_worker[0]
        play.take(
            play.conductor.resolve(play.state, opened.id, play.meet(opened.demand), play.now, play.texts)
        )
    assert most == 2


def test_a_part_that_fails_is_a_result_and_all_failed_parts_fail_the_movement(tmp_path: Path) -> None:
    loaded = piece_of("three", {}, kind="team_leader", team_leader=TeamLeader())
    down = Failed(code="timeout", message="no answer within 5 seconds")
    one = Play(
        loaded, team(lambda id: down if id == "1" else "ok", [parts("1", "2"), more()]), tmp_path
    ).run()
    assert "[ERROR] no answer within 5 seconds" in one.texts[one.signals[0].output]
    everything = Play(loaded, team(lambda id: down, [parts("1", "2"), more()]), tmp_path).run()
    assert everything.state.ended is not None
    assert everything.state.ended.reason == "movement_failed"


def test_a_plan_that_cannot_be_used_is_sent_back_once(tmp_path: Path) -> None:
    loaded = piece_of("three", {}, kind="team_leader", team_leader=TeamLeader())
    play = Play(loaded, team(lambda id: id, [parts("1", "1"), parts("1", "2"), more()]), tmp_path).run()
    assert play.state.status == "completed"
    assert "'1'" in play.prompts("work")[1] or "1" in play.prompts("work")[1]
    twice = Play(loaded, team(lambda id: id, [parts("1", "1"), "no plan"]), tmp_path).run()
    assert twice.state.ended is not None
    assert "plan cannot be used" in twice.state.ended.message


def test_only_known_ids_stop_the_planning(tmp_path: Path) -> None:
    loaded = piece_of("three", {}, kind="team_leader", team_leader=TeamLeader())
    play = Play(loaded, team(lambda id: id, [parts("1"), more("1")]), tmp_path).run()
    assert play.state.status == "completed"
    assert [call.movement for call, _ in play.calls].count("work.1") == 1


def test_a_part_s_time_limit_travels_with_its_call(tmp_path: Path) -> None:
    loaded = piece_of("three", {}, kind="team_leader", team_leader=TeamLeader(timeout=7))
    play = Play(loaded, team(lambda id: id, [parts("1", timeout=2500), more("2"), more()]), tmp_path).run()
    limits = {call.movement: call.timeout for call, _ in play.calls}
    assert (limits["work.1"], limits["work.2"]) == (2.5, 7.0)


CSV = "name,age\r\n" + "".join(f'"n{i}, x",{i}\n' for i in range(1, 6))
TEMPLATE = "batch {batch_index}/{total_batches}: {line:1}"


def arpeggio(tmp_path: Path, phases: Mode = "three", **score: Any) -> LoadedPiece:
    (tmp_path / "data.csv").write_text(CSV, encoding="utf-8")
    made = Arpeggio(source=str(tmp_path / "data.csv"), template=text_hash(TEMPLATE), **score)
    return piece_of(phases, {text_hash(TEMPLATE): TEMPLATE}, kind="arpeggio", arpeggio=made)


@BOTH
def test_case_25_batches_are_merged_in_order_though_they_end_in_reverse(tmp_path: Path, phases: Mode) -> None:
    loaded = arpeggio(tmp_path, phases, batch_size=2, concurrency=3, output=str(tmp_path / "out.txt"))

    def reply(call: CallModel, prompt: str) -> str:
        return (
            json.dumps({"rule": 0, "reason": "", "matched_index": 1}) if call.purpose == "rules" else prompt
        )

    play = Play(loaded, reply, tmp_path)
    while play.state.ended is None:
        opened = play.state.met_by_worker[-1]  # the last one first
        play.take(
            play.conductor.resolve(play.state, opened.id, play.meet(opened.demand), play.now, play.texts)
        )
    assert play.state.status == "completed"
    assert [call.purpose for call, _ in play.calls].count("perform") == 3
    merged = play.texts[play.signals[0].output]
    assert [line for line in merged.splitlines() if line.startswith("batch")] == [
        "batch 0/3: name: n1, x",
        "batch 1/3: name: n3, x",
        "batch 2/3: name: n5, x",
    ]
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == merged


def test_case_25_a_batch_that_fails_three_times_fails_the_movement(tmp_path: Path) -> None:
    loaded = arpeggio(tmp_path, batch_size=2, concurrency=3, max_retries=2, retry_delay=0.5)

    def reply(call: CallModel, prompt: str) -> str | AnyOutcome:
        return Failed(code="agent_error", message="nope") if prompt.startswith("batch 1/") else "ok"

    play = Play(loaded, reply, tmp_path).run()
    assert play.state.ended is not None
    assert play.state.ended.reason == "movement_failed"
    assert "1" in play.state.ended.message
    assert "nope" in play.state.ended.message
    waits = [
        e.demand for e in play.events if isinstance(e, ev.DemandIssued) and isinstance(e.demand, WaitUntil)
    ]
    assert [wait.seconds for wait in waits] == [0.5, 0.5]
    assert [prompt.startswith("batch 1/") for _, prompt in play.calls].count(True) == 3


def test_a_table_that_cannot_be_used_fails_the_movement_and_a_missing_one_holds_the_run(
    tmp_path: Path,
) -> None:
    loaded = arpeggio(tmp_path)
    (tmp_path / "data.csv").write_text("only,header\n", encoding="utf-8")
    play = Play(loaded, scripted(), tmp_path).run()
    assert play.state.ended is not None
    assert "CSV file has no data rows" in play.state.ended.message


@BOTH
def test_a_gate_that_is_not_passed_performs_the_movement_anew_and_says_why(
    tmp_path: Path, phases: Mode
) -> None:
    gates = (CommandGate(command="make test", name="tests", timeout=5),)
    loaded = piece_of(phases, {}, command_gates=gates)
    codes = [1, 0]

    class Gated(Play):
        def meet(self, demand: Any) -> AnyOutcome:
            if isinstance(demand, CallTool):
                assert (demand.effect, demand.arguments["command"]) == ("idempotent", "make test")
                return Returned({"exit_code": codes.pop(0), "output": "2 tests failed {task}"})
            return super().meet(demand)

    said = json.dumps({"rule": 0, "reason": ""})
    reply = scripted(("work", "one"), ("work", "two"), ("work", "rules", said))
    play = Gated(loaded, reply, tmp_path).run()
    assert play.state.status == "completed"
    starts = [e for e in play.events if isinstance(e, ev.VisitStarted)]
    assert [s.cause for s in starts] == ["start", "gate"]
    assert [s.consecutive for s in starts] == [1, 2]
    again = play.prompts("work")[1]
    assert "2 tests failed {task}" in again
    assert "tests" in again
    assert play.state.user_inputs == ()


def test_an_answer_survives_a_gate_and_a_gate_s_note_is_never_an_answer(tmp_path: Path) -> None:
    rules = (
        Rule(condition="done", next="COMPLETE"),
        Rule(condition="ask", next="work", requires_user_input=True),
    )
    loaded = piece_of("single", {}, command_gates=(CommandGate(command="check"),))
    movement = loaded.piece.movements[0].changed(rules=rules)
    loaded = loaded.changed(piece=loaded.piece.changed(movements=(movement,)))
    codes = [0, 1, 0]

    class Gated(Play):
        def meet(self, demand: Any) -> AnyOutcome:
            if isinstance(demand, CallTool):
                return Returned({"exit_code": codes.pop(0), "output": "RED"})
            return super().meet(demand)

    replies = scripted(("work", "which? [STEP:1]"), ("work", "[STEP:0]"), ("work", "[STEP:0]"))
    play = Gated(loaded, replies, tmp_path).run()
    play.answer("HUMAN")
    play.run()
    assert [e.cause for e in play.events if isinstance(e, ev.VisitStarted)] == ["start", "answer", "gate"]
    last = play.prompts("work")[2]
    assert "## The user's answer\nHUMAN\n\n## Why this is done again\n" in last
    assert "RED" in last
    assert play.state.status == "completed"
