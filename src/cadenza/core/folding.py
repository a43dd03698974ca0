"""The fold: what each event does to a run's state.

:func:`apply` is the only thing that ever changes a :class:`~cadenza.core.state.RunState`; :func:`fold` starts
from nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from cadenza.core import events as ev
from cadenza.core.demands import CallModel, CallTool, Host, StartRun, WaitForRuns, WaitUntil
from cadenza.core.outcomes import AnyOutcome, Cancelled, Replied, Returned
from cadenza.core.spending import Spent, cost_of, price_of
from cadenza.core.state import (
    NOT_YET,
    USER_INPUTS,
    Child,
    Entry,
    OpenDemand,
    OpenRequest,
    QueuedInput,
    RunState,
    VisitState,
)
from cadenza.piece.vocabulary import ASK


def fold(events: Iterable[ev.AnyEvent], state: RunState | None = None) -> RunState:
    """The state after ``events``, from the beginning or from a copy of ``state``."""
    state = RunState() if state is None else state.copy()
    for event in events:
        apply(state, event, "")
    return state


def fold_recorded(recorded: Iterable[ev.Recorded], state: RunState | None = None) -> RunState:
    """As :func:`fold`, for events in their envelopes, so that inputs know their sender."""
    state = RunState() if state is None else state.copy()
    for item in recorded:
        apply(state, item.event, item.actor)
    return state


def apply(state: RunState, event: ev.AnyEvent, actor: str = "") -> None:
    """Fold one event into ``state``, in place; containers are replaced, never changed."""
    handler = _HANDLERS[type(event)]
    handler(state, event, actor)
    state.seq += 1


def _run_started(state: RunState, event: ev.RunStarted, actor: str) -> None:
    state.started = event
    state.limit = event.limit
    state.seed = event.seed
    state.budget = event.budget


def _run_forked(state: RunState, event: ev.RunForked, actor: str) -> None:
    origin = msgspec.convert(event.state, RunState)
    for name in RunState.__struct_fields__:
        setattr(state, name, getattr(origin, name))
    state.seq = 0
    state.seed = event.seed
    anew = tuple(opened for opened in origin.open.values() if isinstance(opened.demand, CallModel))
    state.origins = (*origin.origins, (event.origin, event.seq, tuple(opened.id for opened in anew)))
    for opened in anew:
        _unissue(state, opened)
    state.inputs, state.open, state.requests = (), {}, {}
    state.ledger = {key: entry for key, entry in origin.ledger.items() if entry.decided}
    state.children = {run: child for run, child in origin.children.items() if child.ended is not None}
    state.spent = Spent()
    assert state.started is not None
    state.started = msgspec.structs.replace(state.started, id=event.id, parent=None, root=None)
    state.held = None


def _unissue(state: RunState, opened: OpenDemand) -> None:
    """A fork asks anew for what was open: the call that was issued for it does not count here."""
    call = opened.demand
    assert isinstance(call, CallModel)
    key = call_key(call.movement, call.persona, call.purpose)
    state.calls = {**state.calls, key: state.calls[key] - 1}
    if call.conversation in state.lengths:
        before = state.lengths[call.conversation] - len(call.append)
        state.lengths = {**state.lengths, call.conversation: before}


def _visit_started(state: RunState, event: ev.VisitStarted, actor: str) -> None:
    if event.attempt > 1 and state.visit is not None:
        state.sessions, state.lengths = state.visit.sessions, state.visit.lengths
        state.carry = state.visit.carry
    state.visit = VisitState(
        started=event,
        sessions=state.sessions,
        lengths=state.lengths,
        carry=state.carry,
        folder=state.folder,
        asks=state.asks,
        deflections=state.deflections,
        granted=state.granted,
    )
    state.answers = event.answers
    state.open = {}
    state.requests = {id: r for id, r in state.requests.items() if r.key is not None and event.attempt > 1}
    state.limit = event.limit or state.limit
    if event.cause == "retry":
        state.ended = None
        state.inputs = _without(state.inputs, ev.RetryRequested)
    state.visits = event.visit
    state.iteration = event.iteration
    state.last = event.movement
    state.consecutive = event.consecutive
    if event.attempt == 1:
        counts = {**state.counts, event.movement: event.movement_iteration}
        for lane in event.lanes:
            counts[lane] = counts.get(lane, 0) + 1
        state.counts = counts


def _demand_issued(state: RunState, event: ev.DemandIssued, actor: str) -> None:
    earlier: dict[str, int] = {}
    demand = event.demand
    if isinstance(demand, CallModel):
        earlier = state.calls
        key = call_key(demand.movement, demand.persona, demand.purpose)
        state.calls = {**earlier, key: earlier.get(key, 0) + 1}
        if demand.session is not None:
            state.sessions = {**state.sessions, demand.session: demand.conversation}
            if demand.tools is not None:
                _lengthen(state, demand.conversation, len(demand.append), demand.upto)
    due = demand.until if isinstance(demand, WaitUntil) else 0.0
    opened = OpenDemand(
        id=event.id, key=event.key, demand=demand, lane=event.lane, earlier=earlier, not_before=due
    )
    state.open = {**state.open, event.id: opened}


def _lengthen(state: RunState, conversation: str, messages: int, before: int = 0) -> None:
    """Count messages of a session's conversation; the counts of those that nobody goes on in are dropped."""
    count = state.lengths.get(conversation, before) + messages
    going_on = set(state.sessions.values())
    kept = {name: length for name, length in state.lengths.items() if name in going_on}
    state.lengths = {**kept, conversation: count}


def call_key(movement: str, persona: str, purpose: str) -> str:
    """What model calls are counted by: the three as a JSON list, since names may hold anything."""
    return msgspec.json.encode((movement, persona, purpose)).decode("utf-8")


def _demand_started(state: RunState, event: ev.DemandStarted, actor: str) -> None:
    opened = msgspec.structs.replace(state.open[event.id], started=True)
    state.open = {**state.open, event.id: opened}


def _demand_retried(state: RunState, event: ev.DemandRetried, actor: str) -> None:
    opened = msgspec.structs.replace(
        state.open[event.id],
        attempt=event.attempt + 1,
        not_before=event.until,
        waited=state.open[event.id].waited + event.wait,
        started=False,
        asked=event.code == NOT_YET,
    )
    state.open = {**state.open, event.id: opened}


def _demand_resolved(state: RunState, event: ev.DemandResolved, actor: str) -> None:
    opened = state.open[event.id]
    state.open = {id: d for id, d in state.open.items() if id != event.id}
    answered = {r.id for r in state.requests.values() if r.demand == event.id}
    if answered:
        state.requests = {id: r for id, r in state.requests.items() if id not in answered}
        state.inputs = _without_answers(state.inputs, answered)
    outcome = event.outcome
    if state.visit is not None:
        outcomes = {**state.visit.outcomes, opened.key: outcome}
        state.visit = msgspec.structs.replace(state.visit, outcomes=outcomes)
    if isinstance(opened.demand, CallModel):
        _model_called(state, opened.demand, outcome)
    elif isinstance(opened.demand, CallTool) and not isinstance(outcome, Cancelled):
        state.spent = state.spent + _ONE_CALL
    elif isinstance(opened.demand, StartRun | WaitForRuns):
        _children(state, opened.demand, outcome)
    if isinstance(opened.demand, Host) and opened.demand.op == "open_folder":
        state.folder = _folder_of(outcome)


_ONE_CALL = Spent(tool_calls=1)


def _model_called(state: RunState, call: CallModel, outcome: AnyOutcome) -> None:
    if isinstance(outcome, Replied):
        usage = outcome.usage
        state.usage = state.usage + usage
        cost = cost_of(price_of(state.run.prices, outcome.model), usage) if state.run.prices else 0.0
        state.spent = state.spent + Spent(tokens=usage.input + usage.output, cost=cost)
        if call.session is not None and call.tools is not None:
            _lengthen(state, call.conversation, 1 if outcome.calls is None else 2)
            state.prompts = {name: n for name, n in state.prompts.items() if name in state.lengths}
            state.prompts[call.conversation] = usage.input
    if call.tools is None and (not isinstance(outcome, Replied) or outcome.blank):
        _forget_session(state, call)


def _children(state: RunState, demand: StartRun | WaitForRuns, outcome: AnyOutcome) -> None:
    if isinstance(demand, WaitForRuns):
        state.children = {run: child for run, child in state.children.items() if child.ended is None}
    elif isinstance(outcome, Returned) and not demand.detached and demand.id not in state.children:
        state.children = {**state.children, demand.id: Child()}


def _forget_session(state: RunState, call: CallModel) -> None:
    """Nobody goes on in a conversation whose last message was not answered, or with nothing."""
    if call.session is not None and state.sessions.get(call.session) == call.conversation:
        state.sessions = {key: value for key, value in state.sessions.items() if key != call.session}


def _folder_of(outcome: AnyOutcome) -> str | None:
    value: Any = outcome.value if isinstance(outcome, Returned) else None
    return value.get("path") if isinstance(value, dict) else None


def _request_opened(state: RunState, event: ev.RequestOpened, actor: str) -> None:
    request = OpenRequest(
        id=event.id,
        demand=event.demand,
        question=event.question,
        reason=event.reason,
        key=event.key,
        deadline=event.deadline,
        on_deadline=event.on_deadline,
        remind=event.remind,
        remind_at=event.remind_at,
    )
    state.requests = {**state.requests, event.id: request}
    if event.key is not None:
        state.ledger = {**state.ledger, event.key: Entry(request=event.id)}
    elif event.sentinel == ASK:
        state.asks += 1


def _request_moved(state: RunState, event: ev.RequestMoved, actor: str) -> None:
    _change_request(state, event.id, demand=event.demand)


def _request_reminded(state: RunState, event: ev.RequestReminded, actor: str) -> None:
    _change_request(state, event.id, reminders=event.count, remind_at=event.next)


def _change_request(state: RunState, id: str, **changes: Any) -> None:
    changed = msgspec.structs.replace(state.requests[id], **changes)
    state.requests = {**state.requests, id: changed}


def _request_decided(state: RunState, event: ev.RequestDecided, actor: str) -> None:
    request = state.requests.get(event.id)
    if request is None:
        return
    _change_request(state, event.id, decided=True, deadline=0.0, remind_at=0.0)
    if request.key is not None:
        entry = Entry(request=event.id, decided=True, value=event.value, by=actor)
        state.ledger = {**state.ledger, request.key: entry}
    _queue(state, event, actor)


def _request_gone(state: RunState, event: ev.RequestClosed | ev.RequestExpired, actor: str) -> None:
    request = state.requests.get(event.id)
    state.requests = {id: r for id, r in state.requests.items() if id != event.id}
    state.inputs = _without_answers(state.inputs, {event.id})
    if request is not None and request.key is not None and not request.decided:
        state.ledger = {key: entry for key, entry in state.ledger.items() if key != request.key}


def _request_kept(state: RunState, event: ev.RequestKept, actor: str) -> None:
    state.requests = {id: r for id, r in state.requests.items() if id != event.id}
    state.inputs = _without_answers(state.inputs, {event.id})


def _ask_deflected(state: RunState, event: ev.AskDeflected, actor: str) -> None:
    state.deflections += 1


def _tool_granted(state: RunState, event: ev.ToolGranted, actor: str) -> None:
    if event.name not in state.granted:
        state.granted = (*state.granted, event.name)


def _child_ended(state: RunState, event: ev.ChildEnded, actor: str) -> None:
    state.children = {**state.children, event.run: Child(ended=event)}
    if state.ended is None:
        _queue(state, event, actor)


def _child_reopened(state: RunState, event: ev.ChildReopened, actor: str) -> None:
    state.children = {**state.children, event.run: Child()}


def _budget_raised(state: RunState, event: ev.BudgetRaised, actor: str) -> None:
    state.budget = event.budget


def _report_saved(state: RunState, event: ev.ReportSaved, actor: str) -> None:
    state.reports = {**state.reports, event.name: event.text}


def _visit_ended(state: RunState, event: ev.VisitEnded, actor: str) -> None:
    signal = event.signal
    name = state.visit.started.movement if state.visit is not None else ""
    state.visit = None
    state.open, state.requests = {}, {}
    state.carry = signal.carry
    if signal.fresh:
        state.sessions, state.lengths, state.carry = {}, {}, ()
    if signal.output is not None:
        state.previous = signal.output
    told = [answer for lane in signal.lanes for answer in lane.answers]
    if signal.answer is not None and signal.method != "gate":
        told.append(signal.answer)
    if told:
        state.user_inputs = (*state.user_inputs, *told)[-USER_INPUTS:]
    if signal.judged is not None:
        judge = signal.judged.name
        state.iteration += 1
        state.counts = {**state.counts, judge: state.counts.get(judge, 0) + 1}
        state.history = ()
    elif signal.kind != "again":
        state.history = (*state.history, name)[-state.run.history :] if state.run.history else ()


def _without(inputs: tuple[QueuedInput, ...], kind: type[ev.Event]) -> tuple[QueuedInput, ...]:
    return tuple(i for i in inputs if not isinstance(i.event, kind))


def _without_answers(inputs: tuple[QueuedInput, ...], ids: set[str]) -> tuple[QueuedInput, ...]:
    return tuple(i for i in inputs if not (isinstance(i.event, ev.RequestDecided) and i.event.id in ids))


def _warned(state: RunState, event: ev.Warned, actor: str) -> None:
    return None


def _queue(state: RunState, event: ev.InputEvent, actor: str) -> None:
    state.inputs = (*state.inputs, QueuedInput(event, actor))


def _input_refused(state: RunState, event: ev.InputRefused, actor: str) -> None:
    refused = state.next_input
    state.inputs = tuple(queued for queued in state.inputs if queued is not refused)


def _input_taken(state: RunState, event: ev.InputTaken, actor: str) -> None:
    taken = state.next_input
    state.inputs = tuple(queued for queued in state.inputs if queued is not taken)


def _run_held(state: RunState, event: ev.RunHeld, actor: str) -> None:
    state.held = event


def _run_released(state: RunState, event: ev.RunReleased, actor: str) -> None:
    state.held = None
    state.inputs = _without(state.inputs, ev.ResumeRequested)


def _run_ended(state: RunState, event: ev.RunEnded, actor: str) -> None:
    state.ended = event
    state.held = None
    state.open, state.requests = {}, {}
    state.inputs = ()


_HANDLERS: dict[type, Any] = {
    ev.RunStarted: _run_started,
    ev.RunForked: _run_forked,
    ev.VisitStarted: _visit_started,
    ev.DemandIssued: _demand_issued,
    ev.DemandStarted: _demand_started,
    ev.DemandRetried: _demand_retried,
    ev.DemandResolved: _demand_resolved,
    ev.RequestOpened: _request_opened,
    ev.RequestDecided: _request_decided,
    ev.RequestMoved: _request_moved,
    ev.RequestReminded: _request_reminded,
    ev.RequestExpired: _request_gone,
    ev.RequestKept: _request_kept,
    ev.RequestClosed: _request_gone,
    ev.AskDeflected: _ask_deflected,
    ev.ToolGranted: _tool_granted,
    ev.ChildEnded: _child_ended,
    ev.ChildReopened: _child_reopened,
    ev.BudgetRaised: _budget_raised,
    ev.InputTaken: _input_taken,
    ev.ReportSaved: _report_saved,
    ev.VisitEnded: _visit_ended,
    ev.Warned: _warned,
    ev.CancelRequested: _queue,
    ev.ResumeRequested: _queue,
    ev.RetryRequested: _queue,
    ev.InputRefused: _input_refused,
    ev.RunHeld: _run_held,
    ev.RunReleased: _run_released,
    ev.RunEnded: _run_ended,
}
