"""The exit code says how a run stands; the last lines say what to do next."""

from __future__ import annotations

import json
import re

import pytest

from tests.cli.conftest import Cli


def test_completed_is_0(cli: Cli) -> None:
    done = cli("run", "two.yaml", "a task", "--script", "done.yaml")
    assert done.returncode == 0
    assert "completed: done" in done.stdout
    assert re.search(r"figures  2 iterations of at most 6, [\d.]+ s, \d+ tokens in, \d+ out", done.stdout)
    assert done.stderr == ""


def test_aborted_is_3_and_retry_is_named(cli: Cli) -> None:
    done = cli("run", "two.yaml", "a task", "--script", "aborts.yaml")
    assert done.returncode == 3
    run = cli.rows()[0]["id"]
    assert "aborted (rule)" in done.stdout
    assert f"cadenza retry {run}" in done.stdout


def test_a_script_that_runs_dry_holds_the_run_until_an_entry_is_added(cli: Cli) -> None:
    words = 'cadenza-script: 1\nentries:\n  - {movement: first, text: "[STEP:0]"}\n'
    script = cli.write("dry.yaml", words)
    done = cli("run", "two.yaml", "a task", "--script", script)
    assert done.returncode == 4
    assert "held (provider): " in done.stdout
    assert "no entry of this script matches a call of movement" in done.stdout
    script.write_text(words + '  - {movement: second, text: "[STEP:0]"}\n')
    assert cli("resume", "last").returncode == 0


def test_parked_is_4_with_the_command_that_answers_and_the_answer_plays_on(cli: Cli) -> None:
    parked = cli("run", "two.yaml", "a task", "--script", "asks.yaml")
    assert parked.returncode == 4
    assert "| Red or blue?" in parked.stdout
    request = re.search(r"cadenza answer (\w+) VALUE", parked.stdout)
    assert request is not None
    inbox = cli("inbox")
    assert request[1] in inbox.stdout
    assert f"cadenza answer {request[1]} VALUE" in inbox.stdout
    answered = cli("answer", request[1], "blue")
    assert answered.returncode == 0
    assert answered.stdout.startswith("accepted: ")
    assert "answered by tester: blue" in answered.stdout
    assert "completed" in answered.stdout


def test_an_answer_is_taken_once(cli: Cli) -> None:
    cli("run", "two.yaml", "a task", "--script", "asks.yaml", "-q")
    request = json.loads(cli("inbox", "--json").stdout)[0]["id"]
    only = cli("answer", request, "blue", "--no-play")
    assert (only.returncode, cli.rows()[0]["status"]) == (0, "queued")
    equal = cli("answer", request, "blue", "--no-play")
    assert equal.returncode == 0
    assert "already answered with the same: tester answered at" in equal.stdout
    other = cli("answer", request, "red", "--no-play")
    assert other.returncode == 1
    assert "answered differently: tester answered at" in other.stderr
    assert "blue" in other.stderr
    again = cli("answer", request, "blue")
    assert again.returncode == 0
    assert cli.rows()[0]["status"] == "completed"


def test_a_late_answer_is_refused(cli: Cli) -> None:
    cli("run", "two.yaml", "a task", "--script", "asks.yaml", "-q")
    request = json.loads(cli("inbox", "--json").stdout)[0]["id"]
    assert cli("cancel", "last").returncode == 0
    late = cli("answer", request, "blue")
    assert late.returncode == 1
    assert "too late" in late.stderr


def test_cancel_ends_a_parked_run_and_retry_reopens_it(cli: Cli) -> None:
    cli("run", "two.yaml", "a task", "--script", "asks.yaml", "-q")
    cancelled = cli("cancel", "last")
    assert cancelled.returncode == 0
    assert "cancelled by tester" in cancelled.stdout
    assert cli("cancel", "last").returncode == 1
    retried = cli("retry", "last", "--from", "second")
    assert retried.returncode == 0
    assert "second (default, retried)" in retried.stdout


def test_a_completed_run_needs_from_to_be_retried(cli: Cli) -> None:
    cli("run", "two.yaml", "a task", "--script", "done.yaml", "-q")
    refused = cli("retry", "last")
    assert refused.returncode == 1
    assert "--from MOVEMENT" in refused.stderr
    assert cli("retry", "last", "--from", "third").returncode == 2
    assert cli("retry", "last", "--from", "first").returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "no-such-piece", "x", "--script", "done.yaml"), "there is no piece 'no-such-piece'"),
        (("run", "nowhere/p.yaml", "x", "--script", "done.yaml"), "there is no such piece file"),
        (("run", "two.yaml", "x", "--script", "nowhere.yaml"), "there is no such script"),
        (("run", "two.yaml", "x", "--provider", "opnai"), "did you mean 'openai'?"),
        (("run", "two.yaml", "x"), "no provider is chosen"),
        (("run", "two.yaml", "x", "--script", "done.yaml", "--cwd", "gone"), "is not there"),
        (("run", "two.yaml", "x", "--script", "done.yaml", "--provider", "openai"), "--script goes with"),
        (("run", "two.yaml", "x", "--permit-edit", "--permit-full"), "exclude each other"),
        (("run", "two.yaml"), "no task is given"),
        (("run",), "Missing argument"),
        (("frobnicate",), "No such command"),
        (("show", "r1"), "there is no run 'r1'"),
        (("show", "last"), "there is no run yet"),
        (("report", "last"), "there is no run yet"),
        (("answer", "q1", "x"), "q1"),
        (("lint", "nowhere.yaml"), "there is no such piece file"),
        (("prompt", "two.yaml", "third"), "has no movement 'third'"),
        (("doctor", "--verify", "--rebuild"), "exclude each other"),
    ],
)
def test_usage_and_not_found_are_2_with_one_clear_message(
    cli: Cli, words: tuple[str, ...], message: str
) -> None:
    done = cli(*words, env={"CADENZA_JOURNAL": "", "XDG_DATA_HOME": ""})
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("command", ["runs", "inbox", "show last", "resume last", "answer q1 x"])
def test_a_journal_that_was_named_and_is_not_there_is_2(cli: Cli, command: str) -> None:
    done = cli(*command.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert f"there is no journal at {cli.journal}" in done.stderr
    assert not cli.journal.exists()


def test_a_piece_with_mistakes_is_1_with_every_place(cli: Cli) -> None:
    cli.write("bad.yaml", TWO_STEPS_BAD)
    done = cli("run", "bad.yaml", "x", "--script", "done.yaml")
    assert done.returncode == 1
    assert "error: 2 problems" in done.stderr
    assert re.search(r"^bad\.yaml:\d+:\d+: ", done.stderr, re.MULTILINE)
    assert cli.rows() == []


TWO_STEPS_BAD = """\
cadenza: 1
control: tags
name: bad
max_movements: many
initial_movement: first
movements:
  - name: first
    instruction: Do it
    rules:
      - {condition: done, next: nowhere}
"""


@pytest.mark.parametrize(
    ("name", "value"),
    [("CADENZA_LANG", "fr"), ("CADENZA_MAX_TOKENS", "-1"), ("CADENZA_JOURNAL", "/dev/null")],
)
def test_a_bad_setting_is_named(cli: Cli, name: str, value: str) -> None:
    done = cli("runs", env={name: value})
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("error: ")
    assert value in done.stderr


def test_a_file_that_is_no_journal_is_1(cli: Cli) -> None:
    cli.journal.write_text("this is not a database, " * 100)
    done = cli("run", "two.yaml", "x", "--script", "done.yaml")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "this is not a database" in cli.journal.read_text()


def test_a_bug_is_one_line_and_a_traceback_only_when_asked_for(cli: Cli) -> None:
    words = "import cadenza.service as s\ns.Service.runs = lambda self, **narrowed: 1 / 0\n"
    cli("run", "two.yaml", "x", "--script", "done.yaml", "-q")
    plugin = cli.folder / "sitecustomize.py"
    plugin.write_text(words, encoding="utf-8")
    path = f"{cli.folder}:{cli.env['PYTHONPATH']}"
    done = cli("runs", env={"PYTHONPATH": path})
    assert done.returncode == 1
    assert done.stderr.startswith("error: unexpected ZeroDivisionError: division by zero.")
    assert done.stderr.count("\n") == 1


def test_version_and_help(cli: Cli) -> None:
    assert re.fullmatch(r"cadenza \d+\.\d+\.\d+\n", cli("--version").stdout)
    shown = cli("--help")
    assert shown.returncode == 0
    assert "Exit codes" in shown.stdout
