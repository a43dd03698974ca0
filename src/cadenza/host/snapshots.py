"""Before a prompt is put together: keep what it is made of, and read the reports that it quotes.

Source of behaviour: TAKT engine, "extraction and storage of reports" (``context/`` and ``latest.md``)
and "references to reports" (``{report:file}``).
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from cadenza.errors import HostError
from cadenza.host import files
from cadenza.host.paths import file_part, inside, report_path, run_folder, stamp
from cadenza.host.trouble import ANY_RUN, explained
from cadenza.ids import Hash

SEPARATOR = "\n\n---\n\n"
REPORT_LIMIT = 8 * 1024 * 1024
"""Bytes; a larger report cannot be part of a prompt."""


class Prepare(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of ``prepare``: texts by hash, ``at`` in seconds since the epoch, reports by name."""

    folder: str
    movement: str
    count: int
    at: float
    knowledge: tuple[Hash, ...] = ()
    policy: tuple[Hash, ...] = ()
    previous: Hash | None = None
    reports: tuple[str, ...] = ()


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """What ``prepare`` came to: reports by name (None where there is no such file), and the paths of the
    snapshots by ``knowledge``, ``policy`` and ``previous``, relative to the working directory."""

    reports: dict[str, str | None]
    snapshots: dict[str, str]


def prepare(
    cwd: str, args: Mapping[str, Any], text: Callable[[Hash], str], *, run: str = ANY_RUN
) -> Prepared:
    """Write the snapshots of one visit; read the reports that its prompt names.

    A snapshot is ``context/<kind>/<movement>.<count>.<YYYYMMDDTHHMMSSZ>.md``. There is none of what the
    movement does not have. ``context/previous_responses/latest.md`` is the previous response of the
    movement that was prepared last. Doing it twice changes nothing.

    Args:
        cwd: the working directory.
        args: see :class:`Prepare`.
        text: gives a text by its hash.
        run: the run's id, for hints.

    Returns:
        The reports' texts, and the paths of the snapshots.

    Raises:
        HostError: ``not_found`` (no folder), ``disk_full``, ``read_only``, ``escapes`` (a report's name,
            or a link in the folder), ``failed``.
        msgspec.ValidationError: ``args`` have the wrong shape.
    """
    wanted = msgspec.convert(args, Prepare)
    folder = run_folder(cwd, wanted.folder, run=run)
    files.sweep(folder)
    for name, content in _snapshots(wanted, text):
        path = inside(folder, f"context/{name}", "write the snapshot", run=run)
        with explained("write the snapshot", path, run=run):
            files.write(path, content.encode("utf-8", "replace"), scratch=folder)
    reports = {name: _read_report(folder, name, run) for name in wanted.reports}
    return Prepared(reports=reports, snapshots=dict(_paths(wanted)))


def _file(wanted: Prepare) -> str:
    return f"{file_part(wanted.movement)}.{wanted.count}.{stamp(wanted.at)}.md"


def _paths(wanted: Prepare) -> Iterator[tuple[str, str]]:
    context, file = f"{wanted.folder}/context", _file(wanted)
    if wanted.knowledge:
        yield "knowledge", f"{context}/knowledge/{file}"
    if wanted.policy:
        yield "policy", f"{context}/policy/{file}"
    if wanted.previous is not None:
        yield "previous", f"{context}/previous_responses/{file}"


def _snapshots(wanted: Prepare, text: Callable[[Hash], str]) -> Iterator[tuple[str, str]]:
    file = _file(wanted)
    for kind, hashes in (("knowledge", wanted.knowledge), ("policy", wanted.policy)):
        if hashes:
            yield f"{kind}/{file}", SEPARATOR.join(map(text, hashes))
    if wanted.previous is not None:
        response = text(wanted.previous)
        yield f"previous_responses/{file}", response
        yield "previous_responses/latest.md", response


def _read_report(folder: Path, name: str, run: str) -> str | None:
    """A report as text: bytes that are not UTF-8, and NUL, become U+FFFD."""
    path = report_path(folder, name, "read the report", run=run)
    with explained("read the report", path, run=run):
        try:
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISREG(found.st_mode):
            return None
        if found.st_size > REPORT_LIMIT:
            message = f"cannot read the report {path}: it has {found.st_size} bytes, {REPORT_LIMIT} at most"
            raise HostError(message, hint=f"shorten it, then cadenza resume {run}")
        return path.read_bytes().decode("utf-8", "replace").replace("\0", "\ufffd")
