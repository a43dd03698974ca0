"""The run's folder: ``.takt/runs/{YYYYMMDD-HHmmss}-{slug}/``.

Source of behaviour: TAKT engine, "management of run artifacts": the layout, and ``meta.json``. Ours: the
folder appears whole or not at all, it is found again by the run that made it, and two runs that start in
one second with one slug never share one.

What is made in ``.takt/runs`` is not for committing. When the first folder is made there, a ``.gitignore``
that ignores everything is put beside it, as tools do in their caches. It is in ``.takt/runs`` and not in
``.takt``, where a project keeps pieces and facets that it does commit; and it is not made again where runs
are already, so that who deletes it has decided.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

from cadenza.clock import iso
from cadenza.core.slug import timestamp
from cadenza.host import files
from cadenza.host.paths import file_part, inside, run_folder, working_folder
from cadenza.host.trouble import ANY_RUN, explained

LINE_LIMIT = 1024 * 1024
"""How far back the last line of a log is looked for, in bytes."""

ROOT = ".takt/runs"
SUBFOLDERS = (
    "reports",
    "context",
    "context/knowledge",
    "context/policy",
    "context/previous_responses",
    "logs",
)

_META = "meta.json"
_TRIES = 100
_TAKEN = {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}
_IGNORE = b"# Made by Cadenza: what runs leave behind is not committed.\n*\n"


class MetaFields(TypedDict, total=False):
    """What ``meta.json`` holds (TAKT engine).

    ``status`` is ``running``, ``completed`` or ``aborted``. Times are seconds since the epoch, or ISO
    already; the file has them in ISO.
    """

    run: str
    task: str
    piece: str
    runSlug: str
    runRoot: str
    reportDirectory: str
    contextDirectory: str
    logsDirectory: str
    status: str
    startTime: float | str
    endTime: float | str | None
    iterations: int | None


def open_folder(
    cwd: str, *, run: str, slug: str, at: float, task_text: str, piece: str, root: str = ROOT
) -> str:
    """Make the run's folder, or find the one that this run made before.

    It is built in a hidden folder beside its place, named after the run, and renamed: a kill leaves
    nothing visible or all of it, and the next call of the same run removes what was hidden. Where the
    name is taken by anything else, ``-2``, ``-3``, ... follows it.

    Args:
        cwd: the working directory; it must be there.
        run: the run's id.
        slug: of the task, see :func:`cadenza.core.slug.slugify`.
        at: when the run's first visit started, in seconds since the epoch.
        task_text: the task, for ``meta.json``.
        piece: the piece's name, for ``meta.json``.
        root: where such folders are, relative to ``cwd``.

    Returns:
        The folder relative to ``cwd``, with ``/``.

    Raises:
        HostError: ``not_found`` (no ``cwd``), ``disk_full``, ``read_only``, ``escapes`` (``root`` is,
            or leads by a link, outside ``cwd``) or ``failed``.
    """
    action = "make the run's folder in"
    home = inside(working_folder(cwd, run=run), root, action, run=run)
    fields = MetaFields(run=run, task=task_text, piece=piece, status="running", startTime=at)
    opening = _Opening(home, root, f"{timestamp(at)}-{file_part(slug)}", fields)
    with explained(action, home, run=run):
        files.make_folder(home)
        _ignore(home)
        _clean(home, run)
        return _joined(root, _make(opening))


def read_meta(cwd: str, folder: str) -> dict[str, Any]:
    """What ``meta.json`` of a run's folder holds; nothing where it is missing or damaged.

    Raises:
        HostError: ``not_found`` (no such folder), ``escapes``.
    """
    return _read(run_folder(cwd, folder) / _META)


def write_meta(cwd: str, folder: str, **fields: Unpack[MetaFields]) -> None:
    """Set fields of ``meta.json``, at once or not at all; ``None`` takes one away.

    Fields that are not named stay as they are. The four paths are put in where they are missing.

    Raises:
        HostError: ``not_found`` (no such folder), ``disk_full``, ``read_only``, ``escapes``, ``failed``.
    """
    path = run_folder(cwd, folder)
    old = _read(path / _META)
    run = str(fields.get("run") or old.get("run") or ANY_RUN)
    with explained("write", path / _META, run=run):
        files.write(path / _META, _meta(folder, old, fields), scratch=path)


def write_log(cwd: str, folder: str, run: str, lines: Iterable[str]) -> None:
    """Make ``logs/<run>.jsonl`` hold exactly ``lines`` (each one JSON value, no line end).

    Raises:
        HostError: ``not_found`` (no such folder), ``disk_full``, ``read_only``, ``escapes``, ``failed``.
    """
    path = run_folder(cwd, folder, run=run)
    target = inside(path, f"logs/{file_part(run)}.jsonl", "write the log", run=run)
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    with explained("write the log", target, run=run):
        files.write(target, data, scratch=path)


def remake_folder(cwd: str, folder: str, run: str, *, task_text: str, piece: str, at: float) -> None:
    """Make a run's folder again at its old place, where somebody has removed it; empty but for ``meta.json``.

    Raises:
        HostError: it cannot be made there, or the place is taken by something else.
    """
    path = inside(working_folder(cwd, run=run), folder, "make the run's folder", run=run)
    with explained("make the run's folder", path, run=run):
        for sub in SUBFOLDERS:
            files.make_folder(path / sub)
    write_meta(cwd, folder, run=run, task=task_text, piece=piece, startTime=at, runSlug=path.name)


def append_log(cwd: str, folder: str, run: str, lines: Iterable[str]) -> None:
    """Add ``lines`` to ``logs/<run>.jsonl``. A line that a crash cut short is seen by :func:`last_log_line`.

    Raises:
        HostError: as :func:`write_log`.
    """
    path = run_folder(cwd, folder, run=run)
    target = inside(path, f"logs/{file_part(run)}.jsonl", "write the log", run=run)
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    with explained("write the log", target, run=run), open(target, "ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def last_log_line(cwd: str, folder: str, run: str) -> str:
    """The last line of ``logs/<run>.jsonl``; empty where there is none, or where it was cut short.

    Raises:
        HostError: ``not_found`` (no such folder), ``escapes``, ``failed``.
    """
    path = run_folder(cwd, folder, run=run)
    target = inside(path, f"logs/{file_part(run)}.jsonl", "read the log", run=run)
    with explained("read the log", target, run=run):
        if not target.is_file():
            return ""
        with open(target, "rb") as file:
            file.seek(max(0, target.stat().st_size - LINE_LIMIT))
            lines = file.read().split(b"\n")
    return lines[-2].decode("utf-8", "replace") if len(lines) > 1 and lines[-1] == b"" else ""


class _Opening(NamedTuple):
    """One call of :func:`open_folder`: the folder ``base`` is to appear in ``home``."""

    home: Path
    root: str
    base: str
    fields: MetaFields

    def is_ours(self, name: str) -> bool:
        """Whether the folder ``name`` was made by this run."""
        return _read(self.home / name / _META).get("run") == self.fields["run"]

    def meta(self, name: str) -> bytes:
        """The first ``meta.json`` of the folder ``name``."""
        return _meta(_joined(self.root, name), {}, self.fields)


def _make(opening: _Opening) -> str:
    """A second worker of the same run may clean our hidden folder away: begin again then."""
    run = file_part(opening.fields["run"])
    for left in reversed(range(_TRIES)):
        if found := _find(opening):
            return found
        temp = opening.home / f".{run}.{secrets.token_hex(8)}.tmp"
        try:
            _build(temp)
            return _place(opening, temp)
        except FileNotFoundError:
            if not left:
                raise
            files.make_folder(opening.home)
        finally:
            files.discard(temp)
    raise AssertionError("the last try returns or raises")


def _build(temp: Path) -> None:
    temp.mkdir()
    for sub in SUBFOLDERS:
        (temp / sub).mkdir()
    files.sync_folder(temp / "context")


def _place(opening: _Opening, temp: Path) -> str:
    """Rename what was built to the first name that is free.

    A rename never replaces a folder that holds something, and ours always does, so of two runs that
    want one name exactly one gets it.
    """
    for name in _names(opening.base):
        target = opening.home / name
        if not os.path.lexists(target):
            _put_meta(temp, opening.meta(name))
            if _rename(temp, target):
                return name
        if opening.is_ours(name):
            return name
    raise AssertionError("there is always a next name")


def _rename(temp: Path, target: Path) -> bool:
    try:
        os.rename(temp, target)
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        return False
    files.sync_folder(target.parent)
    return True


def _put_meta(temp: Path, data: bytes) -> None:
    (temp / _META).unlink(missing_ok=True)
    files.write_synced(temp / _META, data)
    files.sync_folder(temp)


def _find(opening: _Opening) -> str | None:
    """The folder that this run made in an earlier try, whatever became of its neighbours."""
    pattern = re.compile(re.escape(opening.base) + r"(-\d+)?")
    names = sorted(filter(pattern.fullmatch, os.listdir(opening.home)), key=len)
    return next(filter(opening.is_ours, names), None)


def _clean(home: Path, run: str) -> None:
    """Remove the hidden folders of earlier tries of this run.

    Each is moved aside first: should somebody still build in it, they can no longer rename it into
    place half removed.
    """
    pattern = re.compile(rf"\.{re.escape(file_part(run))}\.[0-9a-f]{{16}}\.(tmp|dead)")
    for name in filter(pattern.fullmatch, os.listdir(home)):
        dead = home / f"{name.rpartition('.')[0]}.dead"
        with suppress(FileNotFoundError):
            os.rename(home / name, dead)
            files.discard(dead)


def _ignore(home: Path) -> None:
    if os.path.lexists(home / ".gitignore") or any(not name.startswith(".") for name in os.listdir(home)):
        return
    files.sweep(home)
    files.write(home / ".gitignore", _IGNORE, scratch=home)


def _names(base: str) -> Iterator[str]:
    yield base
    for number in count(2):
        yield f"{base}-{number}"


def _joined(root: str, name: str) -> str:
    parts = [part for part in root.split("/") if part not in ("", ".")]
    return "/".join([*parts, name])


def _read(path: Path) -> dict[str, Any]:
    """``meta.json`` as it is; a damaged or missing one, or any other thing, is nobody's."""
    try:
        if not path.is_file():
            return {}
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _meta(folder: str, old: Mapping[str, Any], fields: MetaFields) -> bytes:
    paths = {
        "runSlug": folder.rpartition("/")[2],
        "runRoot": folder,
        "reportDirectory": f"{folder}/reports",
        "contextDirectory": f"{folder}/context",
        "logsDirectory": f"{folder}/logs",
    }
    changed = {name: _shown(name, value) for name, value in fields.items()}
    merged = {**paths, **old, **changed}
    known = [name for name in MetaFields.__annotations__ if name in merged]
    ordered = [*known, *(name for name in merged if name not in known)]
    values = {name: merged[name] for name in ordered if merged[name] is not None}
    text = json.dumps(values, ensure_ascii=False, indent=2) + "\n"
    return text.encode("utf-8", "replace")


def _shown(name: str, value: object) -> object:
    return iso(value) if name.endswith("Time") and isinstance(value, int | float) else value
