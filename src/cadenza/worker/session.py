"""One claimed run, played until it stands or ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from cadenza.clock import Clock
from cadenza.core import events as ev
from cadenza.core.conductor import Conductor
from cadenza.core.demands import is_repeatable
from cadenza.core.folding import fold_recorded
from cadenza.core.outcomes import AnyOutcome, Unknown
from cadenza.core.scribe import Step
from cadenza.core.state import OpenDemand, QueuedInput, RunState
from cadenza.errors import CodeChanged, LeaseLost, SequenceConflict
from cadenza.ids import Hash
from cadenza.journal.store import POISON_CLAIMS, Commit, Journal, Lease, Send
from cadenza.worker.agent_tools import Met
from cadenza.worker.inflight import InFlight
from cadenza.worker.meeting import Meeting
from cadenza.worker.texts import JournalTexts

POLL_SECONDS = 0.3
"""How often a playing run looks for inputs that another process appended."""

LINGER_SECONDS = 2.0
"""A wait longer than this gives the lease back; the run is claimed again when it is due."""

Committer = Callable[[Commit], Awaitable[None]]
OnCommit = Callable[[str, RunState, tuple[ev.AnyEvent, ...]], None]
Decide = Callable[[RunState], Step | None]


class Session:
    """Plays one run under one lease.

    Args:
        commit: appends a commit durably (the group-committing writer, or the journal itself).
        on_commit: is told of what was committed, after the fact.

    ``owned`` says whether the lease is still this session's to give back.
    """

    def __init__(
        self,
        journal: Journal,
        lease: Lease,
        make_conductor: Callable[[RunState, JournalTexts], Conductor],
        meeting: Meeting,
        *,
        clock: Clock,
        commit: Committer,
        on_commit: OnCommit | None = None,
    ) -> None:
        self.run = lease.run
        self.owned = True
        self._journal = journal
        self._lease = lease
        self._meeting = meeting
        self._clock = clock
        self._commit = commit
        self._on_commit = on_commit
        self._texts = JournalTexts(journal)
        loaded = journal.load(lease.run)
        self.state = fold_recorded(loaded.tail, loaded.snapshot)
        self._conductor = make_conductor(self.state, self._texts)
        self._inflight = InFlight()
        self._stepping = asyncio.Lock()
        self._stopping: str | None = None
        self._untouched = True
        self._checked = False
        self._next_look = POLL_SECONDS

    def notify(self) -> None:
        """Say that an input may have been appended."""
        self._inflight.stir()

    def interrupt(self) -> None:
        """Ask the session to save, to hold the run with reason ``interrupted``, and to return."""
        self._stopping = "hold"
        self._inflight.stir()

    def leave(self) -> None:
        """Ask the session to save and to return; whoever claims the run next goes on with it."""
        self._stopping = self._stopping or "leave"
        self._inflight.stir()

    async def play(self) -> None:
        """Play until the run ends, is parked or held, or waits for longer than a worker should.

        Raises:
            JournalError: something could not be committed; what was not is still open in the journal.
        """
        try:
            while self.owned and await self._turn():
                pass
        except LeaseLost:
            self.owned = False
            raise
        finally:
            await self._inflight.stop()

    async def _turn(self) -> bool:
        """One round: a stop, an input, an outcome, or a wait. False when nothing is left to do here."""
        if self._stopping is not None:
            return await self._stop()
        if self._is_poison():
            return await self._hold("poison", self._poison_message(), next(iter(self.state.open), None))
        queued = self.state.next_input
        if queued is not None:
            return await self._take(queued)
        if self.state.ended is not None:
            return False
        if self.state.held is not None:
            return bool(self._inflight) and await self._await_outcomes()
        ticked = bool(self.state.requests) and await self._step(self._tick)
        return ticked or await self._play_on()

    def _tick(self, state: RunState) -> Step | None:
        """What is due for its requests: deadlines and reminders, by the journal's clock."""
        now = self._journal.now()
        if all(not 0 < at <= now for r in state.requests.values() for at in (r.deadline, r.remind_at)):
            return None
        return self._conductor.tick(state, now, self._texts)

    async def _play_on(self) -> bool:
        """Meet what is to be met, and wait for what comes of it."""
        if not self._checked and (await self._lose_one() or not await self._check()):
            return True
        self._launch()
        return await (self._await_outcomes() if self._inflight else self._await_due())

    # What a turn can be.

    async def _stop(self) -> bool:
        """Save what came of the demands in flight; then take a cancel that waits, or hold the run.

        What reopens a run was asked for before it was to be held, so it is taken first: a run that is held
        has no resume left in its queue that would let it go on at once.
        """
        await self._land()
        await self._catch_up()
        holding = self._stopping == "hold"
        first = ev.CancelRequested | ev.ResumeRequested | ev.RetryRequested if holding else ev.CancelRequested
        while (queued := self.state.next_input) is not None and isinstance(queued.event, first):
            if not await self._take(queued):
                break
        if holding and self.state.ended is None and self.state.held is None:
            await self._hold("interrupted", "interrupted by a person")
        return False

    def _is_poison(self) -> bool:
        playable = self.state.held is None and self.state.ended is None
        return playable and self._untouched and self._lease.claims > POISON_CLAIMS

    def _poison_message(self) -> str:
        opened = next(iter(self.state.open.values()), None)
        where = f" at demand {opened.key!r}" if opened is not None else ""
        lost = self._lease.claims - 1
        return f"its worker was lost {lost} times in a row{where}, with nothing committed in between"

    async def _take(self, queued: QueuedInput) -> bool:
        """Take an input. Before one that ends or restarts the visit, nothing is in flight any more."""
        event = queued.event
        if isinstance(event, ev.CancelRequested | ev.ResumeRequested):
            await self._land()
        self._checked = False
        return await self._step(self._receive)

    def _receive(self, state: RunState) -> Step | None:
        queued = state.next_input
        if queued is None:
            return None
        try:
            return self._conductor.receive(state, queued, self._clock(), self._texts)
        except CodeChanged as changed:
            if state.held is None and state.ended is None:
                return self._conductor.hold(state, "code_changed", str(changed), self._clock())
            return self._conductor.refuse(state, queued, str(changed), self._clock())

    async def _lose_one(self) -> bool:
        """What a lost process had started, and must not be met twice, has an unknown outcome."""
        for opened in self.state.open.values():
            if opened.started and not is_repeatable(opened.demand) and opened.id not in self._inflight:
                lost = Unknown(message="the process died while this was being met")
                return await self._resolve(opened.id, Met(lost))
        return False

    async def _check(self) -> bool:
        """Whether this version can go on where the journal stands; if not, the run is held."""
        try:
            self._conductor.check(self.state, self._texts)
        except CodeChanged as changed:
            await self._hold("code_changed", str(changed))
            return False
        self._checked = True
        return True

    def _launch(self) -> None:
        """Start to meet every demand that is due and is not being met."""
        now = self._clock()
        self._next_look = POLL_SECONDS
        for opened in self.state.met_by_worker:
            if opened.not_before > now:
                self._next_look = min(self._next_look, opened.not_before - now)
            elif opened.id not in self._inflight:
                self._inflight.start(opened, self._meet(opened))

    async def _meet(self, opened: OpenDemand) -> Met | None:
        if not is_repeatable(opened.demand):
            await self._step(
                lambda state: self._conductor.begin(state, opened.id, self._clock(), self._texts)
            )
            now_open = self.state.open.get(opened.id)
            if now_open is None or not now_open.started or self.state.held is not None:
                return None
        return await self._meeting.meet(self.run, self.state, opened, self._texts)

    async def _await_outcomes(self) -> bool:
        """Take the outcomes that are there, or wait for one; now and then look for inputs of others."""
        if not await self._inflight.wait(self._next_look):
            await self._catch_up()
        await self._take_outcomes()
        return True

    async def _await_due(self) -> bool:
        wake = self.state.wake_at
        if wake is None:
            return False
        wait = wake - self._clock()
        if wait > LINGER_SECONDS:
            return False
        if wait > 0:
            await self._inflight.wait(min(wait, POLL_SECONDS))
            await self._catch_up()
        return True

    # What happened is never thrown away.

    async def _land(self) -> None:
        """Stop what is in flight; what came to an outcome all the same is recorded."""
        await self._inflight.stop()
        await self._take_outcomes()

    async def _take_outcomes(self) -> None:
        while (taken := self._inflight.take()) is not None:
            opened, met = taken
            self._texts.add(met.texts)
            await self._resolve(opened.id, met)

    async def _hold(self, reason: str, message: str, demand: str | None = None) -> bool:
        return await self._step(
            lambda state: self._conductor.hold(state, reason, message, self._clock(), demand=demand)
        )

    async def _resolve(self, demand: str, met: Met) -> bool:
        outcome: AnyOutcome = met.outcome
        return await self._step(
            lambda state: self._conductor.resolve(state, demand, outcome, self._clock(), self._texts),
            met.texts,
        )

    async def _step(self, decide: Decide, made: Mapping[Hash, str] | None = None) -> bool:
        """Decide and commit; on a sequence mismatch fold the tail and decide the same thing again.

        Whether something was committed: where it was not, deciding again would change nothing.
        """
        async with self._stepping:
            while True:
                step = self._decided(decide)
                if step is None or not step.events:
                    return False
                commit = self._transaction(step, {**(made or {}), **step.texts})
                with suppress(SequenceConflict):
                    await self._commit(commit)
                    break
                await self._catch_up()
            self.state = step.state
            self.owned = not commit.release
            self._untouched = False
            self._texts.add(step.texts)
            if self._on_commit is not None:
                self._on_commit(self.run, self.state, step.events)
            return True

    def _decided(self, decide: Decide) -> Step | None:
        try:
            return decide(self.state)
        except CodeChanged as changed:
            if self.state.held is not None or self.state.ended is not None:
                return None
            return self._conductor.hold(self.state, "code_changed", str(changed), self._clock())

    def _transaction(self, step: Step, texts: Mapping[Hash, str]) -> Commit:
        """Parking is releasing the worker: the lease goes back with the last commit, but where a run's
        folder is still to be brought up to date under it."""
        state = step.state
        return Commit(
            run=self.run,
            epoch=self._lease.epoch,
            after=self.state.seq,
            events=step.events,
            state=state,
            at=self._clock(),
            texts=texts,
            release=not self._inflight and state.folder is None and state.stands,
            sends=tuple(Send(run, event) for run, event in step.sends),
            settles=_resolved(step) if state.budget else (),
        )

    async def _catch_up(self) -> None:
        """Fold what others appended."""
        tail = self._journal.events(self.run, after=self.state.seq)
        if tail:
            self.state = fold_recorded(tail, self.state)


def _resolved(step: Step) -> tuple[str, ...]:
    """The demands that a step resolves: what was reserved for them is spent, or free again."""
    return tuple(event.id for event in step.events if type(event) is ev.DemandResolved)
