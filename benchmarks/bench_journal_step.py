"""One durable step, synchronous: CPU above the same rows written by plain sqlite3, and bytes a step.

A step is a model call resolved (a reply of 200 bytes) and the next one issued, in one commit. *Raw* writes
the same rows and texts, in the same grouping, with the same schema, from tuples made beforehand.
Prompts are one byte-identical text here: they are counted apart.

    python benchmarks/bench_journal_step.py [STEPS] [FOLDER]
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cadenza.core import events as ev
from cadenza.core.demands import CallModel, Message
from cadenza.core.outcomes import Replied, Usage
from cadenza.core.state import RunState, apply
from cadenza.ids import derive, text_hash
from cadenza.journal import queries
from cadenza.journal.holders import this_process
from cadenza.journal.sqlite import SqliteJournal
from cadenza.journal.store import Commit, Lease

SQL = queries.load("sqlite.sql")
SEED = "5e" * 16
PROMPT = "prompt"


def call(number: int) -> ev.DemandIssued:
    demand = CallModel(
        conversation=derive(SEED, "c", 1), append=(Message("user", text_hash(PROMPT)),), movement="plan"
    )
    return ev.DemandIssued(id=derive(SEED, "d", number), key=f"call{number % 10}", demand=demand)


def make_commits(steps: int, lease: Lease, state: RunState) -> list[Commit]:
    commits = []
    for number in range(steps):
        reply = f"{number:08}" + "r" * 192
        usage = Usage(1200, 60, 1100)
        outcome = Replied(text=text_hash(reply), usage=usage, model="model")
        events = (ev.DemandResolved(id=derive(SEED, "d", number), outcome=outcome), call(number + 1))
        after, state = state.seq, state.copy()
        for event in events:
            apply(state, event)
        commits.append(
            Commit(
                run=lease.run, epoch=lease.epoch, after=after, events=events, state=state,
                at=1.7e9 + number, texts={text_hash(reply): reply},
            )  # fmt: skip
        )
    return commits


def begin(journal: SqliteJournal) -> tuple[Lease, RunState]:
    started = ev.RunStarted(
        piece=text_hash("p"), name="p", task=text_hash("t"), seed=SEED, cwd="/w"
    )  # fmt: skip
    visit = ev.VisitStarted(
        visit=1, movement="plan", iteration=1, movement_iteration=1, consecutive=1, at=1.7e9
    )
    events, state = [started, visit, call(0)], RunState()
    for event in events:
        apply(state, event)
    texts = {text_hash(text): text for text in ("p", "t", PROMPT)}
    journal.create("r1", events, state, texts, at=1.7e9, actor="user")
    lease = journal.claim(this_process("w"))
    assert lease is not None
    return lease, state


class Recorder:
    """Keeps what a journal's connection executes, so that raw can write the very same rows."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.calls: list[tuple[bool, str, Any]] = []

    def execute(self, sql: str, values: Any = ()) -> sqlite3.Cursor:
        if not sql.startswith("SELECT"):
            self.calls.append((False, sql, values))
        return self.connection.execute(sql, values)

    def executemany(self, sql: str, values: Any) -> sqlite3.Cursor:
        values = list(values)
        self.calls.append((True, sql, values))
        return self.connection.executemany(sql, values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)


def measured(work: Callable[[], None]) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def write_raw(connection: sqlite3.Connection, calls: list[tuple[bool, str, Any]]) -> None:
    for many, sql, values in calls:
        if many:
            connection.executemany(sql, values)
        else:
            connection.execute(sql, values)


def one_round(folder: Path, steps: int) -> tuple[float, float, float, float, int]:
    """CPU and wall seconds a step of journal and raw, and the journal's bytes after a checkpoint."""
    recorded = SqliteJournal(folder / "recorded.sqlite", synchronous="OFF")
    commits = make_commits(steps, *begin(recorded))
    database: Any = recorded._database
    database._writer = recorder = Recorder(database._writer)
    for commit in commits:
        recorded.commit(commit)
    recorded.close()

    journal = SqliteJournal(folder / "journal.sqlite")
    begin(journal)

    def play() -> None:
        for commit in commits:
            journal.commit(commit)

    cpu, wall = measured(play)
    journal.close()
    size = os.stat(folder / "journal.sqlite").st_size

    raw = SqliteJournal(folder / "raw.sqlite")
    begin(raw)
    connection: sqlite3.Connection = raw._database._writer  # type: ignore[assignment]
    raw_cpu, raw_wall = measured(lambda: write_raw(connection, recorder.calls))
    raw.close()
    return cpu / steps, wall / steps, raw_cpu / steps, raw_wall / steps, size


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    parent = sys.argv[2] if len(sys.argv) > 2 else None
    rounds = []
    for _ in range(3):
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            rounds.append(one_round(Path(folder), steps))
    cpu, wall, raw_cpu, raw_wall, size = (statistics.median(column) for column in zip(*rounds, strict=True))
    above = cpu - raw_cpu
    print(f"{steps} durable steps, synchronous=FULL, median of {len(rounds)} rounds")
    print(f"{'':24}{'journal':>10}{'raw':>10}")
    print(f"{'CPU a step, us':24}{cpu * 1e6:10.1f}{raw_cpu * 1e6:10.1f}")
    print(f"{'time a step, us':24}{wall * 1e6:10.1f}{raw_wall * 1e6:10.1f}")
    print(f"CPU above raw: {above * 1e6:.1f} us (bar: 100): {'ok' if above <= 100e-6 else 'MISSED'}")
    bar = 8e6 * steps / 5000
    print(f"bytes a step: {size / steps:.0f}; file {size / 1e6:.2f} MB (bar: {bar / 1e6:.2f}): "
          f"{'ok' if size <= bar else 'MISSED'}")  # fmt: skip


if __name__ == "__main__":
    main()
