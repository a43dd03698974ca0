"""A run that was killed anywhere and resumed is the run that was not (DESIGN, the crash matrix)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cadenza.core import events as ev
from cadenza.core.outcomes import Failed
from cadenza.journal.memory import MemoryJournal
from cadenza.testing import (
    Driver,
    Interrupt,
    JournalFactory,
    Laboratory,
    Point,
    Resume,
    check_folds,
    crash_matrix,
    difference,
    memory_journals,
    sqlite_journals,
)
from tests.crash.nursery import Nursery
from tests.crash.scenarios import SCENARIOS, full

NAMES = sorted(SCENARIOS)
SAMPLES = 30

FACTORIES: dict[str, Callable[[], JournalFactory]] = {
    "memory": memory_journals,
    "sqlite": lambda: sqlite_journals,
}


@pytest.mark.parametrize("journal", FACTORIES)
@pytest.mark.parametrize("name", NAMES)
def test_killed_at_every_point_and_resumed_it_is_the_same_run(name: str, journal: str, lab: Path) -> None:
    assert crash_matrix(SCENARIOS[name](), FACTORIES[journal](), lab) >= 10


def sampled(points: Sequence[Point]) -> list[int]:
    """About thirty points, spread evenly, and every one where an unrepeatable effect is under way."""
    step = max(1, len(points) // SAMPLES)
    once = [number for number, point in enumerate(points) if point.started]
    return sorted({*range(0, len(points), step), *once})


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_process_killed_by_sigkill_is_continued_by_another(name: str, nursery: Nursery, lab: Path) -> None:
    def life(until: int | None) -> None:
        nursery.drive(name, lab, until)

    assert crash_matrix(SCENARIOS[name](), sqlite_journals, lab, life=life, sample=sampled) >= 10


def test_the_full_scenario_meets_everything_that_can_happen(lab: Path) -> None:
    journal = MemoryJournal()
    state = Driver(full(), journal, lab).play()
    events = [item.event for item in journal.events(full().run)]
    kinds = {type(event) for event in events}
    expected = {
        *(ev.DemandStarted, ev.DemandRetried, ev.RequestOpened, ev.RequestDecided, ev.ReportSaved),
        *(ev.VisitStarted, ev.VisitEnded, ev.RunEnded),
    }
    assert expected <= kinds
    assert state.status == "completed"
    signals = [event.signal for event in events if isinstance(event, ev.VisitEnded)]
    assert {signal.method for signal in signals} == {"tag", "monitor", "aggregate"}
    assert {lane.method for signal in signals for lane in signal.lanes} == {"tag", "judge"}
    assert sum(isinstance(event, ev.DemandRetried) for event in events) == 3


def test_the_other_scenarios_meet_what_is_theirs(lab: Path) -> None:
    """Refills, failed parts and waits; blocked agents, every way to a status, and a loop judge."""
    found: dict[str, list[ev.AnyEvent]] = {}
    for name in ("team", "arpeggio", "three"):
        journal = MemoryJournal()
        assert Driver(SCENARIOS[name](), journal, lab / name).play().status == "completed"
        found[name] = [item.event for item in journal.events(f"r{name}")]
    keys = {
        name: {e.key.rpartition("/")[2] for e in events if isinstance(e, ev.DemandIssued)}
        for name, events in found.items()
    }
    assert {"plan:2", "refill:2", "report:team.md"} <= keys["team"]
    assert {"wait:2", "try:2", "output"} <= keys["arpeggio"]
    assert {"blocked", "2:perform", "report-retry:plan.md", "status:tag", "status:evaluation"} <= keys[
        "three"
    ]
    for name, code in (("team", "auth"), ("arpeggio", "bad_request")):
        failed = [e.outcome for e in found[name] if isinstance(e, ev.DemandResolved)]
        assert code in {outcome.code for outcome in failed if isinstance(outcome, Failed)}
        assert any(isinstance(e, ev.DemandRetried) for e in found[name])
    judged = [e.signal.judged for e in found["three"] if isinstance(e, ev.VisitEnded) and e.signal.judged]
    assert [each.label for each in judged] == ["it is"]
    lanes = {e.lane for e in found["three"] if isinstance(e, ev.RequestOpened)}
    assert lanes == {"", "style"}


def test_the_unknown_outcome_is_told_to_what_comes_next(lab: Path) -> None:
    laboratory = Laboratory(full(), memory_journals(), lab)
    write = next(point for point in laboratory.points() if point.started)
    got = laboratory.whole(lost=write.started)
    assert b'"is":"unknown"' in got.journal
    assert b'"label":"unsure"' in got.journal
    assert difference(got.journal, laboratory.whole().journal)


@pytest.mark.parametrize("name", NAMES)
def test_every_snapshot_and_its_tail_are_the_whole(name: str, lab: Path) -> None:
    scenario = SCENARIOS[name]()
    journal = MemoryJournal()
    Driver(scenario, journal, lab).play()
    check_folds(journal, scenario.run)


def test_interrupted_and_resumed_at_every_sequence_it_is_the_same_run(lab: Path) -> None:
    scenario = full()
    laboratory = Laboratory(scenario, memory_journals(), lab)
    whole = laboratory.whole()
    for at in range(2, whole.events):
        inputs = (*scenario.inputs, Interrupt(at=at), Resume(at=at))
        disturbed = Laboratory(scenario.but(*inputs), memory_journals(), lab).whole()
        assert disturbed.journal == whole.journal, f"at {at}: {difference(whole.journal, disturbed.journal)}"
        assert disturbed.events in (whole.events, whole.events + 3)
