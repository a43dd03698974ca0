"""A run on a disk that fills up: one clear error, nothing lost; with space again, ``resume`` ends the run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cadenza.journal import open_journal

PIECE = """
cadenza: 1
control: tags
name: long
max_movements: 30
movements:
  - name: write
    instruction: write {task}
    report: {name: text.md, format: "# Text"}
    rules: [{condition: more, next: write}, {condition: enough, next: COMPLETE}]
"""
SCRIPT = "cadenza-script: 1\nentries:\n" + "".join(
    f"  - text: |\n      {chr(97 + i) * 60_000}\n      [STEP:{0 if i < 11 else 1}]\n" for i in range(12)
)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 8 MiB."""
    mount = tmp_path / "disk"
    mount.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(mount)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.strip()}")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def cadenza(journal: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cadenza", "--journal", str(journal), *words]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, capture_output=True, text=True, timeout=100, env=environ, check=False)


@pytest.mark.parametrize("full", ["journal", "workspace"])
def test_a_full_disk_loses_nothing_and_resume_ends_the_run(tmp_path: Path, disk: Path, full: str) -> None:
    journal = (disk if full == "journal" else tmp_path) / "j.sqlite"
    work = disk if full == "workspace" else tmp_path / "work"
    work.mkdir(exist_ok=True)
    (tmp_path / "long.yaml").write_text(PIECE, encoding="utf-8")
    (tmp_path / "script.yaml").write_text(SCRIPT, encoding="utf-8")
    filler = disk / "filler"
    filler.write_bytes(b"x" * (7_300_000 if full == "journal" else 8_300_000))
    play = ("run", str(tmp_path / "long.yaml"), "a story", "--script", str(tmp_path / "script.yaml"))
    first = cadenza(journal, *play, "--cwd", str(work), "-q")
    assert first.returncode in (1, 4), first.stdout + first.stderr
    assert "Traceback" not in first.stderr
    said = (first.stdout + first.stderr).lower()
    assert "space" in said or "full" in said, said
    assert "resume" in said
    filler.unlink()
    second = cadenza(journal, "resume", "last", "-q")
    assert second.returncode == 0, second.stdout + second.stderr
    opened = open_journal(journal)
    (row,) = opened.runs()
    assert (row.status, row.iteration) == ("completed", 12)
    assert opened.verify() == []
    opened.close()
