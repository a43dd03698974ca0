"""What ``cadenza.testing`` gives to others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import cadenza.testing as kit
from cadenza.core import events as ev
from cadenza.testing import (
    T0,
    Driver,
    FrozenClock,
    MemoryJournal,
    canonical,
    crash_matrix,
    difference,
    fixed_seed,
)
from cadenza.testing.comparing import canonical_events
from cadenza.testing.ledger import Ledger
from tests.crash.scenarios import linear


def test_every_name_is_there_and_documented() -> None:
    assert sorted(kit.__all__) == dir(kit)
    for name in kit.__all__:
        value = getattr(kit, name)
        if name not in ("T0", "PROBE_KINDS", "JournalFactory"):
            assert value.__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        kit.__getattr__("nothing")


def test_importing_it_loads_nothing() -> None:
    heavy = "{'pydantic', 'asyncio', 'sqlite3', 'msgspec'}"
    code = f"import sys, cadenza.testing; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_frozen_clock_moves_when_it_is_told() -> None:
    clock = FrozenClock()
    assert (clock(), clock.advance(0.1), clock()) == (T0, T0 + 0.1, T0 + 0.1)


def test_a_seed_follows_from_its_name() -> None:
    assert fixed_seed("a") == fixed_seed("a") != fixed_seed("b")
    assert len(bytes.fromhex(fixed_seed())) == 16


def recorded(*events: ev.AnyEvent) -> list[ev.Recorded]:
    return [ev.Recorded(run="r", seq=n, at=0.0, actor="x", event=e) for n, e in enumerate(events, 1)]


def test_the_canonical_journal_leaves_interruptions_out_and_nothing_else() -> None:
    warned = ev.Warned(code="a", message="b")
    interruption = (ev.RunHeld(reason="interrupted"), ev.ResumeRequested(), ev.RunReleased())
    poison = (ev.RunHeld(reason="poison"), ev.ResumeRequested(), ev.RunReleased())
    assert canonical(recorded(warned, *interruption, warned)) == canonical(recorded(warned, warned))
    assert len(canonical_events(recorded(warned, *poison, warned))) == 5
    assert [e.seq for e in canonical_events(recorded(*interruption, warned, warned))] == [1, 2]
    restart = ev.ResumeRequested(restart_visit=True)
    kept = canonical_events(recorded(ev.RunHeld(reason="interrupted"), restart, ev.RunReleased()))
    assert [e.event for e in kept] == [restart]


def test_a_difference_is_shown_where_it_begins() -> None:
    assert difference(b"a\nb", b"a\nb") == ""
    assert difference(b"a\nb", b"a\nc") == "event 2:\n  b\n  c"
    assert difference(b"a", b"a\nc") == "event 2:\n  (nothing)\n  c"


def test_a_ledger_knows_what_was_done_twice(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    assert ledger.lines() == []
    for demand, once in (("a", True), ("b", False), ("b", False), ("a", True), ("c", True)):
        ledger.note(demand, once=once)
    assert ledger.repeated() == ["a"]
    assert ledger.counts() == {"a": 2, "b": 2, "c": 1}


def test_the_matrix_finds_an_executor_that_decides_by_chance(tmp_path: Path) -> None:
    """The matrix is worth something: a tool whose answer changes from life to life is found out."""
    lives = iter(range(1_000))

    class Fickle(kit.ScriptedProvider):
        def __init__(self, script: kit.Script) -> None:
            super().__init__(
                kit.Script.from_entries([{"text": f"{next(lives)} [STEP:0]", "times": "forever"}])
            )

    scenario = linear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cadenza.testing.driver.ScriptedProvider", Fickle)
        with pytest.raises(AssertionError, match=r"linear: killed \(.\) at event"):
            crash_matrix(scenario, kit.memory_journals(), tmp_path / "run")


def test_two_runs_of_one_scenario_are_the_same_bytes(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        journal = MemoryJournal()
        Driver(linear(), journal, tmp_path).play()
        found.append(canonical(journal.events(linear().run)))
        for file in (tmp_path / "work").rglob("*"):
            assert file.name
    decoded = [msgspec.json.decode(line) for line in found[0].split(b"\n")]
    assert [line["seq"] for line in decoded] == list(range(1, len(decoded) + 1))
    assert found[0] == found[1]
