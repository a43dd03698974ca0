"""A run's folder follows its journal: ``meta.json`` and the log are written anew whenever it stands.

Both are projections. A failure to write them is no failure of the run; ``cadenza doctor --rebuild`` writes
them again.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from cadenza.clock import iso
from cadenza.core.events import Recorded, RunEnded
from cadenza.core.state import RunState
from cadenza.errors import HostError
from cadenza.host.folder import write_log, write_meta
from cadenza.journal.store import Journal


def project_folder(journal: Journal, run: str, state: RunState) -> bool:
    """Write the folder's ``meta.json`` and log; False where there is no folder or it cannot be written.

    Raises:
        JournalError: the events could not be read.
    """
    if state.folder is None or not (Path(state.run.cwd) / state.folder).is_dir():
        return False
    events = journal.events(run)
    with contextlib.suppress(HostError):
        write_log(state.run.cwd, state.folder, run, [log_line(item) for item in events])
        end = events[-1].at if isinstance(events[-1].event, RunEnded) else None
        write_meta(
            state.run.cwd,
            state.folder,
            status=folder_status(state),
            endTime=None if end is None else iso(end),
            iterations=state.iteration,
        )
        return True
    return False


def folder_status(state: RunState) -> str:
    """``running``, ``completed`` or ``aborted``: the words that TAKT's ``meta.json`` has."""
    if state.ended is None:
        return "running"
    return "completed" if state.ended.status == "completed" else "aborted"


def log_line(item: Recorded) -> str:
    """One event as a line of JSON."""
    head = {"seq": item.seq, "at": iso(item.at), "actor": item.actor}
    return msgspec.json.encode({**head, **msgspec.to_builtins(item.event)}).decode("utf-8")
