"""Runs played by hand, one synchronous step at a time, without a worker."""

from __future__ import annotations

from pathlib import Path

from cadenza.clock import system_clock
from cadenza.core.conductor import Conductor
from cadenza.core.demands import CallModel
from cadenza.core.folding import fold_recorded
from cadenza.core.outcomes import AnyOutcome, Replied, Usage
from cadenza.core.state import OpenDemand, RunState
from cadenza.ids import Hash, text_hash
from cadenza.journal.holders import this_process
from cadenza.journal.store import Commit, Journal, Lease
from cadenza.piece.find import load_piece
from cadenza.piece.model import LoadedPiece, Piece
from cadenza.service import Options, Service

HERE = Path(__file__).parent
TAG = "[STEP:0]"


def piece(name: str, *, steps: int | None = None) -> LoadedPiece:
    """One of the pieces beside this file; it ends after ``steps`` visits, where given."""
    loaded = load_piece(str(HERE / f"{name}.yaml"), cwd=HERE)
    if steps is None:
        return loaded
    fields = loaded.piece.model_dump(exclude_defaults=True)
    limited = Piece.model_validate({**fields, "max_movements": steps})
    return loaded.model_copy(update={"piece": limited})


def reply_of(number: int, size: int = 200) -> str:
    """An answer of ``size`` bytes, unlike any other, that picks the first rule."""
    head = f"step {number} "
    return head + "." * (size - len(head) - len(TAG)) + TAG


class ByHand:
    """One run: what a worker does, as plain calls, so that each can be timed alone."""

    def __init__(self, journal: Journal, loaded: LoadedPiece, *, task: str = "walk") -> None:
        self.journal = journal
        self.run = Service(journal, actor="bench").start(loaded, task, Options(cwd=HERE))
        lease = journal.claim(this_process("bench"), run=self.run)
        assert lease is not None
        self.lease: Lease = lease
        self.conductor = Conductor(loaded.piece)
        self.texts: dict[Hash, str] = {**loaded.texts, text_hash(task): task}
        self.state: RunState = self.loaded()

    def loaded(self) -> RunState:
        """The state as a worker that has just claimed the run finds it."""
        found = self.journal.load(self.run)
        return fold_recorded(found.tail, found.snapshot)

    @property
    def waiting(self) -> OpenDemand:
        """The demand to meet next."""
        return next(iter(self.state.open.values()))

    def decide(self, text: str) -> Commit:
        """Resolve the waiting model call with ``text``; what is to be committed."""
        opened = self.waiting
        assert isinstance(opened.demand, CallModel)
        made = text_hash(text)
        outcome: AnyOutcome = Replied(text=made, usage=Usage(input=40, output=50))
        self.texts[made] = text
        at = system_clock()
        step = self.conductor.resolve(self.state, opened.id, outcome, at, self.texts)
        self.texts.update(step.texts)
        return Commit(
            run=self.run,
            epoch=self.lease.epoch,
            after=self.state.seq,
            events=step.events,
            state=step.state,
            at=at,
            texts={made: text, **step.texts},
        )

    def commit(self, commit: Commit) -> None:
        """Make it durable, and stand after it."""
        self.journal.commit(commit)
        self.state = commit.state
