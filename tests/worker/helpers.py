"""What the tests of the worker share: models and tools that behave as told, journals that can be stopped."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from cadenza.core import events as ev
from cadenza.core.demands import CallTool
from cadenza.core.movements import KINDS, MovementKind
from cadenza.core.outcomes import AnyOutcome, Returned
from cadenza.core.performance import Performance
from cadenza.core.signals import Signal
from cadenza.core.visit import Visit
from cadenza.engine import Engine
from cadenza.journal.holders import this_process
from cadenza.journal.memory import MemoryJournal
from cadenza.journal.store import Commit, Holder, Journal, Lease
from cadenza.piece.find import load_piece
from cadenza.piece.model import LoadedPiece
from cadenza.providers.base import ModelReply, ModelRequest, OnText
from cadenza.settings import Settings

E = TypeVar("E")
PATIENCE = 30.0

ONE = """
cadenza: 1
control: tags
name: one
max_movements: 5
movements:
  - name: plan
    instruction: plan {task}
    rules:
      - {condition: done, next: COMPLETE}
      - {condition: ask, next: plan, requires_user_input: true}
      - {condition: bad, next: ABORT}
"""
TWO = """
cadenza: 1
control: tags
name: two
max_movements: 5
movements:
  - name: plan
    instruction: plan {task}
    rules: [{condition: done, next: build}]
  - name: build
    instruction: build {task}
    rules: [{condition: built, next: COMPLETE}]
"""
TAKT = """
name: takt
initial_movement: plan
max_movements: 9
movements:
  - name: plan
    instruction_template: "plan in {report_dir}"
    rules:
      - {condition: done, next: COMPLETE}
      - {condition: ask, next: plan, requires_user_input: true}
"""


class Behaving:
    """A model that does what a function says; ``asked`` is set by the first call."""

    name = "behaving"

    def __init__(self, answer: Callable[[ModelRequest], Any]) -> None:
        self.answer = answer
        self.requests: list[ModelRequest] = []
        self.asked = asyncio.Event()

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        self.requests.append(request)
        self.asked.set()
        said = self.answer(request)
        if asyncio.iscoroutine(said):
            said = await said
        return said if isinstance(said, ModelReply) else ModelReply(text=said)

    async def close(self) -> None:
        return None


def saying(*texts: str) -> Behaving:
    """A model that says these texts in turn, the last one for ever."""
    left = list(texts)
    return Behaving(lambda request: left.pop(0) if len(left) > 1 else left[0])


async def forever(request: ModelRequest) -> str:
    """Never answers."""
    await asyncio.Event().wait()
    raise AssertionError("it never answers")


class Tool:
    """A tool that waits for ``gate`` (open from the beginning unless told) and notes what it did.

    ``unannounced`` are calls for which the journal held no ``demand.started`` yet.
    """

    def __init__(self, journal: Journal, *, gated: bool = False) -> None:
        self.journal = journal
        self.called, self.gate = asyncio.Event(), asyncio.Event()
        self.done: list[str] = []
        self.unannounced: list[str] = []
        if not gated:
            self.gate.set()

    async def __call__(self, call: CallTool, *, demand: str, run: str) -> AnyOutcome:
        started = {e.id for e in of(ev.DemandStarted, self.journal, run)}
        if demand not in started:
            self.unannounced.append(demand)
        self.called.set()
        await self.gate.wait()
        self.done.append(demand)
        return Returned("receipt 4711")


def perform_write(visit: Visit) -> Performance[Signal]:
    """One write, whatever comes of it."""
    outcome = yield visit.need("tool", CallTool(name="write", effect="write"))
    return completed(type(outcome).__name__)


def completed(label: str) -> Signal:
    return Signal(kind="rule", next="COMPLETE", rule=0, label=label)


def kinds_with(perform: Callable[[Visit], Performance[Signal]], version: int = 1) -> dict[str, MovementKind]:
    """The package's kinds and ``mine``."""
    return {**KINDS, "mine": MovementKind(perform, version=version)}


def piece_in(folder: Path, text: str = ONE, *, mine: Iterable[str] = ()) -> LoadedPiece:
    """The piece in ``text``; the movements ``mine`` are of the kind ``mine``."""
    path = folder / "piece.yaml"
    path.write_text(text, encoding="utf-8")
    loaded = load_piece(str(path), cwd=folder)
    movements = tuple(m.changed(kind="mine") if m.name in mine else m for m in loaded.piece.movements)
    return loaded.changed(piece=loaded.piece.changed(movements=movements))


def engine_on(
    journal: Journal,
    provider: Behaving | None = None,
    *,
    tools: Mapping[str, Any] | None = None,
    **options: Any,
) -> Engine:
    """An engine that nothing in the surroundings has a say in."""
    return Engine(
        journal,
        provider=provider or saying("[STEP:0]"),
        settings=Settings(journal=Path("unused")),
        tools=tools,
        **options,
    )


def events(journal: Journal, run: str) -> list[ev.AnyEvent]:
    return [item.event for item in journal.events(run)]


def of(kind: type[E], journal: Journal, run: str) -> list[E]:
    """The events of one kind."""
    return [event for event in events(journal, run) if isinstance(event, kind)]


def outcomes(journal: Journal, run: str) -> dict[str, AnyOutcome]:
    """What each demand came to, by key."""
    keys = {event.id: event.key for event in of(ev.DemandIssued, journal, run)}
    return {keys[event.id]: event.outcome for event in of(ev.DemandResolved, journal, run)}


async def until(holds: Callable[[], Any]) -> Any:
    """Wait until ``holds`` gives something that is true; that."""
    async with asyncio.timeout(PATIENCE):
        while not (found := holds()):
            await asyncio.sleep(0.005)
    return found


def lose_workers(journal: Journal, run: str, clock: Any, times: int, seconds: float) -> None:
    """Claim ``run`` as workers do that are lost each time."""
    for _ in range(times):
        assert journal.claim(this_process("lost"), run=run) is not None
        clock.advance(seconds)


class Counting(MemoryJournal):
    """Counts the claims of single runs and the looks at their rows."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.claims = self.looks = 0

    def claim(self, holder: Holder, *, run: str | None = None) -> Lease | None:
        self.claims += 1
        return super().claim(holder, run=run)

    def run(self, run: str) -> Any:
        self.looks += 1
        return super().run(run)


class Stoppable(MemoryJournal):
    """Commits of which one event is such as ``stop_at`` says wait until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.stop_at: Callable[[ev.AnyEvent], bool] = lambda event: False
        self.stopped, self.go = threading.Event(), threading.Event()

    def commit_many(self, commits: Sequence[Commit]) -> list[Exception | None]:
        if any(self.stop_at(event) for commit in commits for event in commit.events):
            self.stopped.set()
            assert self.go.wait(PATIENCE)
        return super().commit_many(commits)
