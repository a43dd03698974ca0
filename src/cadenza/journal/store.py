"""The one seam to the journal: what a store must do. SQLite and memory do it alike, under one test suite.

Everything here is synchronous and safe to call from any thread. ``events`` is the truth; the rows that
:class:`RunRow` and :class:`RequestRow` describe are projections, written in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from cadenza.core.demands import Message
from cadenza.core.events import AnyEvent, InputEvent, Recorded
from cadenza.core.signals import Status
from cadenza.core.spending import Spent
from cadenza.core.state import Origin, RunState
from cadenza.ids import Hash

LEASE_SECONDS = 30.0
SNAPSHOT_EVERY = 100
SOLVED: dict[str, Any] = {"solved": True}
"""The decision of a request whose screen was solved before it could be waited for."""

POISON_CLAIMS = 3
"""A run claimed this often without a commit in between is held with reason ``poison``."""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run in a listing: all of it follows from the run's events.

    ``wake_at`` is when a worker has something to do (epoch seconds; 0 at once, None never).
    ``created_at`` and ``updated_at`` are the times of the first and the last event.
    """

    id: str
    workspace: str
    piece: str
    status: Status
    reason: str | None
    message: str | None
    movement: str | None
    iteration: int
    wake_at: float | None
    created_at: float
    updated_at: float
    seq: int
    actor: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float = 0.0
    tool_calls: int = 0
    parent: str | None = None
    root: str = ""


class RequestRow(msgspec.Struct, frozen=True, kw_only=True):
    """One question and what became of it. ``status``: ``open``, ``decided``, ``closed``, ``expired``.

    ``schema`` is what an answer must fit (none: a text), by hash. ``sentinel`` is the row of the catalogue
    that parked, ``key`` the place in its run's ledger, ``screen`` what must be solved. ``deadline`` is in
    epoch seconds, 0 for none; ``reminders`` counts how often it was said that nobody has answered.
    """

    id: str
    run: str
    demand: str
    movement: str
    lane: str
    reason: str
    question: Hash
    status: Literal["open", "decided", "closed", "expired"]
    opened_at: float
    value: Any = None
    decided_at: float | None = None
    decided_by: str | None = None
    closed_reason: str | None = None
    schema: Hash | None = None
    sentinel: str = ""
    key: str | None = None
    screen: str | None = None
    generation: int = 0
    deadline: float = 0.0
    reminders: int = 0


class Workspace(msgspec.Struct, frozen=True, kw_only=True):
    """A named folder that runs can be started in. ``shared``: several people work there."""

    name: str
    path: str
    shared: bool = False
    owner: str = ""
    added_at: float = 0.0


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a lease: enough to tell, on the same machine and boot, that the process is gone."""

    worker: str
    pid: int
    boot: str
    process_start: str


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The right to write a run's events until ``expires`` (the journal's clock), under ``epoch``.

    ``claims`` counts the claims since the last commit, this one included.
    """

    run: str
    epoch: int
    worker: str
    expires: float
    claims: int


class Send(msgspec.Struct, frozen=True):
    """An input event for another run, appended in the transaction of the commit that it belongs to."""

    run: str
    event: InputEvent


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """One transaction of a lease holder.

    ``after`` is the seq that the events follow; ``state`` is the state after them (projections and
    snapshots are made of it); ``texts`` are new texts by hash. ``release`` gives the lease back in the same
    transaction. ``sends`` are inputs for other runs; one that its run cannot take is left out. ``settles``
    are demands whose reservations (:meth:`Journal.reserve`) go away.
    """

    run: str
    epoch: int
    after: int
    events: tuple[AnyEvent, ...]
    state: RunState
    at: float
    actor: str = "engine"
    texts: Mapping[Hash, str] = {}
    release: bool = False
    sends: tuple[Send, ...] = ()
    settles: tuple[str, ...] = ()


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an answer: ``accepted``, ``equal`` (the same answer was given before),
    ``conflict`` (another answer was), ``late`` (nobody waits any more), or ``expired`` (nobody answered in
    time)."""

    result: Literal["accepted", "equal", "conflict", "late", "expired"]
    request: RequestRow


class Loaded(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot (None where there is none yet) and the events after it."""

    snapshot: RunState | None
    tail: tuple[Recorded, ...]


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One difference that ``doctor --verify`` found."""

    run: str | None
    what: str


@runtime_checkable
class Journal(Protocol):
    """Where the facts are.

    Any method may raise :class:`~cadenza.errors.JournalFull`, ``JournalReadOnly``, ``JournalBusy`` or
    ``JournalCorrupt``; then nothing of the call was written.
    """

    path: str

    def create(
        self,
        run: str,
        events: Sequence[AnyEvent],
        state: RunState,
        texts: Mapping[Hash, str],
        *,
        at: float,
        actor: str,
    ) -> None:
        """Begin a run with its first events (seq 1 …). It is claimable at once.

        Raises:
            Conflict: there is a run of that id.
        """
        ...

    def commit(self, commit: Commit) -> None:
        """Append a lease holder's events, texts and projections; a snapshot too when it is due (every
        :data:`SNAPSHOT_EVERY` events, and whenever ``state.wake_at`` is None: a park or an end).

        Raises:
            LeaseLost: ``epoch`` is no longer the run's, or its lease was given back.
            SequenceConflict: the last seq is not ``after``.
            InputRefused: a value is not JSON, or a text holds lone surrogates.
            NotFound: no such run.
        """
        ...

    def commit_many(self, commits: Sequence[Commit]) -> list[Exception | None]:
        """Several commits in one transaction, in order; one that is refused does not stop the others.

        Raises:
            JournalError: the transaction as a whole failed; then none was written.
        """
        ...

    def append_input(self, run: str, event: InputEvent, *, at: float, actor: str) -> int:
        """Queue an input event in a transaction of its own and make the run claimable; its seq.

        ``RetryRequested`` needs an ended run, ``ResumeRequested`` a held one, ``CancelRequested`` one that
        has not ended. (Answers go through :meth:`decide`.)

        Raises:
            NotFound: no such run.
            Conflict: the run is not in a state to take it (the message says which).
        """
        ...

    def decide(self, request: str, value: Any, *, at: float, actor: str) -> Decision:
        """Answer a request: consumed once, decided in one transaction. Appends ``request.decided`` when
        accepted. Answers are equal when their JSON is.

        Raises:
            NotFound: no such request.
            InputRefused: the value is not JSON.
        """
        ...

    def claim(self, holder: Holder, *, run: str | None = None) -> Lease | None:
        """Take the lease of ``run``, or of the claimable run that has waited longest; None if there is none.

        Claimable: ``wake_at`` is due by the database's clock, and the lease is free, expired, or held by a
        process of this machine and boot that is gone. The epoch grows with every claim.
        With ``run`` given, a run whose ``wake_at`` lies in the future is claimable too.

        Raises:
            NotFound: ``run`` is not there.
        """
        ...

    def claim_many(self, holder: Holder, limit: int) -> list[Lease]:
        """As :meth:`claim` without ``run``, up to ``limit`` times in one transaction."""
        ...

    def renew(self, lease: Lease) -> Lease:
        """Extend a lease.

        Raises:
            LeaseLost: it is somebody else's now.
        """
        ...

    def release(self, lease: Lease) -> None:
        """Give a lease back (no error where it was lost already). Its claim counts as no loss of a worker."""
        ...

    def leases(self) -> dict[str, Lease]:
        """Live leases by run: who is playing what now. A lease whose process is known to be gone (same
        machine and boot) is none, although it has not run out."""
        ...

    def load(self, run: str) -> Loaded:
        """Snapshot and tail. Raises NotFound."""
        ...

    def events(self, run: str, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        """A run's events in order, upcast to this version. Raises NotFound."""
        ...

    def texts(self, hashes: Iterable[Hash]) -> dict[Hash, str]:
        """Texts by hash. Raises JournalCorrupt when one is missing."""
        ...

    def messages(
        self,
        conversation: str,
        *,
        before_demand: str | None = None,
        run: str | None = None,
        origins: Sequence[Origin] = (),
    ) -> list[Message]:
        """The messages of a conversation in order: all of them, or those before ``before_demand``'s own.
        What it
        was forked from comes first. With ``run``: only its own and those of ``origins``, each up to a seq."""
        ...

    def tree(self, root: str) -> list[RunRow]:
        """A run and all that belong to its tree, oldest first. Raises NotFound."""
        ...

    def reserve(self, root: str, demand: str, want: Spent) -> str | None:
        """Set ``want`` aside of what the tree of ``root`` may spend, in one transaction: None when it is,
        or when
        nothing limits the tree; else which limit stands against it, in words. The same demand replaces
        what it
        had reserved."""
        ...

    def generation(self, screen: str) -> int:
        """How often a screen has been solved."""
        ...

    def resolve_screen(
        self, screen: str, value: Any, *, at: float, actor: str, reason: str = "captcha"
    ) -> list[RequestRow]:
        """A screen was solved: in one transaction every open request that waits for it with ``reason`` is
        decided. The generation grows, so that a request which is opened by what was seen before is decided at
        once. A second call finds nobody waiting."""
        ...

    def put_workspace(self, workspace: Workspace) -> None:
        """Name a folder, or give a name another one."""
        ...

    def workspaces(self) -> list[Workspace]:
        """All named folders."""
        ...

    def run(self, run: str) -> RunRow:
        """One run by its id. Raises NotFound."""
        ...

    def find_runs(self, prefix: str) -> list[str]:
        """Ids of runs that begin with ``prefix``, newest first (at most 20)."""
        ...

    def runs(
        self,
        *,
        workspace: str | None = None,
        status: Sequence[str] = (),
        limit: int | None = None,
    ) -> Iterator[RunRow]:
        """Runs, newest first."""
        ...

    def request(self, request: str) -> RequestRow:
        """One request. Raises NotFound."""
        ...

    def requests(
        self, *, status: Sequence[str] = ("open",), run: str | None = None, workspace: str | None = None
    ) -> list[RequestRow]:
        """Requests, oldest first."""
        ...

    def now(self) -> float:
        """The database's clock, in epoch seconds."""
        ...

    def verify(self) -> list[Problem]:
        """Compare every projection with what the events say; also integrity of the file and of texts."""
        ...

    def rebuild(self) -> int:
        """Write every projection anew from the events; the number of runs."""
        ...

    def size(self) -> int:
        """Bytes that the journal takes."""
        ...

    def close(self) -> None:
        """Let go of files and threads."""
        ...
