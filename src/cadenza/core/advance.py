"""How a run goes on: within a visit from demand to demand, and from one visit to the next.

The part of the conductor that plays. Each method adds to a :class:`~cadenza.core.scribe.Scribe`; nothing
here does I/O.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from cadenza.core import events as ev
from cadenza.core.demands import (
    AskPerson,
    CallModel,
    CallTool,
    Host,
    StartRun,
    WaitForRuns,
    WaitUntil,
    is_repeatable,
)
from cadenza.core.movements import MovementKind
from cadenza.core.movements.tools.guards import too_many_visits
from cadenza.core.outcomes import (
    BUDGET,
    NO_PROVIDER,
    Answered,
    AnyOutcome,
    Cancelled,
    Did,
    Failed,
    Returned,
    Unknown,
)
from cadenza.core.performance import Issued, Record, Tell
from cadenza.core.prompts.notices import repeated
from cadenza.core.retrying import RetryPolicy
from cadenza.core.routing import End, Enter, route
from cadenza.core.scribe import Scribe
from cadenza.core.signals import Signal
from cadenza.core.stage import Stage
from cadenza.core.state import NOT_YET, OpenDemand, RunState, VisitState
from cadenza.core.visit import Book
from cadenza.errors import CodeChanged
from cadenza.ids import derive
from cadenza.piece.model import Piece

REPEAT_WARNING = 3
"""A movement performed this often in a row is worth a warning (TAKT engine, loop detection)."""

MOST_PATIENT = 12
"""A waiting tool is asked at least once in so many times its own interval."""


class Advance:
    """Plays one piece on, for one run.

    Args:
        piece: what is played.
        kinds: movement kinds by name.
        retry: when a failed model call is tried again.
    """

    def __init__(
        self, piece: Piece, kinds: Mapping[str, MovementKind], retry: RetryPolicy | None = None
    ) -> None:
        self.piece = piece
        self.retry = retry or RetryPolicy()
        self._book = Book()
        self._stage = Stage(piece, kinds, self._book)

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
        often = too_many_visits(self.piece, enter.movement, state.counts)
        if often is not None and enter.cause not in ("retry", "answer", "gate"):
            self._end(scribe, End(status="aborted", reason="max_revisits", message=often), enter.movement)
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
        state = scribe.state
        ended = ev.RunEnded(
            status=end.status,
            reason=end.reason,
            message=end.message,
            movement=movement,
            output=state.previous,
        )
        reports = state.reports
        scribe.add(ended)
        if state.run.parent is not None and not state.run.detached:
            told = ev.ChildEnded(
                run=state.run.id,
                status=end.status,
                reason=end.reason,
                message=end.message,
                output=ended.output,
                reports=reports,
            )
            scribe.send(state.run.parent, told)

    # Within a visit.

    def _resolve(self, scribe: Scribe, opened: OpenDemand, outcome: AnyOutcome) -> None:
        if isinstance(outcome, Failed) and self._postponed(scribe, opened, outcome):
            return
        if type(outcome) is Did and outcome.again and self._asked_again(scribe, opened):
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
        made here; a model's may be retried. Without budget the run is held where a person is attached, and
        ends where none is."""
        if failed.code == BUDGET:
            self._without_budget(scribe, opened, failed.message)
            return True
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

    def _without_budget(self, scribe: Scribe, opened: OpenDemand, words: str) -> None:
        if scribe.state.run.interactive:
            scribe.add(ev.RunHeld(reason=BUDGET, message=words, demand=opened.id))
            return
        self._stop(scribe, "the budget was spent while this was being met", BUDGET)
        self._end(scribe, End(status="aborted", reason=BUDGET, message=words), scribe.state.last)

    def _stop(self, scribe: Scribe, words: str, reason: str) -> None:
        """Nothing is met and nobody is asked any more."""
        state = scribe.state
        self._lose(scribe, words)
        for opened in state.met_by_worker:
            scribe.add(ev.DemandResolved(id=opened.id, outcome=Cancelled()))
        for request in list(state.requests.values()):
            scribe.add(ev.RequestClosed(id=request.id, reason=reason))

    def _asked_again(self, scribe: Scribe, opened: OpenDemand) -> bool:
        """A waiting tool said "not yet": it is asked again later, and less often as time goes by."""
        demand = opened.demand
        if not isinstance(demand, CallTool) or not demand.every:
            return False
        wait = demand.every * min(opened.attempt, MOST_PATIENT)
        scribe.add(
            ev.DemandRetried(
                id=opened.id,
                attempt=opened.attempt,
                code=NOT_YET,
                message="",
                wait=wait,
                until=round(scribe.now + wait, 3),
            )
        )
        return True

    def _proceed(
        self, scribe: Scribe, issued: list[Issued], known: Mapping[str, AnyOutcome] = MappingProxyType({})
    ) -> Enter | None:
        """Record new demands, or the end of the visit; then what it leads to. What is known already when it
        is asked for (an answer in the ledger, children that have ended) goes on at once."""
        visit = scribe.state.visit
        assert visit is not None
        player = self._stage.player
        asked = deque(issued)
        while True:
            for told in player.told:
                scribe.add(told.event if isinstance(told, Record) else _warning(told))
            player.told.clear()
            if player.done:
                self._stage.clear()
                return self._leave(scribe, visit, player.result)
            if not asked:
                return None
            item = asked.popleft()
            ready = self._issue(scribe, visit, item)
            ready = known.get(item.key, ready)
            if ready is not None:
                scribe.add(ev.DemandResolved(id=self._id(scribe, visit, item.key), outcome=ready))
                asked.extend(player.feed(item.key, ready))

    def _id(self, scribe: Scribe, visit: VisitState, key: str) -> str:
        return derive(scribe.state.seed, "demand", visit.started.visit, visit.started.attempt, key)

    def _issue(self, scribe: Scribe, visit: VisitState, item: Issued) -> AnyOutcome | None:
        """Record a demand, and the request that it opens; its outcome where that is known already."""
        state, demand = scribe.state, item.demand
        id = self._id(scribe, visit, item.key)
        if isinstance(demand, WaitUntil):
            demand = msgspec.structs.replace(demand, until=round(scribe.now + demand.seconds, 3))
        elif isinstance(demand, StartRun):
            demand = msgspec.structs.replace(demand, id=derive(state.seed, "run", demand.key or id))
        scribe.add(ev.DemandIssued(id=id, key=item.key, demand=demand, lane=item.lane))
        if isinstance(demand, WaitForRuns):
            return children_ended(scribe.state)
        if isinstance(demand, AskPerson):
            return self._open_request(scribe, visit, id, item.lane, demand)
        return None

    def _open_request(
        self, scribe: Scribe, visit: VisitState, id: str, lane: str, demand: AskPerson
    ) -> AnyOutcome | None:
        """A card for a question; none for what the run's ledger holds: a decision answers at once, a card
        that
        is open is waited for (Maestro B.8)."""
        entry = scribe.state.ledger.get(demand.key) if demand.key is not None else None
        if entry is not None and entry.decided:
            return Answered(entry.value, entry.by, earlier=True)
        if entry is not None:
            request = scribe.state.requests.get(entry.request)
            if request is not None and request.demand not in scribe.state.open:
                scribe.add(ev.RequestMoved(id=entry.request, demand=id))
            return None
        scribe.add(
            ev.RequestOpened(
                id=derive(scribe.state.seed, "question", id),
                demand=id,
                movement=visit.started.movement,
                question=demand.question,
                reason=demand.reason,
                lane=lane,
                schema=demand.schema,
                sentinel=demand.sentinel,
                key=demand.key,
                screen=demand.screen,
                generation=demand.generation,
                deadline=round(scribe.now + demand.deadline, 3) if demand.deadline else 0.0,
                on_deadline=demand.on_deadline,
                remind=demand.remind or 0.0,
                remind_at=round(scribe.now + demand.remind, 3) if demand.remind else 0.0,
            )
        )
        return None

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


def _warning(told: Tell) -> ev.Warned:
    return ev.Warned(code=told.code, message=told.message)


def children_ended(state: RunState) -> Returned | None:
    """What the children came to, where all of them have ended; no child at all has ended, too."""
    if any(child.ended is None for child in state.children.values()):
        return None
    ended = [child.ended for child in state.children.values()]
    return Returned({"children": [_child(event) for event in ended if event is not None]})


def _child(event: ev.ChildEnded) -> dict[str, Any]:
    return {
        "run": event.run,
        "status": event.status,
        "reason": event.reason,
        "message": event.message,
        "output": event.output,
        "reports": dict(event.reports),
    }
