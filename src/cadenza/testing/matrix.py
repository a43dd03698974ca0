"""The crash matrix: a run that was killed at any point and resumed is the run that was not.

At every point of a scenario the process is killed once; what plays the run next must come to the same
canonical journal, byte for byte. Where an effect that must not be repeated was under way, the journal must
be that of the undisturbed run in which this one outcome is ``unknown`` instead.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from cadenza.core.folding import fold_recorded
from cadenza.core.state import RunState
from cadenza.journal.store import LEASE_SECONDS, Journal
from cadenza.testing.clocks import FrozenClock
from cadenza.testing.comparing import canonical, difference
from cadenza.testing.driver import Driver, Killed, Point
from cadenza.testing.journals import JournalFactory
from cadenza.testing.ledger import Ledger
from cadenza.testing.scenario import Scenario

_encode_state = msgspec.json.Encoder().encode
_decode_state = msgspec.json.Decoder(RunState).decode


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What an experiment left behind."""

    journal: bytes
    state: RunState
    repeated: tuple[str, ...]
    events: int


Life = Callable[[int | None], None]
"""Plays the scenario in a process of its own until the n-th point and dies there; None: to its end."""


class Laboratory:
    """Plays one scenario in one folder, as often as it takes, each time from nothing.

    Args:
        folder: is emptied before each experiment; its path is part of the run, so keep it the same.
        life: how a process lives and dies; by default in this one, by :class:`Killed`.
    """

    def __init__(
        self, scenario: Scenario, journals: JournalFactory, folder: Path, *, life: Life | None = None
    ) -> None:
        self.scenario = scenario
        self.folder = folder
        self.clock = FrozenClock()
        self._journals = journals
        self._life = life or self.live
        self._whole: dict[str | None, Outcome] = {}

    def live(self, until: int | None) -> None:
        """One life in this process. Leases of earlier lives have run out when it begins."""
        self.clock.advance(LEASE_SECONDS + 1)
        reached = 0

        def at_point(point: Point) -> None:
            nonlocal reached
            reached += 1
            if reached - 1 == until:
                raise Killed(str(point))

        with contextlib.suppress(Killed), self._journal() as journal:
            Driver(self.scenario, journal, self.folder, at_point=at_point).play()

    def points(self) -> list[Point]:
        """All points of the undisturbed run, in order."""
        found: list[Point] = []
        self._clean()
        with self._journal() as journal:
            Driver(self.scenario, journal, self.folder, at_point=found.append).play()
        return found

    def whole(self, lost: str | None = None) -> Outcome:
        """The undisturbed run; with ``lost``, the one in which that demand's outcome is unknown."""
        if lost not in self._whole:
            self._clean()
            with self._journal() as journal:
                Driver(self.scenario, journal, self.folder, lost=(lost,) if lost else ()).play()
            self._whole[lost] = self.look()
        return self._whole[lost]

    def killed_at(self, number: int) -> Outcome:
        """The run that was killed at the point of that number, and then resumed."""
        self._clean()
        self._life(number)
        self._life(None)
        return self.look()

    def look(self) -> Outcome:
        """What the journal and the ledger hold now.

        Raises:
            AssertionError: the journal does not agree with itself.
        """
        with self._journal() as journal:
            runs = [row.id for row in reversed(list(journal.runs()))]
            recorded = {run: journal.events(run) for run in runs}
            states = {run: fold_recorded(events) for run, events in recorded.items()}
            for run, state in states.items():
                loaded = journal.load(run)
                assert fold_recorded(loaded.tail, loaded.snapshot) == state, (
                    "snapshot and tail are not the events"
                )
            problems = journal.verify()
        assert problems == [], problems
        first = self.scenario.run
        return Outcome(
            journal=b"\n".join(canonical(events) for events in recorded.values()),
            state=states[first],
            repeated=tuple(Ledger(self.folder / "ledger").repeated()),
            events=len(recorded[first]),
        )

    def check(self, number: int, point: Point) -> None:
        """Kill at one point and hold the oracle against what comes of it.

        Raises:
            AssertionError: it says at which point, and the first event that differs.
        """
        got = self.killed_at(number)
        wanted = self.whole(point.started)
        at = f"{self.scenario.name}: killed {point}"
        assert not got.repeated, f"{at}: met twice: {got.repeated}"
        assert got.journal == wanted.journal, f"{at}: {difference(wanted.journal, got.journal)}"

    @contextlib.contextmanager
    def _journal(self) -> Iterator[Journal]:
        journal: Journal = self._journals(self.folder, self.clock)
        try:
            yield journal
        finally:
            if journal.path != ":memory:":
                journal.close()

    def _clean(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)


def crash_matrix(
    scenario: Scenario,
    journal_factory: JournalFactory,
    folder: Path,
    *,
    life: Life | None = None,
    sample: Callable[[Sequence[Point]], Sequence[int]] | None = None,
) -> int:
    """Kill a scenario at every point (or at those whose numbers ``sample`` gives); how many there were.

    The oracle, for each point: the canonical journal equals the undisturbed one byte for byte; while a
    demand that must not be repeated is under way (its ``c`` and ``d``, and ``a`` of the commit that records
    its outcome) it equals the undisturbed journal in which that outcome is ``unknown``. No such demand
    stands in the ledger twice; the journal verifies; its events are its snapshot and tail.

    Args:
        folder: for the journal, the workspace and the ledger; it is emptied again and again.
        life: see :class:`Laboratory`.

    Raises:
        AssertionError: the oracle does not hold; the message names the point and the first difference.
    """
    laboratory = Laboratory(scenario, journal_factory, folder, life=life)
    points = laboratory.points()
    numbers = range(len(points)) if sample is None else sample(points)
    for number in numbers:
        laboratory.check(number, points[number])
    return len(numbers)


def check_folds(journal: Journal, run: str) -> None:
    """Wherever a snapshot is taken, snapshot and tail are the whole.

    Raises:
        AssertionError: they are not; the message says after which event.
    """
    recorded = journal.events(run)
    whole = fold_recorded(recorded)
    state = RunState()
    for number, item in enumerate(recorded):
        snapshot = _decode_state(_encode_state(state))
        assert snapshot == state, f"the state after event {number} does not survive JSON"
        assert fold_recorded(recorded[number:], snapshot) == whole, f"a snapshot after event {number} differs"
        state = fold_recorded([item], state)


__all__ = ["Laboratory", "Life", "Outcome", "check_folds", "crash_matrix"]
