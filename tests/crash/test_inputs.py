"""What other people append, at every sequence and at every moment of it, loses nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from cadenza.core import events as ev
from cadenza.core.outcomes import Cancelled, Unknown
from cadenza.journal.memory import MemoryJournal
from cadenza.testing import (
    Answer,
    Cancel,
    Driver,
    Laboratory,
    Ledger,
    Scenario,
    check_folds,
    memory_journals,
)
from cadenza.testing.matrix import Outcome
from tests.crash.kinds import fan
from tests.crash.scenarios import full

MOMENTS: tuple[Literal["turn", "started", "commit"], ...] = ("turn", "started", "commit")
Moment = Literal["turn", "started", "commit"]


def played(scenario: Scenario, lab: Path) -> Outcome:
    return Laboratory(scenario, memory_journals(), lab).whole()


def events_of(outcome: Outcome) -> list[ev.Recorded]:
    decoder = msgspec.json.Decoder(ev.Recorded)
    return [decoder.decode(line) for line in outcome.journal.split(b"\n")]


def lanes_of(outcome: Outcome) -> list[object]:
    return [e.event.signal for e in events_of(outcome) if isinstance(e.event, ev.VisitEnded)]


def by_answerer(outcome: Outcome) -> dict[str, str]:
    """Which request each answer went to."""
    return {e.actor: e.event.id for e in events_of(outcome) if isinstance(e.event, ev.RequestDecided)}


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_answer_at_every_sequence_loses_nothing(moment: Moment, lab: Path) -> None:
    late = Answer(value="yes"), Answer(value="yes")
    whole = played(fan().but(*late), lab)
    assert whole.state.status == "completed"
    for at in range(1, whole.events):
        inputs = (Answer(value="yes", at=at, moment=moment), *late)
        got = played(fan().but(*inputs), lab)
        assert got.state.status == "completed", at
        assert lanes_of(got) == lanes_of(whole), at
        assert got.state.previous == whole.state.previous
        assert sorted(by_answerer(got).values()) == sorted(by_answerer(whole).values())
        assert set(Ledger(lab / "ledger").counts().values()) == {1}, f"at {at}: something was met twice"


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("make", [fan, full])
def test_a_cancel_at_every_sequence_ends_the_run_and_loses_nothing(
    make: Callable[[], Scenario], moment: Moment, lab: Path
) -> None:
    scenario = make()
    answers = scenario.inputs or (Answer(value="yes"), Answer(value="yes"))
    whole = played(scenario.but(*answers), lab)
    lines = whole.journal.split(b"\n")
    cancelled = 0
    for at in range(1, whole.events):
        got = played(scenario.but(*answers, Cancel(at=at, moment=moment, reason="enough")), lab)
        events = events_of(got)
        where = next((i for i, e in enumerate(events) if isinstance(e.event, ev.CancelRequested)), None)
        if where is None:
            assert got.journal == whole.journal
            continue
        cancelled += 1
        assert got.journal.split(b"\n")[:where] == lines[:where], at
        if got.state.status == "completed":  # it came while the outcome that ends the run was on its way
            assert moment == "commit"
            assert [e.event for e in events[where + 1 :]] == [e.event for e in events_of(whole)[where:]]
            continue
        assert got.state.status == "cancelled"
        last = events[-1].event
        assert isinstance(last, ev.RunEnded)
        assert last.message == f"cancelled by {events[where].actor}: enough"
        _nothing_hangs(events)
        _nothing_met_is_lost(events, lab)
    assert cancelled >= {"turn": whole.events - 20, "started": 1, "commit": whole.events // 3}[moment]


def _nothing_hangs(events: list[ev.Recorded]) -> None:
    """No request is left open and nothing that was started is left without an outcome."""
    opened = {e.event.id for e in events if isinstance(e.event, ev.RequestOpened)}
    over = {e.event.id for e in events if isinstance(e.event, ev.RequestDecided | ev.RequestClosed)}
    assert opened <= over
    started = {e.event.id for e in events if isinstance(e.event, ev.DemandStarted)}
    resolved = {e.event.id for e in events if isinstance(e.event, ev.DemandResolved)}
    assert started <= resolved


def _nothing_met_is_lost(events: list[ev.Recorded], lab: Path) -> None:
    """Each demand was met as often as it was answered: no outcome was thrown away."""
    answered = Counter(e.event.id for e in events if isinstance(e.event, ev.DemandRetried))
    answered.update(
        e.event.id
        for e in events
        if isinstance(e.event, ev.DemandResolved) and not isinstance(e.event.outcome, Unknown | Cancelled)
    )
    met = Ledger(lab / "ledger").counts()
    assert all(answered[demand] == count for demand, count in met.items())


def test_a_late_answer_is_refused_and_changes_nothing(lab: Path) -> None:
    scenario = full().but(Cancel(at=13))
    journal = MemoryJournal()
    state = Driver(scenario, journal, lab).play()
    assert state.status == "cancelled"
    request = journal.requests(status=("closed",))[0]
    before = journal.events(scenario.run)
    assert journal.decide(request.id, "now", at=0.0, actor="late").result == "late"
    assert journal.events(scenario.run) == before


def test_snapshots_are_the_whole_while_inputs_are_queued(lab: Path) -> None:
    for at in range(1, 40, 3):
        journal = MemoryJournal()
        scenario = fan().but(*(Answer(value="yes", at=at, moment="commit"),) * 2, Cancel(at=at + 9))
        Driver(scenario, journal, lab / str(at)).play()
        check_folds(journal, scenario.run)
