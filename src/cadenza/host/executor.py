"""Meets the Host demands: one operation a name, each safe to repeat with the same result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from cadenza.core.demands import HOST_OPS, Host
from cadenza.errors import HostError
from cadenza.host.folder import ROOT, open_folder
from cadenza.host.named_files import read_file, write_file
from cadenza.host.reports import save_reports
from cadenza.host.snapshots import prepare
from cadenza.ids import Hash, text_hash

Texts = Callable[[Hash], str]
Result = tuple[dict[str, Any], dict[Hash, str]]


class OpenFolder(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of ``open_folder``: the task by hash, ``at`` in seconds since the epoch."""

    slug: str
    at: float
    task: Hash
    piece: str
    root: str = ROOT


class ReadFile(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of ``read_file``: a path, absolute or from the working directory."""

    path: str


class WriteFile(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of ``write_file``: a path as for ``read_file``, the text by hash."""

    path: str
    text: Hash


class SaveReports(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of ``save_reports``: texts by name as hashes, ``at`` in seconds since the epoch."""

    folder: str
    at: float
    reports: dict[str, Hash]


class HostExecutor:
    """Carries out Host demands on the file system. It holds nothing; threads may share it."""

    def __call__(self, demand: Host, *, run: str, cwd: str, text: Texts) -> Result:
        """Carry out ``demand``.

        Args:
            demand: the operation and its arguments.
            run: the run's id.
            cwd: the run's working directory.
            text: gives a text by its hash; what it raises is passed on.

        Returns:
            The JSON value, texts in it by hash, and the texts that are new.
            ``open_folder`` gives ``{"path": ...}``, ``prepare`` ``{"reports": {name: hash or None},
            "snapshots": {kind: path}}``, ``read_file`` ``{"text": hash}``, ``write_file``
            ``{"path": ...}``, ``save_reports`` ``{"saved": [names]}``.

        Raises:
            HostError: with code ``disk_full``, ``read_only``, ``not_found``, ``escapes`` or ``failed``.
        """
        operation = _OPERATIONS.get(demand.op)
        if operation is None:
            message = f"there is no host operation {demand.op!r}; known here: {', '.join(HOST_OPS)}"
            raise HostError(message, hint=f"update Cadenza, then cadenza resume {run}")
        try:
            return operation(demand.args, run, cwd, text)
        except msgspec.ValidationError as error:
            message = f"the arguments of host operation {demand.op!r} cannot be read: {error}"
            raise HostError(message, hint=f"update Cadenza, then cadenza resume {run}") from error


def _open_folder(args: Mapping[str, Any], run: str, cwd: str, text: Texts) -> Result:
    wanted = msgspec.convert(args, OpenFolder)
    path = open_folder(
        cwd,
        run=run,
        slug=wanted.slug,
        at=wanted.at,
        task_text=text(wanted.task),
        piece=wanted.piece,
        root=wanted.root,
    )
    return {"path": path}, {}


def _prepare(args: Mapping[str, Any], run: str, cwd: str, text: Texts) -> Result:
    found = prepare(cwd, args, text, run=run)
    reports = found.reports.items()
    hashes = {name: None if report is None else text_hash(report) for name, report in reports}
    texts = {text_hash(report): report for _, report in reports if report is not None}
    return {"reports": hashes, "snapshots": found.snapshots}, texts


def _save_reports(args: Mapping[str, Any], run: str, cwd: str, text: Texts) -> Result:
    wanted = msgspec.convert(args, SaveReports)
    texts = {name: text(hash) for name, hash in wanted.reports.items()}
    return {"saved": save_reports(cwd, wanted.folder, texts, wanted.at, run=run)}, {}


def _read_file(args: Mapping[str, Any], run: str, cwd: str, text: Texts) -> Result:
    content = read_file(cwd, msgspec.convert(args, ReadFile).path, run=run)
    return {"text": text_hash(content)}, {text_hash(content): content}


def _write_file(args: Mapping[str, Any], run: str, cwd: str, text: Texts) -> Result:
    wanted = msgspec.convert(args, WriteFile)
    write_file(cwd, wanted.path, text(wanted.text), run=run)
    return {"path": wanted.path}, {}


_OPERATIONS: Mapping[str, Callable[[Mapping[str, Any], str, str, Texts], Result]] = {
    "open_folder": _open_folder,
    "prepare": _prepare,
    "save_reports": _save_reports,
    "read_file": _read_file,
    "write_file": _write_file,
}
