"""Ctrl-C once, twice; SIGTERM; a pipe whose reader goes away."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Cli


def playing(cli: Cli, *options: str) -> subprocess.Popen[str]:
    process = cli.start("run", "two.yaml", "a task", "--script", "slow.yaml", *options)
    cli.wait_for(lambda: any(row["movement"] == "second" for row in cli.rows()))
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_saves_and_holds(cli: Cli, number: signal.Signals) -> None:
    process = playing(cli)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    row = cli.rows()[0]
    assert (row["status"], row["reason"]) == ("held", "interrupted")
    assert "held (interrupted)" in out
    assert f"cadenza resume {row['id']}" in out
    assert "stopping" in err
    assert "Traceback" not in err


def test_what_was_interrupted_is_resumed(cli: Cli) -> None:
    process = playing(cli, "-q")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    script = cli.folder / "slow.yaml"
    script.write_text(script.read_text().replace("delay: 30", "delay: 0"))
    done = cli("resume", "last")
    assert done.returncode == 0
    assert "[2/6] second, going on" in done.stdout
    assert "quick" not in done.stdout
    assert cli("resume", "last").returncode == 1


def test_the_second_signal_stops_at_once(cli: Cli) -> None:
    process = playing(cli, "-q")
    os.kill(process.pid, signal.SIGSTOP)  # so that both are there when it looks
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    os.kill(process.pid, signal.SIGCONT)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert cli.rows()[0]["status"] in ("queued", "held", "running")
    assert cli("cancel", "last").returncode == 0


def test_an_interrupt_also_reaches_a_run_that_waits_for_its_next_try(cli: Cli) -> None:
    script = "cadenza-script: 1\nentries:\n  - {error: {status: 429, retry_after: 50, times: 9}, text: x}\n"
    cli.write("limited.yaml", script)
    process = cli.start("run", "two.yaml", "a task", "--script", "limited.yaml", "--json")
    assert process.stdout is not None
    while "demand.retried" not in process.stdout.readline():
        pass
    time.sleep(0.5)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert time.monotonic() - began < 10
    assert cli.rows()[0]["reason"] == "interrupted"


def test_a_reader_that_goes_away_does_not_harm_the_run(cli: Cli) -> None:
    line = f"{' '.join(map(str, cli.argv('run', 'two.yaml', 'x', '--script', 'done.yaml')))} | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=cli.folder,
        env=cli.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("run r")
    assert cli.rows()[0]["status"] == "completed"


@pytest.mark.parametrize("command", ["runs", "events last", "show last", "events last --json"])
def test_listings_survive_a_closed_pipe(cli: Cli, command: str) -> None:
    cli("run", "two.yaml", "x", "--script", "done.yaml", "-q")
    read, write = os.pipe()
    os.close(read)
    process = cli.start(*command.split(), stdout=write)
    os.close(write)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_output_that_cannot_be_written_is_said_and_the_run_still_ends(cli: Cli) -> None:
    with open("/dev/full", "w") as full:
        process = cli.start("run", "two.yaml", "x", "--script", "done.yaml", stdout=full)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "the output cannot be written: No space left on device" in err
    assert cli.rows()[0]["status"] == "completed"


def test_a_worker_plays_what_waits_and_stops_on_sigterm(cli: Cli) -> None:
    cli("run", "two.yaml", "a task", "--script", "asks.yaml", "-q")
    process = cli.start("worker", "--slots", "2")
    assert process.stderr is not None
    assert process.stdout is not None
    assert "2 slots" in process.stderr.readline()
    request = cli("inbox", "--json").stdout.split('"id": "')[1].partition('"')[0]
    cli("answer", request, "blue", "--no-play")
    line = process.stdout.readline()
    assert "two-steps: completed" in line
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "stopped; 1 turn played" in err


def test_who_looks_on_goes_away_without_stopping_the_worker(cli: Cli) -> None:
    process = playing(cli, "-q")
    watcher = cli.start("resume", "last")
    assert watcher.stdout is not None
    while "going on" not in watcher.stdout.readline():
        pass
    watcher.send_signal(signal.SIGINT)
    _, err = watcher.communicate(timeout=20)
    assert watcher.returncode == 130
    assert "played by another process" in err
    assert cli.rows()[0]["status"] == "running"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
