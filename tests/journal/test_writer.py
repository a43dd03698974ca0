"""The writer thread: commits of many runs in one transaction, each told what became of it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import msgspec
import pytest

from cadenza.errors import JournalError, JournalFull, SequenceConflict
from cadenza.journal.memory import MemoryJournal
from cadenza.journal.store import Commit, Journal
from cadenza.journal.writer import Writer
from tests.journal.by_hand import ByHand, folded


class Watched(MemoryJournal):
    """A journal whose commits can be held up, and whose batches are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.batches: list[int] = []
        self.failure: BaseException | None = None

    def commit_many(self, commits: Sequence[Commit]) -> list[Exception | None]:
        self.gate.wait(10)
        self.batches.append(len(commits))
        if self.failure is not None:
            raise self.failure
        return super().commit_many(commits)


def test_a_submitted_commit_is_written_when_its_future_is_done(journal: Journal) -> None:
    run = ByHand(journal).begin().claim()
    with Writer(journal) as writer:
        writer.submit(run.prepare(run.call("hi"))).result(10)
        assert journal.run("r1").seq == 4
    assert folded(journal, "r1") == run.state


def test_what_waits_is_written_in_one_transaction_in_order() -> None:
    journal = Watched()
    runs = [ByHand(journal, f"r{n}").begin().claim() for n in range(5)]
    with Writer(journal) as writer:
        futures = [writer.submit(run.prepare(run.call(str(n)))) for n in range(20) for run in runs]
        journal.gate.set()
        for future in futures:
            future.result(10)
    assert sum(journal.batches) == 100
    assert len(journal.batches) <= 2
    assert [journal.run(run.run).seq for run in runs] == [23] * 5


def test_a_refusal_reaches_only_its_own_future(journal: Journal) -> None:
    good, bad = (ByHand(journal, name).begin().claim() for name in ("r1", "r2"))
    with Writer(journal) as writer:
        refused = writer.submit(msgspec.structs.replace(bad.prepare(bad.call("x")), after=9))
        written = writer.submit(good.prepare(good.call("x")))
        with pytest.raises(SequenceConflict):
            refused.result(10)
        assert written.result(10) is None


@pytest.mark.parametrize("failure", [JournalFull(), KeyboardInterrupt()])
def test_a_failed_transaction_reaches_all_its_futures_and_the_writer_goes_on(failure: BaseException) -> None:
    journal = Watched()
    run = ByHand(journal).begin().claim()
    commit = run.prepare(run.call("x"))
    with Writer(journal) as writer:
        journal.failure = failure
        journal.gate.set()
        with pytest.raises(type(failure)):
            writer.submit(commit).result(10)
        journal.failure = None
        writer.submit(commit).result(10)
    assert journal.run("r1").seq == 4


def test_a_commit_that_was_handed_in_cannot_be_taken_back() -> None:
    journal = Watched()
    run = ByHand(journal).begin().claim()
    with Writer(journal) as writer:
        future = writer.submit(run.prepare(run.call("x")))
        assert not future.cancel()
        journal.gate.set()
        assert future.result(10) is None


def test_closing_writes_what_waits_and_refuses_what_comes() -> None:
    journal = Watched()
    run = ByHand(journal).begin().claim()
    writer = Writer(journal)
    futures = [writer.submit(run.prepare(run.call(str(n)))) for n in range(10)]
    journal.gate.set()
    writer.close()
    writer.close()
    assert all(future.done() for future in futures)
    with pytest.raises(JournalError, match="closed"):
        writer.submit(run.prepare(run.call("late")))
    assert not any(thread.name == "cadenza-writer" and thread.is_alive() for thread in threading.enumerate())
