"""The conductor under every order of events: the interleaving may differ, what comes of it may not.

Two lanes of the same run are led through the same answers, one in the order of issue, the other as hypothesis
likes: it permutes the completions of open demands, drops the live generator, refuses commits, queues inputs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cadenza.core import events as ev
from cadenza.core.conductor import Conductor
from cadenza.core.demands import AskPerson, CallModel, CallTool, is_repeatable
from cadenza.core.folding import apply, fold
from cadenza.core.outcomes import Answered, AnyOutcome, Failed, Replied, Returned, Unknown, Usage
from cadenza.core.scribe import Step
from cadenza.core.state import OpenDemand, QueuedInput, RunState
from cadenza.ids import Hash, text_hash
from cadenza.testing import T0, fixed_seed
from tests.crash.kinds import fan

encode = msgspec.json.Encoder(order="deterministic").encode
PIECE = fan().piece
KINDS = fan().kinds
TASK = "Do the thing."
BASE = {**PIECE.texts, text_hash(TASK): TASK}
DONE = "Done. [STEP:0]"


def new_conductor() -> Conductor:
    return Conductor(PIECE.piece, kinds=KINDS)


def started() -> ev.RunStarted:
    piece = PIECE.piece
    return ev.RunStarted(
        piece=piece.hash,
        name=piece.name,
        task=text_hash(TASK),
        seed=fixed_seed("machine"),
        cwd="/work",
        limit=piece.max_movements,
    )


class Play:
    """A run in memory: its events, its texts, and a conductor that may be thrown away at any time."""

    def __init__(self) -> None:
        self.conductor = new_conductor()
        self.texts: dict[Hash, str] = dict(BASE)
        self.events: list[tuple[ev.AnyEvent, str]] = []
        self.state = RunState()
        self.take(self.twice(lambda c, now: c.start(started(), now, self.texts)))

    def twice(self, decide: Callable[[Conductor, float], Step]) -> Step:
        """Decide with the live conductor, again with it, and with one that knows nothing: it is one step,
        and the state that was given is as it was."""
        before = encode(self.state)
        now = T0 + self.state.seq
        step = decide(self.conductor, now)
        assert encode(self.state) == before, "the given state was changed"
        again = decide(self.conductor, now)
        rebuilt = decide(new_conductor(), now)
        for other in (again, rebuilt):
            assert encode(other.events) == encode(step.events)
            assert dict(other.texts) == dict(step.texts)
            assert other.state == step.state
        assert encode(self.state) == before
        return decide(self.conductor, now)

    def take(self, step: Step) -> None:
        """Commit a step."""
        self.texts.update(step.texts)
        self.events += [(event, "") for event in step.events]
        self.state = step.state

    def append(self, event: ev.InputEvent, actor: str) -> None:
        """Somebody else appends an input."""
        self.events.append((event, actor))
        self.state = self.state.copy()
        apply(self.state, event, actor)

    def receive(self) -> None:
        queued = self.state.next_input
        assert queued is not None
        self.take(self.twice(lambda c, now: c.receive(self.state, queued, now, self.texts)))

    def meet(self, opened: OpenDemand, outcome: AnyOutcome) -> None:
        """Meet one demand."""
        if isinstance(outcome, Replied):
            self.texts.setdefault(outcome.text, DONE)
        if not is_repeatable(opened.demand) and not opened.started:
            self.take(self.twice(lambda c, now: c.begin(self.state, opened.id, now, self.texts)))
        self.take(self.twice(lambda c, now: c.resolve(self.state, opened.id, outcome, now, self.texts)))

    def lanes(self) -> list[Any]:
        return [e.signal for e, _ in self.events if isinstance(e, ev.VisitEnded)]

    def folded(self) -> RunState:
        state = RunState()
        for event, actor in self.events:
            apply(state, event, actor)
        return state


def outcome_of(demand: OpenDemand, fate: str) -> AnyOutcome:
    """What a demand comes to: a function of the demand and its fate alone, whenever it is met."""
    if fate == "fails":
        return Failed(code="bad_request", message=f"{demand.key} failed")
    if fate == "is unknown" and isinstance(demand.demand, CallTool):
        return Unknown(message=f"{demand.key} is unknown")
    if isinstance(demand.demand, CallModel):
        return Replied(text=text_hash(DONE), usage=Usage(input=3, output=2))
    return Returned({"key": demand.key})


def facts(state: RunState) -> bytes:
    """A state less what the order of completion decides: sequence numbers, times, and whose turn was when."""
    plain = json.loads(encode(state))
    for name in ("seq", "inputs"):
        plain.pop(name, None)
    if state.visit is not None:
        plain["visit"]["started"].pop("at")
        plain["visit"]["outcomes"] = dict(sorted(plain["visit"].get("outcomes", {}).items()))
    for demand in plain.get("open", {}).values():
        for name in ("earlier", "not_before", "started"):
            demand.pop(name, None)
    return json.dumps(plain, sort_keys=True).encode()


class ConductorMachine(RuleBasedStateMachine):
    """One run, led in whatever order; at its end it is compared with one led in the order of issue."""

    def __init__(self) -> None:
        super().__init__()
        self.fates: dict[str, str] = {}
        self.play: Play | None = None
        self.cancelled = False

    @initialize()
    def begin(self) -> None:
        self.play = Play()

    @property
    def run(self) -> Play:
        assert self.play is not None
        return self.play

    def fate(self, opened: OpenDemand, wanted: str) -> str:
        """A demand's fate is settled when it is first met; the first and last movements just work."""
        return self.fates.setdefault(opened.key, wanted if self._in_fan() else "works")

    def _in_fan(self) -> bool:
        visit = self.run.state.visit
        return visit is not None and visit.started.movement == "fan"

    def open_demands(self) -> list[OpenDemand]:
        return self.run.state.met_by_worker

    @precondition(lambda self: self.play and self.open_demands())
    @rule(pick=st.integers(0, 99), fate=st.sampled_from(["works", "works", "fails", "is unknown"]))
    def an_open_demand_is_met(self, pick: int, fate: str) -> None:
        opened = self.open_demands()[pick % len(self.open_demands())]
        self.run.meet(opened, outcome_of(opened, self.fate(opened, fate)))

    @precondition(lambda self: self.play and self.open_demands())
    @rule(pick=st.integers(0, 99))
    def a_call_is_to_be_tried_again(self, pick: int) -> None:
        opened = self.open_demands()[pick % len(self.open_demands())]
        if not isinstance(opened.demand, CallModel) or opened.attempt > 2:
            return
        self.run.meet(opened, Failed(code="server", message="busy", retriable=True))
        assert self.run.state.open[opened.id].attempt == opened.attempt + 1

    @precondition(lambda self: self.play and self.run.state.requests)
    @rule(pick=st.integers(0, 9))
    def a_question_is_answered(self, pick: int) -> None:
        requests = [r for r in self.run.state.requests.values() if not r.decided]
        if requests:
            request = requests[pick % len(requests)]
            self.run.append(ev.RequestDecided(id=request.id, value="yes"), "ann")

    @precondition(lambda self: self.play and self.run.state.next_input)
    @rule()
    def an_input_is_taken(self) -> None:
        self.run.receive()

    @precondition(lambda self: self.play and self.open_demands() and self.run.state.requests)
    @rule(pick=st.integers(0, 99))
    def a_commit_is_refused_because_of_an_answer(self, pick: int) -> None:
        """The step was decided, the answer came in between: the same outcome is resolved again."""
        run = self.run
        opened = self.open_demands()[pick % len(self.open_demands())]
        outcome = outcome_of(opened, self.fate(opened, "works"))
        if isinstance(outcome, Replied):
            run.texts.setdefault(outcome.text, DONE)
        if not is_repeatable(opened.demand):
            run.take(run.conductor.begin(run.state, opened.id, T0, run.texts))
        run.conductor.resolve(run.state, opened.id, outcome, T0 + run.state.seq, run.texts)
        self.a_question_is_answered(pick)
        run.meet(run.state.open[opened.id], outcome)
        visit = run.state.visit
        assert visit is None or visit.started.visit > 0
        assert opened.id not in run.state.open

    @precondition(lambda self: self.play)
    @rule()
    def the_live_generator_is_dropped(self) -> None:
        self.run.conductor = new_conductor()

    @precondition(lambda self: self.play and self.run.state.held is None and self.run.state.ended is None)
    @rule()
    def the_run_is_interrupted_and_resumed(self) -> None:
        run = self.run
        run.take(run.twice(lambda c, now: c.hold(run.state, "interrupted", "", now)))
        run.append(ev.ResumeRequested(), "ann")
        run.receive()

    @precondition(lambda self: self.play and self.run.state.ended is None)
    @rule(enough=st.integers(0, 29))
    def the_run_is_cancelled(self, enough: int) -> None:
        if enough:
            return
        self.run.append(ev.CancelRequested(reason="enough"), "ann")
        self.cancelled = True

    @precondition(lambda self: self.play)
    @rule()
    def an_outcome_that_comes_too_late_says_nothing(self) -> None:
        run = self.run
        gone = [e.id for e, _ in run.events if isinstance(e, ev.DemandResolved)]
        for demand in gone[-2:]:
            step = run.conductor.resolve(run.state, demand, Returned(1), T0, run.texts)
            assert step.events == ()
            assert step.state == run.state

    @invariant()
    def the_state_is_nothing_but_the_events(self) -> None:
        if self.play:
            assert self.run.folded() == self.run.state
            head = [event for event, _ in self.run.events[:-3]]
            if not any(
                isinstance(e, ev.CancelRequested | ev.RequestDecided | ev.ResumeRequested) for e in head
            ):
                assert fold(head) == fold(head[5:], fold(head[:5]))

    def teardown(self) -> None:
        if self.play is None:
            return
        self.finish(self.play)
        if self.cancelled:
            ended = self.play.state.ended
            assert ended is not None
            assert ended.status in ("cancelled", "completed")
            assert not self.play.state.open
            return
        other = Play()
        self.finish(other)
        assert encode(self.play.lanes()) == encode(other.lanes())
        assert self.play.state.ended == other.state.ended
        assert facts(self.play.state) == facts(other.state)
        assert visits(self.play) == visits(other)

    def finish(self, play: Play) -> None:
        """Lead a run to its end in the order of issue."""
        while play.state.ended is None:
            if play.state.next_input is not None:
                play.receive()
            elif demands := play.state.met_by_worker:
                fate = self.fates.get(demands[0].key, "works")
                play.meet(demands[0], outcome_of(demands[0], fate))
            else:
                asked = next(d for d in play.state.open.values() if isinstance(d.demand, AskPerson))
                request = next(r for r in play.state.requests.values() if r.demand == asked.id)
                play.append(ev.RequestDecided(id=request.id, value="yes"), "ann")


def visits(play: Play) -> list[tuple[object, ...]]:
    starts = [e for e, _ in play.events if isinstance(e, ev.VisitStarted)]
    return [(e.visit, e.movement, e.iteration, e.movement_iteration, e.cause) for e in starts]


TestConductorMachine = ConductorMachine.TestCase
TestConductorMachine.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def test_a_queued_input_names_who_sent_it() -> None:
    play = Play()
    play.append(ev.CancelRequested(reason="enough"), "ann")
    assert play.state.next_input == QueuedInput(ev.CancelRequested(reason="enough"), "ann")
    play.receive()
    assert play.state.ended is not None
    assert play.state.ended.message == "cancelled by ann: enough"


def test_inputs_are_taken_in_the_order_in_which_they_came() -> None:
    play = Play()
    while not play.state.requests:
        opened = play.state.met_by_worker[0]
        play.meet(opened, outcome_of(opened, "works"))
    play.append(ev.RequestDecided(id=next(iter(play.state.requests)), value="yes"), "ann")
    play.append(ev.CancelRequested(), "bob")
    play.receive()
    assert play.state.ended is None
    play.receive()
    assert play.state.ended is not None
    assert [e.outcome.by for e, _ in play.events if _is_answer(e)] == ["ann"]


def _is_answer(event: ev.AnyEvent) -> bool:
    return isinstance(event, ev.DemandResolved) and isinstance(event.outcome, Answered)
