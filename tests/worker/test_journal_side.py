"""What the worker leans on: texts read by threads, batches with a bad commit, a thorough doctor."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cadenza.core import events as ev
from cadenza.core.conductor import Conductor
from cadenza.errors import InputRefused, JournalError
from cadenza.ids import Hash
from cadenza.journal.holders import this_process
from cadenza.journal.memory import MemoryJournal
from cadenza.journal.sqlite import SqliteJournal
from cadenza.journal.store import Commit, Journal
from cadenza.journal.writer import Writer
from cadenza.worker import texts
from cadenza.worker.texts import JournalTexts
from tests.worker.helpers import ONE, engine_on, piece_in


class Library(MemoryJournal):
    """Has every text."""

    def texts(self, hashes: Iterable[Hash]) -> dict[Hash, str]:
        return {hash: f"text {hash}" for hash in hashes}


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_may_read_texts_while_others_are_forgotten(
    hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(texts, "KEPT", 20)
    known = JournalTexts(Library())
    errors: list[BaseException] = []

    def read(who: int) -> None:
        try:
            for number in range(10_000):
                assert known[f"{who}-{number}"] == f"text {who}-{number}"
                if number % 100 == 0:
                    assert len(list(known)) <= 20 + 3
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=read, args=(who,)) for who in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(known) <= 20


async def three_commits(journal: Journal, folder: Path) -> list[Commit]:
    """A commit for each of three runs, which hold them."""
    async with engine_on(journal) as engine:
        runs = [await engine.start(piece_in(folder), "x", cwd=folder, play=False) for _ in range(3)]
        commits = []
        for run in runs:
            state, piece = engine.service.state(run.id), engine.service.piece(run.id)
            lease = journal.claim(this_process("test"), run=run.id)
            assert lease is not None
            step = Conductor(piece).hold(state, "interrupted", "", 1.0)
            commits.append(
                Commit(
                    run=run.id,
                    epoch=lease.epoch,
                    after=state.seq,
                    events=step.events,
                    state=step.state,
                    at=1.0,
                )
            )
        return commits


BAD: dict[str, dict[str, Any]] = {
    "a text": {"texts": {"0" * 40: "\ud800"}},
    "a value": {"events": (ev.RunHeld(reason="x", message="\ud800"),)},
    "an epoch": {"epoch": 99},
    "a sequence": {"after": 77},
    "no run": {"run": "r0"},
}


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("bad", BAD)
async def test_a_commit_that_cannot_be_written_does_not_fail_its_batch(
    bad: str, kind: str, tmp_path: Path
) -> None:
    journal: Journal = MemoryJournal() if kind == "memory" else SqliteJournal(tmp_path / "journal.sqlite")
    first, second, third = await three_commits(journal, tmp_path)
    second = msgspec.structs.replace(second, **BAD[bad])
    results = journal.commit_many([first, second, third])
    assert results[0] is None
    assert results[2] is None
    assert results[1] is not None
    assert [journal.run(run).status for run in (first.run, third.run)] == ["held", "held"]
    if bad != "no run":
        assert journal.run(second.run).status == "queued"
    journal.close()


async def test_the_writer_tells_each_what_became_of_its_own_commit(tmp_path: Path) -> None:
    journal = MemoryJournal()
    first, second, third = await three_commits(journal, tmp_path)
    second = msgspec.structs.replace(second, texts={"0" * 40: "\ud800"})
    with Writer(journal) as writer:
        futures: list[Future[None]] = [writer.submit(commit) for commit in (first, second, third)]
        found = await asyncio.gather(*map(asyncio.wrap_future, futures), return_exceptions=True)
    assert [found[0], found[2]] == [None, None]
    assert isinstance(found[1], InputRefused | JournalError)


async def test_the_doctor_misses_no_text_that_a_pinned_piece_names(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal = SqliteJournal(path)
    text = ONE.replace("instruction: plan", "persona: You are thorough.\n    instruction: plan")
    async with engine_on(journal) as engine:
        run = await engine.start(piece_in(tmp_path, text), "x", cwd=tmp_path, play=False)
        movement = engine.service.piece(run.id).movements[0]
        assert journal.verify() == []
        named = [movement.instruction, movement.persona.text if movement.persona else None]
        for hash in filter(None, named):
            with sqlite3.connect(path) as connection:
                kept = connection.execute("SELECT * FROM texts WHERE hash = ?", (hash,)).fetchone()
                connection.execute("DELETE FROM texts WHERE hash = ?", (hash,))
            problems = [problem.what for problem in journal.verify()]
            assert any(hash in what and "missing" in what for what in problems), problems
            with sqlite3.connect(path) as connection:
                marks = ", ".join("?" * len(kept))
                connection.execute(f"INSERT INTO texts VALUES ({marks})", kept)
            assert journal.verify() == []
    journal.close()
