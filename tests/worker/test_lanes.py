"""A bug in one lane is that lane's failure, and nobody else's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cadenza.core import events as ev
from cadenza.core.movements.playing import play
from cadenza.core.movements.three.agent import work_and_report
from cadenza.core.performance import Lanes, Performance, guarded
from cadenza.core.signals import Signal
from cadenza.core.teams import part_prompt
from cadenza.core.visit import Visit
from cadenza.journal.memory import MemoryJournal
from tests.worker.helpers import Behaving, completed, engine_on, kinds_with, of, piece_in, saying

LANES = """
name: lanes
max_movements: 3
movements:
  - name: review
    parallel:
      - {name: a, instruction_template: look, rules: [{condition: ok}, {condition: bad}]}
      - {name: b, instruction_template: look, rules: [{condition: ok}, {condition: bad}]}
    rules:
      - {condition: 'all("ok")', next: ABORT}
      - {condition: 'any("ok")', next: COMPLETE}
"""


def raising_for(name: str, whole: Any) -> Any:
    """``whole``, with a bug that shows after the lane's first outcome."""

    def work(visit: Visit, *rest: Any, **named: Any) -> Performance[Any]:
        result = yield from whole(visit, *rest, **named)
        if visit.movement.name == name:
            raise KeyError("a bug in lane a")
        return result

    return work


def says_ok(request: Any) -> str:
    return '{"step": 1, "rule": 0}' if request.purpose == "rules" else "fine [STEP:0]"


@pytest.mark.parametrize("phases", ["single", "three"])
async def test_a_lane_with_a_bug_fails_and_the_others_count(
    phases: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = "cadenza.core.movements"
    monkeypatch.setattr(f"{kinds}.parallel.play", raising_for("a", play))
    monkeypatch.setattr(f"{kinds}.three.parallel.work_and_report", raising_for("a", work_and_report))
    journal = MemoryJournal()
    async with engine_on(journal, Behaving(says_ok)) as engine:
        run = await engine.start(piece_in(tmp_path, LANES), "x", cwd=tmp_path, phases=phases)
        result = await run.result()
        assert (result.status, result.message) == ("completed", 'any("ok")')
    (ended,) = of(ev.VisitEnded, journal, run.id)
    assert [(lane.name, lane.label) for lane in ended.signal.lanes] == [("a", None), ("b", "ok")]
    assert ended.signal.lanes[0].error == "KeyError: 'a bug in lane a'"
    assert journal.verify() == []


TEAM = """
name: team
max_movements: 3
movements:
  - name: split
    instruction_template: split it
    team_leader: {max_parts: 2}
    rules: [{condition: done, next: COMPLETE}]
"""
PLAN = """{"parts": [{"id": "1", "title": "One", "instruction": "one"},
                     {"id": "2", "title": "Two", "instruction": "two"}]}"""


async def test_a_part_of_a_team_with_a_bug_is_a_failed_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(part: Any, *rest: Any) -> str:
        if part.id == "1":
            raise KeyError("a bug in part 1")
        return part_prompt(part, *rest)

    monkeypatch.setattr("cadenza.core.movements.team_leader.part_prompt", broken)

    def answer(request: Any) -> str:
        if request.purpose == "rules":
            return '{"rule": 0}'
        if request.movement == "split.2":
            return "Two is done."
        return PLAN if len(request.messages) <= 2 else '{"done": true, "parts": []}'

    async with engine_on(MemoryJournal(), Behaving(answer)) as engine:
        run = await engine.start(piece_in(tmp_path, TEAM), "x", cwd=tmp_path)
        result = await run.result()
        assert result.status == "completed"
    assert "[ERROR] KeyError: 'a bug in part 1'" in (result.output or "")
    assert "Two is done." in (result.output or "")


@pytest.mark.parametrize("guard", [True, False])
async def test_lanes_of_a_kind_of_one_s_own(guard: bool, tmp_path: Path) -> None:
    """Who guards them gets a result for each; who does not has a movement that broke."""

    def lane(visit: Visit, name: str) -> Performance[str]:
        yield visit.call("call", f"hi {name}")
        if name == "a":
            raise KeyError("a bug in lane a")
        return "fine"

    def perform(visit: Visit) -> Performance[Signal]:
        lanes = {name: lane(visit, name) for name in ("a", "b")}
        if guard:
            lanes = {name: guarded(each, lambda words: words) for name, each in lanes.items()}
        found: list[str] = yield Lanes(lanes)
        return completed(" and ".join(found))

    journal = MemoryJournal()
    async with engine_on(journal, saying("x"), kinds=kinds_with(perform)) as engine:
        run = await engine.start(piece_in(tmp_path, mine=["plan"]), "x", cwd=tmp_path)
        result = await run.result()
    if guard:
        assert (result.status, result.message) == ("completed", "KeyError: 'a bug in lane a' and fine")
    else:
        assert (result.status, result.reason) == ("error", "movement_broken")
        assert "KeyError: 'a bug in lane a'" in (result.message or "")
    assert journal.verify() == []
