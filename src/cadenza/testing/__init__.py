"""For tests of your own pieces, movement kinds and tools: no network, no time, no chance.

::

    from cadenza.testing import Scenario, Script, crash_matrix, memory_journals

    def test_my_piece_survives(tmp_path):
        script = Script.from_entries([{"movement": "plan", "text": "Ready. [STEP:0]"}])
        scenario = Scenario(name="mine", piece=load_piece("./mine.yaml", cwd=tmp_path), script=script)
        crash_matrix(scenario, memory_journals(), tmp_path / "run")

===================== ==================================================================================
``FrozenClock``       a clock that moves when told; ``T0`` is where it begins
``fixed_seed``        a run seed that follows from a name
``ScriptedProvider``  a model that answers from a ``Script``
``MemoryJournal``     the journal's twin in memory
``Scenario``          a piece, a script, and what others do meanwhile (``Answer``, ``Cancel``, ``Resume``,
                      ``Retry``, ``Interrupt``)
``Driver``            plays a scenario, one demand at a time, always in the same order
``canonical``         a run's journal less its interruptions, as bytes to compare; ``difference`` of two
``crash_matrix``      kills a scenario everywhere and compares; ``Laboratory`` does it step by step
``check_folds``       wherever a snapshot is taken, snapshot and tail are the whole
``Ledger``            what was really done, outside the journal
``with_probes``       turns movements into ``write_probe``: one effect that must not be repeated
===================== ==================================================================================

Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cadenza.journal.memory import MemoryJournal as MemoryJournal
    from cadenza.providers.models.scripted import Script as Script
    from cadenza.providers.models.scripted import ScriptedProvider as ScriptedProvider
    from cadenza.testing.clocks import T0 as T0
    from cadenza.testing.clocks import FrozenClock as FrozenClock
    from cadenza.testing.clocks import fixed_seed as fixed_seed
    from cadenza.testing.comparing import canonical as canonical
    from cadenza.testing.comparing import difference as difference
    from cadenza.testing.driver import Driver as Driver
    from cadenza.testing.driver import Killed as Killed
    from cadenza.testing.driver import Point as Point
    from cadenza.testing.journals import JournalFactory as JournalFactory
    from cadenza.testing.journals import memory_journals as memory_journals
    from cadenza.testing.journals import sqlite_journals as sqlite_journals
    from cadenza.testing.ledger import Ledger as Ledger
    from cadenza.testing.matrix import Laboratory as Laboratory
    from cadenza.testing.matrix import check_folds as check_folds
    from cadenza.testing.matrix import crash_matrix as crash_matrix
    from cadenza.testing.probes import PROBE_KINDS as PROBE_KINDS
    from cadenza.testing.probes import WriteProbe as WriteProbe
    from cadenza.testing.probes import with_probes as with_probes
    from cadenza.testing.scenario import Answer as Answer
    from cadenza.testing.scenario import Cancel as Cancel
    from cadenza.testing.scenario import Children as Children
    from cadenza.testing.scenario import Interrupt as Interrupt
    from cadenza.testing.scenario import Resume as Resume
    from cadenza.testing.scenario import Retry as Retry
    from cadenza.testing.scenario import Scenario as Scenario

_ROOMS = {
    "cadenza.journal.memory": ("MemoryJournal",),
    "cadenza.providers.models.scripted": ("Script", "ScriptedProvider"),
    "cadenza.testing.comparing": ("canonical", "difference"),
    "cadenza.testing.clocks": ("T0", "FrozenClock", "fixed_seed"),
    "cadenza.testing.driver": ("Driver", "Killed", "Point"),
    "cadenza.testing.journals": ("JournalFactory", "memory_journals", "sqlite_journals"),
    "cadenza.testing.ledger": ("Ledger",),
    "cadenza.testing.matrix": ("Laboratory", "check_folds", "crash_matrix"),
    "cadenza.testing.probes": ("PROBE_KINDS", "WriteProbe", "with_probes"),
    "cadenza.testing.scenario": ("Answer", "Cancel", "Children", "Interrupt", "Resume", "Retry", "Scenario"),
}
_HOMES = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "PROBE_KINDS",
    "T0",
    "Answer",
    "Cancel",
    "Driver",
    "FrozenClock",
    "Interrupt",
    "JournalFactory",
    "Killed",
    "Laboratory",
    "Ledger",
    "MemoryJournal",
    "Point",
    "Resume",
    "Retry",
    "Scenario",
    "Script",
    "ScriptedProvider",
    "WriteProbe",
    "canonical",
    "check_folds",
    "crash_matrix",
    "difference",
    "fixed_seed",
    "memory_journals",
    "sqlite_journals",
    "with_probes",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'cadenza.testing' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
