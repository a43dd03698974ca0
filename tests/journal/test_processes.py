"""Several processes on one file: nothing is lost, nothing is done twice, the dead are replaced."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cadenza.core import events as ev
from cadenza.core.outcomes import Returned
from cadenza.journal.holders import this_process
from cadenza.journal.sqlite import SqliteJournal
from tests.journal.by_hand import ByHand
from tests.journal.racer import STEPS

ROOT = Path(__file__).parents[2]


def start(task: str, path: Path, name: str) -> subprocess.Popen[str]:
    paths = [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.journal.racer", task, str(path), name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


def race(task: str, path: Path, names: str) -> dict[str, Any]:
    """What each of several processes reports that do the same at the same time."""
    racers = {name: start(task, path, name) for name in names}
    reports = {}
    for name, racer in racers.items():
        out, error = racer.communicate(timeout=100)
        assert racer.returncode == 0, error
        reports[name] = json.loads(out)
    return reports


@pytest.mark.slow
def test_two_workers_play_every_step_once(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = SqliteJournal(path)
    for number in range(15):
        ByHand(journal, f"r{number}").begin()
    done = race("play", path, "ab")
    steps = [tuple(step) for report in done.values() for step in report]
    assert len(steps) == len(set(steps)) == 15 * STEPS
    written = Counter[Any]()
    for row in journal.runs():
        assert row.status == "completed"
        for item in journal.events(row.id):
            if isinstance(item.event, ev.DemandResolved):
                assert isinstance(item.event.outcome, Returned)
                written[item.event.outcome.value] += 1
    assert written == {name: len(report) for name, report in done.items() if report}
    assert journal.verify() == []
    assert journal.leases() == {}
    journal.close()


@pytest.mark.slow
def test_two_people_answer_and_each_answer_counts_once(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = SqliteJournal(path)
    requests = [ByHand(journal, f"r{number}").begin().claim().park() for number in range(40)]
    won = race("answer", path, "abc")
    assert sorted(id for report in won.values() for id in report) == sorted(requests)
    for name, report in won.items():
        assert all(journal.request(id).value == name for id in report)
    assert {journal.run(f"r{number}").seq for number in range(40)} == {7}
    assert journal.verify() == []
    journal.close()


@pytest.mark.slow
def test_a_new_file_may_be_opened_by_several_at_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "j"
    begun = race("begin", path, "abcd")
    journal = SqliteJournal(path)
    assert {row.id for row in journal.runs()} == {id for report in begun.values() for id in report}
    assert journal.verify() == []
    journal.close()


@pytest.mark.slow
def test_a_killed_worker_is_replaced_at_once(tmp_path: Path) -> None:
    path = tmp_path / "j"
    journal = SqliteJournal(path)
    run = ByHand(journal).begin()
    worker = start("hold", path, "a")
    assert worker.stdout is not None
    assert worker.stdout.readline() == "claimed\n"
    assert journal.claim(this_process("b")) is None
    assert journal.leases()["r1"].worker == "a"
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    lease = run.lease = journal.claim(this_process("b"))
    assert lease is not None
    assert (lease.epoch, lease.claims) == (2, 2)
    run.commit(run.call("hi"))
    journal.close()
