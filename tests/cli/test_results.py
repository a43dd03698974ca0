"""A run's result, and what is told of runs that stand in the middle of something."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from cadenza.cli.ending import provider_words
from cadenza.cli.words import without_tag
from cadenza.core.events import RunStarted
from tests.cli.conftest import Cli

LINES = """\
cadenza-script: 1
entries:
  - {movement: first, text: "a plan [STEP:0]"}
  - {movement: second, text: "one\\n\\n{two}\\nthree\\nfour\\n\\n[STEP:0]\\n", times: forever}
"""
HELD_UP = """\
cadenza-script: 1
entries:
  - {movement: first, text: "quick [STEP:0]"}
  - {movement: second, chunks: [{text: "begun"}, {delay: 30, text: " late [STEP:0]"}], times: forever}
"""


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("all is well [STEP:0]", "all is well"),
        ("a\n\n**[STEP:1]**\n", "a\n"),
        ("a\n[STEP:1]\n[step: 0]", "a\n"),
        ("[STEP:0]", ""),
        ("[STEP:0] was it\n", "[STEP:0] was it\n"),
        ("no tag \n\n", "no tag \n\n"),
        ("**all done [STEP:0]**", "**all done [STEP:0]**"),
    ],
)
def test_the_tag_at_the_end_is_left_out(text: str, kept: str) -> None:
    assert without_tag(text) == kept


def test_the_result_is_what_the_last_movement_said(cli: Cli) -> None:
    cli.write("lines.yaml", LINES)
    played = cli("run", "two.yaml", "x", "--script", "lines.yaml", "-q")
    assert (played.returncode, played.stdout) == (0, "one\n\n{two}\nthree\nfour\n")
    assert "completed: done" in played.stderr
    printed = cli("output", "last")
    assert (printed.stdout, printed.stderr) == (played.stdout, "")
    data = json.loads(cli("output", "last", "--json").stdout)
    assert data["output"].strip() == played.stdout.strip()
    assert (data["run"], data["status"]) == (cli.rows()[0]["id"], "completed")
    shown = cli("show", "last").stdout
    assert "output:\n  | one\n  |\n  | {two}\n  all of it: cadenza output r" in shown
    again = cli("retry", "last", "--from", "second", "-q")
    assert again.stdout == played.stdout


def test_a_run_that_waits_has_no_result_yet(cli: Cli) -> None:
    parked = cli("run", "two.yaml", "x", "--script", "asks.yaml", "-q")
    assert (parked.returncode, parked.stdout) == (4, "")
    request = re.search(r"cadenza answer (\w+) VALUE", parked.stderr)
    assert request is not None
    answered = cli("answer", request[1], "blue", "-q")
    assert (answered.returncode, answered.stdout) == (0, "over\n")
    assert answered.stderr.startswith("accepted: ")


def test_a_run_without_any_output_says_so(cli: Cli) -> None:
    cli.write("dry.yaml", "cadenza-script: 1\nentries:\n  - {movement: third, text: x}\n")
    cli("run", "two.yaml", "x", "--script", "dry.yaml", "-q")
    none = cli("output", "last")
    assert (none.returncode, none.stdout) == (2, "")
    assert "has no output yet" in none.stderr


def test_a_question_is_shown_without_its_tag_and_kept_for_programs(cli: Cli) -> None:
    parked = cli("run", "two.yaml", "x", "--script", "asks.yaml", "-q")
    assert "  | Red or blue?\n" in parked.stderr
    assert "[STEP:1]" not in cli("inbox").stdout
    assert json.loads(cli("inbox", "--json").stdout)[0]["text"] == "Red or blue? [STEP:1]"
    assert json.loads(cli("show", "last", "--json").stdout)["requests"][0]["text"].endswith("[STEP:1]")


def test_resume_in_the_middle_of_a_visit_tells_what_is_said(cli: Cli) -> None:
    script = cli.write("up.yaml", HELD_UP)
    process = cli.start("run", "two.yaml", "x", "--script", "up.yaml")
    assert process.stdout is not None
    cli.wait_for(lambda: bool(cli.rows()) and cli.rows()[0]["movement"] == "second")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    script.write_text(HELD_UP.replace("delay: 30", "delay: 0.1"), encoding="utf-8")
    resumed = cli("resume", "last")
    assert resumed.returncode == 0
    assert "[2/6] second, going on" in resumed.stdout
    assert "  begun late [STEP:0]" in resumed.stdout.splitlines()


def test_a_run_that_nobody_plays_is_told_with_the_next_command(cli: Cli) -> None:
    cli("run", "two.yaml", "x", "--script", "asks.yaml", "-q")
    request = json.loads(cli("inbox", "--json").stdout)[0]["id"]
    cli("answer", request, "blue", "--no-play")
    shown = cli("show", "last").stdout
    assert "nobody plays it now" in shown
    assert f"cadenza resume {cli.rows()[0]['id']}" in shown
    assert "cadenza worker" in shown


def test_a_visit_that_was_cancelled_does_not_go_on(cli: Cli) -> None:
    cli("run", "two.yaml", "x", "--script", "asks.yaml", "-q")
    cli("cancel", "last")
    assert cli("retry", "last", "--from", "second", "-q").returncode == 0
    shown = cli("show", "last").stdout
    assert "goes on" not in shown
    assert "cancelled by tester" in shown


def test_resume_of_a_completed_run_names_the_retry_that_works(cli: Cli) -> None:
    cli("run", "two.yaml", "x", "--script", "done.yaml", "-q")
    refused = cli("resume", "last")
    assert refused.returncode == 1
    assert f"cadenza retry {cli.rows()[0]['id']} --from MOVEMENT" in refused.stderr


def test_the_provider_is_named_with_its_address() -> None:
    def words(provider: str | None, model: str | None, **providers: str) -> str:
        named = {name.strip("_"): meant for name, meant in providers.items()}
        return provider_words(
            RunStarted(
                piece="p",
                name="n",
                task="t",
                seed="s",
                cwd="/",
                provider=provider,
                model=model,
                providers=named,
            )
        )

    here = "openai:http://127.0.0.1:8080/v1"
    assert words("openai", "m", openai=here) == "openai at http://127.0.0.1:8080/v1, model m"
    assert words(None, None, _=here) == "as each movement says: openai at http://127.0.0.1:8080/v1"
    assert words("scripted:/a.yaml", None) == "scripted:/a.yaml"
    assert words(None, None) == "as each movement says"


@pytest.mark.parametrize(
    "command", [("run", "hello", "x"), ("pieces",), ("init",), ("lint", "hello"), ("runs",)]
)
def test_a_folder_that_is_gone_is_one_clear_error(cli: Cli, command: tuple[str, ...]) -> None:
    import subprocess
    import sys

    code = (
        "import os, sys, tempfile\nfolder = tempfile.mkdtemp()\nfrom cadenza.cli import main\n"
        f"os.chdir(folder); os.rmdir(folder)\nsys.argv = {['cadenza', *command]!r}\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=cli.env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: the current directory is not there any more\n")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no endless file here")
def test_an_endless_task_is_refused_at_once(cli: Cli) -> None:
    done = cli("run", "two.yaml", "--task-file", Path("/dev/zero"), "--script", "done.yaml")
    assert done.returncode == 2
    assert "longer than the limit of 1,048,576 bytes" in done.stderr
    piped = cli("run", "two.yaml", "-", "--script", "done.yaml", stdin=b"x" * 3_000_000)
    assert (piped.returncode, "longer than the limit" in piped.stderr) == (2, True)


def test_a_broken_piece_is_marked(cli: Cli) -> None:
    folder = cli.folder / ".cadenza" / "pieces"
    folder.mkdir(parents=True)
    (folder / "torn.yaml").write_text("name: [\n")
    (line,) = [line for line in cli("pieces").stdout.splitlines() if line.startswith("torn ")]
    assert "BROKEN: " in line
    assert "torn.yaml:" in line
    found = {one["name"]: one for one in json.loads(cli("pieces", "--json").stdout)}
    assert found["torn"]["problem"]
    assert found["hello"]["problem"] is None


def test_the_journal_option_behind_the_command(cli: Cli) -> None:
    done = cli("runs", "--journal", "f")
    assert (done.returncode, done.stdout) == (2, "")
    assert "hint: cadenza --journal FILE runs" in done.stderr


def test_a_missing_report_is_told_with_the_runs_id(cli: Cli) -> None:
    cli("run", "two.yaml", "x", "--script", "done.yaml", "-q")
    assert f"run {cli.rows()[0]['id']} has no report 'nope'" in cli("report", "last", "nope").stderr


@pytest.mark.parametrize("command", [("run", "two", "x"), ("lint", "two"), ("graph", "two")])
def test_a_file_that_is_called_like_the_piece_is_suggested(cli: Cli, command: tuple[str, ...]) -> None:
    done = cli(*command)
    assert done.returncode == 2
    assert "hint: did you mean two.yaml?" in done.stderr


@pytest.mark.parametrize("json_too", [False, True])
def test_doctor_says_what_it_can_of_a_journal_that_cannot_be_used(cli: Cli, json_too: bool) -> None:
    cli.journal.write_text("this is not a database, " * 100)
    done = cli("doctor", *(["--json"] if json_too else []))
    assert done.returncode == 1
    assert "Python" in done.stdout or json.loads(done.stdout)["journal"]["error"]
    assert "openai" in done.stdout
    assert done.stderr.startswith("error: ")
