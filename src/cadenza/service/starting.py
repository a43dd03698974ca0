"""How runs begin: from a piece, as another run's child, as another run stood."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from cadenza.clock import Clock, system_clock
from cadenza.config import Configuration, apply
from cadenza.core import events as ev
from cadenza.core.conductor import Conductor
from cadenza.core.demands import StartRun
from cadenza.core.folding import fold_recorded
from cadenza.core.loops import window
from cadenza.core.movements import KINDS, MovementKind
from cadenza.core.spending import Spend
from cadenza.core.state import RunState
from cadenza.core.toolboxes import make_toolbox
from cadenza.core.tooling import ToolSpec, write_toolbox
from cadenza.errors import Conflict, NotFound, UsageError
from cadenza.ids import derive_seed, new_run_id, new_seed, text_hash
from cadenza.journal.store import Journal, RunRow, Workspace
from cadenza.piece.find import load_piece
from cadenza.piece.model import LoadedPiece, Piece, read_piece
from cadenza.piece.vocabulary import Language
from cadenza.service.options import Options, check_text, working_directory

DEEPEST = 8
"""How many generations a tree of runs may have."""


class Starting:
    """Begins runs.

    Args:
        journal: where the facts are.
        actor: who acts, for the journal.
        language: of the engine's own texts, where neither the run nor the piece says.
        kinds: movement kinds by name, for those who add their own.
        tools: definitions of tools that this process carries out, besides those that are installed.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        actor: str = "person",
        language: Language = "en",
        kinds: Mapping[str, MovementKind] = KINDS,
        clock: Clock = system_clock,
        tools: Sequence[ToolSpec] = (),
    ) -> None:
        self._tools = tuple(tools)
        self.journal = journal
        self._kinds = kinds
        self.actor = actor
        self.language = language
        self._clock = clock

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
        cwd = working_directory(options)
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
            UsageError: a plug-in's tool cannot be used.
            JournalError: the run could not be recorded; then there is none.
        """
        options = options or Options()
        check_text(task, "the task")
        started = self._started(piece.piece, text_hash(task), working_directory(options), options)
        texts = {**piece.texts, text_hash(task): task}
        return self._create(piece.piece, started, texts)

    def _create(self, piece: Piece, started: ev.RunStarted, texts: Mapping[str, str]) -> str:
        now = self._clock()
        toolbox = self.toolbox(piece, started.tools)
        if toolbox is not None:
            started = msgspec.structs.replace(started, tools=text_hash(toolbox))
            texts = {**texts, text_hash(toolbox): toolbox}
        texts = {**texts, piece.hash: piece.source}
        step = Conductor(piece, kinds=self._kinds).start(started, now, texts)
        made = {**texts, **step.texts}
        self.journal.create(started.id, step.events, step.state, made, at=now, actor=self.actor)
        return started.id

    def toolbox(self, piece: Piece, specs: str | None = None) -> str | None:
        """The tools that a run pins, as JSON; None for a piece without any. ``specs`` are those of
        servers."""
        if piece.control != "tools":
            return None
        from cadenza.tools.registry import built_in, plugins

        work = [tool.spec for tool in built_in()]
        others = [*(tool.spec for tool in plugins()), *self._tools]
        servers = msgspec.json.decode(specs, type=list[ToolSpec]) if specs else []
        return write_toolbox(make_toolbox(piece, work, [*others, *servers]))

    def _started(self, piece: Piece, task: str, cwd: Path, options: Options) -> ev.RunStarted:
        specs = msgspec.json.encode(list(options.tools)).decode() if options.tools else None
        return ev.RunStarted(
            id=new_run_id(),
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
            tools=specs,
            budget=_budget(piece, options.budget),
            prices=dict(Configuration.load(cwd).prices),
            shared=options.shared or self._is_shared(options.workspace),
        )

    def _is_shared(self, name: str) -> bool:
        return any(known.name == name and known.shared for known in self.journal.workspaces())

    def start_child(self, run: str, state: RunState, demand: StartRun, task: str) -> str:
        """Begin the run that another one's agent wants, or find that it was begun; its id.

        Raises:
            NotFound: there is no such piece or workspace.
            UsageError, PieceError: the piece cannot be played.
            Conflict: the tree would be too deep.
        """
        try:
            return self.journal.run(demand.id).id
        except NotFound:
            pass
        check_text(task, "the task")
        parent = state.run
        if parent.depth + 1 > DEEPEST and not demand.detached:
            raise Conflict(f"a tree of runs has at most {DEEPEST} generations")
        place = self.workspace(demand.workspace) if demand.workspace else None
        cwd = Path(place.path if place is not None else parent.cwd)
        piece = self._child_piece(state, demand, cwd)
        started = msgspec.structs.replace(
            parent,
            id=demand.id,
            piece=piece.piece.hash,
            name=piece.piece.name,
            task=text_hash(task),
            seed=derive_seed(state.seed, demand.id),
            cwd=os.fspath(cwd),
            workspace=parent.workspace if place is None else place.name,
            shared=parent.shared if place is None else place.shared,
            history=window(piece.piece.loop_monitors),
            limit=piece.piece.max_movements if demand.piece else parent.limit,
            tools=None,
            root=None if demand.detached else parent.root or run,
            parent=None if demand.detached else run,
            depth=0 if demand.detached else parent.depth + 1,
            detached=demand.detached,
            budget=_budget(piece.piece, Spend()) if demand.detached else state.budget,
        )
        if demand.piece is None and parent.tools is not None:
            return self._create_as(piece.piece, started, {text_hash(task): task}, parent.tools)
        return self._create(piece.piece, started, {**piece.texts, text_hash(task): task})

    def _create_as(self, piece: Piece, started: ev.RunStarted, texts: Mapping[str, str], tools: str) -> str:
        """A run with the very tools of another one, whose servers need not be asked again."""
        now = self._clock()
        started = msgspec.structs.replace(started, tools=tools)
        known = _Known(self.journal, {**texts, piece.hash: piece.source})
        step = Conductor(piece, kinds=self._kinds).start(started, now, known)
        made = {**texts, **step.texts}
        self.journal.create(started.id, step.events, step.state, made, at=now, actor=self.actor)
        return started.id

    def _child_piece(self, state: RunState, demand: StartRun, cwd: Path) -> LoadedPiece:
        """The piece that a child plays: the parent's own as it was pinned, or one by its name."""
        if demand.piece is not None:
            if (
                "/" in demand.piece
                or "\\" in demand.piece
                or demand.piece.endswith((".yaml", ".yml", ".json"))
            ):
                hint = "name a piece of the project, or one of your own"
                raise UsageError(f"{demand.piece!r} is a path: agents start pieces by name only", hint=hint)
            run = state.run
            options = Options(cwd=cwd, language=run.language, provider=run.provider, model=run.model)
            return self.prepare(demand.piece, options)
        pinned = state.run.piece
        piece = read_piece(self.journal.texts([pinned])[pinned], pinned)
        return LoadedPiece(piece=piece, texts={}, path="")

    # Workspaces.

    def add_workspace(self, name: str, path: Path, *, shared: bool = False) -> Workspace:
        """Give a folder a name that runs and agents can start work in.

        Raises:
            NotFound: the folder is not there.
            UsageError: the name is empty or no single word.
        """
        if not name.strip() or any(letter.isspace() or letter in "/:" for letter in name):
            raise UsageError(f"a workspace cannot be called {name!r}", hint="use a word without / and :")
        if not path.is_dir():
            raise NotFound(f"the folder {path} is not there", hint="make it, or give another one")
        workspace = Workspace(
            name=name,
            path=os.fspath(path.resolve()),
            shared=shared,
            owner=self.actor,
            added_at=self._clock(),
        )
        self.journal.put_workspace(workspace)
        return workspace

    def workspace(self, name: str) -> Workspace:
        """A workspace by its name. Raises NotFound, naming those that there are."""
        known = {workspace.name: workspace for workspace in self.journal.workspaces()}
        if name not in known:
            names = ", ".join(known) or "none yet"
            hint = f"known are {names}; cadenza workspace add {name} FOLDER adds it"
            raise NotFound(f"there is no workspace {name!r}", hint=hint)
        return known[name]

    # Forks.

    def fork_at(self, row: RunRow, seq: int | None = None) -> str:
        """Begin a run as ``row``'s run stood after its event ``seq`` (now, where none is given); its id.
        The files
        of its workspace stay as they are.

        Raises:
            UsageError: the run has no such event.
            CodeChanged: this version cannot go on from there.
        """
        recorded = self.journal.events(row.id)
        wanted = row.seq if seq is None else seq
        if not 1 <= wanted <= len(recorded):
            raise UsageError(f"run {row.id} has events 1 to {len(recorded)}, not {wanted}")
        origin, wanted = _standing(recorded, wanted)
        pinned = origin.run.piece
        piece = read_piece(self.journal.texts([pinned])[pinned], pinned)
        now, id = self._clock(), new_run_id()
        started = ev.RunForked(
            id=id, origin=row.id, seq=wanted, seed=new_seed(), state=msgspec.to_builtins(origin)
        )
        known = _Known(self.journal, {})
        step = Conductor(piece, kinds=self._kinds).fork(started, origin, now, known)
        self.journal.create(id, step.events, step.state, dict(step.texts), at=now, actor=self.actor)
        return id


def _standing(recorded: list[ev.Recorded], seq: int) -> tuple[RunState, int]:
    """The state after ``seq``, or after the first event from there on that does not stand between two
    visits."""
    while True:
        state = fold_recorded(recorded[:seq])
        if state.visit is not None or state.ended is not None or seq == len(recorded):
            return state, seq
        seq += 1


def _budget(piece: Piece, given: Spend) -> Spend:
    """The piece's limits, replaced by those that were given."""
    own = piece.budget
    return Spend(
        tokens=own.tokens if given.tokens is None else given.tokens,
        cost=own.cost if given.cost is None else given.cost,
        tool_calls=own.tool_calls if given.tool_calls is None else given.tool_calls,
        wall_time=own.wall_time if given.wall_time is None else given.wall_time,
    )


class _Known(dict[str, str]):
    """Texts, those of the journal too."""

    def __init__(self, journal: Journal, own: Mapping[str, str]) -> None:
        super().__init__(own)
        self._journal = journal

    def __missing__(self, hash: str) -> str:
        return self._journal.texts([hash])[hash]
