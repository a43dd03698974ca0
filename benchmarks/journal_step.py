"""A durable step as one synchronous journal call, beside the same rows written by plain sqlite3."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from pathlib import Path
from statistics import fmean, median

from benchmarks import raw
from benchmarks.played import ByHand, piece, reply_of
from benchmarks.table import Table, machine, micro
from cadenza.journal.sqlite import SqliteJournal

BAR = 100e-6
BATCH = 100
BATCHES = 21


def measure(batches: int = BATCHES) -> Table:
    """Each step by the journal and then by plain sqlite3; medians over batches of steps."""
    with tempfile.TemporaryDirectory() as folder:
        journal_path, raw_path = Path(folder, "journal.sqlite"), Path(folder, "raw.sqlite")
        journal = SqliteJournal(journal_path)
        played = ByHand(journal, piece("steps"))
        played.commit(played.decide(reply_of(0)))
        raw.copy(journal_path, raw_path)
        rows = raw.Rows(raw.refs(raw_path))
        rows.begun(played.run, [item.event for item in journal.events(played.run)])
        connection = raw.connect(raw_path)
        steps = [_step(played, rows, connection, number) for number in range(1, 1 + batches * BATCH)]
        connection.close()
        journal.close()
        assert raw.same(journal_path, raw_path), "the reference wrote other rows"
    return _table(*(_median(times) for times in zip(*steps, strict=True)))


def _step(
    played: ByHand, rows: raw.Rows, connection: sqlite3.Connection, number: int
) -> tuple[float, float, float]:
    """CPU seconds of the decision, of the journal's commit and of the raw one."""
    text = reply_of(number)
    start = time.process_time()
    commit = played.decide(text)
    decided = time.process_time()
    played.commit(commit)
    committed = time.process_time()
    group = rows.of(commit)
    ready = time.process_time()
    raw.write(connection, group)
    return decided - start, committed - decided, time.process_time() - ready


def _median(times: tuple[float, ...]) -> float:
    """The median over batches: a batch has its share of checkpoints and snapshots."""
    batches = [times[first : first + BATCH] for first in range(0, len(times), BATCH)]
    return median(fmean(batch) for batch in batches)


def _table(deciding: float, committing: float, writing: float) -> Table:
    table = Table("A durable step, synchronous (CPU; synchronous=FULL; 4 events, 2 texts, 2 messages)")
    above = committing - writing
    table.add("raw: the same rows by plain sqlite3", micro(writing))
    table.add("journal.commit", micro(committing))
    table.add("journal.commit above raw", micro(above), bar=f"<= {micro(BAR)}", met=above <= BAR)
    table.add("conductor.resolve (prompt included)", micro(deciding))
    return table


if __name__ == "__main__":
    print(machine())
    measure().show()
