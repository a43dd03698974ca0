"""What an agent would be told: a movement's prompt, composed as it is played, without playing anything."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from cadenza.core import events as ev
from cadenza.core.movements.judge import judge_movement
from cadenza.core.movements.playing import prompt_of
from cadenza.core.prompts.single import compose
from cadenza.core.prompts.templates import reports_mentioned
from cadenza.core.slug import slugify
from cadenza.core.state import fold
from cadenza.core.visit import Book, Visit
from cadenza.errors import NotFound
from cadenza.ids import text_hash
from cadenza.piece.model import LoadedPiece, Movement, Piece
from cadenza.piece.vocabulary import Language

TASK = "<the task>"
PREVIOUS = "<the output of the movement before>"


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt: the movement, lane or loop judge that it is for, who performs it, and the text."""

    movement: str
    performer: str
    text: str


def preview(
    loaded: LoadedPiece,
    movement: str,
    *,
    task: str = TASK,
    cwd: Path | None = None,
    language: Language | None = None,
) -> list[Prompt]:
    """The prompts of ``movement`` on its first visit: one for each lane of a parallel movement.

    ``movement`` may also name a single lane, or a loop monitor's judge (``_loop_judge_…``). What only a run
    knows (the output before, reports, the folder's time) stands in angle brackets.

    Raises:
        NotFound: the piece has no such movement.
    """
    piece = loaded.piece
    top, wanted = _find(piece, movement)
    book = Book()
    book.open({**loaded.texts, **{text_hash(text): text for text in (task, PREVIOUS)}})
    visit = _visit(
        piece,
        top,
        book,
        task=task,
        cwd=os.fspath(cwd or Path.cwd()),
        language=language or piece.language or "en",
    )
    if wanted is None:
        return [_judge(visit, movement)]
    return [_prompt(visit if one is top else visit.branch(one), one) for one in wanted]


def _find(piece: Piece, name: str) -> tuple[Movement, tuple[Movement, ...] | None]:
    """The movement to visit, and what of it is played: itself or lanes; None for a loop judge."""
    for top in piece.movements:
        if top.name == name:
            return top, top.lanes or (top,)
        for lane in top.lanes:
            if lane.name == name:
                return top, (lane,)
    for monitor in piece.loop_monitors:
        if monitor.name == name:
            return piece.by_name[monitor.cycle[-1]], None
    raise NotFound(f"{piece.name} has no movement {name!r}", hint=f"it has {', '.join(_names(piece))}")


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
    visit.folder = f".takt/runs/<time>-{slugify(task)}"
    if movement.name != piece.initial_movement:
        visit.previous = text_hash(PREVIOUS)
    return visit


def _judge(visit: Visit, name: str) -> Prompt:
    monitor = next(monitor for monitor in visit.piece.loop_monitors if monitor.name == name)
    branch = visit.branch(judge_movement(visit, monitor), iteration=1)
    branch.previous = text_hash(PREVIOUS)
    return _prompt(branch, branch.movement, cycle_count=monitor.threshold)


def _prompt(visit: Visit, movement: Movement, *, cycle_count: int | None = None) -> Prompt:
    template = visit.text(movement.instruction) if movement.instruction else ""
    text = compose(prompt_of(visit, _reports(template), cycle_count=cycle_count))
    return Prompt(movement=movement.name, performer=movement.performer, text=text)


def _reports(template: str) -> dict[str, str | None]:
    return {name: f"<the report {name}, as the run has it then>" for name in reports_mentioned(template)}
