"""A run's folder follows its journal: ``meta.json`` and the log are brought up to date when it stands.

Both are projections. A failure to write them is no failure of the run; ``cadenza doctor --rebuild`` writes
them again.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from cadenza.clock import iso
from cadenza.core.events import Recorded
from cadenza.core.state import RunState
from cadenza.errors import HostError
from cadenza.host.folder import append_log, last_log_line, remake_folder, write_log, write_meta
from cadenza.host.reports import save_reports
from cadenza.journal.store import Journal


def project_folder(journal: Journal, run: str, state: RunState) -> bool:
    """Write the folder's ``meta.json`` and log; False where there is no folder or it cannot be written.

    Raises:
        JournalError: the events could not be read.
    """
    if state.folder is None:
        return False
    with contextlib.suppress(HostError, OSError):
        if not (Path(state.run.cwd) / state.folder).is_dir():
            return False
        known = logged(state.run.cwd, state.folder, run)
        events = journal.events(run, after=known)
        write = append_log if known else write_log
        write(state.run.cwd, state.folder, run, [log_line(item) for item in events])
        ended = {} if not events or state.ended is None else {"endTime": iso(events[-1].at)}
        status, iterations = folder_status(state), state.iteration
        write_meta(state.run.cwd, state.folder, status=status, iterations=iterations, **ended)
        return True
    return False


def remake_if_gone(journal: Journal, run: str, state: RunState) -> bool:
    """Make a folder that somebody has removed again, with its reports, from the journal; whether it was gone.

    Raises:
        HostError: it cannot be made there.
        JournalError: the texts could not be read.
    """
    folder, cwd = state.folder, state.run.cwd
    if folder is None or not Path(cwd).is_dir() or (Path(cwd) / folder / "meta.json").is_file():
        return False
    row = journal.run(run)
    texts = journal.texts([state.run.task, *state.reports.values()])
    task = texts[state.run.task]
    remake_folder(cwd, folder, run, task_text=task, piece=state.run.name, at=row.created_at)
    reports = {name: texts[hash] for name, hash in state.reports.items()}
    save_reports(cwd, folder, reports, row.updated_at, run=run)
    return True


def logged(cwd: str, folder: str, run: str) -> int:
    """The number of the last event that the folder's log holds; 0 where it is to be written anew."""
    try:
        return int(msgspec.json.decode(last_log_line(cwd, folder, run))["seq"])
    except (msgspec.DecodeError, KeyError, TypeError, ValueError):
        return 0


def folder_status(state: RunState) -> str:
    """``running``, ``completed`` or ``aborted``: the words that TAKT's ``meta.json`` has."""
    if state.ended is None:
        return "running"
    return "completed" if state.ended.status == "completed" else "aborted"


def log_line(item: Recorded) -> str:
    """One event as a line of JSON."""
    head = {"seq": item.seq, "at": iso(item.at), "actor": item.actor}
    return msgspec.json.encode({**head, **msgspec.to_builtins(item.event)}).decode("utf-8")
