"""Plays a piece and a scenario on the real TAKT and on our engine, and says the same of both.

TAKT is looked for at ``CADENZA_TAKT`` (its program), else where ``.ci/takt.sh`` puts it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cadenza import Engine
from cadenza.core import events as ev
from cadenza.core.events import Recorded
from cadenza.core.signals import Signal
from cadenza.errors import PieceError
from cadenza.providers.models.scripted import ScriptedProvider, load_script

VERSION = "0.35.4"
"""The version of the npm package ``takt`` that is compared with."""

TASK = "the task"
TIMEOUT = 110
_EXITS = {0: "completed", 3: "aborted"}


class Way(NamedTuple):
    """What came of a run: each movement with the index of the rule that matched, the end, and its words."""

    path: tuple[tuple[str, int | None], ...]
    end: str
    message: str

    @property
    def comparable(self) -> tuple[tuple[tuple[str, int | None], ...], str]:
        """Path and end. A loop monitor's judge that chose replaced the rule of the movement before it; our
        journal keeps the judge's choice only, so that one is left out of both."""
        path = list(self.path)
        for at, (name, rule) in enumerate(path[1:], 1):
            if name.startswith("_loop_judge_") and rule is not None:
                path[at - 1] = (path[at - 1][0], None)
        return tuple(path), self.end

    @property
    def told(self) -> str:
        """The path and the end in one line: ``review:0 fix:- > completed``."""
        path, end = self.comparable
        return " ".join(f"{name}:{'-' if rule is None else rule}" for name, rule in path) + f" > {end}"


def program() -> Path:
    """TAKT's program. Without it the test is skipped, or fails where ``CADENZA_REQUIRE_TAKT`` is set."""
    cache = Path(os.environ.get("CADENZA_CI_CACHE") or Path.home() / ".cache" / "cadenza-ci")
    found = Path(os.environ.get("CADENZA_TAKT") or cache / "takt" / "node_modules" / ".bin" / "takt")
    missing = [name for name in ("node", "git") if shutil.which(name) is None]
    if not missing and found.exists():
        return found
    what = f"{' and '.join(missing)} not found" if missing else f"{found} is not there"
    reason = f"the real TAKT {VERSION} is missing ({what}): run `.ci/takt.sh` to install it"
    if os.environ.get("CADENZA_REQUIRE_TAKT") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def for_takt(piece: str) -> str:
    """The piece as TAKT 0.35.4 takes it: ``instruction_template`` renamed, ``allowed_tools`` taken out."""
    renamed = re.sub(r"\binstruction_template:", "instruction:", piece)
    return re.sub(r"^( *)allowed_tools:\n(?:\1 *- .*\n)+", "", renamed, flags=re.MULTILINE)


def play_theirs(piece: Path, scenario: Path, room: Path) -> Way:
    """The run as the real TAKT plays it: a copy of the piece, in a new git repository with one commit."""
    takt, home, repository = program(), room / "home", room / "theirs"
    for folder in (home / "config", repository):
        folder.mkdir(parents=True)
    (home / "config" / "config.yaml").write_text("provider: mock\nlanguage: en\n", encoding="utf-8")
    copy = piece.with_name(f"{piece.stem}.takt.yaml")
    copy.write_text(for_takt(piece.read_text(encoding="utf-8")), encoding="utf-8")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TAKT_CONFIG_DIR": str(home / "config"),
        "TAKT_MOCK_SCENARIO": str(scenario),
    }
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    for command in (("init", "-q"), (*who, "commit", "-q", "--allow-empty", "-m", "empty")):
        subprocess.run(["git", *command], cwd=repository, env=environment, check=True, timeout=TIMEOUT)
    done = subprocess.run(
        [takt, "--pipeline", "--skip-git", "--provider", "mock", "-w", copy, "-t", TASK],
        cwd=repository,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    logs = list(repository.glob(".takt/runs/*/logs/*.jsonl"))
    assert logs, f"TAKT wrote no log:\n{done.stdout}\n{done.stderr}"
    rows = [json.loads(line) for line in logs[0].read_text(encoding="utf-8").splitlines()]
    return _their_way(rows, _EXITS.get(done.returncode, f"exit code {done.returncode}"))


def _their_way(rows: list[dict[str, Any]], end: str) -> Way:
    path: list[tuple[str, int | None]] = []
    message = ""
    for row in rows:
        if row["type"] == "step_start":
            path.append((row["step"], None))
        elif row["type"] == "step_complete":
            at = max(i for i, (name, _) in enumerate(path) if name == row["step"])
            path[at] = (row["step"], row.get("matchedRuleIndex"))
        elif row["type"] == "piece_abort":
            message = row["reason"]
    return Way(tuple(path), end, message)


async def play_ours(piece: Path, scenario: Path, room: Path) -> Way:
    """The run as our engine plays it, from the unchanged files; the end ``refused`` where it is not begun."""
    cwd = room / "ours"
    cwd.mkdir()
    provider = ScriptedProvider(load_script(scenario))
    async with Engine(":memory:", provider=provider) as engine:
        try:
            run = await engine.start(piece, TASK, cwd=cwd, phases="three")
        except PieceError as error:
            return Way((), "refused", str(error))
        result = await run.result()
        events = engine.journal.events(run.id)
    return Way(tuple(_our_path(events)), result.status, result.message or "")


def _our_path(events: list[Recorded]) -> list[tuple[str, int | None]]:
    """A loop monitor's judge is a row of its own, as TAKT logs it: after the movement that it looked at."""
    path: list[tuple[str, int | None]] = []
    for event in (recorded.event for recorded in events):
        if isinstance(event, ev.VisitStarted):
            path.append((event.movement, None))
        elif isinstance(event, ev.VisitEnded):
            signal: Signal = event.signal
            judged = signal.judged
            own = None if signal.method == "monitor" else signal.rule
            path[-1] = (path[-1][0], own)
            if judged is not None:
                path.append((judged.name, signal.rule if judged.label is not None else None))
    return path
