"""One claimed run, played until it stands or ends."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

from cadenza.clock import Clock
from cadenza.core import events as ev
from cadenza.core.conductor import Conductor
from cadenza.core.demands import is_repeatable
from cadenza.core.outcomes import AnyOutcome, Unknown
from cadenza.core.scribe import Step
from cadenza.core.state import OpenDemand, RunState, fold_recorded
from cadenza.errors import CodeChanged, JournalError, SequenceConflict
from cadenza.ids import Hash
from cadenza.journal.store import POISON_CLAIMS, Commit, Journal, Lease
from cadenza.worker.meeting import Meeting, Met
from cadenza.worker.texts import JournalTexts

POLL_SECONDS = 0.3
"""How often a playing run looks for inputs that another process appended."""

LINGER_SECONDS = 2.0
"""A wait longer than this gives the lease back; the run is claimed again when it is due."""

Committer = Callable[[Commit], Awaitable[None]]
OnCommit = Callable[[str, RunState, tuple[ev.AnyEvent, ...]], None]


class Session:
    """Plays one run under one lease.

    Args:
        commit: appends a commit durably (the group-committing writer, or the journal itself).
        on_commit: is told of what was committed, after the fact.
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
        self._tasks: dict[asyncio.Task[Met], OpenDemand] = {}
        self._finished: deque[asyncio.Task[Met]] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._interrupted = False
        self._checked = False
        self._settled = False
        self.released = False
        """Whether the lease was given back with the last commit."""
        self._stepping = asyncio.Lock()

    def notify(self) -> None:
        """Say that an input may have been appended."""
        self._stir()

    def interrupt(self) -> None:
        """Ask the session to save, to hold the run with reason ``interrupted``, and to return."""
        self._interrupted = True
        self._stir()

    async def play(self) -> None:
        """Play until the run ends, is parked or held, or waits for longer than a worker should.

        Raises:
            JournalError: something could not be committed; what was not is still open in the journal.
        """
        try:
            await self._ready()
            self._settled = True
            while not self.released and await self._turn():
                pass
        finally:
            await self._drop_tasks()

    async def _ready(self) -> None:
        """Settle what a lost worker left: a poisonous run is held, what was started becomes unknown."""
        state = self.state
        if state.held is None and state.ended is None and self._lease.claims > POISON_CLAIMS:
            await self._hold("poison", self._poison_message(), demand=next(iter(state.open), None))
        for opened in list(state.open.values()):
            if opened.started and not is_repeatable(opened.demand):
                await self._resolve(opened.id, Unknown(message="the process died while this was being met"))

    def _poison_message(self) -> str:
        opened = next(iter(self.state.open.values()), None)
        where = f" at demand {opened.key!r}" if opened is not None else ""
        lost = self._lease.claims - 1
        return f"its worker was lost {lost} times in a row{where}, with nothing committed in between"

    async def _turn(self) -> bool:
        """One round: an input, or an outcome, or a wait. False when there is nothing left to do here."""
        if self._interrupted:
            await self._stop_for_interrupt()
            return False
        queued = self.state.next_input
        if queued is not None:
            if isinstance(queued.event, ev.CancelRequested):
                await self._drop_tasks()
            await self._step(self._receive)
            self._checked = False
            return True
        if self.state.ended is None and self.state.held is None and await self._check():
            self._launch()
        if not self._tasks:
            return await self._wait_for_retry()
        await self._await_outcomes()
        return True

    def _receive(self, state: RunState) -> Step | None:
        queued = state.next_input
        if queued is None:
            return None
        return self._conductor.receive(state, queued, self._clock(), self._texts)

    async def _check(self) -> bool:
        """Whether this version can go on where the journal stands; if not, the run is held."""
        if not self._checked:
            try:
                self._conductor.check(self.state, self._texts)
            except CodeChanged as changed:
                await self._hold("code_changed", str(changed))
                return False
            self._checked = True
        return True

    def _launch(self) -> None:
        """Start to meet every demand that is due and is not being met."""
        meeting = {opened.id for opened in self._tasks.values()}
        now = self._clock()
        for opened in self.state.met_by_worker:
            if opened.id not in meeting and opened.not_before <= now:
                task = asyncio.create_task(self._meet(opened), name=f"{self.run}:{opened.key}")
                self._tasks[task] = opened
                task.add_done_callback(self._note)

    async def _meet(self, opened: OpenDemand) -> Met:
        if not is_repeatable(opened.demand):
            await self._step(
                lambda state: self._conductor.begin(state, opened.id, self._clock(), self._texts)
            )
        return await self._meeting.meet(self.run, self.state, opened, self._texts)

    def _note(self, task: asyncio.Task[Met]) -> None:
        self._finished.append(task)
        self._stir()

    def _stir(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _await_outcomes(self) -> None:
        """Take the outcomes that are there, or wait for one; now and then look for inputs of others."""
        if not self._finished:
            await self._doze(min(POLL_SECONDS, self._until_next_retry()))
        if not self._finished:
            await self._catch_up()
        while self._finished:
            task = self._finished.popleft()
            opened = self._tasks.pop(task, None)
            if opened is not None:
                met = task.result()
                self._texts.add(met.texts)
                await self._resolve(opened.id, met.outcome, met)

    async def _doze(self, seconds: float) -> None:
        """Wait until something stirs, at most ``seconds``."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(seconds, self._stir)
        try:
            await self._waiter
        finally:
            timer.cancel()
            self._waiter = None

    def _until_next_retry(self) -> float:
        now = self._clock()
        waits = [d.not_before - now for d in self.state.met_by_worker if d.not_before > now]
        return max(0.0, min(waits, default=POLL_SECONDS))

    async def _wait_for_retry(self) -> bool:
        wake = self.state.wake_at
        if wake is None:
            return False
        wait = wake - self._clock()
        if wait > LINGER_SECONDS:
            return False
        if wait > 0:
            await self._doze(min(wait, POLL_SECONDS))
            await self._catch_up()
        return True

    async def _stop_for_interrupt(self) -> None:
        await self._drop_tasks()
        if self.state.ended is None and self.state.held is None:
            await self._hold("interrupted", "interrupted by a person")

    async def _hold(self, reason: str, message: str, *, demand: str | None = None) -> None:
        await self._step(
            lambda state: self._conductor.hold(state, reason, message, self._clock(), demand=demand)
        )

    async def _resolve(self, demand: str, outcome: AnyOutcome, met: Met | None = None) -> None:
        await self._step(
            lambda state: self._conductor.resolve(state, demand, outcome, self._clock(), self._texts), met
        )

    async def _step(self, decide: Callable[[RunState], Step | None], met: Met | None = None) -> None:
        """Decide and commit; on a sequence mismatch fold the tail and decide the same thing again. A visit
        that this version cannot rebuild holds the run instead."""
        async with self._stepping:
            while True:
                try:
                    step = decide(self.state)
                except CodeChanged as changed:
                    if self.state.held is not None:
                        return
                    step = self._conductor.hold(self.state, "code_changed", str(changed), self._clock())
                if step is None or not step.events:
                    return
                texts = {**met.texts, **step.texts} if met is not None else step.texts
                try:
                    await self._commit(self._transaction(step, texts))
                except SequenceConflict:
                    await self._catch_up()
                    continue
                self.state = step.state
                self.released = self._parks(step)
                self._texts.add(step.texts)
                if self._on_commit is not None:
                    self._on_commit(self.run, self.state, step.events)
                return

    def _transaction(self, step: Step, texts: Mapping[Hash, str]) -> Commit:
        return Commit(
            run=self.run,
            epoch=self._lease.epoch,
            after=self.state.seq,
            events=step.events,
            state=step.state,
            at=self._clock(),
            texts=texts,
            release=self._parks(step),
        )

    def _parks(self, step: Step) -> bool:
        """Whether nothing is left to do here after ``step``: parking is releasing the worker. A run's
        folder is still to be brought up to date under the lease."""
        state = step.state
        return self._settled and not self._tasks and state.wake_at is None and state.folder is None

    async def _catch_up(self) -> None:
        """Fold what others appended."""
        tail = self._journal.events(self.run, after=self.state.seq)
        if tail:
            self.state = fold_recorded(tail, self.state)

    async def _drop_tasks(self) -> None:
        """Stop what is being met. A ``write`` under way stays ``started`` in the journal."""
        tasks = list(self._tasks)
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, JournalError):
                raise result
