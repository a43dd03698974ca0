"""A hundred durable lanes and their join, beside the same rows written by plain sqlite3, ungrouped."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from statistics import median

from benchmarks import raw
from benchmarks.played import piece
from benchmarks.table import Table, machine, micro, milli
from benchmarks.worker_step import Recording, begin, play
from cadenza.piece.model import LoadedPiece, Piece

LANES = 100
BAR = 3.0


def crowd(lanes: int = LANES) -> LoadedPiece:
    """A piece whose one movement has ``lanes`` lanes."""
    loaded = piece("fanout")
    fields = loaded.piece.model_dump(exclude_defaults=True)
    lane = fields["movements"][0]["lanes"][0]
    fields["movements"][0]["lanes"] = [{**lane, "name": f"lane-{number}"} for number in range(lanes)]
    return loaded.model_copy(update={"piece": Piece.model_validate(fields)})


def measure(rounds: int = 5) -> Table:
    """Rounds of fan-out and join; medians."""
    worker, reference, wall = (
        median(column) for column in zip(*(asyncio.run(_round()) for _ in range(rounds)), strict=True)
    )
    table = Table(f"Fan-out of {LANES} lanes and join (CPU; a commit for each lane's outcome)")
    table.add("raw: the same rows, a transaction for each outcome", milli(reference))
    table.add("worker", milli(worker))
    ratio = worker / reference
    table.add("worker / raw", f"{ratio:.2f} x", bar=f"<= {BAR:.0f} x", met=ratio <= BAR)
    table.add("worker, a lane", micro(worker / LANES))
    table.add("wall time", milli(wall))
    return table


async def _round() -> tuple[float, float, float]:
    with tempfile.TemporaryDirectory() as folder:
        path, copy = Path(folder, "journal.sqlite"), Path(folder, "raw.sqlite")
        journal = Recording(path)
        run = begin(journal, crowd())
        raw.copy(path, copy)
        rows = raw.Rows(raw.refs(copy))
        rows.begun(run, [item.event for item in journal.events(run)])
        spent = await play(journal, run)
        journal.close()
        commits = [rows.of(commit) for group in journal.groups for commit in group]
        reference, _ = raw.replay(copy, commits)
        assert raw.same(path, copy), "the reference wrote other rows"
    return spent[0], reference, spent[1]


if __name__ == "__main__":
    print(machine())
    measure().show()
