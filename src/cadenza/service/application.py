"""The application: what can be done with runs. Every face calls this, and only this.

It appends facts and reads them; it plays nothing. A worker (embedded in :class:`cadenza.Engine`, or the
``cadenza worker`` process) does that.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cadenza.core import events as ev
from cadenza.core.folding import fold_recorded
from cadenza.core.spending import Spend
from cadenza.core.state import RunState
from cadenza.errors import Conflict, NotFound
from cadenza.journal.store import RequestRow, RunRow
from cadenza.piece.model import Piece, read_piece
from cadenza.service.requests import Requests


class Service(Requests):
    """All that a face can do. For the arguments see :class:`~cadenza.service.starting.Starting`."""

    # What changes a run.

    def cancel(self, run: str, reason: str = "") -> RunRow:
        """Ask for a run to be cancelled. With no worker playing it, the next claim ends it.

        Raises:
            NotFound, Conflict: no such run; it has ended already.
        """
        return self._input(run, ev.CancelRequested(reason=reason))

    def resume(self, run: str, *, restart_visit: bool = False) -> RunRow:
        """Let a held run go on; nothing is appended for a run that is not held.

        Raises:
            NotFound: no such run.
            Conflict: it has ended (``retry`` reopens it), or it waits for an answer.
        """
        row = self.run(run)
        if row.status == "held" or restart_visit:
            return self._input(row.id, ev.ResumeRequested(restart_visit=restart_visit))
        if row.status == "waiting_human":
            ids = [request.id for request in self.journal.requests(run=row.id)]
            hint = "\n  ".join(f"cadenza answer {id} VALUE" for id in ids)
            raise Conflict(f"run {row.id} waits for an answer", hint=hint)
        if row.wake_at is None:
            raise Conflict(f"run {row.id} has ended ({row.status})", hint=f"cadenza retry {row.id}")
        return row

    def retry(self, run: str, *, movement: str | None = None) -> RunRow:
        """Reopen an ended run where it ended, or at ``movement``.

        Raises:
            NotFound: no such run or movement.
            Conflict: it has not ended, or it completed and no movement is named.
        """
        row = self.run(run)
        if movement is not None:
            names = self.piece(row.id).by_name
            if movement not in names:
                raise NotFound(f"{row.piece} has no movement {movement!r}", hint=f"it has {', '.join(names)}")
        elif row.status == "completed":
            hint = f"cadenza retry {row.id} --from MOVEMENT plays it again from there"
            raise Conflict(f"run {row.id} completed; there is nothing to retry", hint=hint)
        return self._input(row.id, ev.RetryRequested(movement=movement))

    def _input(self, run: str, event: ev.InputEvent) -> RunRow:
        id = self.run(run).id
        self.journal.append_input(id, event, at=self._clock(), actor=self.actor)
        return self.journal.run(id)

    # What reads.

    def run(self, run: str) -> RunRow:
        """A run by its id, by a unique beginning of it, or ``last``: the newest that no other run started.

        Raises:
            NotFound: no run, or several, begin so.
        """
        if run == "last":
            return self._newest()
        found = self.journal.find_runs(run)
        if run in found:
            return self.journal.run(run)
        if len(found) == 1:
            return self.journal.run(found[0])
        if found:
            raise NotFound(f"several runs begin with {run!r}: {', '.join(found[:5])}", hint="give more of it")
        raise NotFound(f"there is no run {run!r} in {self.journal.path}", hint="cadenza runs lists them")

    def _newest(self) -> RunRow:
        for limit in (20, None):
            for row in self.journal.runs(limit=limit):
                if row.parent is None:
                    return row
        raise NotFound("there is no run yet", hint="cadenza run PIECE TASK starts one")

    def row(self, run: str) -> RunRow:
        """One run as :meth:`runs` shows it."""
        row = self.run(run)
        return self._live(row, row.id in self.journal.leases())

    def runs(
        self, *, workspace: str | None = None, status: Sequence[str] = (), limit: int | None = None
    ) -> list[RunRow]:
        """Runs, newest first, of one workspace or of all; one that is being played now shows as
        ``running``."""
        live = self.journal.leases()
        rows = list(self.journal.runs(workspace=workspace, status=status, limit=limit))
        return [self._live(row, row.id in live) for row in rows]

    def _live(self, row: RunRow, held: bool) -> RunRow:
        if held and row.status == "queued":
            return msgspec.structs.replace(row, status="running")
        return row

    def state(self, run: str) -> RunState:
        """The folded state of a run."""
        loaded = self.journal.load(self.run(run).id)
        return fold_recorded(loaded.tail, loaded.snapshot)

    def piece(self, run: str) -> Piece:
        """The piece that a run pinned."""
        pinned = self.state(run).run.piece
        return read_piece(self.text(pinned), pinned)

    def text(self, hash: str) -> str:
        """A text of the journal by its hash."""
        return self.journal.texts([hash])[hash]

    def events(self, run: str, *, after: int = 0) -> list[ev.Recorded]:
        """The events of a run after ``after``."""
        return self.journal.events(self.run(run).id, after=after)

    def reports(self, run: str) -> dict[str, str]:
        """The reports that a run saved: text by name, in the order of their first writing."""
        hashes = self.state(run).reports
        texts = self.journal.texts(hashes.values())
        return {name: texts[hash] for name, hash in hashes.items()}

    def report(self, run: str, name: str) -> str:
        """One report. Raises NotFound, naming those that there are."""
        hashes = self.state(run).reports
        if name not in hashes:
            known = ", ".join(hashes) or "none yet"
            raise NotFound(f"run {run} has no report {name!r}", hint=f"it has: {known}")
        return self.text(hashes[name])

    def inbox(self, *, run: str | None = None, workspace: str | None = None) -> list[RequestRow]:
        """Open requests, oldest first: of one run, of one workspace, or all."""
        id = None if run is None else self.run(run).id
        return self.journal.requests(run=id, workspace=workspace)

    def fork(self, run: str, seq: int | None = None) -> RunRow:
        """Begin a run as another one stood after an event (see :meth:`Starting.fork_at`)."""
        return self.journal.run(self.fork_at(self.run(run), seq))

    def raise_budget(self, run: str, budget: Spend) -> RunRow:
        """Change what the tree of a run may spend; a run of it that is held for want of budget goes on.

        Raises:
            NotFound: no such run.
        """
        root = self.run(run).root
        current = self.state(root).budget
        fields = {name: getattr(budget, name) for name in Spend.__struct_fields__}
        merged = msgspec.structs.replace(current, **{k: v for k, v in fields.items() if v is not None})
        self._input(root, ev.BudgetRaised(budget=merged))
        for row in self.journal.tree(root):
            if row.status == "held" and row.reason == "budget":
                self._input(row.id, ev.ResumeRequested())
        return self.row(root)

    def tree(self, run: str) -> list[RunRow]:
        """A run and all the runs below it, the first one first."""
        row = self.run(run)
        rows, below = self.journal.tree(row.root), {row.id}
        found = []
        for one in rows:
            if one.id in below or one.parent in below:
                below.add(one.id)
                found.append(one)
        return [self.row(one.id) for one in found]
