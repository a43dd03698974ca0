"""``verify`` finds every row that is not as the events say; ``rebuild`` puts it right."""

from __future__ import annotations

import pytest

from cadenza.core import events as ev
from cadenza.core.outcomes import Returned
from cadenza.journal.sqlite import SqliteJournal
from tests.journal.by_hand import ByHand, first_demand


@pytest.fixture
def filled(sqlite: SqliteJournal) -> SqliteJournal:
    """Runs of all kinds, one of them long."""
    run = ByHand(sqlite, "r1").begin().claim()
    call = run.call("hi")
    run.commit(call)
    run.commit(run.reply(call.id, "hello"))
    run.decide(run.park(), "left")
    late = ByHand(sqlite, "r2").begin().claim()
    late.park()
    late.commit(late.ended())
    long = ByHand(sqlite, "r3").begin().claim()
    for _ in range(60):
        long.commit(ev.DemandResolved(id=first_demand(long), outcome=Returned(1)), long.host())
    ByHand(sqlite, "r4").begin()
    assert sqlite.verify() == []
    return sqlite


def do(journal: SqliteJournal, statement: str) -> None:
    with journal._database.write() as connection:
        assert connection.execute(statement).rowcount


MENDED = [
    ("UPDATE runs SET status = 'held' WHERE id = 'r1'", "r1", "its status is 'held'"),
    ("UPDATE runs SET wake_at = NULL WHERE id = 'r4'", "r4", "its wake_at is None"),
    ("UPDATE runs SET seq = 99 WHERE id = 'r4'", "r4", "its seq is 99"),
    ("UPDATE runs SET input_tokens = 1 WHERE id = 'r1'", "r1", "its input_tokens is 1"),
    ("UPDATE runs SET standing = NULL WHERE id = 'r2'", "r2", "it stands as None"),
    ("UPDATE runs SET snapshot = 0 WHERE id = 'r1'", "r1", "its snapshot is of event"),
    ("UPDATE requests SET status = 'open' WHERE run = 1", "r1", "a request is"),
    ("UPDATE requests SET value = '\"right\"' WHERE run = 1", "r1", "a request is"),
    ("DELETE FROM requests WHERE run = 2", "r2", "it has 0 request rows"),
    ("UPDATE conversations SET role = 'tool' WHERE role = 'user'", "r1", "a message is"),
    ("DELETE FROM conversations WHERE role = 'assistant'", "r1", "it has 1 message rows"),
    (
        "INSERT INTO conversations SELECT 'x', run, seq, item, role, text, demand FROM conversations LIMIT 1",
        None,
        "3 messages in all",
    ),
    ("UPDATE snapshots SET state = json_set(state, '$.iteration', 9) WHERE run = 3", "r3", "another state"),
]


@pytest.mark.parametrize(("statement", "run", "says"), MENDED)
def test_a_wrong_row_is_found_and_mended(
    filled: SqliteJournal, statement: str, run: str | None, says: str
) -> None:
    do(filled, statement)
    problems = filled.verify()
    assert run in {problem.run for problem in problems}
    assert any(says in problem.what for problem in problems), problems
    assert filled.rebuild() == 4
    assert filled.verify() == []


@pytest.mark.parametrize(
    ("statement", "run", "says"),
    [
        ("DELETE FROM events WHERE run = 1 AND seq = 4", "r1", "event 4 is missing"),
        ("DELETE FROM events WHERE run = 4", "r4", "it has no event"),
        ("UPDATE events SET run = 77 WHERE run = 4 AND seq = 3", None, "a run 77 that has no row"),
        ("DELETE FROM texts WHERE body = 'hi'", "r1", "refers to text"),
        ("UPDATE texts SET body = 'ho' WHERE body = 'hi'", None, "was changed"),
        (
            "UPDATE events SET payload = json_set(payload, '$.id', 'x') WHERE type = 'demand.resolved'",
            "r1",
            "does not fit those before it",
        ),
    ],
)
def test_a_lost_or_changed_fact_is_found(
    filled: SqliteJournal, statement: str, run: str | None, says: str
) -> None:
    do(filled, statement)
    problems = filled.verify()
    assert any(problem.run == run and says in problem.what for problem in problems), problems


def test_a_rebuild_changes_no_row_of_a_sound_journal(filled: SqliteJournal) -> None:
    def everything() -> list[object]:
        statuses = ("open", "decided", "closed")
        return [*filled.runs(), *filled.requests(status=statuses), *filled.messages("c-r1")]

    before = everything()
    filled.rebuild()
    assert everything() == before
