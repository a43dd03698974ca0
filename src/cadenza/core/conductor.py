"""The conductor: decides what comes next, and only that.

It does no I/O, reads no clock and draws no random number. It is given a state and what happened, and
gives back a :class:`~cadenza.core.scribe.Step`. The same arguments give the same step, in any process, at
any time (see :mod:`cadenza.core.stage` for the generator that it keeps as a cache).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cadenza.core import events as ev
from cadenza.core.advance import Advance, children_ended
from cadenza.core.demands import AskPerson, WaitForRuns, is_repeatable
from cadenza.core.movements import KINDS, MovementKind
from cadenza.core.outcomes import Answered, AnyOutcome, Expired, Unknown
from cadenza.core.retrying import RetryPolicy
from cadenza.core.routing import End, Enter
from cadenza.core.scribe import Scribe, Step
from cadenza.core.state import OpenDemand, OpenRequest, QueuedInput, RunState
from cadenza.ids import Hash
from cadenza.piece.model import Piece

Texts = Mapping[Hash, str]


class Conductor(Advance):
    """Plays one piece, for one run.

    Args:
        piece: what is played.
        kinds: movement kinds by name; the package's own by default.
        retry: when a failed model call is tried again.
    """

    def __init__(
        self, piece: Piece, *, kinds: Mapping[str, MovementKind] = KINDS, retry: RetryPolicy | None = None
    ) -> None:
        super().__init__(piece, kinds, retry)

    def start(self, started: ev.RunStarted, now: float, texts: Texts) -> Step:
        """Begin a run: its first events, up to the first demands.

        Raises:
            CodeChanged: the first movement is of a kind that is not known here.
        """
        self._stage.version(self.piece.initial_movement)
        scribe = self._scribe(RunState(), now, texts)
        scribe.add(started)
        self._enter(scribe, Enter(movement=self.piece.initial_movement, cause="start"))
        return scribe.step()

    def begin(self, state: RunState, demand: str, now: float, texts: Texts) -> Step:
        """Say that a demand which must not be met twice is about to be met."""
        scribe = self._scribe(state, now, texts)
        if demand in state.open:
            scribe.add(ev.DemandStarted(id=demand))
        return scribe.step()

    def resolve(self, state: RunState, demand: str, outcome: AnyOutcome, now: float, texts: Texts) -> Step:
        """One demand was met, or was not. A demand that is no longer open gives an empty step.

        Raises:
            CodeChanged: the visit cannot be rebuilt by this version (see :meth:`check`).
        """
        scribe = self._scribe(state, now, texts)
        opened = state.open.get(demand)
        if opened is not None:
            self._resolve(scribe, opened, outcome)
        return scribe.step()

    def receive(self, state: RunState, queued: QueuedInput, now: float, texts: Texts) -> Step:
        """Take one input event that is queued in ``state``.

        Raises:
            CodeChanged: the visit cannot be rebuilt by this version.
        """
        scribe = self._scribe(state, now, texts)
        event = queued.event
        if isinstance(event, ev.RequestDecided):
            self._decided(scribe, event, queued.actor)
        elif isinstance(event, ev.CancelRequested):
            self._cancel(scribe, event, queued.actor)
        elif isinstance(event, ev.ResumeRequested):
            self._resume(scribe, event)
        elif isinstance(event, ev.ChildEnded):
            self._child_ended(scribe)
        else:
            assert isinstance(event, ev.RetryRequested)
            self._retry(scribe, event)
        return scribe.step()

    def tick(self, state: RunState, now: float, texts: Texts) -> Step:
        """Do what is due: expire requests that nobody answered in time, remind of those that wait. The step
        is empty where nothing is.

        Raises:
            CodeChanged: the visit cannot be rebuilt by this version.
        """
        scribe = self._scribe(state, now, texts)
        due = [r for r in state.requests.values() if not r.decided and 0 < r.deadline <= now]
        for request in due:
            if scribe.state.ended is None and request.id in scribe.state.requests:
                self._expire(scribe, request)
        for request in list(scribe.state.requests.values()):
            if 0 < request.remind_at <= now and not request.decided:
                again = round(now + request.remind, 3)
                reminded = ev.RequestReminded(id=request.id, count=request.reminders + 1, next=again)
                scribe.add(reminded)
        return scribe.step()

    def fork(self, started: ev.RunForked, origin: RunState, now: float, texts: Texts) -> Step:
        """The first step of a run that begins as another one stood: ``origin`` is that run's state then.
        What was
        open is asked for anew; what had been started has an unknown outcome here.

        Raises:
            CodeChanged: the visit cannot be rebuilt by this version.
        """
        scribe = self._scribe(RunState(), now, texts)
        scribe.add(started)
        if scribe.state.visit is None:
            return scribe.step()
        words = "it was begun in the run that this one was forked from"
        begun = (o for o in origin.open.values() if o.started and not is_repeatable(o.demand))
        lost: dict[str, AnyOutcome] = {opened.key: Unknown(message=words) for opened in begun}
        following = self._proceed(scribe, self._stage.adopt(scribe.state), lost)
        if following is not None:
            self._enter(scribe, following)
        return scribe.step()

    def hold(
        self, state: RunState, reason: str, message: str, now: float, *, demand: str | None = None
    ) -> Step:
        """Make the run stand until somebody resumes it."""
        scribe = self._scribe(state, now, {})
        scribe.add(ev.RunHeld(reason=reason, message=message, demand=demand))
        return scribe.step()

    def refuse(self, state: RunState, queued: QueuedInput, message: str, now: float) -> Step:
        """Drop the input that is next in ``state``, saying why."""
        scribe = self._scribe(state, now, {})
        tag = str(type(queued.event).__struct_config__.tag)
        scribe.add(ev.InputRefused(input=tag, message=message))
        return scribe.step()

    def check(self, state: RunState, texts: Texts) -> None:
        """Rebuild the current visit, so that whatever stands in the way shows before anything is played.

        Raises:
            CodeChanged: with the reason.
        """
        if state.visit is not None:
            self._book.open(texts)
            self._stage.ready(state)

    def _scribe(self, state: RunState, now: float, texts: Texts) -> Scribe:
        self._book.open(texts)
        return Scribe(state, self._book, now)

    # What came, and whom it is for.

    def _decided(self, scribe: Scribe, event: ev.RequestDecided, actor: str) -> None:
        """An answer goes to every demand that waits for it; to none, it stays in the ledger."""
        request = scribe.state.requests[event.id]
        waiting = [o.id for o in scribe.state.open.values() if _waits_for(o, request)]
        if not waiting:
            scribe.add(ev.RequestKept(id=event.id))
            return
        for id in waiting:
            opened = scribe.state.open.get(id)
            if opened is not None:
                self._resolve(scribe, opened, Answered(event.value, actor))

    def _expire(self, scribe: Scribe, request: OpenRequest) -> None:
        waiting = [o.id for o in scribe.state.open.values() if _waits_for(o, request)]
        scribe.add(ev.RequestExpired(id=request.id))
        if request.on_deadline == "abort":
            self._stop(scribe, "nobody answered in time", "deadline")
            message = "a question was not answered before its deadline"
            self._end(scribe, End(status="aborted", reason="deadline", message=message), scribe.state.last)
            return
        for id in waiting:
            opened = scribe.state.open.get(id)
            if opened is not None:
                self._resolve(scribe, opened, Expired())

    def _child_ended(self, scribe: Scribe) -> None:
        scribe.add(ev.InputTaken(input="child.ended"))
        ready = children_ended(scribe.state)
        if ready is None:
            return
        for id in [o.id for o in scribe.state.open.values() if type(o.demand) is WaitForRuns]:
            opened = scribe.state.open.get(id)
            if opened is not None:
                self._resolve(scribe, opened, ready)

    # Inputs.

    def _cancel(self, scribe: Scribe, event: ev.CancelRequested, actor: str) -> None:
        state = scribe.state
        self._stop(scribe, "the run was cancelled while this was being met", "cancelled")
        for run, child in state.children.items():
            if child.ended is None:
                told = (
                    f"its parent was cancelled: {event.reason}"
                    if event.reason
                    else "its parent was cancelled"
                )
                scribe.send(run, ev.CancelRequested(reason=told))
        by = f"cancelled by {actor}" if actor else "cancelled"
        message = f"{by}: {event.reason}" if event.reason else by
        self._end(scribe, End(status="cancelled", reason="cancelled", message=message), state.last)

    def _resume(self, scribe: Scribe, event: ev.ResumeRequested) -> None:
        asked = [i.event for i in scribe.state.inputs if isinstance(i.event, ev.ResumeRequested)]
        restart = event.restart_visit or any(resume.restart_visit for resume in asked)
        visit = scribe.state.visit
        version = self._stage.version(visit.started.movement) if restart and visit is not None else 0
        scribe.add(ev.RunReleased())
        if not restart or visit is None:
            return
        self._lose(scribe, "the visit was restarted while this was being met")
        for request in list(scribe.state.requests.values()):
            if request.key is None:  # what is in the ledger is waited for by whoever asks again
                scribe.add(ev.RequestClosed(id=request.id, reason="visit_restarted"))
        scribe.add(
            msgspec.structs.replace(
                visit.started,
                attempt=visit.started.attempt + 1,
                cause="restart",
                at=scribe.now,
                version=version,
            )
        )
        following = self._proceed(scribe, self._stage.open(scribe.state))
        if following is not None:
            self._enter(scribe, following)

    def _retry(self, scribe: Scribe, event: ev.RetryRequested) -> None:
        ended = scribe.state.ended
        wanted = event.movement or (ended.movement if ended is not None else None)
        target = wanted if wanted in self.piece.by_name else self.piece.initial_movement
        same = ended is not None and target == ended.movement == scribe.state.last
        answers = scribe.state.answers if same else ()
        movement = target or self.piece.initial_movement
        self._stage.version(movement)
        run = scribe.state.run
        if run.parent is not None and not run.detached:
            scribe.send(run.parent, ev.ChildReopened(run=run.id))
        self._enter(scribe, Enter(movement=movement, cause="retry", answers=answers))


def _waits_for(opened: OpenDemand, request: OpenRequest) -> bool:
    """Whether a demand waits for the request: it opened it, or asked for the same thing."""
    demand = opened.demand
    if opened.id == request.demand:
        return True
    return type(demand) is AskPerson and demand.key is not None and demand.key == request.key
