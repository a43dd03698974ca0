"""The journal's only vocabulary: what happened, as frozen JSON-only structs with dotted names.

An event carries no time and no actor; its envelope in the journal does (:class:`Recorded`). Old
spellings are read by the upcasters in :mod:`cadenza.core.upcasting`; a struct here is never changed in
a way that its stored JSON could not be read.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from cadenza.core.demands import AnyDemand
from cadenza.core.outcomes import AnyOutcome
from cadenza.core.signals import EndStatus, Signal
from cadenza.core.spending import Price, Spend
from cadenza.ids import Hash
from cadenza.piece.vocabulary import Language, PermissionMode


class Event(msgspec.Struct, frozen=True, tag_field="type", omit_defaults=True, kw_only=True):
    """Base of all events."""


class RunStarted(Event, frozen=True, tag="run.started", kw_only=True, omit_defaults=True):
    """A run exists. Everything that it will ever need to know about its surroundings is here.

    ``history`` is how many movements back the loop monitors look, ``limit`` how many visits (judges
    included) the run may have. ``interactive``: somebody is there, so ``interactive_only`` rules count.
    ``providers`` says what each provider's name (the empty one: no name) meant when the run began, with the
    server's address. ``id`` is the run's. ``tools`` is the toolbox that it pinned. ``root`` is the first
    run of the tree that
    this one belongs to, ``parent`` the run that started it; ``depth`` its generation; a ``detached`` one
    is nobody's child.
    ``budget`` limits the whole tree, ``shared`` says that the workspace is.
    """

    piece: Hash
    name: str
    task: Hash
    seed: str
    cwd: str
    workspace: str = "default"
    language: Language = "en"
    permission: PermissionMode = "default"
    provider: str | None = None
    model: str | None = None
    providers: dict[str, str] = {}
    history: int = 0
    limit: int = 10
    interactive: bool = False
    id: str = ""
    tools: Hash | None = None
    root: str | None = None
    parent: str | None = None
    depth: int = 0
    detached: bool = False
    budget: Spend = Spend()
    prices: dict[str, Price] = {}
    shared: bool = False


class RunForked(Event, frozen=True, tag="run.forked", kw_only=True, omit_defaults=True):
    """A run begins as another one stood after its event ``seq``: ``state`` is that state as JSON.

    ``seed`` is the new run's own: for its demands, requests and children; conversations keep their ids, and
    are read from the run that they were written in.
    """

    id: str
    origin: str
    seq: int
    seed: str
    state: dict[str, Any]


class VisitStarted(Event, frozen=True, tag="visit.started", kw_only=True, omit_defaults=True):
    """A movement begins.

    ``cause``: ``start``, ``rule``, ``monitor``, ``answer``, ``gate``, ``retry``, ``restart``, ``children``
    (they have ended), ``context`` (it was full).
    ``version`` is the movement kind's; ``attempt`` grows when the same visit is restarted from its head.
    ``lanes`` names the sub-movements whose own counters grow with it. ``limit`` is set where a retry grants
    more visits. ``answers`` are people's, ``note`` is what a command gate said.
    """

    visit: int
    movement: str
    iteration: int
    movement_iteration: int
    consecutive: int
    at: float
    cause: str = "rule"
    version: int = 1
    attempt: int = 1
    lanes: tuple[str, ...] = ()
    answers: tuple[Hash, ...] = ()
    note: Hash | None = None
    limit: int = 0


class DemandIssued(Event, frozen=True, tag="demand.issued", kw_only=True, omit_defaults=True):
    """A visit needs something from outside. ``key`` says what for, uniquely within the visit."""

    id: str
    key: str
    demand: AnyDemand
    lane: str = ""


class DemandStarted(Event, frozen=True, tag="demand.started", kw_only=True, omit_defaults=True):
    """A demand that must not be met twice is about to be met."""

    id: str


class DemandRetried(Event, frozen=True, tag="demand.retried", kw_only=True, omit_defaults=True):
    """A try failed in a way that another may not; the next one waits ``wait`` seconds, until ``until``."""

    id: str
    attempt: int
    code: str
    message: str
    wait: float
    until: float


class DemandResolved(Event, frozen=True, tag="demand.resolved", kw_only=True, omit_defaults=True):
    """A demand was met, or will never be."""

    id: str
    outcome: AnyOutcome


class RequestOpened(Event, frozen=True, tag="request.opened", kw_only=True, omit_defaults=True):
    """Somebody is asked. ``demand`` is the demand that the answer resolves.

    ``key`` is its place in the run's ledger, ``screen`` what a person must solve. ``deadline`` is in epoch
    seconds (0: none), ``on_deadline`` what happens then; ``remind`` is every so many seconds, ``remind_at``
    the first time.
    """

    id: str
    demand: str
    movement: str
    question: Hash
    reason: str = "user_input"
    lane: str = ""
    schema: Hash | None = None
    sentinel: str = ""
    key: str | None = None
    screen: str | None = None
    generation: int = 0
    deadline: float = 0.0
    on_deadline: Literal["resume", "abort"] = "resume"
    remind: float = 0.0
    remind_at: float = 0.0


class RequestMoved(Event, frozen=True, tag="request.moved", kw_only=True, omit_defaults=True):
    """The card that is open already is what another demand waits for now: the same thing was asked again."""

    id: str
    demand: str


class RequestReminded(Event, frozen=True, tag="request.reminded", kw_only=True, omit_defaults=True):
    """Nobody has answered for another while; ``count`` is how often that has been said, ``next`` when it is
    said again."""

    id: str
    count: int
    next: float


class RequestExpired(Event, frozen=True, tag="request.expired", kw_only=True, omit_defaults=True):
    """Nobody answered in time."""

    id: str


class RequestKept(Event, frozen=True, tag="request.kept", kw_only=True, omit_defaults=True):
    """An answer came while no demand waited for it: it stays in the ledger for whoever asks again."""

    id: str


class RequestDecided(Event, frozen=True, tag="request.decided", kw_only=True, omit_defaults=True):
    """An answer arrived (input: anyone may append it while the request is open)."""

    id: str
    value: Any


class RequestClosed(Event, frozen=True, tag="request.closed", kw_only=True, omit_defaults=True):
    """Nobody needs the answer any more."""

    id: str
    reason: str


class ReportSaved(Event, frozen=True, tag="report.saved", kw_only=True, omit_defaults=True):
    """A report was written to the run's folder; its text is kept here too."""

    name: str
    text: Hash


class VisitEnded(Event, frozen=True, tag="visit.ended", kw_only=True, omit_defaults=True):
    """A movement is over; the signal says how."""

    visit: int
    signal: Signal


class AskDeflected(Event, frozen=True, tag="ask.deflected", kw_only=True, omit_defaults=True):
    """A question over the limit was sent back to the agent (Maestro B.4)."""

    lane: str = ""


class ToolGranted(Event, frozen=True, tag="tool.granted", kw_only=True, omit_defaults=True):
    """A tool that was asked for may be called from now on, through ``use_tool``."""

    name: str


class ChildEnded(Event, frozen=True, tag="child.ended", kw_only=True, omit_defaults=True):
    """A child run is over (input: written in the transaction that ended the child)."""

    run: str
    status: EndStatus
    reason: str = ""
    message: str = ""
    output: Hash | None = None
    reports: dict[str, Hash] = {}


class ChildReopened(Event, frozen=True, tag="child.reopened", kw_only=True, omit_defaults=True):
    """A child that had ended goes on (input)."""

    run: str


class BudgetRaised(Event, frozen=True, tag="budget.raised", kw_only=True, omit_defaults=True):
    """Somebody changed what the tree may spend (input, to its root): these limits replace those before."""

    budget: Spend


class Warned(Event, frozen=True, tag="run.warned", kw_only=True, omit_defaults=True):
    """Something a person should see. ``code``: ``repeated``, ``report_missing``, …"""

    code: str
    message: str


class CancelRequested(Event, frozen=True, tag="run.cancel_requested", kw_only=True, omit_defaults=True):
    """Somebody wants the run to end (input)."""

    reason: str = ""


class ResumeRequested(Event, frozen=True, tag="run.resume_requested", kw_only=True, omit_defaults=True):
    """Somebody wants a held run to go on (input); ``restart_visit`` plays its visit from the head."""

    restart_visit: bool = False


class RetryRequested(Event, frozen=True, tag="run.reopened", kw_only=True, omit_defaults=True):
    """An ended run is to go on (input), at ``movement`` or at the one where it ended."""

    movement: str | None = None


class InputRefused(Event, frozen=True, tag="input.refused", kw_only=True, omit_defaults=True):
    """The input that was next cannot be taken, and is gone: ``input`` is its type, ``message`` says why."""

    input: str
    message: str


class InputTaken(Event, frozen=True, tag="input.taken", kw_only=True, omit_defaults=True):
    """The input that was next has been looked at: ``input`` is its type."""

    input: str


class RunHeld(Event, frozen=True, tag="run.held", kw_only=True, omit_defaults=True):
    """The run stands until somebody resumes it.

    ``reason``: ``interrupted``, ``poison``, ``code_changed``, ``host`` (a file or folder failed),
    ``provider``, ``budget`` (what the tree may spend is spent).
    """

    reason: str
    message: str = ""
    demand: str | None = None


class RunReleased(Event, frozen=True, tag="run.released", kw_only=True, omit_defaults=True):
    """A held run goes on."""


class RunEnded(Event, frozen=True, tag="run.ended", kw_only=True, omit_defaults=True):
    """The run is over. ``reason`` is for machines, ``message`` for people."""

    status: EndStatus
    reason: str
    message: str = ""
    movement: str | None = None
    output: Hash | None = None


AnyEvent = (
    RunStarted
    | RunForked
    | VisitStarted
    | DemandIssued
    | DemandStarted
    | DemandRetried
    | DemandResolved
    | RequestOpened
    | RequestMoved
    | RequestReminded
    | RequestExpired
    | RequestKept
    | RequestDecided
    | RequestClosed
    | AskDeflected
    | ToolGranted
    | ChildEnded
    | ChildReopened
    | BudgetRaised
    | ReportSaved
    | VisitEnded
    | Warned
    | CancelRequested
    | ResumeRequested
    | RetryRequested
    | InputRefused
    | InputTaken
    | RunHeld
    | RunReleased
    | RunEnded
)
InputEvent = (
    RequestDecided
    | CancelRequested
    | ResumeRequested
    | RetryRequested
    | ChildEnded
    | ChildReopened
    | BudgetRaised
)
"""Events that anyone may append; they only queue. All others are the lease holder's alone."""


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """An event as the journal holds it: the envelope and the fact. ``at`` is in epoch seconds."""

    run: str
    seq: int
    at: float
    actor: str
    event: AnyEvent


encode = msgspec.json.Encoder().encode
"""An event as JSON bytes, its ``type`` included. Maps keep their order: it is part of what they say."""

decode = msgspec.json.Decoder(AnyEvent).decode
"""An event from its JSON of this version; older ones go through :mod:`cadenza.core.upcasting` first."""
