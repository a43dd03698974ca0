"""The demonstration, whole: a park that answers itself, a review with a finding, a fix, reports."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


def folder_of(shown: str) -> Path:
    found = re.search(r"(/\S*cadenza-demo-\w+)/project", shown)
    assert found is not None
    return Path(found[1])


def test_it_parks_answers_reviews_fixes_and_leaves_nothing(cli: Cli) -> None:
    done = cli("demo")
    assert done.returncode == 0, done.stderr
    assert "waiting for a person (user_input)" in done.stdout
    assert "Here the demo answers by itself" in done.stdout
    assert '-> fix: any("needs_fix") (aggregate)' in done.stdout
    assert '-> COMPLETE: all("approved") (aggregate)' in done.stdout
    assert "+`--top N` says how many words are printed; without it, 10 are." in done.stdout
    assert not folder_of(done.stdout).exists()
    assert not cli.journal.exists()


@pytest.mark.parametrize("lang", ["en", "ja"])
def test_kept_it_is_a_repository_with_reports_and_a_journal(cli: Cli, lang: str) -> None:
    done = cli("demo", "--keep", "--lang", lang)
    assert done.returncode == 0, done.stderr
    folder = folder_of(done.stdout)
    try:
        reports = {path.name for path in folder.glob("project/.cadenza/runs/*/reports/*.md")}
        assert reports == {"plan.md", "result.md", "review-substance.md", "review-clarity.md"}
        assert "count.py story.txt" in (folder / "project" / "README.md").read_text()
        if shutil.which("git"):
            status = subprocess.run(
                ["git", "status", "--short"],
                cwd=folder / "project",
                capture_output=True,
                text=True,
                check=True,
            )
            assert status.stdout == " M README.md\n"
        shown = cli("--journal", folder / "journal.sqlite", "show", "last")
        assert "6 of at most 20" in shown.stdout
    finally:
        shutil.rmtree(folder)


def test_without_git_it_goes_on(cli: Cli) -> None:
    empty = cli.folder / "empty"
    empty.mkdir()
    done = cli("demo", env={"PATH": os.fspath(empty)})
    assert done.returncode == 0, done.stderr
    assert "no usable git here" in done.stdout
    assert "+++ b/README.md" in done.stdout


def test_the_packaged_program_does_what_the_demo_says_of_it(tmp_path: Path) -> None:
    from cadenza.piece.find import package_root

    program = tmp_path / "count.py"
    shutil.copy(package_root() / "demo" / "project" / "count.py.txt", program)
    story = tmp_path / "story.txt"
    story.write_text("the fox and the dog")
    done = subprocess.run(["python3", program, story], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "     2  the"
