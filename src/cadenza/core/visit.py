"""What a movement kind is handed: the piece, the counters, the texts, and the means to ask for more."""

from __future__ import annotations

from collections.abc import Mapping

from cadenza.core import events as ev
from cadenza.core.demands import AnyDemand, CallModel, Host, Message
from cadenza.core.performance import Need
from cadenza.core.state import RunState
from cadenza.core.tooling import Toolbox, read_toolbox
from cadenza.ids import Hash, derive, text_hash
from cadenza.piece.model import Movement, Piece
from cadenza.piece.vocabulary import Language

JUDGE_TOKENS = 1024
"""The longest verdict of a rule judge: enough for a grammar that pads its JSON with blanks."""


class Book:
    """Texts by hash: those that the driver handed in, and those that this step makes."""

    def __init__(self) -> None:
        self.base: Mapping[Hash, str] = {}
        self.new: dict[Hash, str] = {}

    def open(self, texts: Mapping[Hash, str]) -> None:
        """Begin a step over ``texts``."""
        self.base, self.new = texts, {}

    def text(self, hash: Hash) -> str:
        """The text of ``hash``. Raises KeyError where the journal does not hold it."""
        made = self.new.get(hash)
        return self.base[hash] if made is None else made

    def put(self, text: str) -> Hash:
        """Keep ``text`` for the journal; its hash."""
        hash = text_hash(text)
        self.new[hash] = text
        return hash


class Shared:
    """What the lanes of a visit count together: the agent's questions, and those that were sent back. It
    grows
    in the order of the outcomes, so a rebuilt visit counts the same."""

    def __init__(self, asks: int, deflections: int) -> None:
        self.asks = asks
        self.deflections = deflections


class Visit:
    """One performance of a movement, or of one lane of it.

    Everything here is fixed for the visit: a generator rebuilt after a restart sees the same values.
    """

    def __init__(self, piece: Piece, movement: Movement, state: RunState, book: Book) -> None:
        if state.visit is None:
            raise ValueError("a movement is performed within a visit; this run is between two")
        self.piece = piece
        self.movement = movement
        self.book = book
        self.run: ev.RunStarted = state.run
        self.started: ev.VisitStarted = state.visit.started
        self.lane = ""
        self.iteration = self.started.iteration
        self.movement_iteration = self.started.movement_iteration
        self.limit = state.limit
        self.counts = state.counts
        self.history = state.history
        self.previous: Hash | None = state.previous
        self.sessions = state.visit.sessions
        self.lengths = state.visit.lengths
        self.carry = state.visit.carry
        self.granted = state.visit.granted
        self.shared = Shared(state.visit.asks, state.visit.deflections)
        self.user_inputs = state.user_inputs
        self.prefix = ""
        self.cycle_count: int | None = None
        self.folder: str | None = state.visit.folder

    @property
    def language(self) -> Language:
        """The language of the engine's own texts."""
        return self.run.language

    @property
    def provider(self) -> str | None:
        """Who performs this: whom the run names, else whom the movement names."""
        return self.run.provider or self.movement.provider

    @property
    def model(self) -> str | None:
        """The model to ask for, by the same order."""
        return self.run.model or self.movement.model

    @property
    def toolbox(self) -> Toolbox:
        """The tools that the run pinned when it began."""
        return read_toolbox(self.text(self.run.tools)) if self.run.tools is not None else Toolbox()

    @property
    def report_dir(self) -> str:
        """Where reports go, relative to the working directory; empty without a run folder."""
        return f"{self.folder}/reports" if self.folder else ""

    def branch(self, movement: Movement, *, iteration: int | None = None) -> Visit:
        """The visit as a lane sees it: the lane's movement and its own count."""
        visit = object.__new__(Visit)
        visit.__dict__.update(self.__dict__)
        visit.movement = movement
        visit.lane = f"{self.lane}/{movement.name}" if self.lane else movement.name
        visit.movement_iteration = self.counts.get(movement.name, 0)
        if iteration is not None:
            visit.iteration = iteration
            visit.movement_iteration += 1
        return visit

    def gate_note(self) -> str | None:
        """What a command gate said that sent the movement back, where one did. Its lanes are told as well."""
        note = self.started.note
        if note is None or (self.lane and self.lane not in self.started.lanes):
            return None
        return self.text(note)

    def text(self, hash: Hash) -> str:
        """A text by its hash."""
        return self.book.text(hash)

    def put(self, text: str) -> Hash:
        """Keep a text; its hash."""
        return self.book.put(text)

    def need(self, key: str, demand: AnyDemand) -> Need:
        """A demand to yield. ``prefix`` keeps the keys of a second round apart from those of the first."""
        return Need(self.prefix + key, demand)

    def host(self, key: str, op: str, **args: object) -> Need:
        """A host operation to yield."""
        return self.need(key, Host(op=op, args=args))

    def call(self, key: str, prompt: str, *, purpose: str = "perform", schema: Hash | None = None) -> Need:
        """A model call that opens a conversation with one user message (TAKT engine: every visit of
        ``phases: single`` starts anew)."""
        judge = purpose == "rules"
        demand = CallModel(
            conversation=self.conversation(key),
            append=(Message("user", self.put(prompt)),),
            movement=self.movement.name,
            persona="conductor" if judge else self.movement.performer,
            purpose=purpose,
            provider=self.provider,
            model=self.model,
            schema=schema,
            max_tokens=JUDGE_TOKENS if judge else None,
        )
        return self.need(key, demand)

    def conversation(self, key: str) -> str:
        """The id of the conversation that the demand ``key`` opens."""
        started = self.started
        place = (started.visit, started.attempt, self.lane, self.prefix + key)
        return derive(self.run.seed, "conversation", *place)
