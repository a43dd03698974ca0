"""The state of a run: a fold over its events, and nothing else.

:func:`cadenza.core.folding.apply` is the only thing that ever changes a :class:`RunState`.
The state is bounded: what has been used up by the visits before the current one is not in it.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from cadenza.core import events as ev
from cadenza.core.demands import (
    AnyDemand,
    AskPerson,
    CallTool,
    Message,
    WaitForRuns,
    waits_for,
)
from cadenza.core.outcomes import AnyOutcome, Usage
from cadenza.core.signals import Status
from cadenza.core.spending import Spend, Spent
from cadenza.ids import Hash

USER_INPUTS = 100
"""How many answers of people a run remembers (TAKT's command-line engine, main loop)."""


class OpenDemand(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A demand without an outcome yet.

    ``attempt`` is the try that comes next, not before ``not_before``; ``waited`` adds up the waits so far.
    ``earlier`` counts the model calls issued before it (see ``ModelRequest``); its keys are :func:`call_key`.
    ``asked``: a waiting tool that has said "not yet" at least once.
    """

    id: str
    key: str
    demand: AnyDemand
    lane: str = ""
    started: bool = False
    attempt: int = 1
    not_before: float = 0.0
    waited: float = 0.0
    earlier: dict[str, int] = {}
    asked: bool = False


class OpenRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question that nobody has answered, or whose answer has not been taken yet."""

    id: str
    demand: str
    question: Hash
    reason: str = "user_input"
    decided: bool = False
    key: str | None = None
    deadline: float = 0.0
    on_deadline: Literal["resume", "abort"] = "resume"
    remind: float = 0.0
    remind_at: float = 0.0
    reminders: int = 0


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request in the run's ledger: what was asked for by its key, and what was decided (Maestro B.8)."""

    request: str
    decided: bool = False
    value: Any = None
    by: str = ""


class Child(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A child that no wait has reported yet; ``ended`` once it is over."""

    ended: ev.ChildEnded | None = None


class QueuedInput(msgspec.Struct, frozen=True):
    """An input event that the lease holder has not taken yet, and who sent it."""

    event: ev.InputEvent
    actor: str


class VisitState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The visit that is going on: how it began, the outcomes that it was given, in their order, and the
    sessions, the folder, the counts of questions and the granted tools that there were when it began."""

    started: ev.VisitStarted
    outcomes: dict[str, AnyOutcome] = {}
    sessions: dict[str, str] = {}
    lengths: dict[str, int] = {}
    carry: tuple[Message, ...] = ()
    folder: str | None = None
    asks: int = 0
    deflections: int = 0
    granted: tuple[str, ...] = ()


Origin = tuple[str, int, tuple[str, ...]]
"""A run, up to one of its events, and the model calls that a fork asks for anew: their messages are its
own."""


class RunState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Everything that decides what happens next. ``seq`` is the number of the last event folded;
    ``answers`` are those that the last visit was given. ``lengths`` counts the messages of the sessions'
    conversations, ``prompts`` the tokens of each one's last request, ``carry`` are those that the
    conversation still owes (see ``Signal``). ``ledger`` holds
    requests
    by key, ``children`` the runs that this one started and has not read the results of. ``seed`` makes the
    ids of this run (a fork has one of its own); ``origins`` are the runs, each up to a seq, whose
    conversations a fork goes on with."""

    seq: int = 0
    started: ev.RunStarted | None = None
    visit: VisitState | None = None
    visits: int = 0
    iteration: int = 0
    limit: int = 0
    counts: dict[str, int] = {}
    last: str | None = None
    consecutive: int = 0
    history: tuple[str, ...] = ()
    previous: Hash | None = None
    folder: str | None = None
    reports: dict[str, Hash] = {}
    open: dict[str, OpenDemand] = {}
    requests: dict[str, OpenRequest] = {}
    inputs: tuple[QueuedInput, ...] = ()
    held: ev.RunHeld | None = None
    ended: ev.RunEnded | None = None
    usage: Usage = Usage()
    calls: dict[str, int] = {}
    sessions: dict[str, str] = {}
    lengths: dict[str, int] = {}
    prompts: dict[str, int] = {}
    carry: tuple[Message, ...] = ()
    answers: tuple[Hash, ...] = ()
    user_inputs: tuple[Hash, ...] = ()
    asks: int = 0
    deflections: int = 0
    granted: tuple[str, ...] = ()
    ledger: dict[str, Entry] = {}
    children: dict[str, Child] = {}
    spent: Spent = Spent()
    budget: Spend = Spend()
    seed: str = ""
    origins: tuple[Origin, ...] = ()

    def copy(self) -> RunState:
        """A state that can be changed without changing this one."""
        return msgspec.structs.replace(self)

    @property
    def run(self) -> ev.RunStarted:
        """How the run began.

        Raises:
            ValueError: no event has been folded yet.
        """
        if self.started is None:
            raise ValueError("a run begins with run.started; this state has folded no event yet")
        return self.started

    @property
    def met_by_worker(self) -> list[OpenDemand]:
        """Open demands that a worker can meet, in the order of issue."""
        return [d for d in self.open.values() if waits_for(d.demand) is None]

    @property
    def next_input(self) -> QueuedInput | None:
        """The queued input to take now. While a run is held, answers wait for it to be resumed."""
        if self.held is None:
            return self.inputs[0] if self.inputs else None
        lifting = (i for i in self.inputs if isinstance(i.event, LIFTING))
        return next(lifting, None)

    @property
    def active(self) -> bool:
        """Whether a demand is open that a worker can meet, and is no mere waiting."""
        return any(not opened.asked for opened in self.met_by_worker)

    @property
    def stands(self) -> bool:
        """Whether the run goes no further by itself: ended, held, or parked."""
        if self.next_input is not None:
            return False
        return self.ended is not None or self.held is not None or not self.active

    @property
    def status(self) -> Status:
        """Derived, never set (DESIGN, "Status is derived")."""
        if self.next_input is not None:
            return "queued"
        if self.ended is not None:
            return self.ended.status
        if self.held is not None:
            return "held"
        return "queued" if self.active else self._waiting()[0]

    @property
    def wait_reason(self) -> str | None:
        """Why a run stands or ended."""
        if self.next_input is not None:
            return None
        if self.ended is not None:
            return self.ended.reason
        if self.held is not None:
            return self.held.reason
        return None if self.active else self._waiting()[1]

    def _waiting(self) -> tuple[Status, str | None]:
        """What a parked run shows: a person before a waiting tool before its children."""
        found: tuple[Status, str | None] = ("waiting_human", None)
        for opened in self.open.values():
            demand = opened.demand
            if type(demand) is AskPerson:
                return "waiting_human", demand.reason or None
            if type(demand) is CallTool:
                found = (demand.status or "waiting_until", demand.reason or None)
            elif type(demand) is WaitForRuns and found[0] == "waiting_human":
                found = ("waiting_subtasks", None)
        return found

    @property
    def wake_at(self) -> float | None:
        """When a worker has something to do: 0 for at once, None for never."""
        if self.next_input is not None:
            return 0.0
        if self.ended is not None or self.held is not None:
            return None
        times = [opened.not_before for opened in self.met_by_worker]
        if self.requests:
            times += [at for r in self.requests.values() for at in (r.deadline, r.remind_at) if at]
        return min(times, default=None)


LIFTING = ev.CancelRequested | ev.ResumeRequested | ev.RetryRequested
"""The inputs that a held run takes."""

NOT_YET = "not_yet"
"""The code of a retry that is none: a waiting tool was asked, and what it waits for has not come."""
