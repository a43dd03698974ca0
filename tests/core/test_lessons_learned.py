"""What users of comparable engines hit, on a bare conductor: the tests that ``docs/lessons.md`` names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from cadenza.core import events as ev
from cadenza.core.conductor import Conductor
from cadenza.core.demands import CallModel, CallTool
from cadenza.core.outcomes import AnyOutcome, Failed, Replied, Returned, Usage
from cadenza.core.state import RunState
from cadenza.ids import text_hash
from cadenza.piece.model import CommandGate, LoadedPiece
from tests.core.play import Play, write_piece
from tests.core.test_teams_and_arpeggios import arpeggio, more, parts, piece_of, team

LANES = """
name: lanes
phases: three
max_movements: 4
movements:
  - name: review
    parallel:
      - {name: a, instruction: look, rules: [{condition: ok}]}
      - {name: b, instruction: look, rules: [{condition: ok}]}
      - {name: c, instruction: look, rules: [{condition: ok}]}
    rules: [{condition: 'all("ok")', next: COMPLETE}, {condition: 'any("ok")', next: ABORT}]
"""


class Restarting(Play):
    """A play in which every step is taken by a new process: a stored state, and a conductor that knows
    nothing."""

    def take(self, step: Any) -> None:
        super().take(step)
        self.state = msgspec.json.decode(msgspec.json.encode(self.state), type=RunState)
        self.conductor = Conductor(self.piece)


def asking_lanes(folder: Path) -> Restarting:
    """Lanes a and b have asked a person, c is done."""
    asked: set[str] = set()

    def reply(call: CallModel, prompt: str) -> str | AnyOutcome:
        if call.movement in "ab" and call.movement not in asked:
            asked.add(call.movement)
            return Replied(text=text_hash(call.movement), usage=Usage(), blocked=True)
        return f"{call.movement} is fine"

    play = Restarting(write_piece(folder, LANES), reply, folder)
    play.texts.update({text_hash(lane): lane for lane in "ab"})
    play.run()
    return play


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_lanes_that_ask_are_answered_one_by_one_and_nothing_finished_runs_again(
    tmp_path: Path, order: str
) -> None:
    play = asking_lanes(tmp_path)
    assert play.state.status == "waiting_human"
    by_lane = {play.texts[request.question]: request.id for request in play.state.requests.values()}
    assert sorted(by_lane) == ["a", "b"]
    assert len(set(by_lane.values())) == 2
    first, second = order[0], order[1]
    play.send(ev.RequestDecided(id=by_lane[first], value="go on"))
    play.run()
    assert list(play.state.requests) == [by_lane[second]]  # the other question is still the same one
    assert [call.movement for call, _ in play.calls] == ["a", "b", "c", first]
    play.send(ev.RequestDecided(id=by_lane[second], value="go on"))
    play.run()
    assert [call.movement for call, _ in play.calls] == ["a", "b", "c", first, second]
    assert [lane.label for lane in play.signals[0].lanes] == ["ok"] * 3
    assert (play.state.status, play.path) == ("completed", ["review"])


def test_a_question_s_id_follows_from_the_run_and_not_from_its_place(tmp_path: Path) -> None:
    ids = [
        tuple(asking_lanes(folder).state.requests)
        for folder in (tmp_path / "1", tmp_path / "2")
        if make(folder)
    ]
    assert ids[0] == ids[1]  # the same seed: replayed, it is the same question
    assert not {id for id in ids[0] if "review" in id or id in ("a", "b")}


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder


REPORTING = """
name: reporting
phases: three
movements:
  - name: review
    parallel:
      - name: a
        instruction: look
        output_contracts: {report: [{name: a.md, format: "# A"}]}
        rules: [{condition: ok}]
      - {name: b, instruction: look, rules: [{condition: ok}]}
    rules: [{condition: 'all("ok")', next: COMPLETE}]
"""


def test_a_report_that_fails_in_a_lane_does_not_stand_in_the_way_of_the_others(tmp_path: Path) -> None:
    def reply(call: CallModel, prompt: str) -> str | AnyOutcome:
        return Failed(code="internal", message="down") if call.purpose == "report" else "fine"

    play = Play(write_piece(tmp_path, REPORTING), reply, tmp_path).run()
    assert play.state.status == "completed"
    warned = [e for e in play.events if isinstance(e, ev.Warned)]
    assert [(w.code, "a.md" in w.message, "down" in w.message) for w in warned] == [
        ("report_missing", True, True)
    ]


QUOTING = """
name: quoting
phases: three
movements:
  - name: plan
    instruction: plan
    output_contracts: {report: [{name: plan.md, format: "# P"}]}
    rules: [{condition: planned, next: build}]
  - name: build
    instruction: "build {report:plan.md}, not {report:other.md}"
    rules: [{condition: built, next: COMPLETE}]
"""


def test_a_retried_run_finds_its_earlier_reports(tmp_path: Path) -> None:
    down = [Failed(code="auth", message="no key")]

    def reply(call: CallModel, prompt: str) -> str | AnyOutcome:
        if call.movement == "build" and down:
            return down.pop()
        return "THE PLAN" if call.purpose == "report" else "done"

    play = Play(write_piece(tmp_path, QUOTING), reply, tmp_path).run()
    assert play.state.ended is not None
    play.send(ev.RetryRequested())
    play.run()
    assert play.state.status == "completed"
    assert "build THE PLAN, not (report other.md has not been written yet)" in play.prompts("build")[-1]
    assert len(list((tmp_path / ".takt" / "runs").glob("2*"))) == 1


def test_a_leader_that_is_done_early_still_gets_every_part(tmp_path: Path) -> None:
    from cadenza.piece.model import TeamLeader

    loaded = piece_of("three", {}, kind="team_leader", team_leader=TeamLeader(refill_threshold=3))
    play = Play(loaded, team(lambda id: f"did {id}", [parts("1", "2", "3"), more()]), tmp_path).run()
    output = play.texts[play.signals[0].output]
    assert [f"did {id}" in output for id in "123"] == [True] * 3


def big_team(folder: Path, kind: type[Play]) -> Play:
    from cadenza.piece.model import TeamLeader

    loaded = piece_of("three", {}, kind="team_leader", team_leader=TeamLeader(max_parts=2))
    leader = [parts("1", "2"), more("3", "4"), more("5"), more()]
    return kind(loaded, team(lambda id: f"did {id}", leader), folder)


def long_table(folder: Path, kind: type[Play]) -> Play:
    return kind(arpeggio(folder, batch_size=1, concurrency=2), lambda call, prompt: prompt, folder)


@pytest.mark.parametrize("begin", [big_team, long_table])
def test_queued_work_outlives_every_restart(tmp_path: Path, begin: Any) -> None:
    plain, restarted = begin(make(tmp_path / "1"), Play), begin(make(tmp_path / "2"), Restarting)
    most = 0
    while restarted.state.ended is None:
        lanes = [d for d in restarted.state.met_by_worker if d.lane]
        most = max(most, len(lanes))
        opened = restarted.state.met_by_worker[0]
        outcome = restarted.meet(opened.demand)
        restarted.take(
            restarted.conductor.resolve(restarted.state, opened.id, outcome, restarted.now, restarted.texts)
        )
    plain.run()
    assert most == 2  # as many at once as before
    made = [[e.key for e in p.events if isinstance(e, ev.DemandIssued)] for p in (plain, restarted)]
    assert made[0] == made[1]
    assert (restarted.state.status, plain.state.status) == ("completed", "completed")


def gated(folder: Path, phases: str, where: Literal["lane", "parent"]) -> LoadedPiece:
    """LANES with a command gate on lane a, or on the parent."""
    loaded = write_piece(folder, LANES.replace("phases: three", f"phases: {phases}"))
    gates = (CommandGate(command="make test"),)
    (review,) = loaded.piece.movements
    if where == "parent":
        review = review.changed(command_gates=gates)
    else:
        review = review.changed(lanes=(review.lanes[0].changed(command_gates=gates), *review.lanes[1:]))
    return loaded.changed(piece=loaded.piece.changed(movements=(review,)))


class Gated(Play):
    """A play in which the first command fails and the others succeed."""

    codes = (2, 0, 0, 0)

    def meet(self, demand: Any) -> AnyOutcome:
        if isinstance(demand, CallTool):
            code, *self.codes = self.codes  # type: ignore[assignment]
            return Returned({"exit_code": code, "output": "2 tests failed"})
        return super().meet(demand)


def fine(call: CallModel, prompt: str) -> str:
    if call.purpose == "rules":
        return json.dumps({"rule": 0, "step": 1, "reason": "r"})
    return "fine [STEP:0]"


@pytest.mark.parametrize("phases", ["single", "three"])
def test_a_lane_that_does_not_pass_its_gate_has_failed(tmp_path: Path, phases: str) -> None:
    play = Gated(gated(tmp_path, phases, "lane"), fine, tmp_path).run()
    lanes = play.signals[0].lanes
    assert [lane.label for lane in lanes] == [None, "ok", "ok"]
    assert "2 tests failed" in (lanes[0].error or "")
    assert play.state.status == "aborted"


@pytest.mark.parametrize("phases", ["single", "three"])
def test_a_parallel_movement_s_gate_performs_all_lanes_anew(tmp_path: Path, phases: str) -> None:
    play = Gated(gated(tmp_path, phases, "parent"), fine, tmp_path).run()
    assert play.path == ["review", "review"]
    assert [call.movement for call, _ in play.calls if call.purpose == "perform"] == ["a", "b", "c"] * 2
    assert "2 tests failed" in play.prompts("b")[1]
    assert play.state.status == "completed"
