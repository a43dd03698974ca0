"""What an agent would be told: a movement's prompts, composed as they are played, without playing anything.

The movement is rehearsed: its own generator is run, and whatever it needs from outside is answered with a
placeholder. So what is shown is what a run would send, whatever kind the movement is of.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from cadenza.core import events as ev
from cadenza.core.demands import AnyDemand, AskPerson, CallModel, CallTool, Host
from cadenza.core.folding import fold
from cadenza.core.movements import KINDS, needs_folder, perform
from cadenza.core.movements.judge import judge_movement, perform_judge
from cadenza.core.movements.three.status import Work, find_rule
from cadenza.core.movements.three.turn import Session, take_turn
from cadenza.core.outcomes import Answered, AnyOutcome, Replied, Returned
from cadenza.core.performance import Issued, Performance, Player
from cadenza.core.signals import Signal
from cadenza.core.slug import slugify
from cadenza.core.visit import Book, Visit
from cadenza.errors import HostError, NotFound, UsageError
from cadenza.host.named_files import read_file
from cadenza.ids import text_hash
from cadenza.piece.model import LoadedPiece, LoopMonitor, Movement, Piece
from cadenza.piece.vocabulary import Language

TASK = "<the task>"
PREVIOUS = "<the output of the movement before>"
WORK = "<what the agent answered>"
TIME = "<time>"
PART = {"id": "part", "title": "<a part's title>", "instruction": "<what is to be done>", "timeout_ms": None}

Phase = Literal[1, 2, 3]

_PURPOSES: dict[str, Phase] = {"perform": 1, "loop-judge": 1, "report": 2, "rules": 3}


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """One model call: the movement, lane or loop judge that it is for, who performs it, and what is sent.

    ``key`` says what the call is for, as the journal does (``perform``, ``report:plan.md``,
    ``status:step``). ``system`` is the system text, where the call opens a conversation that has one.
    ``schema`` is the JSON Schema that the answer must fit, ``tools`` the names of the tools array.
    """

    movement: str
    performer: str
    text: str
    phase: int = 1
    key: str = "perform"
    system: str | None = None
    schema: dict[str, Any] | None = None
    tools: tuple[str, ...] = ()


def preview(
    loaded: LoadedPiece,
    movement: str,
    *,
    task: str = TASK,
    cwd: Path | None = None,
    language: Language | None = None,
    phase: Phase | None = None,
) -> list[Prompt]:
    """The prompts of ``movement`` on its first visit, those of all its lanes included.

    ``movement`` may also name a single lane, or a loop monitor's judge (``_loop_judge_…``). ``phase`` is 1
    (the work, also when it is not given), 2 (a message for each report) or 3 (the stages that ask for the
    status). A team leader's work is its plan, a part and the question for more parts; of an arpeggio the
    first batch is shown. What only a run knows (outputs, reports, the folder's time) stands in angle
    brackets.

    Raises:
        NotFound: the piece has no such movement.
        UsageError: phase 2 or 3 of a piece that is played with ``phases: single``; a table that does not
            fit its template.
    """
    piece, phase = loaded.piece, phase or 1
    if phase > 1 and piece.phases == "single":
        raise UsageError(
            f"{piece.name} is played with phases: single, where one prompt asks for everything",
            hint="leave --phase out, or add --phases three",
        )
    top, lane, monitor = _find(piece, movement)
    texts = {text_hash(text): text for text in (task, PREVIOUS, WORK)}
    book, toolbox = Book(), _toolbox(piece)
    book.open({**loaded.texts, **texts, text_hash(toolbox): toolbox})
    where = os.fspath(cwd or Path.cwd())
    visit = _visit(piece, top, book, task=task, cwd=where, language=language or piece.language or "en")
    visit.run = msgspec.structs.replace(visit.run, tools=text_hash(toolbox))
    rehearsal = _Rehearsal(visit)
    found = rehearsal.judge(monitor) if monitor else rehearsal.movement(phase)
    shown = [prompt for prompt in found if prompt.phase == phase and lane in (None, prompt.movement)]
    order = list(dict.fromkeys(prompt.movement for prompt in shown))
    return sorted(shown, key=lambda prompt: order.index(prompt.movement))


def _find(piece: Piece, name: str) -> tuple[Movement, str | None, LoopMonitor | None]:
    """The movement to visit; the lane of it, or the monitor, that is meant."""
    for top in piece.movements:
        if top.name == name:
            return top, None, None
        if any(lane.name == name for lane in top.lanes):
            return top, name, None
    for monitor in piece.loop_monitors:
        if monitor.name == name:
            return piece.by_name[monitor.cycle[-1]], None, monitor
    raise NotFound(f"{piece.name} has no movement {name!r}", hint=f"it has {', '.join(_names(piece))}")


def _toolbox(piece: Piece) -> str:
    """The tools of a run of the piece, but for those of servers, which are asked when a run begins."""
    from cadenza.core.toolboxes import make_toolbox
    from cadenza.core.tooling import Toolbox, write_toolbox
    from cadenza.tools.registry import built_in, plugins

    if piece.control != "tools":
        return write_toolbox(Toolbox())
    others = [tool.spec for tool in plugins()]
    return write_toolbox(make_toolbox(piece, [tool.spec for tool in built_in()], others))


def _names(piece: Piece) -> Iterator[str]:
    for top in piece.movements:
        yield top.name
        yield from (lane.name for lane in top.lanes)
    yield from (monitor.name for monitor in piece.loop_monitors)


def _visit(piece: Piece, movement: Movement, book: Book, *, task: str, cwd: str, language: Language) -> Visit:
    started = ev.RunStarted(
        piece=piece.hash,
        name=piece.name,
        task=text_hash(task),
        seed="00",
        cwd=cwd,
        language=language,
        limit=piece.max_movements,
    )
    entered = ev.VisitStarted(
        visit=1,
        movement=movement.name,
        iteration=1,
        movement_iteration=1,
        consecutive=1,
        at=0,
        cause="start",
        lanes=tuple(lane.name for lane in movement.lanes),
    )
    visit = Visit(piece, movement, fold([started, entered]), book)
    if movement.name != piece.initial_movement:
        visit.previous = text_hash(PREVIOUS)
    return visit


class _Rehearsal:
    """Runs a visit's generators over placeholders, and keeps the model calls that they ask for."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit

    def movement(self, phase: Phase) -> Iterator[Prompt]:
        """Every call of a visit; for phase 3 also those about a parallel movement's own rules, which come
        only when no aggregate holds."""
        visit = self.visit
        score = visit.movement.arpeggio
        if score is not None and not (Path(visit.run.cwd) / score.source).exists():
            yield self._batch(visit.text(score.template))
            return
        yield from self._calls(perform(visit, KINDS[visit.movement.kind]))
        if phase == 3 and visit.movement.lanes:
            work = Work(output=text_hash(WORK))
            yield from self._calls(find_rule(visit, work, [None for _ in visit.movement.lanes]))

    def judge(self, monitor: LoopMonitor) -> Iterator[Prompt]:
        """The calls of a loop monitor's judge, when its cycle has just come often enough."""
        visit = self.visit
        visit.iteration = len(monitor.cycle) * monitor.threshold
        if needs_folder(visit):
            visit.folder = self._folder({} if visit.piece.dialect == "takt" else {"root": ".cadenza/runs"})
        if visit.piece.phases == "single":
            visit.previous = text_hash(PREVIOUS)
            return self._calls(perform_judge(visit, monitor, monitor.threshold, text_hash(PREVIOUS)))
        return self._calls(self._judge_three(monitor))

    def _judge_three(self, monitor: LoopMonitor) -> Performance[None]:
        judge = self.visit.branch(judge_movement(self.visit, monitor), iteration=self.visit.iteration + 1)
        judge.cycle_count = monitor.threshold
        judge.previous = text_hash(PREVIOUS)
        yield from take_turn(judge, Session(judge))
        yield from find_rule(judge, Work(output=text_hash(WORK)))

    def _calls(self, performance: Performance[Any]) -> Iterator[Prompt]:
        player = Player.of(performance)
        waiting = player.start()
        batches = 0
        while waiting:
            issued = waiting.pop(0)
            if isinstance(issued.demand, CallModel):
                batches += issued.lane.startswith("batch-")
                if batches < 2 or not issued.lane.startswith("batch-"):
                    yield self._prompt(issued, issued.demand)
                if issued.demand.tools is not None:
                    continue  # what an agent with tools is told next depends on what it calls
            waiting += player.feed(issued.key, self._outcome(issued))
        end = player.result if player.done else None
        if isinstance(end, Signal) and end.kind in ("failed", "broken") and not end.lanes:
            # Lanes fail here because nobody tells their status; any other failure is the piece's.
            raise UsageError(end.message or "the movement cannot be performed", hint="mend the piece")

    def _prompt(self, issued: Issued, demand: CallModel) -> Prompt:
        text = self.visit.text
        said = {message.role: text(message.text) for message in demand.append}
        return Prompt(
            movement=demand.movement,
            performer=demand.persona,
            text=said["user"],
            phase=_PURPOSES.get(demand.purpose, 1),
            key=issued.key.removeprefix(f"{issued.lane}/"),
            system=said.get("system"),
            schema=json.loads(text(demand.schema)) if demand.schema else None,
            tools=tuple(tool["name"] for tool in json.loads(text(demand.tools))) if demand.tools else (),
        )

    def _batch(self, template: str) -> Prompt:
        movement = self.visit.movement
        return Prompt(movement=movement.name, performer=movement.performer, text=template, key="batch")

    def _outcome(self, issued: Issued) -> AnyOutcome:
        demand: AnyDemand = issued.demand
        if isinstance(demand, CallModel):
            return Replied(text=self.visit.put(self._reply(issued.key, demand)))
        if isinstance(demand, Host):
            return Returned(self._returned(demand))
        if isinstance(demand, CallTool):
            return Returned({"exit_code": 0, "output": ""})
        return Answered("<a person's answer>") if isinstance(demand, AskPerson) else Returned()

    def _reply(self, key: str, demand: CallModel) -> str:
        """A placeholder; nothing for the status, so that every stage is asked."""
        if demand.purpose == "rules":
            return ""
        if demand.purpose == "report":
            return f"<the report {key.rpartition('report:')[2]}>"
        asked = json.loads(self.visit.text(demand.schema))["properties"] if demand.schema else {}
        if "done" in asked:
            return json.dumps({"done": True, "reasoning": "", "parts": []})
        return json.dumps({"parts": [PART]}) if "parts" in asked else WORK

    def _returned(self, demand: Host) -> dict[str, Any]:
        args = demand.args
        if demand.op == "open_folder":
            return {"path": self._folder(args)}
        if demand.op == "prepare":
            return {"reports": self._reports(args["reports"]), "snapshots": dict(_snapshots(args))}
        if demand.op == "read_file":
            return {"text": self.visit.put(self._table(args["path"]))}
        return {}

    def _table(self, path: str) -> str:
        try:
            return read_file(self.visit.run.cwd, path)
        except HostError as error:
            raise HostError(error.message, hint="mend the table") from None

    def _reports(self, names: list[str]) -> dict[str, str]:
        return {name: self.visit.put(f"<the report {name}, as the run has it then>") for name in names}

    def _folder(self, args: dict[str, Any]) -> str:
        return f"{args.get('root', '.takt/runs')}/{TIME}-{slugify(self.visit.text(self.visit.run.task))}"


def _snapshots(args: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Where a run keeps what a prompt is made of."""
    name = f"{args['movement']}.{args['count']}.{TIME}.md"
    for kind in ("knowledge", "policy"):
        if args[kind]:
            yield kind, f"{args['folder']}/context/{kind}/{name}"
    if args["previous"]:
        yield "previous", f"{args['folder']}/context/previous_responses/{name}"
