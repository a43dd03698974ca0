"""The journal's twin in memory: same rules and rows, for tests and for runs that nobody needs to keep."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from cadenza.clock import Clock, system_clock
from cadenza.core import upcasting
from cadenza.core.demands import Message
from cadenza.core.events import AnyEvent, BudgetRaised, InputEvent, Recorded, RequestOpened
from cadenza.core.spending import Spend, Spent, exceeded
from cadenza.core.state import Origin, RunState
from cadenza.errors import Conflict, InputRefused, JournalError, NotFound
from cadenza.ids import Hash
from cadenza.journal import doctor, holders, projections, refusals
from cadenza.journal.projections import MessageRow, Standing
from cadenza.journal.store import (
    LEASE_SECONDS,
    SOLVED,
    Commit,
    Decision,
    Holder,
    Lease,
    Loaded,
    Problem,
    RequestRow,
    RunRow,
    Workspace,
)

_encode_state = msgspec.json.Encoder().encode
_decode_state = msgspec.json.Decoder(RunState).decode


class _Leased(msgspec.Struct):
    """A run's lease; ``expires`` 0 is given back."""

    holder: Holder
    epoch: int
    expires: float
    claims: int


class _Run(msgspec.Struct):
    """All that is held about one run. Events and snapshot are JSON, so nothing is shared with callers."""

    row: RunRow
    standing: Standing
    events: list[tuple[float, str, str]] = []
    snapshot: bytes | None = None
    snapshot_seq: int = 0
    requests: dict[str, RequestRow] = {}
    messages: list[MessageRow] = []
    budget: str | None = None
    lease: _Leased | None = None


class MemoryJournal:
    """A journal that is gone with its process. ``lease_seconds`` and ``clock`` as for SQLite."""

    path = ":memory:"

    def __init__(self, *, lease_seconds: float = LEASE_SECONDS, clock: Clock | None = None) -> None:
        self._seconds = lease_seconds
        self._clock = clock or system_clock
        self._lock = threading.RLock()
        self._runs: dict[str, _Run] = {}
        self._texts: dict[Hash, str] = {}
        self._calls: dict[str, str] = {}
        self._requests: dict[str, str] = {}
        self._conversations: dict[str, dict[str, None]] = {}
        self._screens: dict[str, int] = {}
        self._reserved: dict[str, tuple[str, Spent]] = {}
        self._workspaces: dict[str, Workspace] = {}

    # -- writing ------------------------------------------------------------------------------------------

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
        """Begin a run. Raises Conflict where there is one of that id."""
        first = Commit(
            run=run, epoch=0, after=0, events=tuple(events), state=state, at=at, actor=actor, texts=texts
        )
        payloads = refusals.payloads(events)
        refusals.check_texts(texts)
        row = projections.run_row(run, state, created_at=at, updated_at=at, actor=actor)
        with self._lock:
            if run in self._runs:
                raise refusals.run_exists(run)
            self._runs[run] = _Run(row, projections.derive(state).standing)
            self._runs[run].budget = projections.budget_of(state)
            self._append(self._runs[run], first, payloads)

    def commit(self, commit: Commit) -> None:
        """Append a lease holder's events. Raises LeaseLost or SequenceConflict."""
        refused = self.commit_many((commit,))[0]
        if refused is not None:
            raise refused

    def commit_many(self, commits: Sequence[Commit]) -> list[Exception | None]:
        """Several commits at once; the refusal of each, or None."""
        with self._lock:
            return [self._commit_one(commit) for commit in commits]

    def _commit_one(self, commit: Commit) -> Exception | None:
        try:
            payloads = refusals.payloads(commit.events)
            refusals.check_texts(commit.texts)
            found = self._run(commit.run)
        except (InputRefused, NotFound) as refused:
            return refused
        lease = found.lease
        if lease is None or lease.epoch != commit.epoch or not lease.expires:
            worker = lease.holder.worker if lease is not None and lease.expires else None
            return refusals.not_yours(commit.run, commit.epoch, worker)
        if found.row.seq != commit.after:
            return refusals.out_of_sequence(commit, found.row.seq)
        self._append(found, commit, payloads)
        lease.claims = 0
        if commit.release:
            lease.expires = 0.0
        self._hand_on(commit)
        return None

    def _hand_on(self, commit: Commit) -> None:
        """Inputs for other runs; what was reserved and is spent; screens that were solved meanwhile."""
        for send in commit.sends:
            found = self._runs.get(send.run)
            refused = found and projections.refusal(send.event, found.row.status, found.standing)
            if found is not None and refused is None:
                (payload,) = refusals.payloads([send.event])
                self._queue(found, send.event, (commit.at, commit.actor, payload))
        for demand in commit.settles:
            self._reserved.pop(demand, None)
        for event in commit.events:
            if not isinstance(event, RequestOpened) or event.screen is None:
                continue
            if self.generation(event.screen) > event.generation:
                self._decide(self.request(event.id), SOLVED, at=commit.at, actor="screen")

    def _append(self, found: _Run, commit: Commit, payloads: Sequence[str]) -> None:
        state, at, actor = commit.state, commit.at, commit.actor
        found.events.extend((at, actor, payload) for payload in payloads)
        found.row = projections.run_row(
            commit.run, state, created_at=found.row.created_at, updated_at=at, actor=found.row.actor
        )
        found.standing = projections.derive(state).standing
        self._texts.update({hash: body for hash, body in commit.texts.items() if hash not in self._texts})
        events = [upcasting.read(payload, run=commit.run, seq=0) for payload in payloads]
        projected = projections.project(
            events, commit.after + 1, lambda demand: self._calls.pop(demand, None)
        )
        self._add_messages(found, projected.messages)
        self._calls.update(projected.calls)
        if projected.opens or projected.settles:
            projections.project_requests(found.requests, events, run=commit.run, at=at, actor=actor)
        self._requests.update(dict.fromkeys(found.requests, commit.run))
        if projections.snapshot_due(state, found.snapshot_seq):
            found.snapshot, found.snapshot_seq = _encode_state(state), state.seq

    def _add_messages(self, found: _Run, messages: Iterable[MessageRow]) -> None:
        for message in messages:
            found.messages.append(message)
            self._conversations.setdefault(message.conversation, {})[found.row.id] = None

    # -- inputs -------------------------------------------------------------------------------------------

    def append_input(self, run: str, event: InputEvent, *, at: float, actor: str) -> int:
        """Queue an input event; its seq. Raises NotFound or Conflict."""
        (payload,) = refusals.payloads([event])
        with self._lock:
            found = self._run(run)
            refused = projections.refusal(event, found.row.status, found.standing)
            if refused is not None:
                raise Conflict(f"Run {run} {refused}.")
            if isinstance(event, BudgetRaised):
                found.budget = projections.budget_text(event.budget)
            return self._queue(found, event, (at, actor, payload))

    def decide(self, request: str, value: Any, *, at: float, actor: str) -> Decision:
        """Answer a request, once. Raises NotFound."""
        event, _ = refusals.decision(request, value)
        with self._lock:
            row = self.request(request)
            settled = projections.settled(row, event.value, self.now())
            if settled is not None:
                return settled
            return Decision(result="accepted", request=self._decide(row, value, at=at, actor=actor))

    def _decide(self, row: RequestRow, value: Any, *, at: float, actor: str) -> RequestRow:
        event, payload = refusals.decision(row.id, value)
        found = self._runs[row.run]
        self._queue(found, event, (at, actor, payload))
        row = found.requests[row.id] = projections.decided(row, event, at=at, actor=actor)
        return row

    def resolve_screen(
        self, screen: str, value: Any, *, at: float, actor: str, reason: str = "captcha"
    ) -> list[RequestRow]:
        """Decide every open request that waits for a screen; those that were."""
        with self._lock:
            self._screens[screen] = self.generation(screen) + 1
            waiting = [row for row in self.requests() if row.screen == screen and row.reason == reason]
            return [self._decide(row, value, at=at, actor=actor) for row in waiting]

    def generation(self, screen: str) -> int:
        """How often a screen has been solved."""
        return self._screens.get(screen, 0)

    # -- trees, budgets, workspaces -----------------------------------------------------------------------

    def tree(self, root: str) -> list[RunRow]:
        """A run and all that belong to its tree. Raises NotFound."""
        with self._lock:
            first = self._run(root).row
            rows = (found.row for found in self._runs.values())
            return [
                first,
                *(row for row in rows if row.parent is not None and row.root == root and row.id != root),
            ]

    def reserve(self, root: str, demand: str, want: Spent) -> str | None:
        """Set something aside of a tree's budget; None, or which limit is against it."""
        with self._lock:
            found = self._runs.get(root)
            if found is None or found.budget is None:
                return None
            total = want
            for row in self.tree(root):
                tokens = row.input_tokens + row.output_tokens
                total = total + Spent(tokens=tokens, cost=row.cost, tool_calls=row.tool_calls)
            for other, (of, reserved) in self._reserved.items():
                total = total + reserved if of == root and other != demand else total
            limits = msgspec.json.decode(found.budget, type=Spend)
            words = exceeded(limits, total, self.now() - found.row.created_at)
            if words is None:
                self._reserved[demand] = (root, want)
            return words

    def put_workspace(self, workspace: Workspace) -> None:
        """Name a folder."""
        with self._lock:
            self._workspaces[workspace.name] = workspace

    def workspaces(self) -> list[Workspace]:
        """All named folders."""
        with self._lock:
            return [self._workspaces[name] for name in sorted(self._workspaces)]

    def _queue(self, found: _Run, event: InputEvent, stored: tuple[float, str, str]) -> int:
        found.events.append(stored)
        seq, at = found.row.seq + 1, stored[0]
        found.row = msgspec.structs.replace(found.row, seq=seq, updated_at=at)
        if projections.wakes(event, found.standing):
            found.row = msgspec.structs.replace(
                found.row, status="queued", reason=None, message=None, wake_at=0.0
            )
        return seq

    # -- leases -------------------------------------------------------------------------------------------

    def claim(self, holder: Holder, *, run: str | None = None) -> Lease | None:
        """Take a lease; None where nothing is claimable. Raises NotFound for a ``run`` that is not there."""
        with self._lock:
            now = self.now()
            if run is not None:
                candidates = [self._run(run)] if self._run(run).row.wake_at is not None else []
            else:
                due = [r for r in self._runs.values() if r.row.wake_at is not None and r.row.wake_at <= now]
                candidates = sorted(due, key=lambda r: max(r.row.wake_at or 0.0, r.row.updated_at))
            found = next((r for r in candidates if _is_free(r.lease, now)), None)
            if found is None:
                return None
            old = found.lease
            epoch, claims = (old.epoch + 1, old.claims + 1) if old is not None else (1, 1)
            found.lease = _Leased(holder, epoch, now + self._seconds, claims)
            return _lease(found.row.id, found.lease)

    def claim_many(self, holder: Holder, limit: int) -> list[Lease]:
        """Take up to ``limit`` leases."""
        claimed: list[Lease] = []
        while len(claimed) < limit and (lease := self.claim(holder)) is not None:
            claimed.append(lease)
        return claimed

    def renew(self, lease: Lease) -> Lease:
        """Extend a lease. Raises LeaseLost."""
        with self._lock:
            found = self._runs.get(lease.run)
            held = found.lease if found is not None else None
            if held is None or held.epoch != lease.epoch or not held.expires:
                raise refusals.lost(lease)
            held.expires = self.now() + self._seconds
            return _lease(lease.run, held)

    def release(self, lease: Lease) -> None:
        """Give a lease back: this claim was not lost, so it does not count."""
        with self._lock:
            found = self._runs.get(lease.run)
            held = found.lease if found is not None else None
            if held is not None and held.epoch == lease.epoch and held.expires:
                held.expires, held.claims = 0.0, max(held.claims - 1, 0)

    def leases(self) -> dict[str, Lease]:
        """Live leases by run: not run out, and of no process that is known to be gone."""
        with self._lock:
            now = self.now()
            return {
                run: _lease(run, found.lease)
                for run, found in self._runs.items()
                if found.lease is not None and not _is_free(found.lease, now)
            }

    def now(self) -> float:
        """The clock that decides, in epoch seconds."""
        return self._clock()

    # -- reading ------------------------------------------------------------------------------------------

    def _run(self, run: str) -> _Run:
        found = self._runs.get(run)
        if found is None:
            raise refusals.no_run(run)
        return found

    def load(self, run: str) -> Loaded:
        """Snapshot and tail. Raises NotFound."""
        with self._lock:
            found = self._run(run)
            snapshot = None if found.snapshot is None else _decode_state(found.snapshot)
            return Loaded(snapshot=snapshot, tail=tuple(self.events(run, after=found.snapshot_seq)))

    def events(self, run: str, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        """A run's events in order. Raises NotFound."""
        with self._lock:
            stored = self._run(run).events[after : None if limit is None else after + limit]
        return [
            Recorded(run=run, seq=seq, at=at, actor=actor, event=upcasting.read(payload, run=run, seq=seq))
            for seq, (at, actor, payload) in enumerate(stored, after + 1)
        ]

    def texts(self, hashes: Iterable[Hash]) -> dict[Hash, str]:
        """Texts by hash. Raises JournalCorrupt when one is missing."""
        wanted = list(dict.fromkeys(hashes))
        missing = next((hash for hash in wanted if hash not in self._texts), None)
        if missing is not None:
            raise refusals.missing_text(self.path, missing)
        return {hash: self._texts[hash] for hash in wanted}

    def messages(
        self,
        conversation: str,
        *,
        before_demand: str | None = None,
        run: str | None = None,
        origins: Sequence[Origin] = (),
    ) -> list[Message]:
        """The messages of a conversation in order, or those before a demand's own."""
        with self._lock:
            return projections.messages_of(self._rows_of, conversation, before_demand, run, origins)

    def _rows_of(self, conversation: str) -> list[tuple[str, Hash, str, str, int]]:
        return [
            (message.role, message.text, message.demand, run, message.seq)
            for run in self._conversations.get(conversation, ())
            for message in self._runs[run].messages
            if message.conversation == conversation
        ]

    def run(self, run: str) -> RunRow:
        """One run. Raises NotFound."""
        with self._lock:
            return self._run(run).row

    def find_runs(self, prefix: str) -> list[str]:
        """Ids that begin with ``prefix``, newest first, at most 20."""
        with self._lock:
            return [id for id in reversed(self._runs) if id.startswith(prefix)][:20]

    def runs(
        self, *, workspace: str | None = None, status: Sequence[str] = (), limit: int | None = None
    ) -> Iterator[RunRow]:
        """Runs, newest first."""
        with self._lock:
            rows = [
                found.row
                for found in reversed(self._runs.values())
                if workspace in (None, found.row.workspace) and (not status or found.row.status in status)
            ]
        yield from rows[:limit]

    def request(self, request: str) -> RequestRow:
        """One request. Raises NotFound."""
        with self._lock:
            run = self._requests.get(request)
            if run is None:
                raise refusals.no_request(request)
            return self._runs[run].requests[request]

    def requests(
        self, *, status: Sequence[str] = ("open",), run: str | None = None, workspace: str | None = None
    ) -> list[RequestRow]:
        """Requests, oldest first."""
        with self._lock:
            rows = [
                row
                for found in self._runs.values()
                if run in (None, found.row.id) and workspace in (None, found.row.workspace)
                for row in found.requests.values()
                if row.status in status
            ]
        return sorted(rows, key=lambda row: row.opened_at)

    # -- the whole ----------------------------------------------------------------------------------------

    def verify(self) -> list[Problem]:
        """Compare every row with what the events say; texts too."""
        with self._lock:
            problems = list(doctor.wrong_texts(self._texts.items()))
            for run in self._runs:
                problems += self._verify_run(run)
            return problems

    def _verify_run(self, run: str) -> list[Problem]:
        found = self._runs[run]
        try:
            recorded = self.events(run)
            told = doctor.tell(run, recorded)
            stored = doctor.Told(
                row=found.row,
                standing=found.standing,
                budget=found.budget,
                requests=tuple(found.requests.values()),
                messages=tuple(found.messages),
                state=doctor.stored_state(self.load(run)),
            )
        except JournalError as error:
            return [Problem(run=run, what=error.message)]
        texts = doctor.missing_texts(run, recorded, self._texts.keys())
        pinned = doctor.pinned(recorded)
        pieces = {pinned: self._texts[pinned]} if pinned in self._texts else {}
        return [
            *doctor.differences(told, stored),
            *texts,
            *doctor.missing_of_pieces(pieces, self._texts.keys()),
        ]

    def rebuild(self) -> int:
        """Write every projection anew; the number of runs."""
        with self._lock:
            all_told = {run: doctor.tell(run, self.events(run)) for run in self._runs}
            self._requests.clear()
            self._conversations.clear()
            for run, told in all_told.items():
                self._rebuild_run(self._runs[run], told)
            return len(all_told)

    def _rebuild_run(self, found: _Run, told: doctor.Told) -> None:
        found.row, found.standing, found.messages = told.row, told.standing, []
        found.budget = told.budget
        found.requests = {row.id: row for row in told.requests}
        self._requests.update(dict.fromkeys(found.requests, told.row.id))
        self._add_messages(found, told.messages)
        found.snapshot, found.snapshot_seq = None, 0
        if projections.snapshot_due(told.state, 0):
            found.snapshot, found.snapshot_seq = _encode_state(told.state), told.state.seq

    def size(self) -> int:
        """Bytes of events and texts."""
        with self._lock:
            events = sum(len(payload) for found in self._runs.values() for _, _, payload in found.events)
            return events + sum(map(len, self._texts.values()))

    def close(self) -> None:
        """Nothing to let go of: a closed journal can be read on, as a file can be opened again."""


def _is_free(lease: _Leased | None, now: float) -> bool:
    return lease is None or lease.expires <= now or holders.is_gone(lease.holder)


def _lease(run: str, held: _Leased) -> Lease:
    return Lease(
        run=run, epoch=held.epoch, worker=held.holder.worker, expires=held.expires, claims=held.claims
    )
