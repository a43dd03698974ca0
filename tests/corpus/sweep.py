"""Plays every rule of a piece once, on a bare conductor: each movement is reached once and forked there."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cadenza.core import events as ev
from cadenza.core.conductor import Conductor
from cadenza.core.demands import CallModel
from cadenza.core.signals import Signal
from cadenza.piece.model import LoadedPiece, Piece
from cadenza.piece.vocabulary import Phases
from tests.core.play import Play
from tests.corpus.derive import Move, Tags, moves, reply_to, tags_of


class Taken(NamedTuple):
    """A rule that was taken: the run just after, and how its visit ended."""

    move: Move
    play: Play
    signal: Signal


def sweep(loaded: LoadedPiece, phases: Phases, cwd: Path) -> Iterator[Taken]:
    """Every rule that a derived script can reach, each taken from the first visit of its movement."""
    piece = loaded.piece.changed(phases=phases, max_movements=100)  # limits have tests of their own
    first = Play(loaded.changed(piece=piece), no_reply, cwd, interactive=True)
    ways, seen = [first], {piece.initial_movement}
    while ways:
        here = ways.pop(0)
        movement = piece.by_name[here.path[-1]]
        for move in moves(movement):
            taken = take(here, piece, move)
            yield Taken(move, taken, taken.signals[-1] if taken.signals else Signal(kind="no_match"))
            following = movement.rules[move.rule or 0].next
            if following is None or following in seen or following not in piece.by_name:
                continue
            if taken.path[-1] == following and taken.state.ended is None:
                seen.add(following)
                ways.append(taken)


def no_reply(call: CallModel, prompt: str) -> str:
    raise AssertionError(f"nobody is to answer {call.movement} yet")


def fork(play: Play) -> Play:
    """Another run that has come to the same place."""
    other = copy.copy(play)
    other.state, other.events, other.calls = play.state.copy(), [*play.events], [*play.calls]
    other.conductor = Conductor(play.piece)
    return other


def take(play: Play, piece: Piece, move: Move) -> Play:
    """A fork of ``play`` in which the current visit takes ``move``; it stands where the next one begins, or
    where the run ends or waits."""
    other = fork(play)
    answer_with(other, piece, tags_of(piece, move))
    visits = len(other.path)
    while other.state.ended is None and len(other.path) == visits and other.state.met_by_worker:
        opened = other.state.met_by_worker[0]
        outcome = other.meet(opened.demand)
        other.take(other.conductor.resolve(other.state, opened.id, outcome, other.now, other.texts))
    return other


def answer_with(play: Play, piece: Piece, tags: Tags) -> None:
    """Let the agents of the current visit say ``tags``."""
    leaders = frozenset(m.name for m in piece.movements if m.kind == "team_leader")
    play.reply = lambda call, prompt: reply_to(call, tags, piece.phases, leaders)


def last_visit(play: Play) -> ev.VisitStarted:
    """The visit that began last."""
    return [e for e in play.events if isinstance(e, ev.VisitStarted)][-1]
