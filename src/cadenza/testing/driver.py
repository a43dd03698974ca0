"""A driver that does everything in one order: the same scenario always gives the same journal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from cadenza.core import events as ev
from cadenza.core.conductor import Conductor
from cadenza.core.demands import is_repeatable
from cadenza.core.folding import fold_recorded
from cadenza.core.loops import window
from cadenza.core.outcomes import AnyOutcome, Unknown
from cadenza.core.scribe import Step
from cadenza.core.state import OpenDemand, RunState
from cadenza.errors import CodeChanged, Conflict, NotFound, SequenceConflict
from cadenza.ids import Hash, text_hash
from cadenza.journal.holders import this_process
from cadenza.journal.store import POISON_CLAIMS, Commit, Journal, Lease, Send
from cadenza.piece.model import Piece
from cadenza.providers.models.scripted import ScriptedProvider
from cadenza.service import Service
from cadenza.testing.clocks import T0, fixed_seed
from cadenza.testing.comparing import Interruptions
from cadenza.testing.ledger import Ledger
from cadenza.testing.scenario import Answer, Children, Interrupt, Scenario
from cadenza.worker.agent_tools import Met
from cadenza.worker.meeting import Meeting
from cadenza.worker.texts import JournalTexts
from cadenza.worker.toolshed import Toolshed

LOST = "the process died while this was being met"
"""What an ``unknown`` outcome says."""


class Killed(BaseException):
    """The process dies here. No ``except Exception`` stops it."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A place where a process may die.

    ``where``: ``a`` before a commit, ``b`` after it, ``c`` after ``started`` and before the effect, ``d``
    after the effect and before its outcome's commit. ``demands`` are those that the commit issues (a, b),
    or the one that is met (c, d). ``started``: the demand that must not be met twice and is under way here,
    so that its outcome is unknown to whoever comes next.
    """

    where: Literal["a", "b", "c", "d"]
    demands: tuple[str, ...] = ()
    seq: int = 0
    started: str | None = None

    def __str__(self) -> str:
        return f"({self.where}) at event {self.seq} of {', '.join(self.demands) or 'no demand'}"


class Driver:
    """Plays one scenario on one journal, one demand at a time, lowest (visit, lane, key) first.

    Its clock is t0 + 1 s x the canonical sequence; a wait for a retry is over at once. Host operations
    are done for real in ``folder/work``, model calls are answered by the scenario's script, tool calls by
    its executors; each notes the demand's id in the ledger ``folder/ledger``.

    Args:
        journal: where the run is, or will be.
        folder: a folder of its own.
        at_point: called at each :class:`Point`; what it raises (:class:`Killed`) ends the driver there.
        lost: demands whose outcome is to be ``unknown`` without being met.
    """

    def __init__(
        self,
        scenario: Scenario,
        journal: Journal,
        folder: Path,
        *,
        at_point: Callable[[Point], None] | None = None,
        lost: Collection[str] = (),
        run: str | None = None,
    ) -> None:
        self.scenario = scenario
        self.run = run or scenario.run
        self._folder = folder
        self.journal = journal
        self.work = folder / "work"
        self.ledger = Ledger(folder / "ledger")
        self.state = RunState()
        self._at_point = at_point
        self._lost = lost
        provider = ScriptedProvider(scenario.script)
        given = scenario.agent_tools(folder)
        self._service = Service(
            journal,
            actor="engine",
            clock=self.now,
            kinds=scenario.kinds,
            tools=[t.spec for t in given.values()],
        )
        self._meeting = Meeting(
            journal,
            lambda name: provider,
            tools=scenario.tools(folder),
            agent_tools=Toolshed(journal, given=given).agent_tools(),
            starter=self._service.start_child,
        )
        self._texts = JournalTexts(journal)
        self._interruptions = Interruptions()
        self._given: set[str] = set()
        self._lease: Lease | None = None
        self.conductor = self._make_conductor(scenario.piece.piece)

    @property
    def sequence(self) -> int:
        """The canonical sequence: how many events there are, interruptions left out."""
        return self.state.seq - self._interruptions.seen

    def now(self) -> float:
        """The time, which is nothing but the canonical sequence."""
        return T0 + self.sequence

    def play(self) -> RunState:
        """Begin the run or go on with it, until it ends or stands and nobody has anything to add.

        Raises:
            LeaseLost: another worker claimed the run meanwhile.
            JournalError: the journal failed.
        """
        self.work.mkdir(parents=True, exist_ok=True)
        self.open()
        with asyncio.Runner() as runner:
            going = True
            while going:
                self._play_claimed(runner)
                going = self._inject("turn")
                self.catch_up()
                going = self._play_children() or going
        return self.state

    def _play_children(self) -> bool:
        """Play the children; whether one came further, so that this run has something to do."""
        further = self._play_others()
        self.catch_up()
        return further or self.state.next_input is not None

    def _play_others(self) -> bool:
        """Play every child that has not ended, in the order of their beginning; whether one came further."""
        further = False
        for id in [id for id, child in self.state.children.items() if child.ended is None]:
            child = Driver(
                self.scenario.but(),
                self.journal,
                self._folder,
                at_point=self._at_point,
                lost=self._lost,
                run=id,
            )
            child.open()
            before = child.state.seq
            further = child.play().seq > before or further
        return further

    def _play_claimed(self, runner: asyncio.Runner) -> None:
        """Play while there is something to play; nothing is done where the run cannot be claimed."""
        self._lease = self.journal.claim(this_process("driver"), run=self.run)
        if self._lease is None:
            return
        self._settle()
        while self._turn(runner):
            pass
        self.journal.release(self._lease)

    # The run.

    def open(self) -> None:
        """Make the run where there is none, and load it."""
        try:
            recorded = self.journal.events(self.run)
        except NotFound:
            self._create()
            recorded = self.journal.events(self.run)
        self.state = RunState()
        self._fold(recorded)
        self.conductor = self._make_conductor(Piece.model_validate_json(self._texts[self.state.run.piece]))

    def _make_conductor(self, piece: Piece) -> Conductor:
        return Conductor(piece, kinds=self.scenario.kinds, retry=self.scenario.retry)

    def _create(self) -> None:
        scenario = self.scenario
        for name, content in scenario.files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        piece, task = scenario.piece.piece, scenario.task
        texts = {**scenario.piece.texts, piece.hash: piece.source, text_hash(task): task}
        toolbox = self._service.toolbox(piece)
        if toolbox is not None:
            texts[text_hash(toolbox)] = toolbox
        started = ev.RunStarted(
            id="" if toolbox is None else self.run,
            tools=None if toolbox is None else text_hash(toolbox),
            piece=piece.hash,
            name=piece.name,
            task=text_hash(task),
            seed=fixed_seed(scenario.name),
            cwd=str(self.work),
            language=scenario.language,
            history=window(piece.loop_monitors),
            limit=piece.max_movements,
        )
        step = self.conductor.start(started, self.now(), texts)
        self._reach("a", _issued(step))
        self.journal.create(
            self.run, step.events, step.state, {**texts, **step.texts}, at=self.now(), actor="engine"
        )
        self._reach("b", _issued(step))

    def _settle(self) -> None:
        """What a lost worker left behind: poison, and what was started."""
        assert self._lease is not None
        standing = self.state.held is not None or self.state.ended is not None
        if not standing and self._lease.claims > POISON_CLAIMS:
            opened = next(iter(self.state.open.values()), None)
            words = f"its worker was lost {self._lease.claims - 1} times in a row"
            if opened is not None:
                words += f" at demand {opened.key!r}"
            demand = None if opened is None else opened.id
            self._step(lambda s: self.conductor.hold(s, "poison", words, self.now(), demand=demand))
        for opened in list(self.state.open.values()):
            if opened.started and not is_repeatable(opened.demand):
                self._resolve(opened, Unknown(message=LOST))

    # A turn.

    def _turn(self, runner: asyncio.Runner) -> bool:
        if self._inject("turn"):
            self.catch_up()
            return True
        queued = self.state.next_input
        if queued is not None:
            self._step(lambda s: self.conductor.receive(s, s.next_input or queued, self.now(), self._texts))
            return True
        if self.state.ended is not None or self.state.held is not None or not self.state.met_by_worker:
            return False
        self._step(self._checked)
        if self.state.held is not None:
            return False
        self._meet(min(self.state.met_by_worker, key=lambda d: (d.lane, d.key)), runner)
        return True

    def _checked(self, state: RunState) -> Step:
        """No event where this version can go on; CodeChanged where it cannot."""
        self.conductor.check(state, self._texts)
        return Step(events=(), texts={}, state=state)

    def _meet(self, opened: OpenDemand, runner: asyncio.Runner) -> None:
        once = not is_repeatable(opened.demand)
        if once:
            self._step(lambda s: self.conductor.begin(s, opened.id, self.now(), self._texts))
            self._inject("started")
        if opened.id in self._lost:
            self._resolve(opened, Unknown(message=LOST))
            return
        self._reach("c", (opened.id,))
        self.ledger.note(opened.id, once=once)
        met = runner.run(self._meeting.meet(self.run, self.state, opened, self._texts))
        self._reach("d", (opened.id,))
        self._texts.add(met.texts)
        self._resolve(opened, met.outcome, met)

    def _resolve(self, opened: OpenDemand, outcome: AnyOutcome, met: Met | None = None) -> None:
        texts = {} if met is None else met.texts
        self._step(lambda s: self.conductor.resolve(s, opened.id, outcome, self.now(), self._texts), texts)

    def _step(
        self,
        decide: Callable[[RunState], Step],
        texts: Mapping[Hash, str] | None = None,
        actor: str = "engine",
    ) -> None:
        """Decide and commit; where the commit is refused, fold the tail and decide the same thing again."""
        assert self._lease is not None
        while True:
            try:
                step = decide(self.state)
            except CodeChanged as changed:
                if self.state.held is not None:
                    return
                step = self.conductor.hold(self.state, "code_changed", str(changed), self.now())
            if not step.events:
                return
            issued = _issued(step)
            self._reach("a", issued)
            self._inject("commit")
            commit = Commit(
                run=self.run,
                epoch=self._lease.epoch,
                after=self.state.seq,
                events=step.events,
                state=step.state,
                at=self.now(),
                actor=actor,
                texts={**(texts or {}), **step.texts},
                sends=tuple(Send(run, event) for run, event in step.sends),
            )
            try:
                self.journal.commit(commit)
            except SequenceConflict:
                self.catch_up()
                continue
            for event in step.events:
                self._interruptions.hides(event)
            self.state = step.state
            self._texts.add(step.texts)
            if not any(isinstance(event, ev.DemandStarted) for event in step.events):
                self._reach("b", issued)  # after `started` it is (c)
            return

    def _reach(self, where: Literal["a", "b", "c", "d"], demands: tuple[str, ...]) -> None:
        if self._at_point is None:
            return
        opened = self.state.open.values()
        started = next((d.id for d in opened if d.started and not is_repeatable(d.demand)), None)
        self._at_point(Point(where=where, demands=demands, seq=self.state.seq, started=started))

    # What others append.

    def catch_up(self) -> None:
        """Fold what others appended."""
        self._fold(self.journal.events(self.run, after=self.state.seq))

    def _fold(self, recorded: list[ev.Recorded]) -> None:
        for item in recorded:
            self._interruptions.hides(item.event)
        self._given.update(item.actor for item in recorded)
        self.state = fold_recorded(recorded, self.state)

    def _inject(self, moment: str) -> bool:
        """Do the first of the scenario's inputs that is due; whether something was appended."""
        for number, item in enumerate(self.scenario.inputs):
            actor = f"input-{number}"
            due = item.moment == moment and self.sequence >= item.at and actor not in self._given
            if due and item.fits(self.state):
                self._given.add(actor)
                return self._append(item, actor)
        return False

    def _append(self, item: object, actor: str) -> bool:
        run, now = self.run, self.now()
        if isinstance(item, Interrupt):
            words = "interrupted by a person"
            self._step(lambda s: self.conductor.hold(s, "interrupted", words, self.now()), actor=actor)
        elif isinstance(item, Children):
            self._play_others()
        elif isinstance(item, Answer):
            request = next(r for r in self.state.requests.values() if not r.decided)
            self.journal.decide(request.id, item.value, at=now, actor=actor)
        else:
            try:
                self.journal.append_input(run, item.event, at=now, actor=actor)  # type: ignore[attr-defined]
            except Conflict:
                return False
        return True


def _issued(step: Step) -> tuple[str, ...]:
    return tuple(event.id for event in step.events if isinstance(event, ev.DemandIssued))
