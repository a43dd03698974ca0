"""The same piece and scenario on the real TAKT and on our engine: the same path and end, or a row of
``docs/compatibility.md`` that says why not.

Needs node, git and TAKT itself: ``.ci/takt.sh`` installs it.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.compat.cases import CASES, Case
from tests.compat.takt import VERSION, play_ours, play_theirs, program

CORPUS = os.environ.get("CADENZA_CORPUS")
FIXTURES = Path(CORPUS or ".") / "takt-0.28" / "e2e" / "fixtures"
DOCUMENT = (Path(__file__).parents[2] / "docs" / "compatibility.md").read_text(encoding="utf-8")

PAIRS = [
    ("mock-max-iter", "max-iter-loop", "step-a:0 step-b:0 > aborted"),
    ("mock-two-step", "two-step-done", "step-1:0 step-2:0 > completed"),
    ("multi-step-parallel", "multi-step-all-approved", "plan:0 review:0 > completed"),
    ("multi-step-parallel", "multi-step-needs-fix", "plan:0 review:1 fix:0 review:0 > completed"),
    ("mock-single-step", "execute-done", "execute:0 > completed"),
    ("structured-output", "execute-done", "execute:0 > completed"),
    ("structured-output", "one-entry-only", "execute:- > aborted"),
    ("mock-two-step", "one-entry-only", "step-1:0 step-2:0 > completed"),
    ("mock-two-step", "run-with-failure", "step-1:0 step-2:- > aborted"),
    ("team-leader-worker-pool", "execute-done", "execute:- > aborted"),
]
TIME_LIMITS = ("team-leader-refill-threshold", "team-leader-refill-threshold")

needs_takt = pytest.mark.usefixtures("takt")
corpus = pytest.mark.skipif(
    CORPUS is None, reason="CADENZA_CORPUS names no folder with the corpus of real pieces"
)


@pytest.fixture(scope="module")
def takt() -> None:
    program()


def fixture_files(piece: str, scenario: str, room: Path) -> tuple[Path, Path]:
    """Copies of TAKT's own fixtures in ``room``."""
    for folder in ("pieces", "agents"):
        shutil.copytree(FIXTURES / folder, room / folder)
    return room / "pieces" / f"{piece}.yaml", FIXTURES / "scenarios" / f"{scenario}.json"


@pytest.mark.slow
@needs_takt
@corpus
@pytest.mark.parametrize(("piece", "scenario", "way"), PAIRS, ids=[f"{p}-x-{s}" for p, s, _ in PAIRS])
async def test_takts_own_fixtures_go_the_same_way(
    piece: str, scenario: str, way: str, tmp_path: Path
) -> None:
    files = fixture_files(piece, scenario, tmp_path)
    assert (await play_ours(*files, tmp_path)).told == way
    assert play_theirs(*files, tmp_path).told == way


@pytest.mark.slow
@needs_takt
@corpus
async def test_a_part_may_have_a_time_limit_of_its_own(tmp_path: Path) -> None:
    files = fixture_files(*TIME_LIMITS, tmp_path)
    assert (await play_ours(*files, tmp_path)).told == "execute:0 > completed"
    theirs = play_theirs(*files, tmp_path)
    assert theirs.told == "execute:- > aborted"
    assert "timeout_ms" in theirs.message


@pytest.mark.slow
@needs_takt
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_both_go_the_same_way_or_the_document_says_why_not(case: Case, tmp_path: Path) -> None:
    files = case.write(tmp_path)
    ours, theirs = await play_ours(*files, tmp_path), play_theirs(*files, tmp_path)
    if case.differs is None:
        assert ours.told == theirs.told
        return
    assert (ours.told, theirs.told) == (case.ours, case.theirs)
    assert f"| `{case.differs}` |" in DOCUMENT


def test_every_difference_of_the_document_is_shown_by_a_case() -> None:
    shown = {case.differs for case in CASES if case.differs} | {"part-time-limit"}
    assert set(re.findall(r"^\| `([a-z-]+)` \|", DOCUMENT, re.MULTILINE)) == shown
    assert VERSION in DOCUMENT
