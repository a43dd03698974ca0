"""Reports are kept in the run's folder, and what they held before in its history.

Source of behaviour: TAKT engine, "storage of reports"; the history as in its command-line engine
(``logs/reports-history/<stem>.<timestamp>[.n]<ext>``).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path, PurePosixPath

from cadenza.host import files
from cadenza.host.paths import inside, report_path, run_folder, stamp
from cadenza.host.trouble import ANY_RUN, explained

_SAVE = "save the report"
_HISTORY = "logs/reports-history"
_LOCKS = tuple(threading.Lock() for _ in range(64))
"""One lane saves at a time in one folder, so that no lane overwrites what another has just read."""


def save_reports(
    cwd: str, folder: str, reports: Mapping[str, str], at: float, *, run: str = ANY_RUN
) -> list[str]:
    """Write reports into ``reports/`` of the run's folder, each at once or not at all.

    A report that changes leaves its old content in ``logs/reports-history/``, under its sub-folder and
    ``<stem>.<YYYYMMDDTHHMMSSZ>[.n]<ext>``. Saving the same again changes nothing. All names are checked
    before the first is written.

    Args:
        cwd: the working directory.
        folder: the run's folder, relative to it.
        reports: the texts by name; a name may have sub-folders, with ``/``.
        at: when the visit started, in seconds since the epoch.
        run: the run's id, for hints.

    Returns:
        The names that are saved now, in the order given.

    Raises:
        HostError: ``escapes`` (``..``, absolute, NUL, a link that leads out), ``not_found`` (no folder),
            ``disk_full``, ``read_only``, ``failed``.
    """
    home = run_folder(cwd, folder, run=run)
    with _LOCKS[hash(home) % len(_LOCKS)]:
        paths = {name: report_path(home, name, _SAVE, run=run) for name in reports}
        for name, path in paths.items():
            with explained(_SAVE, path, run=run):
                _save(home, name, reports[name].encode("utf-8", "replace"), at, run)
    return list(reports)


def _save(home: Path, name: str, data: bytes, at: float, run: str) -> None:
    path = report_path(home, name, _SAVE, run=run)
    if files.holds(path, data):
        return
    if path.is_file():
        _keep(home, path.read_bytes(), _history_names(name, at), run)
    files.write(path, data, scratch=home)


def _keep(home: Path, old: bytes, names: Iterator[str], run: str) -> None:
    """A kill between this and the new report makes it happen twice: the same content is kept once."""
    for name in names:
        path = inside(home, f"{_HISTORY}/{name}", _SAVE, run=run)
        if files.holds(path, old):
            return
        try:
            return files.write_new(path, old, scratch=home)
        except FileExistsError:
            continue


def _history_names(name: str, at: float) -> Iterator[str]:
    file = PurePosixPath(name)
    stem = f"{file.stem}.{stamp(at)}"
    yield str(file.with_name(f"{stem}{file.suffix}"))
    for number in count(1):
        yield str(file.with_name(f"{stem}.{number}{file.suffix}"))
