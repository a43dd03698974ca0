"""Real pieces, those of others and our own, played by scripts derived from their own rules, in both modes:
to COMPLETE, to ABORT, and through every rule that such a script can reach."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import cadenza
from cadenza import Engine, RunResult
from cadenza.core import events as ev
from cadenza.core.conductor import Conductor
from cadenza.piece.find import load_piece
from cadenza.piece.model import LoadedPiece
from cadenza.piece.vocabulary import ABORT, COMPLETE, Phases
from cadenza.providers.models.script import Script
from cadenza.providers.models.scripted import ScriptedProvider
from tests.corpus.derive import Move, entries, moves, route_to, unmatched
from tests.corpus.sweep import Taken, last_visit, sweep, take

CORPUS = os.environ.get("CADENZA_CORPUS")
ROOT = Path(CORPUS or ".") / "takt-0.28"
OWN = Path(cadenza.__file__).parent / "pieces"
THEIRS = (
    sorted([*ROOT.glob("builtins/*/pieces/*.yaml"), *ROOT.glob("e2e/fixtures/pieces/*.yaml")])
    if CORPUS
    else []
)
OURS = [
    path
    for path in sorted(OWN.glob("*/pieces/*.yaml"))
    if load_piece(str(path), cwd=path.parent).piece.control == "tags"
]
"""Our own that are played by tags; those whose agents have tools are played in ``tests/agents``."""
PIECES = [*OURS, *(path for path in THEIRS if path.stem != "broken")]


def name_of(path: Path) -> str:
    return f"{'own-' if path in OURS else ''}{path.parent.parent.name}/{path.stem}"


every_piece = pytest.mark.parametrize("file", PIECES, ids=map(name_of, PIECES))
both_modes = pytest.mark.parametrize("phases", ["single", "three"])


@cache
def load(path: Path) -> LoadedPiece:
    language: Any = "ja" if "/ja" in str(path) else "en"
    return load_piece(str(path), cwd=path.parent, language=language)


async def play(
    loaded: LoadedPiece, path: list[Move], phases: Phases, cwd: Path
) -> tuple[RunResult, list[ev.Recorded], list[str]]:
    script = Script.from_entries(entries(loaded.piece, path, phases))
    async with Engine(":memory:", provider=ScriptedProvider(script)) as engine:
        run = await engine.start(loaded, "make it so", cwd=cwd, phases=phases)
        result = await run.result()
        problems = [problem.what for problem in engine.journal.verify()]
        return result, engine.journal.events(run.id), problems


def visited(events: list[ev.Recorded]) -> list[str]:
    return [e.event.movement for e in events if isinstance(e.event, ev.VisitStarted)]


@both_modes
@every_piece
async def test_a_real_piece_is_played_to_complete(file: Path, phases: Phases, tmp_path: Path) -> None:
    loaded = load(file)
    path = route_to(loaded.piece, COMPLETE)
    if file.stem == "mock-max-iter":
        assert path is None  # it goes round until its limit: see the fixture pairs
        return
    assert path is not None, "no rule of this piece leads to COMPLETE"
    result, events, problems = await play(loaded, path, phases, tmp_path)
    assert (result.status, result.reason) == ("completed", "complete")
    assert visited(events) == [move.movement for move in path]
    assert problems == []
    visits = [loaded.piece.by_name[move.movement] for move in path]
    wanted = {report.name for top in visits for m in (top, *top.lanes) for report in m.reports}
    folders = [*tmp_path.glob(".takt/runs/2*-make-it-so"), *tmp_path.glob(".cadenza/runs/2*-make-it-so")]
    if loaded.piece.dialect == "native" and not wanted:
        assert folders == []
        return
    (folder,) = folders
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    assert meta["status"] == "completed"
    assert {p.name for p in (folder / "reports").iterdir()} == wanted


@both_modes
@every_piece
async def test_a_real_piece_is_played_to_abort(file: Path, phases: Phases, tmp_path: Path) -> None:
    loaded = load(file)
    by_rule = route_to(loaded.piece, ABORT)
    path = by_rule or unmatched(loaded.piece)
    result, events, problems = await play(loaded, path, phases, tmp_path)
    last = loaded.piece.by_name[path[-1].movement]
    asked = len(last.rules) > 1 or (phases == "single" and bool(last.lanes))
    reason = "rule" if by_rule else "rule_no_match" if asked else "movement_failed"
    assert (result.status, result.reason) == ("aborted", reason)
    assert visited(events) == [move.movement for move in path]
    assert problems == []


@both_modes
@every_piece
def test_every_rule_is_taken(file: Path, phases: Phases, tmp_path: Path) -> None:
    loaded = load(file)
    taken: dict[str, set[int | None]] = {}
    for step in sweep(loaded, phases, tmp_path):
        taken.setdefault(step.move.movement, set()).add(step.move.rule)
        check(step)
        Conductor(step.play.piece).check(step.play.state, step.play.texts)  # another process can go on
    for movement in loaded.piece.movements:
        reachable = {move.rule for move in moves(movement)}
        assert taken.get(movement.name, set()) == reachable, movement.name
        assert len(reachable) == len(movement.rules), f"{movement.name}: a rule that nothing leads to"


def check(step: Taken) -> None:
    """The wanted rule matched, as its mode finds it, and what it says came next."""
    play, move = step.play, step.move
    piece = play.piece
    movement = piece.by_name[move.movement]
    assert move.rule is not None
    rule = movement.rules[move.rule]
    if rule.requires_user_input:
        goes_on_after_an_answer(step)
        return
    assert (step.signal.kind, step.signal.rule, step.signal.next) == ("rule", move.rule, rule.next)
    if movement.lanes:
        assert step.signal.method == "aggregate"
    elif piece.phases == "single":
        assert step.signal.method == "tag"
    else:
        assert step.signal.method == ("structured_output" if len(movement.rules) > 1 else "auto_select")
    ended = play.state.ended
    if rule.next in piece.by_name:
        assert (ended, play.path[-1], last_visit(play).cause) == (None, rule.next, "rule")
    else:
        assert ended is not None
        assert ended.status == ("completed" if rule.next == COMPLETE else "aborted")


def goes_on_after_an_answer(step: Taken) -> None:
    """A rule that needs a person parks; the answer visits the movement anew, which may then go on."""
    play, move = step.play, step.move
    assert (play.state.status, play.state.wait_reason) == ("waiting_human", "user_input")
    assert play.path[-1] == move.movement
    play.answer("as you like it")
    assert (last_visit(play).movement, last_visit(play).cause) == (move.movement, "answer")
    assert play.signals[-1].rule == move.rule
    piece = play.piece
    other = next(m for m in moves(piece.by_name[move.movement]) if m.rule != move.rule)
    gone = take(play, piece, other)
    assert "as you like it" in gone.prompts(move.movement)[-1]
    assert gone.signals[-1].rule == other.rule
    assert gone.path[-1] == piece.by_name[move.movement].rules[other.rule or 0].next


def test_our_own_pieces_are_played_in_both_languages() -> None:
    by_tags, by_tools = {"hello", "plan-build-review", "research"}, {"chat", "release-notes"}
    assert {name_of(path) for path in OURS} == {
        f"own-{lang}/{name}" for lang in ("en", "ja") for name in by_tags
    }
    assert {path.stem for path in OWN.glob("*/pieces/*.yaml")} == by_tags | by_tools


@pytest.mark.skipif(CORPUS is None, reason="CADENZA_CORPUS names no folder with the corpus of real pieces")
def test_the_corpus_is_there() -> None:
    assert len(THEIRS) >= 60
