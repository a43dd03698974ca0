"""The conductor: decides what comes next, and only that.

It does no I/O, reads no clock and draws no random number. It is given a state and what happened, and
gives back a :class:`~cadenza.core.scribe.Step`. The same arguments give the same step, in any process, at
any time (see :mod:`cadenza.core.stage` for the generator that it keeps as a cache).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cadenza.core import events as ev
from cadenza.core.demands import AskPerson, CallModel, Host, WaitUntil, is_repeatable
from cadenza.core.movements import KINDS, MovementKind
from cadenza.core.outcomes import NO_PROVIDER, Answered, AnyOutcome, Cancelled, Failed, Returned, Unknown
from cadenza.core.performance import Issued
from cadenza.core.prompts.notices import repeated
from cadenza.core.retrying import RetryPolicy
from cadenza.core.routing import End, Enter, route
from cadenza.core.scribe import Scribe, Step
from cadenza.core.signals import Signal
from cadenza.core.stage import Stage
from cadenza.core.state import OpenDemand, QueuedInput, RunState, VisitState
from cadenza.core.visit import Book
from cadenza.errors import CodeChanged
from cadenza.ids import Hash, derive
from cadenza.piece.model import Piece

REPEAT_WARNING = 3
"""A movement performed this often in a row is worth a warning (TAKT engine, loop detection)."""

Texts = Mapping[Hash, str]


class Conductor:
    """Plays one piece, for one run.

    Args:
        piece: what is played.
        kinds: movement kinds by name; the package's own by default.
        retry: when a failed model call is tried again.
    """

    def __init__(
        self, piece: Piece, *, kinds: Mapping[str, MovementKind] = KINDS, retry: RetryPolicy | None = None
    ) -> None:
        self.piece = piece
        self.retry = retry or RetryPolicy()
        self._book = Book()
        self._stage = Stage(piece, kinds, self._book)

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
            opened = state.open[state.requests[event.id].demand]
            self._resolve(scribe, opened, Answered(event.value, queued.actor))
        elif isinstance(event, ev.CancelRequested):
            self._cancel(scribe, event, queued.actor)
        elif isinstance(event, ev.ResumeRequested):
            self._resume(scribe, event)
        else:
            self._retry(scribe, event)
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

    # Between movements.

    def _enter(self, scribe: Scribe, enter: Enter) -> None:
        """Visit a movement, and the ones after it as long as they need nothing from outside."""
        following: Enter | None = enter
        while following is not None:
            following = self._visit(scribe, following)

    def _visit(self, scribe: Scribe, enter: Enter) -> Enter | None:
        state = scribe.state
        if state.iteration >= state.limit and enter.cause != "retry":
            message = f'Max movements reached ({state.limit}); next would have been "{enter.movement}"'
            self._end(scribe, End(status="aborted", reason="max_movements", message=message), enter.movement)
            return None
        try:
            started = self._started(scribe, enter)
        except CodeChanged as unknown:
            end = End(status="error", reason="unknown_kind", message=str(unknown))
            self._end(scribe, end, enter.movement)
            return None
        scribe.add(started)
        self._warn_of_repetition(scribe)
        return self._proceed(scribe, self._stage.open(scribe.state))

    def _started(self, scribe: Scribe, enter: Enter) -> ev.VisitStarted:
        state = scribe.state
        consecutive = 1
        if enter.cause == "answer":
            consecutive = state.consecutive
        elif enter.movement == state.last and enter.cause != "retry":
            consecutive = state.consecutive + 1
        spent = state.iteration >= state.limit
        return ev.VisitStarted(
            visit=state.visits + 1,
            movement=enter.movement,
            iteration=state.iteration + 1,
            movement_iteration=state.counts.get(enter.movement, 0) + 1,
            consecutive=consecutive,
            at=scribe.now,
            cause=enter.cause,
            version=self._stage.version(enter.movement),
            lanes=tuple(lane.name for lane in self.piece.by_name[enter.movement].lanes),
            answers=enter.answers,
            note=enter.note,
            limit=state.limit + state.run.limit if spent else 0,
        )

    def _warn_of_repetition(self, scribe: Scribe) -> None:
        visit = scribe.state.visit
        if visit is None or visit.started.cause == "answer":
            return
        count = visit.started.consecutive
        if count >= REPEAT_WARNING:
            message = repeated(scribe.state.run.language, visit.started.movement, count)
            scribe.add(ev.Warned(code="repeated", message=message))

    def _end(self, scribe: Scribe, end: End, movement: str | None) -> None:
        output = scribe.state.previous
        scribe.add(
            ev.RunEnded(
                status=end.status, reason=end.reason, message=end.message, movement=movement, output=output
            )
        )

    # Within a visit.

    def _resolve(self, scribe: Scribe, opened: OpenDemand, outcome: AnyOutcome) -> None:
        if isinstance(outcome, Failed) and self._postponed(scribe, opened, outcome):
            return
        player = self._stage.ready(scribe.state)
        scribe.add(ev.DemandResolved(id=opened.id, outcome=outcome))
        demand = opened.demand
        if isinstance(demand, Host) and demand.op == "save_reports" and isinstance(outcome, Returned):
            for name, text in demand.args["reports"].items():
                scribe.add(ev.ReportSaved(name=name, text=text))
        following = self._proceed(scribe, player.feed(opened.key, outcome))
        if following is not None:
            self._enter(scribe, following)

    def _postponed(self, scribe: Scribe, opened: OpenDemand, failed: Failed) -> bool:
        """Whether a failure leaves its demand open: a host's holds the run, as does a provider that cannot be
        made here; a model's may be retried."""
        if isinstance(opened.demand, Host) or failed.code == NO_PROVIDER:
            reason = "host" if isinstance(opened.demand, Host) else "provider"
            scribe.add(ev.RunHeld(reason=reason, message=failed.message, demand=opened.id))
            return True
        wait = None
        if isinstance(opened.demand, CallModel):
            wait = self.retry.wait(opened, failed, scribe.state.run.seed)
        if wait is None:
            return False
        scribe.add(
            ev.DemandRetried(
                id=opened.id,
                attempt=opened.attempt,
                code=failed.code,
                message=failed.message,
                wait=wait,
                until=round(scribe.now + wait, 3),
            )
        )
        return True

    def _proceed(self, scribe: Scribe, issued: list[Issued]) -> Enter | None:
        """Record new demands, or the end of the visit; then what it leads to."""
        visit = scribe.state.visit
        assert visit is not None
        player = self._stage.player
        for told in player.told:
            scribe.add(ev.Warned(code=told.code, message=told.message))
        player.told.clear()
        if player.done:
            self._stage.clear()
            return self._leave(scribe, visit, player.result)
        for item in issued:
            self._issue(scribe, visit, item)
        return None

    def _issue(self, scribe: Scribe, visit: VisitState, item: Issued) -> None:
        seed = scribe.state.run.seed
        id = derive(seed, "demand", visit.started.visit, visit.started.attempt, item.key)
        demand = item.demand
        if isinstance(demand, WaitUntil):
            demand = msgspec.structs.replace(demand, until=round(scribe.now + demand.seconds, 3))
        scribe.add(ev.DemandIssued(id=id, key=item.key, demand=demand, lane=item.lane))
        if isinstance(item.demand, AskPerson):
            scribe.add(
                ev.RequestOpened(
                    id=derive(seed, "question", id),
                    demand=id,
                    movement=visit.started.movement,
                    question=item.demand.question,
                    reason=item.demand.reason,
                    lane=item.lane,
                    schema=item.demand.schema,
                )
            )

    def _leave(self, scribe: Scribe, visit: VisitState, signal: Signal) -> Enter | None:
        started = visit.started
        self._lose(scribe, "the visit ended while this was being met")
        for request in list(scribe.state.requests.values()):
            scribe.add(ev.RequestClosed(id=request.id, reason="visit_ended"))
        scribe.add(ev.VisitEnded(visit=started.visit, signal=signal))
        decision = route(self.piece, started.movement, started.answers, signal)
        if isinstance(decision, Enter):
            return decision
        self._end(scribe, decision, started.movement)
        return None

    def _lose(self, scribe: Scribe, message: str) -> None:
        """Nothing that was started is left without an outcome."""
        for opened in list(scribe.state.open.values()):
            if opened.started and not is_repeatable(opened.demand):
                scribe.add(ev.DemandResolved(id=opened.id, outcome=Unknown(message=message)))

    # Inputs.

    def _cancel(self, scribe: Scribe, event: ev.CancelRequested, actor: str) -> None:
        state = scribe.state
        self._lose(scribe, "the run was cancelled while this was being met")
        for opened in state.met_by_worker:
            scribe.add(ev.DemandResolved(id=opened.id, outcome=Cancelled()))
        for request in list(state.requests.values()):
            scribe.add(ev.RequestClosed(id=request.id, reason="cancelled"))
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
        self._enter(scribe, Enter(movement=movement, cause="retry", answers=answers))
