"""A durable step from end to end in the asynchronous worker, and eight processes on one file."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median

from benchmarks import raw
from benchmarks.played import HERE, TAG, piece
from benchmarks.table import Table, machine, micro, milli
from cadenza.journal.sqlite import SqliteJournal
from cadenza.journal.store import Commit, Journal
from cadenza.piece.model import LoadedPiece
from cadenza.providers.models.scripted import Script, ScriptedProvider
from cadenza.service import Options, Service
from cadenza.worker.loop import Worker
from cadenza.worker.meeting import Meeting

BAR = 250e-6
STEPS = 1_000
PROCESSES = 8
PROCESS_STEPS = 100


class Recording(SqliteJournal):
    """A journal that remembers its commits, in their groups, and how long each group took."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.groups: list[tuple[Commit, ...]] = []
        self.waits: list[float] = []

    def commit_many(self, commits: Sequence[Commit]) -> list[Exception | None]:
        """As the journal does."""
        before = time.perf_counter()
        results = super().commit_many(commits)
        self.waits.append(time.perf_counter() - before)
        self.groups.append(tuple(commits))
        return results


def provider() -> ScriptedProvider:
    """A model that always answers with 200 bytes and picks the first rule."""
    text = "." * (200 - len(TAG)) + TAG
    return ScriptedProvider(Script.from_entries([{"text": text, "times": "forever"}]))


def worker(journal: Journal, *, slots: int = 4) -> Worker:
    """A worker over ``journal``."""
    model = provider()
    return Worker(journal, Meeting(journal, lambda name: model), slots=slots, name="bench")


def begin(journal: Journal, loaded: LoadedPiece, task: str = "walk") -> str:
    """A run that waits to be claimed; its id."""
    return Service(journal, actor="bench").start(loaded, task, Options(cwd=HERE))


def measure(rounds: int = 3) -> Table:
    """Rounds of a run of many steps, each replayed by plain sqlite3; medians over the rounds."""
    results = [asyncio.run(_round()) for _ in range(rounds)]
    worker, reference, wall = (median(column) for column in zip(*results, strict=True))
    table = Table("A durable step, end to end in the worker (CPU; scripted model; no run folder)")
    table.add("raw: the same rows by plain sqlite3", micro(reference))
    table.add("worker", micro(worker))
    above = worker - reference
    table.add("worker above raw", micro(above), bar=f"<= {micro(BAR)}", met=above <= BAR)
    table.add("wall time of a step", micro(wall))
    _add_processes(table)
    return table


async def _round() -> tuple[float, float, float]:
    with tempfile.TemporaryDirectory() as folder:
        path, copy = Path(folder, "journal.sqlite"), Path(folder, "raw.sqlite")
        journal = Recording(path)
        run = begin(journal, piece("steps", steps=STEPS))
        raw.copy(path, copy)
        rows = raw.Rows(raw.refs(copy))
        rows.begun(run, [item.event for item in journal.events(run)])
        spent = await play(journal, run)
        journal.close()
        groups = [
            [statement for commit in group for statement in rows.of(commit)] for group in journal.groups
        ]
        reference, _ = raw.replay(copy, groups)
        assert raw.same(path, copy), "the reference wrote other rows"
    return spent[0] / STEPS, reference / STEPS, spent[1] / STEPS


async def play(journal: Journal, run: str) -> tuple[float, float]:
    """CPU and wall seconds until a run has ended."""
    playing = worker(journal)
    cpu, wall = time.process_time(), time.perf_counter()
    state = await playing.play(run)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    playing.close()
    assert state is not None
    assert state.ended is not None, state.status
    return cpu, wall


def _add_processes(table: Table) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal.sqlite")
        SqliteJournal(path).close()
        command = [sys.executable, "-m", "benchmarks.worker_step", str(path)]
        started = [
            subprocess.Popen(command, stdout=subprocess.PIPE, cwd=HERE.parent) for _ in range(PROCESSES)
        ]
        waits = sorted(wait for child in started for wait in json.loads(child.communicate()[0]))
    count = f"{PROCESSES} processes on one file, {PROCESSES * PROCESS_STEPS} steps: "
    table.add(f"{count}mean commit (wall)", milli(fmean(waits)))
    table.add(f"{count}p99", milli(waits[int(len(waits) * 0.99)]))
    table.add(f"{count}longest", milli(waits[-1]))


async def _child(path: str) -> list[float]:
    journal = Recording(Path(path))
    await play(journal, begin(journal, piece("steps", steps=PROCESS_STEPS)))
    journal.close()
    return journal.waits


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(asyncio.run(_child(sys.argv[1]))))
    else:
        print(machine())
        measure().show()
