"""What the rows of a journal are, as functions of the events: both stores, rebuild and verify use these."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from cadenza.core import events as ev
from cadenza.core.demands import CALLS, AnyDemand, AskPerson, CallModel, CallTool, Host, Message, StartRun
from cadenza.core.outcomes import Cancelled, Did, Replied, Returned
from cadenza.core.signals import ENDED, Signal, Status
from cadenza.core.spending import Spend
from cadenza.core.state import Origin, RunState
from cadenza.ids import Hash
from cadenza.journal.store import SNAPSHOT_EVERY, Decision, RequestRow, RunRow

SNAPSHOT_VERSION = 2
"""The format of snapshots. Grows whenever the fold or :class:`RunState` changes its meaning; a snapshot of
another version is not read, the events are."""

Standing = Literal["held", "ended"] | None


class Derived(NamedTuple):
    """The columns of a run's row that its state decides. ``standing`` does not change with queued inputs."""

    status: Status
    reason: str | None
    message: str | None
    movement: str | None
    iteration: int
    wake_at: float | None
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float
    tool_calls: int
    standing: Standing


class MessageRow(NamedTuple):
    """One message of a conversation: ``item`` is its place in the event ``seq`` that brought it."""

    conversation: str
    seq: int
    item: int
    role: str
    text: Hash
    demand: str


def derive(state: RunState) -> Derived:
    """What a state says in a listing.

    An input that is to be taken now hides reason and message, so that appending one is the same update
    whatever the state (:func:`wakes`).
    """
    wake_at, usage, held, ended = state.wake_at, state.usage, state.held, state.ended
    status: Status = "queued"
    reason = message = None
    if state.stands:  # nothing that a worker could do now
        status, reason = state.status, state.wait_reason
        message = held.message if held is not None else ended.message if ended is not None else None
    return Derived(
        status,
        reason,
        message or None,
        _movement(state),
        state.iteration,
        wake_at,
        usage.input,
        usage.output,
        usage.cached,
        round(state.spent.cost, 9),
        state.spent.tool_calls,
        "held" if held is not None else "ended" if ended is not None else None,
    )


def wakes(event: ev.InputEvent, standing: Standing) -> bool:
    """Whether an input makes its run claimable. While a run is held, an answer or a child's end waits for
    it to
    go on; a run that has ended only notes what its children do; a budget's change wakes nobody."""
    if isinstance(event, ev.ChildReopened | ev.BudgetRaised):
        return False
    if isinstance(event, ev.ChildEnded):
        return standing is None
    return standing != "held" or not isinstance(event, ev.RequestDecided)


def _movement(state: RunState) -> str | None:
    if state.ended is not None and state.ended.movement is not None:
        return state.ended.movement
    return state.visit.started.movement if state.visit is not None else state.last


def run_row(run: str, state: RunState, *, created_at: float, updated_at: float, actor: str) -> RunRow:
    """A run's row. ``actor`` is who began it; the times are those of its first and last event."""
    derived = derive(state)
    return RunRow(
        id=run,
        workspace=state.run.workspace,
        piece=state.run.name,
        status=derived.status,
        reason=derived.reason,
        message=derived.message,
        movement=derived.movement,
        iteration=derived.iteration,
        wake_at=derived.wake_at,
        created_at=created_at,
        updated_at=updated_at,
        seq=state.seq,
        actor=actor,
        input_tokens=derived.input_tokens,
        output_tokens=derived.output_tokens,
        cached_tokens=derived.cached_tokens,
        cost=derived.cost,
        tool_calls=derived.tool_calls,
        parent=state.run.parent,
        root=state.run.root or run,
    )


def budget_of(state: RunState) -> str | None:
    """What a run's tree may spend, as JSON; None where nothing limits it, or where it is not its to say."""
    return budget_text(state.budget) if state.run.parent is None else None


def budget_text(budget: Spend) -> str | None:
    """Limits as JSON; None where there are none."""
    return msgspec.json.encode(budget).decode() if budget else None


def snapshot_due(state: RunState, last: int) -> bool:
    """Whether to write a snapshot after a commit; ``last`` is the seq of the one before (0 for none)."""
    return is_due(state.stands, state.seq - last)


def is_due(stands: bool, events: int) -> bool:
    """As :func:`snapshot_due`, where ``events`` came since the last snapshot."""
    return (stands and events > 0) or events >= SNAPSHOT_EVERY


def refusal(event: ev.InputEvent, status: str, standing: Standing) -> str | None:
    """Why a run cannot take an input event, in words that follow "run X"; None when it can."""
    match event:
        case ev.RetryRequested() if status not in ENDED:
            return "is to go on already" if standing == "ended" else f"has not ended (it is {status})"
        case ev.ResumeRequested() if standing == "ended" or (standing is None and not event.restart_visit):
            return f"is not held (it is {status})"
        case ev.CancelRequested() if status in ENDED:
            return f"has ended ({status})"
        case ev.RequestDecided():
            return "takes answers through its requests only"
    return None


# -- requests ---------------------------------------------------------------------------------------------

_SETTLING = frozenset(
    {
        ev.RequestDecided,
        ev.RequestMoved,
        ev.RequestReminded,
        ev.RequestExpired,
        ev.RequestClosed,
        ev.VisitStarted,
        ev.VisitEnded,
        ev.RunEnded,
    }
)


def project_requests(
    rows: dict[str, RequestRow], events: Iterable[ev.AnyEvent], *, run: str, at: float, actor: str
) -> dict[str, RequestRow]:
    """Fold events of one moment into a run's requests ``rows``, in place; returns the rows that changed.

    ``rows`` holds at least the open ones; others stay as they are.
    """
    changed: dict[str, RequestRow] = {}
    for event in events:
        if isinstance(event, ev.RequestOpened):
            changed[event.id] = _opened(event, run, at)
        elif isinstance(event, ev.RequestDecided):
            if (row := rows.get(event.id)) and row.status == "open":
                changed[row.id] = decided(row, event, at=at, actor=actor)
        elif isinstance(event, ev.RequestMoved | ev.RequestReminded | ev.RequestExpired):
            if (row := rows.get(event.id)) and row.status == "open":
                changed[row.id] = _changed(row, event)
        else:
            changed.update(_closed(rows, event))
        rows.update(changed)
    return changed


def decided(row: RequestRow, event: ev.RequestDecided, *, at: float, actor: str) -> RequestRow:
    """An open request's row after its answer."""
    return msgspec.structs.replace(row, status="decided", value=event.value, decided_at=at, decided_by=actor)


def _changed(row: RequestRow, event: ev.RequestMoved | ev.RequestReminded | ev.RequestExpired) -> RequestRow:
    if isinstance(event, ev.RequestMoved):
        return msgspec.structs.replace(row, demand=event.demand)
    if isinstance(event, ev.RequestReminded):
        return msgspec.structs.replace(row, reminders=event.count)
    return msgspec.structs.replace(row, status="expired")


def settled(row: RequestRow, value: Any, now: float = 0.0) -> Decision | None:
    """What an answer comes to where the request is not open any more; None where it is. After its deadline it
    is not, also where nobody has looked yet.

    Answers are equal when their JSON is: ``1``, ``1.0`` and ``true`` are three answers.
    """
    if row.status == "expired" or (row.status == "open" and 0 < row.deadline <= now):
        return Decision(result="expired", request=row)
    if row.status == "open":
        return None
    if row.status == "closed":
        return Decision(result="late", request=row)
    equal = _canonical(row.value) == _canonical(value)
    return Decision(result="equal" if equal else "conflict", request=row)


_canonical = msgspec.json.Encoder(order="sorted").encode


def _opened(event: ev.RequestOpened, run: str, at: float) -> RequestRow:
    return RequestRow(
        id=event.id,
        run=run,
        demand=event.demand,
        movement=event.movement,
        lane=event.lane,
        reason=event.reason,
        question=event.question,
        status="open",
        opened_at=at,
        schema=event.schema,
        sentinel=event.sentinel,
        key=event.key,
        screen=event.screen,
        generation=event.generation,
        deadline=event.deadline,
    )


def _closed(rows: Mapping[str, RequestRow], event: ev.AnyEvent) -> dict[str, RequestRow]:
    reason = _closing(event)
    if reason is None:
        return {}
    return {
        id: msgspec.structs.replace(row, status="closed", closed_reason=reason)
        for id, row in rows.items()
        if row.status == "open" and _concerns(event, row)
    }


def _closing(event: ev.AnyEvent) -> str | None:
    match event:
        case ev.RequestClosed():
            return event.reason
        case ev.DemandResolved(outcome=Cancelled()):
            return "cancelled"
        case ev.DemandResolved(outcome=outcome) if not isinstance(outcome, Replied | Returned | Did):
            return "resolved"  # a model's reply and a tool's result never answer a person's request
    return _CLOSING.get(type(event))


_CLOSING: dict[type, str] = {
    ev.VisitEnded: "visit_ended",
    ev.VisitStarted: "restarted",
    ev.RunEnded: "run_ended",
}


def _concerns(event: ev.AnyEvent, row: RequestRow) -> bool:
    if isinstance(event, ev.RequestClosed):
        return event.id == row.id
    if isinstance(event, ev.DemandResolved):
        return event.id == row.demand
    return not isinstance(event, ev.VisitStarted) or row.key is None  # a restart keeps what is in the ledger


# -- conversations ----------------------------------------------------------------------------------------


class Projected(NamedTuple):
    """What a commit's events bring beside themselves: messages, the conversations of the model calls that
    they issue, whether they open requests, and whether they can settle requests that were open before."""

    messages: list[MessageRow]
    calls: dict[str, str]
    opens: bool
    settles: bool


def project(
    events: Iterable[ev.AnyEvent], first: int, conversation_of: Callable[[str], str | None]
) -> Projected:
    """Look once at events from seq ``first`` on: every durable step does.

    ``conversation_of`` gives the conversation of a model call that was issued before these events.
    (``type(x) is`` because ``isinstance`` of a msgspec struct costs ten times as much where it says no.)
    """
    messages: list[MessageRow] = []
    issued: dict[str, str] = {}
    opens = settles = False
    seq = first
    for event in events:
        if type(event) is ev.DemandIssued:
            demand = event.demand
            if type(demand) is CallModel:
                conversation = issued[event.id] = demand.conversation
                if demand.forks is not None:
                    role = f"{FORK}{demand.upto}"
                    messages.append(MessageRow(conversation, seq, -1, role, demand.forks, event.id))
                for item, message in enumerate(demand.append):
                    row = MessageRow(conversation, seq, item, message.role, message.text, event.id)
                    messages.append(row)
        elif type(event) is ev.DemandResolved:
            outcome = event.outcome
            if type(outcome) is Replied:
                found = issued.get(event.id) or conversation_of(event.id)
                if found is not None:
                    messages.append(MessageRow(found, seq, 0, "assistant", outcome.text, event.id))
                    if outcome.calls is not None:
                        messages.append(MessageRow(found, seq, 1, CALLS, outcome.calls, event.id))
            elif type(outcome) is not Returned and type(outcome) is not Did:
                settles = True
        elif type(event) is ev.RequestOpened:
            opens = True
        elif type(event) in _SETTLING:
            settles = True
        seq += 1
    return Projected(messages, issued, opens, settles)


def calls(events: Iterable[ev.AnyEvent]) -> dict[str, str]:
    """The conversations of the model calls that events issue, by demand."""
    return project(events, 0, lambda _: None).calls


FORK = "fork:"
"""The role of the row with which a forked conversation begins: how many messages of which other one."""


def messages_of(
    rows_of: Callable[[str], Iterable[tuple[str, Hash, str, str, int]]],
    conversation: str,
    demand: str | None,
    run: str | None,
    origins: Sequence[Origin],
) -> list[Message]:
    """A conversation's messages up to the first that is ``demand``'s own. ``rows_of`` gives (role, text,
    demand,
    run, seq) of a conversation in order."""
    upto = {name: seq for name, seq, _ in origins}
    anew = {id for _, _, ids in origins for id in ids}
    messages: list[Message] = []
    for role, text, owner, of, seq in rows_of(conversation):
        if demand is not None and owner == demand:
            break
        if run is not None and of != run and (seq > upto.get(of, 0) or owner in anew):
            continue
        if role.startswith(FORK):
            before = messages_of(rows_of, text, None, run, origins)
            messages.extend(before[: int(role.removeprefix(FORK))])
        else:
            messages.append(Message(role, text))
    return messages


# -- texts ------------------------------------------------------------------------------------------------


def texts_of(event: ev.AnyEvent) -> Iterator[Hash]:
    """The texts that an event refers to."""
    match event:
        case ev.RunStarted():
            yield from _present(event.piece, event.task, event.tools)
        case ev.RunForked():
            yield from hashes_in(event.state)
        case ev.ChildEnded():
            yield from _present(event.output, *event.reports.values())
        case ev.VisitStarted():
            yield from _present(*event.answers, event.note)
        case ev.DemandIssued():
            yield from _texts_of_demand(event.demand)
        case ev.DemandResolved(outcome=Replied(text=text, calls=calls)):
            yield from _present(text, calls)
        case ev.DemandResolved(outcome=Did(text=text)):
            yield text
        case ev.RequestOpened():
            yield from _present(event.question, event.schema)
        case ev.ReportSaved():
            yield event.text
        case ev.VisitEnded():
            yield from _texts_of_signal(event.signal)
        case ev.RunEnded():
            yield from _present(event.output)


def _texts_of_demand(demand: AnyDemand) -> Iterator[Hash]:
    if isinstance(demand, CallModel):
        yield from (message.text for message in demand.append)
        yield from _present(demand.schema, demand.tools)
    elif isinstance(demand, CallTool):
        yield from _present(demand.calls)
    elif isinstance(demand, StartRun):
        yield demand.task
    elif isinstance(demand, AskPerson):
        yield from _present(demand.question, demand.schema)
    elif isinstance(demand, Host):
        yield from hashes_in(demand.args)


_HASH = re.compile("[0-9a-f]{40}")
QUOTED_HASH = re.compile('"([0-9a-f]{40})"')
"""A content address as a string in JSON."""


def hashes_in(value: Any) -> Iterator[Hash]:
    """Every string in a JSON value that looks like a content address."""
    if isinstance(value, str):
        if _HASH.fullmatch(value):
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from hashes_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from hashes_in(item)


def _texts_of_signal(signal: Signal) -> Iterator[Hash]:
    yield from _present(signal.output, signal.answer, signal.note, *(lane.output for lane in signal.lanes))
    yield from (message.text for message in signal.carry)


def _present(*hashes: Hash | None) -> Iterator[Hash]:
    yield from (hash for hash in hashes if hash is not None)
