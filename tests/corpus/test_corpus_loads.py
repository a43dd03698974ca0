"""Every piece of TAKT 0.28 loads, with its facets truly found.

``CADENZA_CORPUS`` names the folder that holds ``takt-0.28`` (TAKT's ``builtins`` and ``e2e`` folders).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cadenza.errors import PieceError
from cadenza.piece.find import load_piece
from cadenza.piece.lint import has_errors, lint

CORPUS = os.environ.get("CADENZA_CORPUS")
ROOT = Path(CORPUS or ".") / "takt-0.28"
PIECES = (
    sorted([*ROOT.glob("builtins/*/pieces/*.yaml"), *ROOT.glob("e2e/fixtures/pieces/*.yaml")])
    if CORPUS
    else []
)
BROKEN = [path for path in PIECES if path.stem == "broken"]
TEAMS = [path for path in PIECES if "team_leader:" in path.read_text(encoding="utf-8")]
PLAYABLE = [path for path in PIECES if path not in BROKEN]

pytestmark = pytest.mark.skipif(
    not CORPUS, reason="CADENZA_CORPUS is not set: the folder that holds takt-0.28"
)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture(autouse=True)
def _no_other_facets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def test_the_corpus_is_there() -> None:
    assert len(PLAYABLE) >= 61
    assert (len(BROKEN), len(TEAMS)) == (1, 4)


@pytest.mark.parametrize("path", PLAYABLE, ids=name_of)
def test_a_piece_loads_without_a_warning(path: Path, tmp_path: Path) -> None:
    loaded = load_piece(str(path), cwd=tmp_path)
    assert loaded.warnings == ()
    assert loaded.piece.dialect == "takt"


@pytest.mark.parametrize("path", PLAYABLE, ids=name_of)
def test_no_name_is_left_as_text(path: Path, tmp_path: Path) -> None:
    loaded = load_piece(str(path), cwd=tmp_path)
    movements = [
        *loaded.piece.movements,
        *(lane for movement in loaded.piece.movements for lane in movement.lanes),
    ]
    facets = [
        facet
        for movement in movements
        for facet in (movement.persona, *movement.policies, *movement.knowledge)
    ]
    facets += [monitor.judge.persona for monitor in loaded.piece.loop_monitors]
    origins = {facet.origin for facet in facets if facet is not None}
    assert all(origin.startswith(("../facets/", "../agents/")) for origin in origins)
    assert all(len(text.split()) > 1 or "{" in text for text in loaded.texts.values())


@pytest.mark.parametrize("path", PLAYABLE, ids=name_of)
def test_a_piece_lints_without_errors(path: Path) -> None:
    problems = lint(path)
    assert not has_errors(problems)
    if path.stem == "mock-max-iter":
        assert [problem.value for problem in problems] == ["step-a → step-b → step-a"]
        assert all("only max_movements stops it" in problem.message for problem in problems)
    else:
        assert all("no loop monitor watches this cycle" in problem.message for problem in problems)
        assert len({problem.value for problem in problems}) == len(problems)


@pytest.mark.parametrize(
    ("name", "cycles"),
    [
        ("builtins/en/pieces/default.yaml", ["reviewers → fix → reviewers"]),
        ("builtins/en/pieces/takt-default.yaml", ["reviewers → fix → reviewers"]),
        ("builtins/en/pieces/backend-mini.yaml", ["reviewers → fix_both → reviewers"]),
        ("builtins/en/pieces/research.yaml", []),
        ("e2e/fixtures/pieces/multi-step-parallel.yaml", ["review → fix → review"]),
        ("e2e/fixtures/pieces/simple.yaml", []),
    ],
)
def test_reviews_that_nobody_ends_are_pointed_out(name: str, cycles: list[str]) -> None:
    """What hurt a user of TAKT: a builtin's reviewers and fix went to and fro unwatched."""
    assert [problem.value for problem in lint(ROOT / name)] == cycles


def test_lint_stays_quiet_about_most_pieces() -> None:
    warned = [path for path in PLAYABLE if lint(path)]
    assert len(warned) < 0.6 * len(PLAYABLE)
    assert max(len(lint(path)) for path in PLAYABLE) <= 2


@pytest.mark.parametrize("path", TEAMS, ids=name_of)
def test_a_team_leaders_piece_knows_its_parts(path: Path, tmp_path: Path) -> None:
    piece = load_piece(str(path), cwd=tmp_path).piece
    (lead,) = [movement for movement in piece.movements if movement.team_leader]
    team = lead.team_leader
    assert team is not None
    assert (lead.kind, team.timeout, team.part_edit) == ("team_leader", 600.0, True)
    assert team.part_persona is not None
    assert team.part_persona_name == (None if path.parts[-4] == "builtins" else "agents/test-coder")
    assert (team.max_parts, team.refill_threshold) == ((3, 2) if "refill" in path.stem else (2, 0))


@pytest.mark.parametrize("path", BROKEN, ids=name_of)
def test_the_broken_piece_says_where(path: Path, tmp_path: Path) -> None:
    with pytest.raises(PieceError) as caught:
        load_piece(str(path), cwd=tmp_path)
    assert caught.value.problems[0].startswith(f"{path}:3:18: this is not valid YAML")


def test_the_mock_fixtures_keep_their_persona_names(tmp_path: Path) -> None:
    piece = load_piece(str(ROOT / "e2e/fixtures/pieces/multi-step-parallel.yaml"), cwd=tmp_path).piece
    assert piece.by_name["plan"].performer == "agents/test-coder"
    assert [lane.performer for lane in piece.by_name["review"].lanes] == [
        "agents/test-reviewer-a",
        "agents/test-reviewer-b",
    ]
