"""Ten thousand runs of agents with tools wait; two processes answer two thousand of them at once.

Both processes try to answer the same runs, in opposite order, while a third one plays on. None may be lost
and none taken twice.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.played import HERE
from benchmarks.table import Table, machine
from cadenza.core import events as ev
from cadenza.journal.sqlite import SqliteJournal
from cadenza.piece.find import load_piece
from cadenza.providers.models.script import Script
from cadenza.providers.models.scripted import ScriptedProvider
from cadenza.service import Options, Service
from cadenza.worker.loop import Worker
from cadenza.worker.meeting import Meeting

PARKED = 10_000
ANSWERED = 2_000
SLOTS = 32
SCRIPT = Script.from_entries(
    [
        {"calls": [{"name": "complete", "arguments": {"status": "needs_user_input", "result": "Which?"}}]},
        {"calls": [{"name": "complete", "arguments": {"status": "success", "result": "done"}}]},
    ]
)


def measure(parked: int = PARKED, answered: int = ANSWERED) -> Table:
    """Park, answer from two processes, play on in a third; then count."""
    table = Table(f"{parked:,} parked agents, {answered:,} answered by two processes at once")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal.sqlite")
        begun = time.perf_counter()
        asyncio.run(_park(path, parked))
        table.add("parked", f"{parked / (time.perf_counter() - begun):,.0f} runs/s")
        begun = time.perf_counter()
        told = _answer(path, answered)
        seconds = time.perf_counter() - begun
        table.add("answered, resumed and completed", f"{answered / seconds:,.0f} runs/s")
        _count(table, path, told, answered)
    return table


def _worker(journal: SqliteJournal) -> Worker:
    provider = ScriptedProvider(SCRIPT)
    return Worker(journal, Meeting(journal, lambda name: provider), slots=SLOTS)


async def _park(path: Path, count: int) -> None:
    journal = SqliteJournal(path, synchronous="OFF")
    service, piece = Service(journal), load_piece(str(HERE / "asking.yaml"), cwd=HERE)
    options = Options(cwd=path.parent, any_provider=True)
    for number in range(count):
        service.begin(piece, f"task {number}", options)
    playing = _worker(journal)
    await playing.serve(until_idle=True)
    playing.close()
    assert len(journal.requests()) == count
    journal.close()


def _answer(path: Path, count: int) -> Counter[str]:
    """What the two deciders were told, all in all; back when every answered run has completed."""
    command = [sys.executable, "-m", "benchmarks.answers", str(path), str(count)]
    start = [*command, "play"], [*command, "forwards"], [*command, "backwards"]
    playing, *deciders = (subprocess.Popen(one, stdout=subprocess.PIPE, cwd=HERE.parent) for one in start)
    told: Counter[str] = Counter()
    for decider in deciders:
        out, _ = decider.communicate()
        assert decider.returncode == 0
        told.update(json.loads(out))
    playing.communicate()
    assert playing.returncode == 0
    return told


def _decide(path: Path, count: int, order: str) -> dict[str, int]:
    journal = SqliteJournal(path)
    service = Service(journal, actor=order)
    requests = [
        row.id for row in sorted(journal.requests(status=("open", "decided")), key=lambda row: row.id)
    ]
    chosen = requests[:count]
    told: Counter[str] = Counter(
        service.answer(id, f"by {order}").result
        for id in (chosen if order == "forwards" else reversed(chosen))
    )
    journal.close()
    return dict(told)


async def _play(path: Path, count: int) -> None:
    journal = SqliteJournal(path)
    playing, stop = _worker(journal), asyncio.Event()
    serving = asyncio.create_task(playing.serve(stop))
    while len(list(journal.runs(status=("completed",)))) < count:
        await asyncio.sleep(0.05)
    stop.set()
    await serving
    playing.close()
    journal.close()


def _count(table: Table, path: Path, told: Counter[str], answered: int) -> None:
    journal = SqliteJournal(path)
    completed = list(journal.runs(status=("completed",)))
    table.add(
        "runs that completed", f"{len(completed):,}", bar=f"{answered:,}", met=len(completed) == answered
    )
    taken, refused = told["accepted"], told["conflict"]
    table.add("answers taken", f"{taken:,}", bar=f"{answered:,}", met=taken == answered)
    table.add("told that another was first", f"{refused:,}", bar=f"{answered:,}", met=refused == answered)
    twice = 0
    for row in completed:
        events = [item.event for item in journal.events(row.id)]
        decided = sum(isinstance(event, ev.RequestDecided) for event in events)
        calls = sum(isinstance(event, ev.DemandIssued) and event.key.startswith("turn") for event in events)
        twice += (decided, calls) != (1, 2)
    table.add("runs decided or played twice", f"{twice}", bar="0", met=twice == 0)
    journal.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        where, number, what = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
        if what == "play":
            asyncio.run(_play(where, number))
        else:
            print(json.dumps(_decide(where, number, what)))
    else:
        print(machine())
        measure().show()
