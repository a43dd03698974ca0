"""Agents with tools, disturbed: children that end at every moment, cancels at every moment."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from cadenza.core import events as ev
from cadenza.journal.memory import MemoryJournal
from cadenza.testing import Cancel, Children, Driver, Laboratory, check_folds, memory_journals
from tests.crash.agents import agents

MOMENTS: tuple[Literal["turn", "started", "commit"], ...] = ("turn", "started", "commit")


def test_the_scenario_meets_everything_that_agents_do(lab: Path) -> None:
    journal = MemoryJournal()
    assert Driver(agents(), journal, lab).play().status == "completed"
    events = [item.event for item in journal.events(agents().run)]
    kinds = {type(event) for event in events}
    assert {ev.DemandStarted, ev.RequestOpened, ev.ToolGranted, ev.ChildEnded, ev.InputTaken} <= kinds
    signals = [event.signal for event in events if isinstance(event, ev.VisitEnded)]
    assert [signal.kind for signal in signals] == ["moved", "rule", "sentinel"]
    lines = {
        name: (lab / f"{name}s").read_text(encoding="utf-8").split() for name in ("look", "put", "charge")
    }
    assert {name: len(made) for name, made in lines.items()} == {"look": 3, "put": 1, "charge": 4}
    assert len(list(journal.runs())) == 2


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_child_that_ends_at_any_moment_resumes_its_parent_exactly_once(
    moment: Literal["turn", "started", "commit"], lab: Path
) -> None:
    whole = Laboratory(agents(), memory_journals(), lab).whole()
    for at in range(1, whole.events):
        scenario = agents().but(*agents().inputs, Children(at=at, moment=moment))
        got = Laboratory(scenario, memory_journals(), lab).whole()
        assert got.state.status == "completed", at
        assert got.state.previous == whole.state.previous
        assert not got.repeated
        assert got.journal.count(b'"type":"child.ended"') == 1
        assert got.journal.count(b"The sub-tasks have ended") == whole.journal.count(
            b"The sub-tasks have ended"
        )


def test_a_cancel_at_any_moment_ends_parent_and_child_and_leaves_no_card_open(lab: Path) -> None:
    whole = Laboratory(agents(), memory_journals(), lab).whole()
    for at in range(1, whole.events, 2):
        journal = MemoryJournal()
        folder = lab / f"at-{at}"
        folder.mkdir()
        scenario = agents().but(*agents().inputs, Cancel(at=at, reason="enough"))
        state = Driver(scenario, journal, folder).play()
        if state.status == "completed":  # the step that ends the run was the last thing that could be done
            assert at > whole.events - 4
            continue
        assert state.status == "cancelled", at
        assert {row.status for row in journal.runs()} <= {"cancelled", "completed"}
        assert journal.requests() == []
        for row in journal.runs():
            check_folds(journal, row.id)
        assert journal.verify() == []
