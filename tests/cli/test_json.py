"""``--json``: data on stdout, one value and nothing else; talk on stderr."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Cli


def test_a_run_is_one_event_a_line_and_nothing_else(cli: Cli) -> None:
    done = cli("run", "two.yaml", "日本", "--script", "done.yaml", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert all(list(event)[:5] == ["seq", "at", "run", "actor", "type"] for event in events)
    assert (events[0]["type"], events[-1]["type"]) == ("run.started", "run.ended")
    assert "completed" in done.stderr
    assert cli("run", "two.yaml", "x", "--script", "done.yaml", "--json", "-q").stderr == ""


def test_events_says_the_same_afterwards(cli: Cli) -> None:
    played = cli("run", "two.yaml", "x", "--script", "asks.yaml", "--json")
    assert played.returncode == 4
    assert cli("events", "last", "--json").stdout == played.stdout
    assert cli("events", "last", "--follow", "--json").stdout == played.stdout


def test_an_answer_shows_only_what_is_new(cli: Cli) -> None:
    before = cli("run", "two.yaml", "x", "--script", "asks.yaml", "--json").stdout.splitlines()
    request = json.loads(before[-1])["id"]
    done = cli("answer", request, "blue", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[0]["seq"] == len(before) + 1
    assert events[0]["type"] == "request.decided"
    assert "accepted" in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("runs",),
        ("show", "last"),
        ("report", "last"),
        ("inbox",),
        ("pieces",),
        ("lint", "two.yaml", "hello"),
        ("prompt", "two.yaml", "first"),
        ("doctor",),
        ("doctor", "--verify"),
        ("doctor", "--rebuild"),
    ],
)
def test_every_listing_is_one_json_value(cli: Cli, command: tuple[str, ...]) -> None:
    cli("run", "two.yaml", "x", "--script", "asks.yaml", "-q")
    done = cli(*command, "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    json.loads(done.stdout)


def test_an_error_leaves_stdout_empty(cli: Cli) -> None:
    done = cli("run", "two.yaml", "", "--script", "done.yaml", "--json")
    assert (done.returncode, done.stdout) == (2, "")
