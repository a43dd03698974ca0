"""A package of somebody else's that brings three tools: installed, found, and played
(``docs/park-tools.md``)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).parent / "plugin"
RECIPE = Path(__file__).parents[2] / "docs" / "park-tools.md"

PLAY = """
import asyncio, json, sys
from pathlib import Path
from tests.agents.stage import CHAT, Stage, call, complete

TOOLS = "allowed_tools: [request_deploy, abandon, wait_build]"

async def main(folder, script):
    stage = Stage(folder, folder / "journal.sqlite")
    told = []
    async with stage.engine(script) as engine:
        run = await engine.start(stage.piece(CHAT.replace("rules: []", TOOLS)), "Release", cwd=folder)
        while True:
            row = engine.journal.run(run.id)
            if row.status not in ("queued", "running") and [row.status, row.reason] not in told:
                told.append([row.status, row.reason])
            if row.status == "waiting_human":
                (request,) = engine.journal.requests(run=run.id)
                told.append(engine.service.text(request.question))
                await engine.answer(request.id, "staging")
            if row.status == "waiting_build":
                (folder / "build.log").write_text("built", encoding="utf-8")
            if row.status in ("completed", "aborted", "error", "held"):
                break
            await asyncio.sleep(0.05)
        told.append([m.content for m in stage.requests[-1].messages if m.role == "tool"])
        told.append(sorted(t["name"] for t in stage.requests[0].tools))
        print(json.dumps(told))

asyncio.run(main(Path(sys.argv[1]), json.loads(sys.argv[2])))
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, installed by pip into a folder of its own."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", str(target), str(PACKAGE)], check=True, timeout=100)
    return target


def play(installed: Path, folder: Path, *script: dict[str, Any]) -> list[Any]:
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(installed), str(root)])
    done = subprocess.run(
        [sys.executable, "-c", PLAY, str(folder), json.dumps(script)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: list[Any] = json.loads(done.stdout)
    return told


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


END = call("complete", status="success", result="released")


def test_a_tool_that_asks_a_person_parks_with_its_own_reason_and_the_answer_reaches_the_model(
    installed: Path, tmp_path: Path
) -> None:
    parked, question, ended, said, tools = play(
        installed, tmp_path, call("request_deploy", version="1.2"), END
    )
    assert parked == ["waiting_human", "deploy"]
    assert question == "Where shall version 1.2 go?"
    assert ended == ["completed", "complete"]
    assert "staging" in said[0]
    assert {"abandon", "request_deploy", "wait_build"} <= set(tools)
    assert "transition" not in tools


def test_a_terminal_tool_ends_the_run_with_its_own_status_and_reason(installed: Path, tmp_path: Path) -> None:
    ended, *_ = play(installed, tmp_path, call("abandon", why="too risky"))
    assert ended == ["aborted", "abandoned"]


def test_a_tool_with_its_own_status_waits_until_its_own_condition_holds(
    installed: Path, tmp_path: Path
) -> None:
    waiting, ended, said, _ = play(installed, tmp_path, call("wait_build"), END)
    assert waiting == ["waiting_build", "build"]
    assert ended == ["completed", "complete"]
    assert said[0] == "built"


def test_the_recipe_shows_the_package_as_it_is() -> None:
    recipe = RECIPE.read_text(encoding="utf-8")
    for name in ("cadenza_deploy.py", "pyproject.toml"):
        source = (PACKAGE / name).read_text(encoding="utf-8").strip()
        assert source in recipe, f"docs/park-tools.md does not show {name} as it is"
