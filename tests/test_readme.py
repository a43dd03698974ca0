"""The README and the docs are true: their examples run as they stand there, their links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", ROOT / "docs" / "python-api.md")

SCRIPT = """
cadenza-script: 1
entries:
  - movement: plan
    text: "Where, and when? [STEP:1]"
  - text: "Because short waves scatter more. [STEP:0]"
    times: forever
"""


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language in a page."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


def pages() -> list[Path]:
    """All pages that a person reads."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def examples() -> list[tuple[str, str]]:
    found = [(page, block) for page in PAGES for block in blocks(page, "python")]
    return [(f"{page.name}-{number}", block) for number, (page, block) in enumerate(found)]


@pytest.mark.parametrize("code", [c for _, c in examples()], ids=[name for name, _ in examples()])
def test_an_example_runs_as_it_is_written(code: str, tmp_path: Path) -> None:
    script = tmp_path / "answers.yaml"
    script.write_text(SCRIPT, encoding="utf-8")
    told = {"CADENZA_PROVIDER": f"scripted:{script}", "XDG_DATA_HOME": str(tmp_path / "data")}
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={**os.environ, **told, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_the_readme_has_python_yaml_and_the_test_command() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert blocks(ROOT / "README.md", "python")
    assert blocks(ROOT / "README.md", "yaml")
    assert len(re.findall(r"<!-- test-command -->\n```sh\n[^\n]+\n```", readme)) == 1


def test_the_pieces_in_the_readme_have_no_problem(tmp_path: Path) -> None:
    from cadenza.piece.lint import lint

    pieces = blocks(ROOT / "README.md", "yaml")
    assert len(pieces) == 2
    for piece in pieces:
        file = tmp_path / "draft.yaml"
        file.write_text(piece, encoding="utf-8")
        assert [str(problem) for problem in lint(file, cwd=tmp_path)] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
    assert missing == []
