"""The application: what can be done with runs. Every face calls this, and only this.

It appends facts and reads them; it plays nothing. A worker (embedded in :class:`cadenza.Engine`, or the
``cadenza worker`` process) does that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from cadenza.clock import Clock, system_clock
from cadenza.config import Configuration, apply
from cadenza.core import events as ev
from cadenza.core.conductor import Conductor
from cadenza.core.loops import window
from cadenza.core.movements import KINDS, MovementKind
from cadenza.core.state import RunState, fold_recorded
from cadenza.errors import Conflict, InputRefused, NotFound, UsageError
from cadenza.ids import new_run_id, new_seed, text_hash
from cadenza.journal.store import Decision, Journal, RequestRow, RunRow
from cadenza.piece.find import load_piece
from cadenza.piece.model import LoadedPiece, Piece, read_piece
from cadenza.piece.vocabulary import Language, PermissionMode, Phases

MAX_TASK_BYTES = 1024 * 1024
"""The longest task or answer, in bytes of UTF-8."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is to be played. ``provider`` and ``model`` win over what the piece names.

    ``provider`` is ``openai``, ``scripted:PATH`` or a plug-in's name; ``any_provider``: whoever plays the
    run answers to every name. ``phases`` and ``max_movements`` replace the piece's own. ``interactive``:
    somebody is there, so ``interactive_only`` rules count. ``workspace`` is a name that listings can be
    narrowed to.
    """

    cwd: Path | None = None
    language: Language | None = None
    permission: PermissionMode = "default"
    provider: str | None = None
    model: str | None = None
    any_provider: bool = False
    phases: Phases | None = None
    max_movements: int | None = None
    interactive: bool = False
    providers: Mapping[str, str] = {}
    workspace: str = "default"


class Service:
    """All that a face can do.

    Args:
        journal: where the facts are.
        actor: who acts, for the journal.
        language: of the engine's own texts, where neither the run nor the piece says.
        kinds: movement kinds by name, for those who add their own.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        actor: str = "person",
        language: Language = "en",
        kinds: Mapping[str, MovementKind] = KINDS,
        clock: Clock = system_clock,
    ) -> None:
        self.journal = journal
        self._kinds = kinds
        self.actor = actor
        self.language = language
        self._clock = clock

    # What changes a run.

    def start(self, piece: str | Path | LoadedPiece, task: str, options: Options | None = None) -> str:
        """Begin a run; its id. It is played by whichever worker claims it.

        Raises:
            NotFound, PieceError: the piece is not there, or cannot be played.
            InputRefused: the task is empty, too long, or no storable text.
            UsageError, ConfigError: an option cannot be, or the configuration is against it.
            JournalError: the run could not be recorded; then there is none.
        """
        options = options or Options()
        check_text(task, "the task")
        return self.begin(self.prepare(piece, options), task, options)

    def prepare(self, piece: str | Path | LoadedPiece, options: Options | None = None) -> LoadedPiece:
        """The piece as it would be played, with what the options and the configuration say of it.

        Raises:
            NotFound, PieceError: the piece or the working directory is not there; the piece cannot be played.
            UsageError: an option cannot be; the configuration does not allow the piece, or names no provider
                for it.
            ConfigError: the configuration cannot be read.
        """
        options = options or Options()
        if options.max_movements is not None and options.max_movements < 1:
            raise UsageError(f"max_movements is {options.max_movements}", hint="give a number above 0")
        check_text(options.workspace, "the workspace")
        cwd = _working_directory(options)
        if not isinstance(piece, LoadedPiece):
            piece = load_piece(str(piece), cwd=cwd, language=options.language or self.language)
        played = apply(
            piece.piece,
            Configuration.load(cwd),
            options.provider,
            options.model,
            any_provider=options.any_provider,
        )
        if options.phases is not None:
            played = played.changed(phases=options.phases)
        return piece.changed(piece=played)

    def begin(self, piece: LoadedPiece, task: str, options: Options | None = None) -> str:
        """Begin a run of a piece that was prepared; its id.

        Raises:
            InputRefused: the task is empty, too long, or no storable text.
            JournalError: the run could not be recorded; then there is none.
        """
        options = options or Options()
        check_text(task, "the task")
        run, now = new_run_id(), self._clock()
        texts = {**piece.texts, piece.piece.hash: piece.piece.source, text_hash(task): task}
        started = self._started(piece.piece, text_hash(task), _working_directory(options), options)
        step = Conductor(piece.piece, kinds=self._kinds).start(started, now, texts)
        self.journal.create(run, step.events, step.state, {**texts, **step.texts}, at=now, actor=self.actor)
        return run

    def _started(self, piece: Piece, task: str, cwd: Path, options: Options) -> ev.RunStarted:
        return ev.RunStarted(
            piece=piece.hash,
            name=piece.name,
            task=task,
            seed=new_seed(),
            cwd=os.fspath(cwd),
            workspace=options.workspace,
            language=options.language or piece.language or self.language,
            permission=options.permission,
            provider=options.provider,
            model=options.model,
            history=window(piece.loop_monitors),
            limit=options.max_movements or piece.max_movements,
            interactive=options.interactive,
            providers=dict(options.providers),
        )

    def answer(self, request: str, value: Any) -> Decision:
        """Answer a request; what became of the answer.

        Raises:
            NotFound: no such request (a unique beginning of an id is enough).
            InputRefused: no storable text, or an empty one (a blocked agent's question may be left empty:
                that ends the run).
        """
        row = self.request(request)
        if not isinstance(value, str):
            kind = type(value).__name__
            raise InputRefused(f"the answer is a {kind}; this question takes a text", hint="give a text")
        if row.reason != "blocked" or value.strip():
            check_text(value, "the answer")
        return self.journal.decide(row.id, value, at=self._clock(), actor=self.actor)

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
        """A run by its id, by a unique beginning of it, or ``last``.

        Raises:
            NotFound: no run, or several, begin so.
        """
        if run == "last":
            row = next(iter(self.journal.runs(limit=1)), None)
            if row is None:
                raise NotFound("there is no run yet", hint="cadenza run PIECE TASK starts one")
            return row
        found = self.journal.find_runs(run)
        if run in found:
            return self.journal.run(run)
        if len(found) == 1:
            return self.journal.run(found[0])
        if found:
            raise NotFound(f"several runs begin with {run!r}: {', '.join(found[:5])}", hint="give more of it")
        raise NotFound(f"there is no run {run!r} in {self.journal.path}", hint="cadenza runs lists them")

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

    def request(self, request: str) -> RequestRow:
        """A request by its id or a unique beginning of the id of an open one.

        Raises:
            NotFound: none, or several, begin so.
        """
        with suppress(NotFound):
            return self.journal.request(request)
        rows = [row for row in self.journal.requests() if row.id.startswith(request)] if request else []
        if len(rows) == 1:
            return rows[0]
        if len(rows) > 1:
            ids = ", ".join(row.id for row in rows[:5])
            raise NotFound(f"several open requests begin with {request!r}: {ids}", hint="give more of it")
        return self.journal.request(request)

    def inbox(self, *, run: str | None = None, workspace: str | None = None) -> list[RequestRow]:
        """Open requests, oldest first: of one run, of one workspace, or all."""
        id = None if run is None else self.run(run).id
        return self.journal.requests(run=id, workspace=workspace)

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


def _working_directory(options: Options) -> Path:
    cwd = (options.cwd or Path.cwd()).resolve()
    if not cwd.is_dir():
        raise NotFound(f"the working directory {cwd} is not there", hint="make it, or give another --cwd")
    return cwd


def check_text(text: str, what: str) -> None:
    """Refuse what cannot be stored, before anything is begun.

    Raises:
        InputRefused: empty, over the limit, NUL or a lone surrogate; the message says where.
    """
    if not text.strip():
        raise InputRefused(f"{what} is empty", hint="give some text")
    bad = next((i for i, c in enumerate(text) if c == "\0" or "\ud800" <= c <= "\udfff"), None)
    if bad is not None:
        shown = f"U+{ord(text[bad]):04X}"
        raise InputRefused(
            f"{what} holds {shown} at character {bad}, which cannot be stored", hint="take it out"
        )
    size = len(text.encode("utf-8"))
    if size > MAX_TASK_BYTES:
        raise InputRefused(
            f"{what} is {size:,} bytes long; the limit is {MAX_TASK_BYTES:,}",
            hint="shorten it",
        )


__all__ = ["MAX_TASK_BYTES", "Options", "Service", "check_text"]
