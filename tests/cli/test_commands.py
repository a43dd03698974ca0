"""The commands in this process, through typer's runner: what they print, with their figures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.testing import CliRunner

from cadenza.cli import telling
from cadenza.cli.app import app
from cadenza.core import events as ev
from tests.cli.conftest import ASKS, DONE, TWO_STEPS

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CADENZA_JOURNAL", str(tmp_path / "journal.sqlite"))
    monkeypatch.setenv("CADENZA_ACTOR", "tester")
    for name in ("CADENZA_PROVIDER", "CADENZA_MODEL", "CADENZA_LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, text in (("two.yaml", TWO_STEPS), ("done.yaml", DONE), ("asks.yaml", ASKS)):
        Path(name).write_text(text, encoding="utf-8")
    return lambda *words: CliRunner().invoke(app, list(words))


def test_runs_shows_id_status_reason_piece_movement_iteration_age_and_tokens(run: Run) -> None:
    run("run", "two.yaml", "x", "--script", "done.yaml")
    run("run", "two.yaml", "x", "--script", "asks.yaml")
    heads, newest, oldest = run("runs").stdout.splitlines()
    assert heads.split() == ["RUN", "STATUS", "REASON", "PIECE", "MOVEMENT", "ITERATION", "AGE", "TOKENS"]
    assert re.fullmatch(r"r\w{12}  waiting_human  user_input  two-steps  first +1 +\d+ s +\d+", newest)
    assert re.fullmatch(r"r\w{12}  completed      complete    two-steps  second +2 +\d+ s +\d+", oldest)


def test_empty_listings_say_so_on_stderr(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CADENZA_JOURNAL")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    for command, words in (("runs", "no run yet"), ("inbox", "nothing waits")):
        result = run(command)
        assert (result.exit_code, result.stdout) == (0, "")
        assert words in result.stderr


def test_show_tells_the_piece_the_permission_and_the_path(run: Run) -> None:
    run("run", "two.yaml", "make a thing", "--script", "asks.yaml", "--permit-edit", "--model", "m1")
    shown = run("show", "last").stdout
    assert re.search(r"piece      two-steps, native dialect, [0-9a-f]{12}\n", shown)
    assert "permission acceptEdits (agents answer with text only" in shown
    assert re.search(r"provider   scripted:/.*/asks.yaml, model m1\n", shown)
    assert "task       make a thing\n" in shown
    assert "first asks:\n  | Red or blue?\nanswer with: " in shown
    request = re.search(r"answer with: cadenza answer (q\w+) VALUE", shown)
    assert request is not None
    run("answer", request[1], "blue")
    path = run("show", "last").stdout.partition("VISIT")[2].partition("\n\n")[0].splitlines()
    assert [line.split()[:3] for line in path[1:]] == [
        ["1", "first", "1"],
        ["2", "first", "2"],
        ["3", "second", "3"],
    ]
    assert re.search(r"  first +a person must say \(tag\), answered by a person$", path[1])
    assert re.search(r"  COMPLETE +done \(tag\)$", path[3])


@pytest.mark.parametrize(
    ("option", "mode"),
    [((), "default"), (("--permit-edit",), "acceptEdits"), (("--permit-full",), "bypassPermissions")],
)
def test_permissions_are_recorded_and_shown_once(run: Run, option: tuple[str, ...], mode: str) -> None:
    result = run("run", "two.yaml", "x", "--script", "done.yaml", *option)
    assert f"permission: {mode} (" in result.stdout
    assert result.stdout.count("agents answer with text only") == 1
    assert json.loads(run("show", "last", "--json").stdout)["started"].get("permission", "default") == mode


def test_lanes_retries_judges_and_reports_are_told(run: Run) -> None:
    script = """\
cadenza-script: 1
entries:
  - {movement: plan, error: {status: 503, times: 1}, text: "a plan [STEP:0]"}
  - {movement: build, text: "built, without a tag"}
  - {movement: build, purpose: rules, json: {rule: 0}}
  - {movement: review-substance, text: "good [STEP:0]"}
  - {movement: review-clarity, chunks: ["two ", "lines\\nhere [STEP:0]"]}
"""
    Path("s.yaml").write_text(script)
    result = run("run", "plan-build-review", "x", "--script", "s.yaml")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert any(re.match(r"  ! try 1 failed \(server\): .*; again in [\d.]+ s$", line) for line in lines)
    assert "[1/20] plan (planner)" in lines
    assert "  report: plan.md" in lines
    assert "  -> review: The result is complete (judge)" in lines
    assert "[3/20] review (2 lanes at once)" in lines
    assert "  [review-clarity] two lines" in lines
    assert "  [review-clarity] here [STEP:0]" in lines
    assert "  review-substance: approved (tag)" in lines
    assert '  -> COMPLETE: all("approved") (aggregate)' in lines
    assert not any(line.startswith('  {"rule"') for line in lines), "the judge's JSON is not for people"
    shown = run("show", "last").stdout
    assert "- model calls tried again: 1" in shown
    assert "- review-clarity: approved (tag)" in shown
    listed = run("report", "last").stdout
    assert re.search(r"^plan.md +15 bytes$", listed, re.MULTILINE)
    assert run("report", "last", "plan.md").stdout == "a plan [STEP:0]"
    missing = run("report", "last", "nope.md")
    assert missing.exit_code == 2
    assert "it has: plan.md" in missing.stderr


def test_escape_sequences_of_a_model_do_not_reach_the_reader(run: Run) -> None:
    script = (
        'cadenza-script: 1\nentries:\n  - {text: "\\e]0;title\\a\\e[2Jx\\u202e [STEP:0]", times: forever}\n'
    )
    Path("evil.yaml").write_text(script)
    result = run("run", "two.yaml", "x", "--script", "evil.yaml")
    assert result.exit_code == 0
    assert not {"\x1b", "\a", "\u202e"} & set(result.stdout)


def test_events_is_a_line_each(run: Run) -> None:
    run("run", "two.yaml", "x", "--script", "asks.yaml")
    lines = run("events", "last").stdout.splitlines()
    assert re.match(
        r"   1  \d{4}-.*Z  run.started           two-steps, permission default; by tester", lines[0]
    )
    assert lines[-1].split()[2] == "request.opened"


def test_lint_says_the_place_the_dialect_and_the_verdict(run: Run) -> None:
    Path("odd.yaml").write_text("name: odd\ninitial_movement: a\nmovements: [{name: a, colour: red}]\n")
    Path("broken.yaml").write_text("name: [\n")
    good = run("lint", "two.yaml", "hello")
    assert good.exit_code == 0
    assert "two.yaml: native dialect, no problems" in good.stdout
    odd = run("lint", "odd.yaml")
    assert re.search(r"^odd.yaml:3:\d+: warning: .*colour", odd.stdout, re.MULTILINE)
    assert re.search(r"^odd.yaml: takt dialect, \d+ errors?, \d+ warnings?$", odd.stdout, re.MULTILINE)
    broken = run("lint", "broken.yaml", "two.yaml")
    assert broken.exit_code == 1
    assert "broken.yaml: dialect unknown, 1 error" in broken.stdout
    assert "two.yaml: native dialect, no problems" in broken.stdout
    found = json.loads(run("lint", "broken.yaml", "--json").stdout)
    assert found[0]["problems"][0]["line"] > 0


def test_pieces_lists_name_dialect_origin_and_description(run: Run) -> None:
    run("init")
    lines = run("pieces").stdout.splitlines()
    assert any(re.match(r"first +native +project +Write a short text", line) for line in lines)
    assert any(re.match(r"hello +native +package +The smallest", line) for line in lines)


def test_init_makes_a_piece_that_lints_and_plays_and_never_overwrites(run: Run) -> None:
    made = run("init")
    assert "made  .cadenza/pieces/first.yaml" in made.stdout
    assert "cadenza run first" in made.stdout
    assert run("lint", "first").stdout == ".cadenza/pieces/first.yaml: native dialect, no problems\n"
    assert run("run", "first", "x", "--script", "done.yaml").exit_code == 0
    piece = Path(".cadenza/pieces/first.yaml")
    piece.write_text("mine")
    again = run("init")
    assert again.exit_code == 0
    assert "kept  .cadenza/pieces/first.yaml" in again.stdout
    assert piece.read_text() == "mine"


def test_init_where_a_file_is_in_the_way(run: Run) -> None:
    Path(".cadenza").write_text("a file")
    result = run("init")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr


def test_prompt_is_what_would_be_sent(run: Run) -> None:
    run("run", "two.yaml", "the task", "--script", "done.yaml")
    printed = run("prompt", "two.yaml", "first", "--task", "the task").stdout
    events = [json.loads(line) for line in run("events", "last", "--json").stdout.splitlines()]
    issued = next(event for event in events if event["type"] == "demand.issued")
    from cadenza import open_journal

    journal = open_journal(Path("journal.sqlite"))
    sent = journal.texts([issued["demand"]["append"][0][1]])
    journal.close()
    assert printed.rstrip("\n") == next(iter(sent.values())).rstrip("\n")


def test_prompt_of_a_parallel_movement_has_one_for_each_lane(run: Run) -> None:
    printed = run("prompt", "plan-build-review", "review").stdout
    assert "===== review-substance (substance-reviewer) =====" in printed
    assert "===== review-clarity (clarity-reviewer) =====" in printed
    assert "<the report result.md, as the run has it then>" in printed
    one = run("prompt", "plan-build-review", "review-clarity", "--lang", "ja").stdout
    assert "=====" not in one
    assert "レビュー" in one
    judge = json.loads(run("prompt", "plan-build-review", "_loop_judge_review_fix", "--json").stdout)
    assert judge[0]["performer"] == "referee"
    assert run("prompt", "plan-build-review", "nope").exit_code == 2


def test_doctor_says_what_it_works_with_and_makes_nothing(run: Run) -> None:
    fresh = run("doctor").stdout
    assert "not there yet" in fresh
    assert not Path("journal.sqlite").exists()
    run("run", "two.yaml", "x", "--script", "done.yaml")
    told = run("doctor").stdout
    for words in ("Python 3.", "SQLite 3.", "schema ", "1 completed", "provider   scripted: available"):
        assert words in told


def test_doctor_verifies_rebuilds_and_writes_run_folders_anew(run: Run) -> None:
    script = 'cadenza-script: 1\nentries:\n  - {text: "x [STEP:0]", times: forever}\n'
    Path("s.yaml").write_text(script)
    run("run", "plan-build-review", "x", "--script", "s.yaml")
    log = next(Path(".cadenza/runs").glob("*/logs/*.jsonl"))
    log.unlink()
    assert run("doctor", "--verify").stdout == "every row is what the events say\n"
    assert run("doctor", "--rebuild").stdout == "written anew from the events: 1 run, 1 run folder\n"
    assert log.exists()


def test_another_journal_is_named_in_the_commands_that_are_shown(run: Run, tmp_path: Path) -> None:
    parked = run("--journal", "other one.sqlite", "run", "two.yaml", "x", "--script", "asks.yaml")
    assert f"cadenza --journal '{tmp_path}/other one.sqlite' answer q" in parked.stdout
    assert run("runs").stdout == ""


def test_quiet_prints_the_result_and_tells_the_end_on_stderr(run: Run) -> None:
    result = run("run", "two.yaml", "x", "--script", "done.yaml", "-q")
    assert result.stdout == "all is well\n"
    assert result.stderr.startswith("completed: done\n  run      r")


def test_every_kind_of_event_is_told_in_words() -> None:
    """So that none is a bare name in ``cadenza events``; those that say all by their name are listed."""
    told = set(telling._TELLERS)
    silent = {ev.RunReleased}
    assert set(get_args(ev.AnyEvent)) - told - silent == set()
