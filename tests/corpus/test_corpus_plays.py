"""Real pieces of others, played to COMPLETE and to ABORT by scripts derived from their own rules."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cadenza import Engine, RunResult
from cadenza.core import events as ev
from cadenza.errors import PieceError
from cadenza.piece.find import load_piece
from cadenza.piece.model import LoadedPiece
from cadenza.piece.vocabulary import ABORT, COMPLETE
from cadenza.providers.models.script import Script
from cadenza.providers.models.scripted import ScriptedProvider
from tests.corpus.derive import Move, entries, route_to, unmatched

CORPUS = os.environ.get("CADENZA_CORPUS")
pytestmark = pytest.mark.skipif(
    CORPUS is None, reason="CADENZA_CORPUS names no folder with the corpus of real pieces"
)
BUILTINS = Path(CORPUS or ".") / "takt-0.28" / "builtins"
PIECES = sorted(BUILTINS.glob("*/pieces/*.yaml"))
IDS = [f"{path.parent.parent.name}/{path.stem}" for path in PIECES]


def load(path: Path, cwd: Path) -> LoadedPiece:
    try:
        return load_piece(str(path), cwd=cwd)
    except PieceError as error:
        if "team leader" in str(error):
            pytest.skip(f"{path.name} has a team_leader movement, which this version does not play")
        raise


async def play(
    loaded: LoadedPiece, path: list[Move], cwd: Path
) -> tuple[RunResult, list[ev.Recorded], list[str]]:
    script = Script.from_entries(entries(loaded.piece, path))
    async with Engine(":memory:", provider=ScriptedProvider(script)) as engine:
        run = await engine.start(loaded, "make it so", cwd=cwd)
        result = await run.result()
        problems = [problem.what for problem in engine.journal.verify()]
        return result, engine.journal.events(run.id), problems


def visited(events: list[ev.Recorded]) -> list[str]:
    return [e.event.movement for e in events if isinstance(e.event, ev.VisitStarted)]


@pytest.mark.parametrize("file", PIECES, ids=IDS)
async def test_a_real_piece_is_played_to_complete(file: Path, tmp_path: Path) -> None:
    loaded = load(file, tmp_path)
    path = route_to(loaded.piece, COMPLETE)
    assert path is not None, "no rule of this piece leads to COMPLETE"
    result, events, problems = await play(loaded, path, tmp_path)
    assert (result.status, result.reason) == ("completed", "complete")
    assert visited(events) == [move.movement for move in path]
    assert problems == []
    (folder,) = (tmp_path / ".takt" / "runs").glob("2*-make-it-so")
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    assert meta["status"] == "completed"
    visits = [loaded.piece.by_name[move.movement] for move in path]
    wanted = {report.name for top in visits for m in (top, *top.lanes) for report in m.reports}
    assert {p.name for p in (folder / "reports").iterdir()} == wanted


@pytest.mark.parametrize("file", PIECES, ids=IDS)
async def test_a_real_piece_is_played_to_abort(file: Path, tmp_path: Path) -> None:
    loaded = load(file, tmp_path)
    by_rule = route_to(loaded.piece, ABORT)
    path = by_rule or unmatched(loaded.piece)
    result, events, problems = await play(loaded, path, tmp_path)
    assert (result.status, result.reason) == ("aborted", "rule" if by_rule else "rule_no_match")
    assert visited(events) == [move.movement for move in path]
    assert problems == []


def test_at_least_ten_real_pieces_are_played() -> None:
    assert len(PIECES) >= 10
