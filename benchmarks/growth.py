"""Whether a run gets slower or fatter with its age."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.played import ByHand, piece, reply_of
from benchmarks.table import Table, machine, mega, micro
from cadenza.core.demands import CallModel
from cadenza.core.events import DemandIssued
from cadenza.journal.sqlite import SqliteJournal

STEPS = 5_000
BYTES = 200
WINDOW = 100
"""Steps around the tenth and before the last; as many events as lie between two snapshots, and more."""

SLOWER = 1.2
LARGER = 8e6


def measure(steps: int = STEPS) -> Table:
    """One run of ``steps`` steps with answers of 200 bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal.sqlite")
        journal = SqliteJournal(path)
        played = ByHand(journal, piece("steps"))
        _warm_up(Path(folder, "other.sqlite"))
        step, load = _window(played, 0)
        for number in range(WINDOW, steps - WINDOW):
            played.commit(played.decide(reply_of(number, BYTES)))
        late_step, late_load = _window(played, steps - WINDOW)
        prompts = _prompts(journal, played.run)
        journal.close()
        size = _checkpointed(path) - prompts
    table = Table(f"Growth of one run over {steps:,} steps (CPU)")
    table.add(f"a step (decision and commit), the first {WINDOW}", micro(step))
    table.add(f"a step, the last {WINDOW}", micro(late_step))
    ratio = late_step / step
    table.add("last / first", f"{ratio:.2f} x", bar=f"<= {SLOWER} x", met=ratio <= SLOWER)
    table.add(f"loading the run (snapshot and tail), the first {WINDOW} steps", micro(load))
    table.add(f"loading the run, the last {WINDOW}", micro(late_load))
    ratio = late_load / load
    table.add("last / first", f"{ratio:.2f} x", bar=f"<= {SLOWER} x", met=ratio <= SLOWER)
    table.add(
        "the file after a checkpoint, less prompts", mega(size), bar=f"<= {mega(LARGER)}", met=size <= LARGER
    )
    table.add("rendered prompts", mega(prompts))
    return table


def _warm_up(path: Path) -> None:
    """Let the interpreter see the code that is to be measured."""
    journal = SqliteJournal(path)
    _window(ByHand(journal, piece("steps")), 0)
    journal.close()


def _window(played: ByHand, first: int) -> tuple[float, float]:
    """Median CPU seconds of a step, and of loading the run as it stands after it."""
    steps, loads = [], []
    for number in range(first, first + WINDOW):
        before = time.process_time()
        played.commit(played.decide(reply_of(number, BYTES)))
        between = time.process_time()
        assert played.loaded() == played.state
        loads.append(time.process_time() - between)
        steps.append(between - before)
    return median(steps), median(loads)


def _prompts(journal: SqliteJournal, run: str) -> int:
    """Bytes of the prompts that a run's model calls were given."""
    calls = [
        item.event.demand
        for item in journal.events(run)
        if isinstance(item.event, DemandIssued) and isinstance(item.event.demand, CallModel)
    ]
    texts = journal.texts(message.text for call in calls for message in call.append)
    return sum(len(text.encode("utf-8")) for text in texts.values())


def _checkpointed(path: Path) -> int:
    """The file's size with its log folded in."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path.stat().st_size


if __name__ == "__main__":
    print(machine())
    measure().show()
