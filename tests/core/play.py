"""Plays a piece on a bare conductor: no journal, no worker, one demand at a time in the order of issue."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cadenza.core import events as ev
from cadenza.core.conductor import Conductor
from cadenza.core.demands import CallModel, Host, WaitUntil
from cadenza.core.folding import apply, fold
from cadenza.core.loops import window
from cadenza.core.outcomes import AnyOutcome, Replied, Returned, Usage
from cadenza.core.scribe import Step
from cadenza.core.state import RunState
from cadenza.host.executor import HostExecutor
from cadenza.ids import text_hash
from cadenza.piece.find import load_piece
from cadenza.piece.model import LoadedPiece

Reply = Callable[[CallModel, str], "str | AnyOutcome"]
SEED = "00" * 16
T0 = 1_767_225_600.0  # 2026-01-01T00:00:00Z


def write_piece(folder: Path, text: str, name: str = "piece.yaml") -> LoadedPiece:
    """Write a piece into ``folder``/pieces and load it."""
    path = folder / "pieces" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return load_piece(str(path), cwd=folder)


class Play:
    """One run of one piece. ``calls`` are the model calls in order, each with its prompt."""

    def __init__(
        self, loaded: LoadedPiece, reply: Reply, cwd: Path, *, task: str = "the task", **fields: Any
    ) -> None:
        self.piece = loaded.piece
        self.reply = reply
        self.conductor = Conductor(self.piece)
        self.texts: dict[str, str] = {**loaded.texts, text_hash(task): task}
        self.events: list[ev.AnyEvent] = []
        self.calls: list[tuple[CallModel, str]] = []
        self.host = HostExecutor()
        self.now = T0
        started = ev.RunStarted(
            piece=self.piece.hash,
            name=self.piece.name,
            task=text_hash(task),
            seed=SEED,
            cwd=str(cwd),
            history=window(self.piece.loop_monitors),
            limit=self.piece.max_movements,
            **fields,
        )
        self.state = RunState()
        self.take(self.conductor.start(started, self.now, self.texts))

    def take(self, step: Step) -> None:
        """Accept a step; the state is checked against a fold of all events so far."""
        self.events += step.events
        self.texts.update(step.texts)
        self.state = step.state
        self.now += 1

    def send(self, event: ev.InputEvent, actor: str = "tester") -> None:
        """Append an input event and let the conductor take it."""
        state = self.state.copy()
        apply(state, event, actor)
        self.events.append(event)
        self.state = state
        queued = state.next_input
        if queued is not None:
            self.take(self.conductor.receive(state, queued, self.now, self.texts))

    def answer(self, value: str) -> None:
        """Answer the one open question."""
        (request,) = self.state.requests
        self.send(ev.RequestDecided(id=request, value=value))

    def run(self) -> Play:
        """Meet every demand that a worker can meet."""
        while self.state.held is None and (waiting := self.state.met_by_worker):
            opened = waiting[0]
            outcome = self.meet(opened.demand)
            self.take(self.conductor.resolve(self.state, opened.id, outcome, self.now, self.texts))
        assert fold(self.events) == self.state
        return self

    def meet(self, demand: Any) -> AnyOutcome:
        """The outcome of one demand."""
        if isinstance(demand, Host):
            value, made = self.host(demand, run="rtest", cwd=self.state.run.cwd, text=self.texts.__getitem__)
            self.texts.update(made)
            return Returned(value)
        if isinstance(demand, WaitUntil):
            return Returned()
        assert isinstance(demand, CallModel)
        prompt = self.texts[demand.append[-1].text]
        self.calls.append((demand, prompt))
        said = self.reply(demand, prompt)
        if not isinstance(said, str):
            return said
        self.texts[text_hash(said)] = said
        return Replied(text=text_hash(said), usage=Usage(input=10, output=5))

    @property
    def path(self) -> list[str]:
        """The movements visited, in order."""
        return [e.movement for e in self.events if isinstance(e, ev.VisitStarted)]

    @property
    def signals(self) -> list[Any]:
        """The signals of all visits, in order."""
        return [e.signal for e in self.events if isinstance(e, ev.VisitEnded)]

    def prompts(self, movement: str, purpose: str = "perform") -> list[str]:
        """The prompts of a movement's calls, in order."""
        return [p for call, p in self.calls if call.movement == movement and call.purpose == purpose]


def scripted(*replies: tuple[str, str] | tuple[str, str, str]) -> Reply:
    """Replies by (movement, text) or (movement, purpose, text); each is used once, in order."""
    left: dict[tuple[str, str], list[str]] = {}
    for item in replies:
        movement, purpose, text = item if len(item) == 3 else (item[0], "perform", item[1])
        left.setdefault((movement, purpose), []).append(text)

    def reply(call: CallModel, prompt: str) -> str:
        queue = left.get((call.movement, call.purpose))
        assert queue, f"no reply left for {call.movement} ({call.purpose})"
        return queue.pop(0)

    return reply
