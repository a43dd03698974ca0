"""Random runs: the fold of all events, snapshot and tail, and every row always say the same."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cadenza.core import events as ev
from cadenza.core.demands import CallModel
from cadenza.core.folding import fold_recorded
from cadenza.core.outcomes import Answered, AnyOutcome, Cancelled, Failed, Returned, Unknown
from cadenza.errors import Conflict
from cadenza.journal import projections
from cadenza.journal.memory import MemoryJournal
from cadenza.journal.sqlite import SqliteJournal
from tests.journal.by_hand import ByHand, folded

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
STATUSES = ("open", "decided", "closed")


class Twins(RuleBasedStateMachine):
    """The same run in both journals, driven at random."""

    def __init__(self) -> None:
        super().__init__()
        from tempfile import TemporaryDirectory

        self.folder = TemporaryDirectory()
        self.sqlite = SqliteJournal(f"{self.folder.name}/j", synchronous="OFF")
        self.memory = MemoryJournal()
        self.runs = [ByHand(journal, "r1") for journal in (self.sqlite, self.memory)]
        self.asked: list[str] = []

    @initialize()
    def begin(self) -> None:
        for run in self.runs:
            run.begin().claim()

    @property
    def state(self) -> Any:
        return self.runs[0].reload().state

    def do(self, make: Any) -> None:
        """Commit the same events to both; ``make`` is told by whom."""
        for run in self.runs:
            run.reload()
            run.commit(*make(run))

    def playing(self) -> bool:
        state = self.state
        return state.ended is None and state.held is None and state.visit is not None

    @precondition(playing)
    @rule(prompt=st.text(), conversation=st.sampled_from(["c1", "c2"]))
    def call(self, prompt: str, conversation: str) -> None:
        self.do(lambda run: [run.call(prompt, conversation=conversation)])

    @precondition(playing)
    @rule(question=st.text())
    def ask(self, question: str) -> None:
        self.do(lambda run: run.ask(question))
        self.asked += [id for id in self.state.requests if id not in self.asked]

    @precondition(playing)
    @rule(data=st.data(), value=JSON, body=st.text())
    def resolve(self, data: st.DataObject, value: Any, body: str) -> None:
        state = self.state
        assume(state.open)
        demand = data.draw(st.sampled_from(list(state.open)))
        kind = data.draw(st.sampled_from(["met", "failed", "unknown", "cancelled"]))
        issued = state.open[demand].demand
        request = next((r for r in state.requests.values() if r.demand == demand), None)

        def outcome(run: ByHand) -> ev.DemandResolved:
            if kind == "met" and isinstance(issued, CallModel):
                return run.reply(demand, body)
            other: dict[str, AnyOutcome] = {
                "failed": Failed(code="x", message=body),
                "unknown": Unknown(),
                "cancelled": Cancelled(),
            }
            met: AnyOutcome = Answered(value, "ann") if request is not None else Returned(value)
            return ev.DemandResolved(id=demand, outcome=other.get(kind, met))

        self.do(lambda run: [outcome(run)])

    @precondition(playing)
    @rule(count=st.integers(1, 60))
    def work(self, count: int) -> None:
        def events(run: ByHand) -> list[ev.AnyEvent]:
            issued = [run.host() for _ in range(count)]
            return [*issued, *(ev.DemandResolved(id=i.id, outcome=Returned()) for i in issued)]

        self.do(events)

    @precondition(playing)
    @rule(restart=st.booleans())
    def next_visit(self, restart: bool) -> None:
        if restart:
            self.do(lambda run: [run.visit("plan", cause="restart", attempt=2), run.host()])
        else:
            self.do(lambda run: [run.visit_ended(), run.visit("build", cause="rule"), run.host()])

    @precondition(playing)
    @rule(message=st.text(max_size=5))
    def hold(self, message: str) -> None:
        self.do(lambda run: [ev.RunHeld(reason="interrupted", message=message)])

    @precondition(lambda self: self.state.held is not None)
    @rule()
    def let_go(self) -> None:
        self.do(lambda run: [ev.RunReleased()])

    @precondition(playing)
    @rule(status=st.sampled_from(["completed", "aborted", "cancelled", "error"]))
    def end(self, status: Any) -> None:
        self.do(lambda run: [run.ended(status)])

    @precondition(lambda self: any(isinstance(i.event, ev.RetryRequested) for i in self.state.inputs))
    @rule()
    def retry(self) -> None:
        self.do(lambda run: [run.visit("plan", cause="retry"), run.host()])

    @rule(event=st.sampled_from([ev.CancelRequested(), ev.ResumeRequested(), ev.RetryRequested()]))
    def input(self, event: ev.InputEvent) -> None:
        results = []
        for run in self.runs:
            try:
                results.append(str(run.input(event)))
            except Conflict as refused:
                results.append(str(refused))
        assert results[0] == results[1]

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), value=JSON)
    def answer(self, data: st.DataObject, value: Any) -> None:
        request = data.draw(st.sampled_from(self.asked))
        results = [run.decide(request, value) for run in self.runs]
        assert results[0] == results[1]

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def close_request(self, data: st.DataObject) -> None:
        state = self.state
        assume(state.requests and state.ended is None)
        request = data.draw(st.sampled_from(list(state.requests)))
        self.do(lambda run: [ev.RequestClosed(id=request, reason="timeout")])

    @rule()
    def reopen(self) -> None:
        self.sqlite.close()
        self.sqlite = self.runs[0].journal = SqliteJournal(f"{self.folder.name}/j", synchronous="OFF")

    @rule()
    def rebuild(self) -> None:
        for run in self.runs:
            run.journal.rebuild()

    @invariant()
    def all_say_the_same(self) -> None:
        if not self.sqlite.find_runs("r1"):
            return
        for run in self.runs:
            loaded = run.journal.load("r1")
            state = fold_recorded(loaded.tail, loaded.snapshot)
            assert state == folded(run.journal, "r1")
            derived = projections.derive(state)
            assert (derived.status, derived.reason) == (state.status, state.wait_reason)
            assert run.journal.verify() == []
        one, two = self.sqlite, self.memory
        assert one.run("r1") == two.run("r1")
        assert one.events("r1") == two.events("r1")
        assert one.requests(status=STATUSES) == two.requests(status=STATUSES)
        assert [one.messages(c) for c in ("c1", "c2")] == [two.messages(c) for c in ("c1", "c2")]
        opened = {request.id for request in one.requests()}
        assert opened == {r.id for r in state.requests.values() if not r.decided}

    def teardown(self) -> None:
        self.sqlite.close()
        self.folder.cleanup()


TestTwins = Twins.TestCase
TestTwins.settings = settings(
    max_examples=20,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
