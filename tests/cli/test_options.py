"""What a run can be told on the command line, and what listings can be narrowed to."""

from __future__ import annotations

import json
import os
import pty
import signal
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli

SHY = """\
cadenza: 1
control: tags
name: shy
phases: three
movements:
  - name: ask
    instruction: Ask, where somebody is there
    rules:
      - {condition: somebody is there, next: COMPLETE, interactive_only: true}
      - {condition: nobody is there, next: ABORT}
"""
FIRST = """\
cadenza-script: 1
entries:
  - {purpose: rules, json: {step: 1, reason: x}, times: forever}
  - {text: hello, times: forever}
"""
GATED = """\
cadenza: 1
control: tags
name: gated
movements:
  - name: make
    instruction: Make it
    quality_gates: [{type: command, name: there, command: test -e ready}]
    rules: [{condition: done, next: COMPLETE}]
"""


def started(cli: Cli) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(cli("show", "last", "--json").stdout)
    return shown


def test_phases_three_asks_for_the_status_apart(cli: Cli) -> None:
    cli.write("status.yaml", FIRST)
    played = cli("run", "two.yaml", "x", "--phases", "three", "--script", "status.yaml")
    assert played.returncode == 0, played.stderr
    assert "phases three)" in played.stdout.splitlines()[0]
    shown = cli("show", "last").stdout
    assert "done (structured_output)" in shown
    assert ", phases three" in shown
    assert cli("run", "two.yaml", "x", "--phases", "two").returncode == 2


def test_max_movements_is_the_runs_limit(cli: Cli) -> None:
    played = cli("run", "two.yaml", "x", "--max-movements", "1", "--script", "done.yaml")
    assert played.returncode == 3
    assert "[1/1] first" in played.stdout
    assert "max_movements" in played.stdout
    assert cli("run", "two.yaml", "x", "--max-movements", "0").returncode == 2


@pytest.mark.parametrize(
    ("option", "code"), [(("--interactive",), 0), (("--no-interactive",), 3), ((), 3)], ids=str
)
def test_interactive_only_rules_count_where_somebody_is_there(
    cli: Cli, option: tuple[str, ...], code: int
) -> None:
    cli.write("shy.yaml", SHY)
    cli.write("first.yaml", FIRST)
    played = cli("run", "shy.yaml", "x", "--script", "first.yaml", *option)
    assert played.returncode == code, played.stdout


def test_a_terminal_is_somebody(cli: Cli) -> None:
    ours, theirs = pty.openpty()
    done = subprocess.run(
        cli.argv("run", "two.yaml", "x", "--script", "done.yaml", "-q"),
        cwd=cli.folder,
        env=cli.env,
        stdin=theirs,
        capture_output=True,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0
    assert started(cli)["started"]["interactive"] is True


def test_listings_can_be_narrowed_to_a_workspace(cli: Cli) -> None:
    cli("run", "two.yaml", "x", "--script", "asks.yaml", "-q", "--workspace", "garden")
    cli("run", "two.yaml", "x", "--script", "asks.yaml", "-q")
    garden = json.loads(cli("runs", "--workspace", "garden", "--json").stdout)
    assert [row["workspace"] for row in garden] == ["garden"]
    asked = json.loads(cli("inbox", "--workspace", "garden", "--json").stdout)
    assert [row["run"] for row in asked] == [garden[0]["id"]]
    assert len(json.loads(cli("inbox", "--json").stdout)) == 2
    assert len(cli.rows()) == 2
    assert "workspace  garden" in cli("show", garden[0]["id"]).stdout
    nothing = cli("runs", "--workspace", "attic")
    assert (nothing.returncode, nothing.stdout) == (0, "")
    assert "no run yet in workspace 'attic'" in nothing.stderr


def test_a_workspace_without_a_name_is_refused(cli: Cli) -> None:
    refused = cli("run", "two.yaml", "x", "--script", "done.yaml", "--workspace", " ")
    assert refused.returncode == 2
    assert "the workspace is empty" in refused.stderr


def test_prompt_shows_each_phase(cli: Cli) -> None:
    work = cli("prompt", "two.yaml", "first", "--phases", "three").stdout
    assert work.startswith("===== first (default) =====\n\n----- system text -----\n\n# Piece: two-steps\n")
    reports = cli("prompt", "plan-build-review", "plan", "--phases", "three", "--phase", "2")
    assert reports.stdout.startswith("## Report\n")
    status = cli("prompt", "two.yaml", "first", "--phases", "three", "--phase", "3").stdout
    for stage in ("status:step", "status:tag", "status:evaluation"):
        assert f"===== first (conductor): {stage} =====" in status
    found = json.loads(cli("prompt", "two.yaml", "first", "--phases=three", "--phase=3", "--json").stdout)
    assert [one["phase"] for one in found] == [3, 3, 3]
    none = cli("prompt", "two.yaml", "second", "--phases", "three", "--phase", "2")
    assert (none.returncode, none.stdout) == (0, "")
    assert "second is asked nothing in phase 2" in none.stderr
    refused = cli("prompt", "two.yaml", "first", "--phase", "3")
    assert refused.returncode == 2
    assert "--phases three" in refused.stderr


def test_prompt_shows_the_gates_that_the_configuration_adds(cli: Cli) -> None:
    (cli.folder / "work").mkdir()
    config = cli.folder / ".config" / "cadenza" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("piece_overrides: {quality_gates: [All tests pass]}\n")
    assert "- All tests pass" in cli("prompt", "two.yaml", "first", "--phases", "three").stdout


def test_a_gate_that_fails_is_told_and_shown(cli: Cli) -> None:
    cli.write("gated.yaml", GATED)
    refused = cli("run", "gated.yaml", "x", "--script", "done.yaml")
    assert refused.returncode == 2
    assert "workflow_command_gates" in refused.stderr
    assert "it would not be played" in cli("prompt", "gated.yaml", "make").stderr
    (cli.folder / ".cadenza").mkdir()
    allowed = cli.folder / ".cadenza" / "config.yaml"
    allowed.write_text("workflow_command_gates: {custom_scripts: true}\n")
    # The folder is the home of this test, where a project has no file of its own: it is the person's.
    failed = cli("run", "gated.yaml", "x", "--script", "done.yaml", "--max-movements", "2")
    assert failed.returncode == 3
    assert "-> the same movement, told what failed: there (gate)" in failed.stdout
    assert "make (default, told what failed)" in failed.stdout
    path = cli("show", "last").stdout
    assert "there (gate)" in path
    assert "answered by a person" not in path
    cli.write("ready", "")
    assert cli("run", "gated.yaml", "x", "--script", "done.yaml").returncode == 0


def test_a_worker_that_is_told_to_stop_gives_its_runs_back(cli: Cli) -> None:
    cli.write("slow-after.yaml", SLOW_AFTER)
    cli("run", "two.yaml", "a task", "--script", "slow-after.yaml", "-q")
    process = cli.start("worker")
    request = json.loads(cli("inbox", "--json").stdout)[0]["id"]
    cli("answer", request, "blue", "--no-play")
    cli.wait_for(lambda: cli.rows()[0]["movement"] == "second")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "given back" in err
    row = cli.rows()[0]
    assert (row["status"], row["reason"]) == ("queued", None)
    script = cli.folder / "slow-after.yaml"
    script.write_text(SLOW_AFTER.replace("delay: 30", "delay: 0"))
    assert cli("resume", "last").returncode == 0


def test_a_run_that_cannot_be_played_is_a_line_and_the_worker_goes_on(cli: Cli) -> None:
    cli("run", "two.yaml", "broken", "--script", "asks.yaml", "-q")
    broken = started(cli)
    request = broken["requests"][0]["id"]
    cli("answer", request, "blue", "--no-play")
    cli.write("two.yaml", (cli.folder / "two.yaml").read_text().replace("two-steps", "other"))
    cli("run", "two.yaml", "whole", "--script", "asks.yaml", "-q")
    cli("answer", started(cli)["requests"][0]["id"], "blue", "--no-play")
    with sqlite3.connect(cli.journal) as journal:
        journal.execute("DELETE FROM texts WHERE hash = ?", (broken["piece"]["hash"],))
    process = cli.start("worker", "--slots", "1")
    assert process.stdout is not None
    assert "other: completed" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    lines = [line for line in err.splitlines() if "could not be played" in line]
    assert len(lines) == 1
    assert lines[0].startswith(f"{broken['run']['id']} could not be played: ")
    assert "Traceback" not in err


SLOW_AFTER = """\
cadenza-script: 1
entries:
  - {movement: first, text: "Red or blue? [STEP:1]"}
  - {movement: first, text: "I see [STEP:0]", times: forever}
  - {movement: second, chunks: [{text: "begun"}, {delay: 30, text: "late [STEP:0]"}], times: forever}
"""


def test_the_folder_of_a_run_is_where_its_format_has_it(cli: Cli) -> None:
    cli.write("shout.yaml", 'cadenza-script: 1\nentries:\n  - {text: "x [STEP:0]", times: forever}\n')
    cli("run", "plan-build-review", "x", "--script", "shout.yaml", "-q")
    cli.write(
        "takt.yaml",
        "name: t\ninitial_movement: a\nmovements:\n"
        "  - {name: a, instruction: x, rules: [{condition: d, next: COMPLETE}]}\n",
    )
    cli("run", "takt.yaml", "x", "--script", "shout.yaml", "-q")
    assert [len(list(Path(cli.folder, house, "runs").glob("*-x"))) for house in (".cadenza", ".takt")] == [
        1,
        1,
    ]
