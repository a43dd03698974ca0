"""The corpus's own fixtures with their own scenarios, unchanged, in ``phases: three``.

Each row is a pair of files as TAKT's end-to-end tests use it: the path that the run takes, how it ends,
and the rule of each visit with the stage that found it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from cadenza import Engine, RunResult
from cadenza.core import events as ev
from cadenza.core.outcomes import Failed
from cadenza.errors import PieceError
from cadenza.providers.models.scripted import ScriptedProvider, load_script

CORPUS = os.environ.get("CADENZA_CORPUS")
pytestmark = pytest.mark.skipif(
    CORPUS is None, reason="CADENZA_CORPUS names no folder with the corpus of real pieces"
)
FIXTURES = Path(CORPUS or ".") / "takt-0.28" / "e2e" / "fixtures"


class Pair(NamedTuple):
    """A piece and a scenario, and what comes of them."""

    piece: str
    scenario: str
    path: tuple[str, ...]
    end: tuple[str, str]
    rules: tuple[int | None, ...]
    methods: tuple[str | None, ...]


PLANNED, LOOKED = "auto_select", "aggregate"
PAIRS = (
    Pair(
        *("mock-max-iter", "max-iter-loop", ("step-a", "step-b"), ("aborted", "max_movements")),
        *((0, 0), (PLANNED, PLANNED)),
    ),
    Pair(
        *("mock-two-step", "two-step-done", ("step-1", "step-2"), ("completed", "complete")),
        *((0, 0), (PLANNED, PLANNED)),
    ),
    Pair(
        *("mock-single-step", "execute-done", ("execute",), ("completed", "complete")),
        *((0,), (PLANNED,)),
    ),
    Pair(
        *("multi-step-parallel", "multi-step-all-approved", ("plan", "review"), ("completed", "complete")),
        *((0, 0), (PLANNED, LOOKED)),
    ),
    Pair(
        *("multi-step-parallel", "multi-step-needs-fix", ("plan", "review", "fix", "review")),
        *(("completed", "complete"), (0, 1, 0, 0), (PLANNED, LOOKED, PLANNED, LOOKED)),
    ),
    Pair(
        *("team-leader-refill-threshold", "team-leader-refill-threshold", ("execute",)),
        *(("completed", "complete"), (0,), (PLANNED,)),
    ),
    # No text of TAKT's default answers is a plan, so a leader without entries of its own fails.
    Pair(
        "team-leader-worker-pool",
        "execute-done",
        ("execute",),
        ("aborted", "movement_failed"),
        (None,),
        (None,),
    ),
    Pair("team-leader", "execute-done", ("execute",), ("aborted", "movement_failed"), (None,), (None,)),
    # The judge is asked, and has only TAKT's default answers, which are none.
    Pair("structured-output", "execute-done", ("execute",), ("completed", "complete"), (0,), ("phase1_tag",)),
    Pair("structured-output", "one-entry-only", ("execute",), ("aborted", "rule_no_match"), (None,), (None,)),
    # What a scenario does not hold, TAKT's default answer says.
    Pair(
        *("mock-two-step", "one-entry-only", ("step-1", "step-2"), ("completed", "complete")),
        *((0, 0), (PLANNED, PLANNED)),
    ),
    Pair("mock-single-step", "one-entry-only", ("execute",), ("completed", "complete"), (0,), (PLANNED,)),
    Pair("simple", "execute-done", ("execute",), ("completed", "complete"), (0,), (PLANNED,)),
    # The second call fails, and with it the second movement.
    Pair(
        *("mock-two-step", "run-with-failure", ("step-1", "step-2"), ("aborted", "movement_failed")),
        *((0, None), (PLANNED, None)),
    ),
    Pair(
        *("mock-slow-multi-step", "run-three-tasks", tuple(f"step-{n}" for n in range(1, 9))),
        *(("completed", "complete"), (0,) * 8, (PLANNED,) * 8),
    ),
)


async def play(piece: str, scenario: str, cwd: Path) -> tuple[RunResult, list[ev.Recorded], Engine]:
    provider = ScriptedProvider(load_script(FIXTURES / "scenarios" / f"{scenario}.json"))
    async with Engine(":memory:", provider=provider) as engine:
        path = FIXTURES / "pieces" / f"{piece}.yaml"
        run = await engine.start(path, "the task", cwd=cwd, phases="three")
        result = await run.result()
        events = engine.journal.events(run.id)
        assert [problem.what for problem in engine.journal.verify()] == []
        return result, events, engine


def signals(events: list[ev.Recorded]) -> list[ev.VisitEnded]:
    return [e.event for e in events if isinstance(e.event, ev.VisitEnded)]


@pytest.mark.parametrize("pair", PAIRS, ids=[f"{p.piece}-x-{p.scenario}" for p in PAIRS])
async def test_a_pair_ends_as_it_should(pair: Pair, tmp_path: Path) -> None:
    result, events, _ = await play(pair.piece, pair.scenario, tmp_path)
    path = tuple(e.event.movement for e in events if isinstance(e.event, ev.VisitStarted))
    assert path == pair.path
    assert (result.status, result.reason) == pair.end
    assert tuple(ended.signal.rule for ended in signals(events)) == pair.rules
    assert tuple(ended.signal.method for ended in signals(events)) == pair.methods


async def test_the_limit_is_said_after_two_movements(tmp_path: Path) -> None:
    result, _, _ = await play("mock-max-iter", "max-iter-loop", tmp_path)
    assert "Max movements reached" in (result.message or "")


async def test_each_lane_s_judge_finds_its_own_tag_among_those_of_both(tmp_path: Path) -> None:
    _, events, _ = await play("multi-step-parallel", "multi-step-needs-fix", tmp_path)
    lanes = [[lane.label for lane in ended.signal.lanes] for ended in signals(events) if ended.signal.lanes]
    assert lanes == [["approved", "needs_fix"], ["approved", "approved"]]


async def test_the_threshold_refills_the_team_until_the_leader_is_done(tmp_path: Path) -> None:
    result, events, _ = await play("team-leader-refill-threshold", "team-leader-refill-threshold", tmp_path)
    asked = [e.event.demand for e in events if isinstance(e.event, ev.DemandIssued)]
    called = [demand.movement for demand in asked if hasattr(demand, "movement")]
    assert called.count("execute") == 4  # the plan, two refills, and "done"
    assert [f"execute.rt-{n}" in called for n in range(1, 8)] == [True] * 7
    assert all(f"completed rt-{n}" in (result.output or "") for n in range(1, 8))
    # every part is in the output under its id, whoever of the parts took which answer
    assert all(f"## rt-{n}: Create rt-{n}.txt" in (result.output or "") for n in range(1, 8))


async def test_an_error_is_told_in_the_scenario_s_words(tmp_path: Path) -> None:
    result, events, _ = await play("mock-two-step", "run-with-failure", tmp_path)
    assert "Task 2 encountered an error." in (result.message or "")
    failed = [e.event.outcome for e in events if isinstance(e.event, ev.DemandResolved)]
    assert [f.code for f in failed if isinstance(f, Failed)] == ["agent_error"]


async def test_the_broken_piece_begins_nothing(tmp_path: Path) -> None:
    with pytest.raises(PieceError, match="this is not valid YAML"):
        await play("broken", "execute-done", tmp_path)
