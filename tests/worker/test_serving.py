"""One worker, many runs: what is wrong with one of them is nothing to the others."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from cadenza.core import events as ev
from cadenza.journal.memory import MemoryJournal
from cadenza.journal.sqlite import SqliteJournal
from cadenza.journal.store import LEASE_SECONDS, POISON_CLAIMS, Journal
from cadenza.testing import FrozenClock
from cadenza.worker.agent_tools import Met
from cadenza.worker.embedded import Embedded
from cadenza.worker.loop import Worker
from cadenza.worker.meeting import Meeting
from tests.cli.conftest import TWO_STEPS, Cli
from tests.worker.helpers import PATIENCE, Behaving, engine_on, forever, of, piece_in, saying, until


class Breaking(Meeting):
    """Breaks where it meets a demand of one run, as no meeting should."""

    bad: str = ""

    async def meet(self, run: str, *rest: Any) -> Met:
        if run == self.bad:
            raise RuntimeError("a bug of ours")
        return await super().meet(run, *rest)


def worker_on(journal: Journal, meeting: Meeting, **options: Any) -> tuple[Worker, dict[str, list[str]]]:
    """A worker, and what it could not play."""
    told: dict[str, list[str]] = {}

    def on_error(run: str, error: BaseException) -> None:
        told.setdefault(run, []).append(f"{type(error).__name__}: {error}")

    return Worker(journal, meeting, on_error=on_error, **options), told


async def test_a_session_that_raises_leaves_the_others_playing_and_becomes_poison(tmp_path: Path) -> None:
    clock = FrozenClock()
    journal = MemoryJournal(clock=clock)
    model = saying("ok [STEP:0]")
    async with engine_on(journal, model) as engine:
        runs = [(await engine.start(piece_in(tmp_path), "x", cwd=tmp_path, play=False)).id for _ in range(3)]
        meeting = Breaking(journal, lambda name: model)
        meeting.bad = runs[0]
        worker, told = worker_on(journal, meeting)
        assert await asyncio.wait_for(worker.serve(until_idle=True), PATIENCE) == 3
        assert told == {runs[0]: ["RuntimeError: a bug of ours"]}
        assert [journal.run(run).status for run in runs] == ["queued", "completed", "completed"]
        for _ in range(POISON_CLAIMS - 1):  # left alone until its lease has run out
            clock.advance(LEASE_SECONDS + 1)
            assert await asyncio.wait_for(worker.serve(until_idle=True), PATIENCE) == 1
        clock.advance(LEASE_SECONDS + 1)
        assert await asyncio.wait_for(worker.serve(until_idle=True), PATIENCE) == 1
        worker.close()
        assert len(told[runs[0]]) == POISON_CLAIMS
        assert (journal.run(runs[0]).status, journal.run(runs[0]).reason) == ("held", "poison")
        meeting.bad = ""
        assert (await (await engine.resume(runs[0])).result()).status == "completed"
    assert journal.verify() == []


@pytest.mark.parametrize("how", ["event", "piece"])
async def test_a_run_that_cannot_be_read_leaves_the_others_playing_and_is_told_of(
    how: str, tmp_path: Path
) -> None:
    journal = SqliteJournal(tmp_path / "journal.sqlite")
    model = saying("ok [STEP:0]")
    async with engine_on(journal, model) as engine:
        bad, *good = [
            (await engine.start(piece_in(tmp_path, name), name, cwd=tmp_path, play=False)).id
            for name in (PIECE.format("bad"), PIECE.format("good"), PIECE.format("good"))
        ]
        spoil(journal, bad, how, engine.service.state(bad).run.piece)
        worker, told = worker_on(journal, Meeting(journal, lambda name: model))
        await asyncio.wait_for(worker.serve(until_idle=True), PATIENCE)
        worker.close()
    assert [journal.run(run).status for run in good] == ["completed", "completed"]
    assert list(told) == [bad]
    assert len(told[bad]) == 1
    assert told[bad][0].startswith(("Journal", "Piece"))
    journal.close()


async def test_a_session_that_raises_is_told_to_whoever_waits_for_its_run(tmp_path: Path) -> None:
    journal = MemoryJournal()
    model = saying("ok [STEP:0]")
    async with engine_on(journal, model) as engine:
        run = await engine.start(piece_in(tmp_path), "x", cwd=tmp_path, play=False)
        meeting = Breaking(journal, lambda name: model)
        meeting.bad = run.id
        worker, _ = worker_on(journal, meeting)
        embedded = Embedded(journal, worker)
        embedded.play(run.id)
        await until(lambda: not embedded.is_playing(run.id))
        with pytest.raises(RuntimeError, match="a bug of ours"):
            embedded.check(run.id)
        assert journal.leases() == {}
        worker.close()
        assert (await engine.play(run.id).result()).status == "completed"


PIECE = """
cadenza: 1
control: tags
name: {}
movements:
  - name: plan
    instruction: plan
    rules: [{{condition: done, next: COMPLETE}}]
"""


def spoil(journal: SqliteJournal, run: str, how: str, piece: str) -> None:
    """Write into the file what a later version would have written."""
    with sqlite3.connect(journal.path) as connection:
        if how == "event":
            query = """UPDATE events SET payload = '{"type":"future.thing"}'
                       WHERE seq = 3 AND run = (SELECT ref FROM runs WHERE id = ?)"""
            changed = connection.execute(query, (run,)).rowcount
        else:
            query = """UPDATE texts SET body = replace(body, '"movements"', '"scenes"') WHERE hash = ?"""
            changed = connection.execute(query, (piece,)).rowcount
    connection.close()
    assert changed == 1


async def test_a_worker_that_stops_gives_its_runs_back_and_holds_none(tmp_path: Path) -> None:
    journal = MemoryJournal()
    model = Behaving(forever)
    async with engine_on(journal, model) as engine:
        run = await engine.start(piece_in(tmp_path), "x", cwd=tmp_path, play=False)
        stop = asyncio.Event()
        serving = asyncio.create_task(engine.worker.serve(stop))
        await model.asked.wait()
        stop.set()
        assert await asyncio.wait_for(serving, PATIENCE) == 1
        assert journal.run(run.id).status == "queued"
        assert journal.leases() == {}
        assert of(ev.RunHeld, journal, run.id) == []
        model.answer = lambda request: "ok [STEP:0]"
        assert await engine.worker.serve(until_idle=True) == 1
        assert journal.run(run.id).status == "completed"
    assert journal.verify() == []


ASKS_THEN_SLOW = """\
cadenza-script: 1
entries:
  - {movement: first, text: "Red or blue? [STEP:1]"}
  - {movement: first, text: "I see [STEP:0]"}
  - {movement: second, delay: 60, text: "late [STEP:0]"}
"""


def test_sigterm_to_a_worker_process_gives_its_runs_back(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    cli.write("two.yaml", TWO_STEPS)
    script = cli.write("script.yaml", ASKS_THEN_SLOW)
    cli("run", "two.yaml", "a task", "--script", "script.yaml", "-q")
    request = cli("inbox", "--json").stdout.split('"id": "')[1].partition('"')[0]
    cli("answer", request, "blue", "--no-play")
    process = cli.start("worker")
    cli.wait_for(lambda: any(row["movement"] == "second" for row in cli.rows()))
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    (row,) = cli.rows()
    assert (row["status"], row["reason"]) == ("queued", None)
    script.write_text(ASKS_THEN_SLOW.replace("delay: 60", "delay: 0"), encoding="utf-8")
    again = cli.start("worker")
    assert again.stdout is not None
    assert "two-steps: completed" in again.stdout.readline()
    again.send_signal(signal.SIGTERM)
    again.communicate(timeout=20)
