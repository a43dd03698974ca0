"""What the tests of the command line share: real processes, a journal of their own, pieces and scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cadenza

SOURCE = str(Path(cadenza.__file__).parent.parent)
TIMEOUT = 60

TWO_STEPS = """\
cadenza: 1
control: tags
name: two-steps
max_movements: 6
initial_movement: first
movements:
  - name: first
    instruction: Do the first thing
    rules:
      - condition: done
        next: second
      - condition: a person must say
        next: first
        requires_user_input: true
      - condition: hopeless
        next: ABORT
  - name: second
    instruction: Do the second thing
    rules:
      - condition: done
        next: COMPLETE
"""

DONE = 'cadenza-script: 1\nentries:\n  - {text: "all is well [STEP:0]", times: forever}\n'
ABORTS = 'cadenza-script: 1\nentries:\n  - {movement: first, text: "no [STEP:2]"}\n'
ASKS = """\
cadenza-script: 1
entries:
  - {movement: first, text: "Red or blue? [STEP:1]"}
  - {movement: first, text: "I see [STEP:0]", times: forever}
  - {movement: second, text: "over [STEP:0]", times: forever}
"""
SLOW = """\
cadenza-script: 1
entries:
  - {movement: first, text: "quick [STEP:0]"}
  - {movement: second, chunks: [{text: "begun"}, {delay: 30, text: "late [STEP:0]"}], times: forever}
"""


class Cli:
    """Runs the command in real processes, all on one journal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = folder / "journal.sqlite"
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("CADENZA_")},
            "PYTHONPATH": SOURCE,
            "HOME": str(folder),
            "CADENZA_JOURNAL": str(self.journal),
            "CADENZA_ACTOR": "tester",
            "TERM": "dumb",
        }

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def argv(self, *words: str | bytes | Path) -> list[str | bytes | Path]:
        return [sys.executable, "-m", "cadenza", *words]

    def __call__(
        self, *words: str | bytes | Path, stdin: bytes | None = None, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.argv(*words),
            cwd=self.folder,
            env={**self.env, **(env or {})},
            input=b"" if stdin is None else stdin,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    def start(self, *words: str | Path, **kwargs: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.argv(*words),
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=kwargs.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            text=True,
            **kwargs,
        )

    def rows(self) -> list[dict[str, Any]]:
        if not self.journal.exists():
            return []
        rows: list[dict[str, Any]] = json.loads(self("runs", "--json").stdout)
        return rows

    def wait_for(self, holds: Callable[[], bool], seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, "it never came"
            time.sleep(0.05)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    cli = Cli(tmp_path)
    cli.write("two.yaml", TWO_STEPS)
    for name, text in (("done", DONE), ("aborts", ABORTS), ("asks", ASKS), ("slow", SLOW)):
        cli.write(f"{name}.yaml", text)
    return cli
