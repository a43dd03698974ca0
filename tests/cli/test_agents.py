"""The commands around agents with tools: approve, decline, captcha, workspace, fork, budget."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cadenza.cli.words import answer_words
from tests.cli.conftest import Cli

SPIN = """\
cadenza: 1
name: spin
movements:
  - name: spin
    instruction: Spin.
    allowed_tools: [spin_off_task, request_tool, read_file]
"""
SMALL = """\
cadenza: 1
name: small
movements: [{name: small, instruction: Small.}]
"""
SCRIPT = """\
cadenza-script: 1
entries:
  - movement: spin
    calls: [{name: spin_off_task, arguments: {task: mend, workspace: other, piece: small}}]
  - movement: spin
    calls: [{name: complete, arguments: {status: success, result: spun}}]
  - movement: small
    calls: [{name: complete, arguments: {status: success, result: mended}}]
"""


@pytest.fixture
def parked(cli: Cli) -> Cli:
    (cli.folder / "elsewhere" / ".cadenza" / "pieces").mkdir(parents=True)
    cli.write("elsewhere/.cadenza/pieces/small.yaml", SMALL)
    cli.write("spin.yaml", SPIN)
    cli.write("script.yaml", SCRIPT)
    assert cli("workspace", "add", "other", "elsewhere").returncode == 0
    done = cli("run", "./spin.yaml", "Spin", "--script", "script.yaml")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "wants to start a task in the workspace other" in done.stdout
    assert "yes or no" in done.stdout
    assert "cadenza approve" in done.stdout
    return cli


def request(cli: Cli) -> str:
    (row,) = json.loads(cli("inbox", "--json").stdout)
    return str(row["id"])


def test_approve_starts_the_task_and_plays_the_run_on(parked: Cli) -> None:
    id = request(parked)
    done = parked("approve", id, "--note", "go on")
    assert (done.returncode, "accepted" in done.stdout) == (0, True), done.stdout + done.stderr
    assert "spun" in parked("output", "--json", json.loads(parked("runs", "--json").stdout)[-1]["id"]).stdout
    rows = {row["piece"]: row for row in parked.rows()}
    assert rows["spin"]["status"] == "completed"
    assert rows["small"]["workspace"] == "other"
    again = parked("approve", id, "--note", "go on")
    assert "already answered with the same" in again.stdout
    other = parked("decline", id)
    assert other.returncode == 1
    assert "answered differently" in other.stderr


def test_decline_is_told_to_the_agent_and_no_task_is_started(parked: Cli) -> None:
    done = parked("decline", "last", "--note", "not today")
    assert done.returncode == 0
    assert [row["piece"] for row in parked.rows()] == ["spin"]
    events = parked("events", "last").stdout
    assert "declined: not today" in events


def test_an_answer_may_name_the_run_and_is_read_as_the_question_wants_it(parked: Cli) -> None:
    wrong = parked("answer", "last", "perhaps")
    assert wrong.returncode == 2
    assert "neither yes nor no" in wrong.stderr
    done = parked("answer", "last", "no, not there")
    assert done.returncode == 0


def test_workspaces_are_listed_and_a_folder_that_is_not_there_is_refused(parked: Cli) -> None:
    listed = parked("workspace", "list")
    assert "other" in listed.stdout
    assert "personal" in listed.stdout
    gone = parked("workspace", "add", "gone", "nowhere")
    assert gone.returncode == 2
    assert "is not there" in gone.stderr
    assert "cannot be called" in parked("workspace", "add", "a b", "elsewhere").stderr


def test_a_fork_is_a_run_of_its_own(parked: Cli) -> None:
    origin = parked.rows()[0]["id"]
    done = parked("fork", "last")
    assert done.returncode == 0
    assert f"forked from {origin}" in done.stdout
    assert "stay as they are" in done.stderr
    assert len(parked.rows()) == 2
    (waiting,) = (row for row in json.loads(parked("inbox", "--json").stdout) if row["run"] != origin)
    assert f"approve {waiting['id']}" in done.stdout
    assert "has events 1 to" in parked("fork", origin, "--at", "999").stderr


def test_a_budget_is_shown_and_changed(parked: Cli) -> None:
    shown = parked("budget", "last")
    assert "no limit" in shown.stdout
    done = parked("budget", "last", "--set", "tokens=50000,wall_time=2h")
    assert "of 50,000" in done.stdout
    assert "7,200 s" in done.stdout
    wrong = parked("budget", "last", "--set", "tokens=many")
    assert wrong.returncode == 2
    assert "is no amount" in wrong.stderr


def test_a_screen_that_nobody_waits_for_resumes_nobody(cli: Cli) -> None:
    assert cli("run", "./two.yaml", "x", "--script", "done.yaml").returncode == 0
    done = cli("captcha", "resolve", "shared:x", "--json")
    assert json.loads(done.stdout) == {"screen": "shared:x", "resumed": []}


def test_a_budget_of_the_run_stops_it(parked: Cli) -> None:
    done = parked("run", "./spin.yaml", "Spin", "--script", "script.yaml", "--budget", "tokens=10")
    assert done.returncode == 3
    assert "the budget does not allow the next step" in done.stdout


FAMILY = """\
cadenza: 1
name: family
movements:
  - name: split
    instruction: Split.
    allowed_tools: [spawn_task, wait_subtasks, list_dir]
"""
FAMILY_SCRIPT = """\
cadenza-script: 1
entries:
  - movement: split
    calls: [{name: spawn_task, arguments: {task: small, piece: small}}, {name: list_dir, arguments: {}}]
  - movement: split
    calls: [{name: wait_subtasks, arguments: {}}]
  - movement: split
    calls: [{name: complete, arguments: {status: success, result: all told}}]
  - movement: small
    calls: [{name: complete, arguments: {status: needs_user_input, result: "How small?"}}]
  - movement: small
    calls: [{name: complete, arguments: {status: success, result: very small}}]
"""


def test_a_child_s_question_shows_on_its_parent_and_a_worker_plays_both_to_the_end(cli: Cli) -> None:
    (cli.folder / ".cadenza" / "pieces").mkdir(parents=True)
    cli.write(".cadenza/pieces/small.yaml", SMALL)
    cli.write("family.yaml", FAMILY)
    cli.write("family-script.yaml", FAMILY_SCRIPT)
    done = cli("run", "./family.yaml", "Split", "--script", "family-script.yaml")
    assert done.returncode == 4
    assert "waiting for its sub-tasks" in done.stdout
    assert "How small?" in done.stdout
    assert "starts run" in done.stdout
    parent = next(row["id"] for row in cli.rows() if row["parent"] is None)
    assert "sub-tasks:" in cli("show", parent).stdout
    answered = cli("answer", request(cli), "tiny", "--no-play")
    assert answered.returncode == 0
    worker = cli("worker", "--until-idle")
    assert worker.returncode == 0, worker.stderr
    assert {row["status"] for row in cli.rows()} == {"completed"}
    assert "all told" in cli("output", parent).stdout


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("blue", "blue"),
        ({"approved": True}, "approved"),
        ({"approved": False, "note": "not now"}, "declined: not now"),
        (True, "yes"),
        (False, "no"),
        ({"name": "日本"}, '{"name": "日本"}'),
        (3, "3"),
    ],
)
def test_answers_are_told_as_a_person_would(value: Any, words: str) -> None:
    assert answer_words(value) == words
