"""Many parked runs, answered by two real processes at once: none lost, none twice."""

from __future__ import annotations

from benchmarks.answers import measure


def test_two_processes_answer_the_same_runs_at_once_and_none_is_lost_or_taken_twice() -> None:
    table = measure(parked=200, answered=120)
    assert table.met, "\n".join(f"{row.what}: {row.figure} (wanted {row.bar})" for row in table.rows)
    assert sum(row.met is True for row in table.rows) == 4
