"""Ten thousand parked runs: what they hold, and how fast they are answered and park again."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from statistics import median

from benchmarks import raw
from benchmarks.played import HERE, piece
from benchmarks.table import Table, machine, mega
from benchmarks.worker_step import Recording, begin, worker
from cadenza.journal.sqlite import SqliteJournal
from cadenza.service import Service

PARKED = 10_000
PAIRS = 500
SLOTS = 32
HELD = 5e6
RATE = 0.2
GROUP = 256
"""Runs whose rows the reference writes in one transaction: as many as the worker's writer would."""


def measure(parked: int = PARKED, pairs: int = PAIRS) -> Table:
    """Park many runs, look at what is held, then answer some of them."""
    table = Table(f"{parked:,} parked runs")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal.sqlite")
        runs = asyncio.run(_park(path, parked))
        _held(table, Path(folder, "empty.sqlite"), path)
        _rates(table, path, runs[:pairs])
    return table


async def _park(path: Path, count: int) -> list[str]:
    journal = SqliteJournal(path, synchronous="OFF")
    loaded = piece("questions")
    runs = [begin(journal, loaded, f"task {number}") for number in range(count)]
    playing = worker(journal, slots=SLOTS)
    await playing.serve(until_idle=True)
    playing.close()
    assert len(journal.requests()) == count
    journal.close()
    return runs


def _held(table: Table, empty: Path, path: Path) -> None:
    """Two fresh processes with an idle worker: one over an empty journal, one over the parked runs."""
    idle, full = _looked_at(empty), _looked_at(path)
    names = ("threads", "tasks", "child processes")
    for name, before, after in zip(names, idle[1:], full[1:], strict=True):
        table.add(f"{name} above an idle worker's", f"{after - before}", bar="0", met=after == before)
    grown = full[0] - idle[0]
    table.add("resident memory above an idle worker's", mega(grown), bar=f"< {mega(HELD)}", met=grown < HELD)


def _looked_at(path: Path) -> list[int]:
    command = [sys.executable, "-m", "benchmarks.parked", str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=HERE.parent)
    found: list[int] = json.loads(done.stdout)
    return found


async def _idle(path: Path) -> list[int]:
    """Memory, threads, tasks and children while a worker waits for something to do."""
    journal = SqliteJournal(path)
    playing = worker(journal, slots=SLOTS)
    stop = asyncio.Event()
    serving = asyncio.create_task(playing.serve(stop))
    await asyncio.sleep(2)
    gc.collect()
    found = [_resident(), threading.active_count(), len(asyncio.all_tasks()), _children()]
    stop.set()
    await serving
    playing.close()
    journal.close()
    return found


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _children() -> int:
    return len(Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split())


def _rates(table: Table, path: Path, runs: list[str], rounds: int = 3) -> None:
    """Pairs of an answer and the next park, a second; the same rows by plain sqlite3, grouped."""
    measured = [asyncio.run(_pairs(path, runs, number)) for number in range(rounds)]
    ours, cpu, reference, alike = (median(column) for column in zip(*measured, strict=True))
    table.add("raw: the same rows by plain sqlite3, grouped by 256", f"{reference:,.0f} pairs/s")
    table.add("raw: the same, in the worker's own transactions", f"{alike:,.0f} pairs/s")
    table.add("answer, resume and park again", f"{ours:,.0f} pairs/s")
    ratio = ours / reference
    table.add("rate / raw in the worker's own transactions", f"{ours / alike:.0%}")
    table.add("rate / raw grouped", f"{ratio:.0%}", bar=f">= {RATE:.0%}", met=ratio >= RATE)
    table.add("CPU of a pair", f"{cpu * 1e3:,.2f} ms")


async def _pairs(path: Path, runs: list[str], number: int) -> tuple[float, float, float, float]:
    copy = path.with_name(f"raw-{number}.sqlite")
    raw.copy(path, copy)
    journal = Recording(path)
    service = Service(journal, actor="bench")
    asked = {row.run: row.id for row in journal.requests()}
    rows = raw.Rows(raw.refs(copy))
    rows.asked(journal.requests())
    last = {}
    for run in runs:
        events = journal.events(run)
        rows.begun(run, [item.event for item in events])
        last[run] = len(events)
    rows.snapshots = dict(last)
    playing = worker(journal, slots=SLOTS)
    cpu, wall = time.process_time(), time.perf_counter()
    for run in runs:
        service.answer(asked[run], f"answer {number}")
    await playing.serve(until_idle=True)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    playing.close()
    ordered = [rows.answered(next(iter(journal.events(run, after=last[run])))) for run in runs]
    written = [[(commit.run, rows.of(commit)) for commit in group] for group in journal.groups]
    journal.close()
    alike = [*_claims(ordered), *([s for _, part in group for s in part] for group in written)]
    statements = dict(zip(runs, ordered, strict=True))
    for run, part in chain(*written):
        statements[run] = [*statements[run], *part]
    every = list(statements.values())
    grouped = [list(chain(*every[first : first + GROUP])) for first in range(0, len(every), GROUP)]
    other = copy.with_suffix(".alike")
    raw.copy(copy, other)
    _, reference = raw.replay(copy, grouped)
    _, as_ours = raw.replay(other, alike)
    assert raw.same(path, copy), "the reference wrote other rows"
    assert raw.same(path, other), "the reference in our own grouping wrote other rows"
    return len(runs) / wall, cpu / len(runs), len(runs) / reference, len(runs) / as_ours


def _claims(answers: Iterable[list[raw.Statement]]) -> Iterator[list[raw.Statement]]:
    """A transaction for each answer, one for each claim, and one for each lease given back."""
    for *answer, lease in answers:
        yield answer
        yield [lease]
        yield [lease]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(asyncio.run(_idle(Path(sys.argv[1])))))
    else:
        print(machine())
        measure().show()
