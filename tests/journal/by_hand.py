"""Runs made by hand: event sequences that fit each other, without a conductor."""

from __future__ import annotations

from typing import Any

from cadenza.core import events as ev
from cadenza.core.demands import AskPerson, CallModel, Host, Message
from cadenza.core.folding import apply, fold_recorded
from cadenza.core.outcomes import Answered, AnyOutcome, Cancelled, Replied, Returned, Usage
from cadenza.core.signals import EndStatus, Signal
from cadenza.core.state import RunState
from cadenza.ids import text_hash
from cadenza.journal.holders import this_process
from cadenza.journal.store import Commit, Decision, Holder, Journal, Lease

T0 = 1_700_000_000.0


class ByHand:
    """One run of a journal, as its worker would write it. Every call of :meth:`commit` is a second later."""

    def __init__(self, journal: Journal, run: str = "r1", *, workspace: str = "default", worker: str = "w"):
        self.journal, self.run, self.worker = journal, run, worker
        self.workspace = workspace
        self.state = RunState()
        self.texts: dict[str, str] = {}
        self.lease: Lease | None = None
        self.at = T0
        self.numbers = iter(range(1, 1_000_000))

    # -- events -------------------------------------------------------------------------------------------

    def text(self, body: str) -> str:
        """Keep a text for the next commit; its hash."""
        self.texts[text_hash(body)] = body
        return text_hash(body)

    def started(self) -> list[ev.AnyEvent]:
        started = ev.RunStarted(
            piece=self.text("the piece"), name="piece", task=self.text("the task"), seed="00" * 16,
            cwd="/w", workspace=self.workspace,
        )  # fmt: skip
        return [started, self.visit("plan")]

    def visit(self, movement: str, *, cause: str = "start", attempt: int = 1) -> ev.VisitStarted:
        number = self.state.visits + (attempt == 1)
        return ev.VisitStarted(
            visit=number, movement=movement, iteration=number, movement_iteration=number, consecutive=1,
            at=self.at, cause=cause, attempt=attempt,
        )  # fmt: skip

    def name(self, kind: str) -> str:
        return f"{kind}-{self.run}-{next(self.numbers)}"

    def call(self, prompt: str, *, conversation: str | None = None) -> ev.DemandIssued:
        demand = CallModel(
            conversation=conversation or f"c-{self.run}",
            append=(Message("user", self.text(prompt)),),
            movement="plan",
        )
        id = self.name("d")
        return ev.DemandIssued(id=id, key=id, demand=demand)

    def host(self) -> ev.DemandIssued:
        id = self.name("d")
        return ev.DemandIssued(id=id, key=id, demand=Host(op="prepare", args={"n": 1}))

    def ask(self, question: str) -> list[ev.AnyEvent]:
        asked, id = self.text(question), self.name("d")
        return [
            ev.DemandIssued(id=id, key=id, demand=AskPerson(question=asked)),
            ev.RequestOpened(id=f"q{id}", demand=id, movement="plan", question=asked),
        ]

    def reply(self, demand: str, body: str) -> ev.DemandResolved:
        usage = Usage(100, 10, 50)
        return ev.DemandResolved(id=demand, outcome=Replied(text=self.text(body), usage=usage))

    def visit_ended(self) -> ev.VisitEnded:
        return ev.VisitEnded(visit=self.state.visits, signal=Signal(kind="rule", next="plan", rule=0))

    def ended(self, status: EndStatus = "completed") -> ev.RunEnded:
        return ev.RunEnded(status=status, reason="rule", message="done", movement="plan")

    # -- the journal --------------------------------------------------------------------------------------

    def begin(self, *more: ev.AnyEvent) -> ByHand:
        """Create the run in its first movement, with a host demand where nothing else is given."""
        self.append_to_state(events := [*self.started(), *(more or (self.host(),))])
        self.journal.create(self.run, events, self.state, self.take_texts(), at=self.at, actor="user")
        return self

    def claim(self, holder: Holder | None = None) -> ByHand:
        self.lease = self.journal.claim(holder or this_process(self.worker), run=self.run)
        assert self.lease is not None
        return self

    def append_to_state(self, events: list[ev.AnyEvent]) -> None:
        self.state = self.state.copy()
        for event in events:
            apply(self.state, event, "engine")

    def take_texts(self) -> dict[str, str]:
        texts, self.texts = self.texts, {}
        return texts

    def prepare(self, *events: ev.AnyEvent) -> Commit:
        """The commit that appends events; the state is as if it had been done."""
        assert self.lease is not None
        after = self.state.seq
        self.append_to_state(list(events))
        self.at += 1
        return Commit(
            run=self.run, epoch=self.lease.epoch, after=after, events=events, state=self.state, at=self.at,
            texts=self.take_texts(),
        )  # fmt: skip

    def commit(self, *events: ev.AnyEvent) -> ByHand:
        self.journal.commit(self.prepare(*events))
        return self

    def resolve(self, demand: str, outcome: AnyOutcome | None = None) -> ByHand:
        return self.commit(ev.DemandResolved(id=demand, outcome=outcome or Returned({"ok": True})))

    def resolve_all(self) -> ByHand:
        """Meet every demand that a worker can meet."""
        return self.commit(
            *(ev.DemandResolved(id=d.id, outcome=Returned({"ok": True})) for d in self.state.met_by_worker)
        )

    def park(self, question: str = "which way?") -> str:
        """Meet what is open and ask; the request's id."""
        open_demands = self.state.met_by_worker
        resolved = [ev.DemandResolved(id=d.id, outcome=Returned(None)) for d in open_demands]
        asked = self.ask(question)
        self.commit(*resolved, *asked)
        opened = asked[1]
        assert isinstance(opened, ev.RequestOpened)
        return opened.id

    def take_answer(self, request: str, value: Any) -> ByHand:
        demand = self.state.requests[request].demand
        return self.resolve(demand, Answered(value, "ann"))

    def cancel_demand(self, request: str) -> ByHand:
        return self.resolve(self.state.requests[request].demand, Cancelled())

    def decide(self, request: str, value: Any, *, actor: str = "ann") -> Decision:
        self.at += 1
        return self.journal.decide(request, value, at=self.at, actor=actor)

    def input(self, event: ev.InputEvent) -> int:
        self.at += 1
        return self.journal.append_input(self.run, event, at=self.at, actor="ann")

    def reload(self) -> ByHand:
        """Fold snapshot and tail, as a worker does after a claim."""
        loaded = self.journal.load(self.run)
        self.state = fold_recorded(loaded.tail, loaded.snapshot)
        return self


def first_demand(run: ByHand) -> str:
    """The oldest open demand."""
    return next(iter(run.state.open))


def folded(journal: Journal, run: str) -> RunState:
    """The state from the first event on."""
    return fold_recorded(journal.events(run))
