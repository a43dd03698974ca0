"""Names that are safe as files, and paths that stay where they belong.

A link is followed before a path is judged. That holds for links that were there; it does not hold
against a process of the same user that swaps them while a file is being written.
"""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from datetime import UTC, datetime
from pathlib import Path, PureWindowsPath

from cadenza.errors import HostError
from cadenza.host.trouble import ANY_RUN, explained, name_error, shown
from cadenza.piece.report_files import report_name_problem

_PART_BYTES = 100


def stamp(at: float) -> str:
    """``YYYYMMDDTHHMMSSZ``, UTC, of seconds since the epoch (TAKT engine, snapshot names)."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y%m%dT%H%M%SZ")


def file_part(name: str) -> str:
    """``name`` as a part of a file name: of any movement, slug or run, different for different names.

    Letters, marks and digits of any script, ``-``, ``_`` and inner dots stay. Where anything else is
    in ``name``, or it is longer than 100 bytes, each such character becomes ``-`` and eight hex digits
    of the name's hash follow, so that ``a/b`` and ``a b`` do not share a file.
    """
    plain = unicodedata.normalize("NFC", name)
    safe = "".join(char if _is_safe(char) else "-" for char in plain)
    if safe == plain and safe and safe[0] != "." and len(safe.encode()) <= _PART_BYTES:
        return safe
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    short = safe.encode()[:_PART_BYTES].decode("utf-8", "ignore").strip(".-")
    return f"{short}-{digest}" if short else digest


def working_folder(cwd: str, *, run: str = ANY_RUN) -> Path:
    """``cwd`` as a real path. Raises HostError (``not_found``) where there is no such folder."""
    return _existing(Path(cwd), "work in", run)


def run_folder(cwd: str, folder: str, *, run: str = ANY_RUN) -> Path:
    """The run's folder as a real path.

    Args:
        cwd: the working directory.
        folder: the folder, relative to it, with ``/``.
        run: the run's id, for hints.

    Raises:
        HostError: ``escapes`` when it is not inside ``cwd``, ``not_found`` when it is not there.
    """
    path = inside(working_folder(cwd, run=run), folder, "use the run's folder", run=run)
    try:
        return _existing(path, "use the run's folder", run)
    except HostError as error:
        if error.code != "not_found":
            raise
        hint = f"cadenza doctor --rebuild makes it again from the journal; then cadenza resume {run}"
        raise HostError(error.message, code=error.code, hint=hint) from error


def inside(base: Path, name: str, action: str, *, run: str = ANY_RUN) -> Path:
    """``base / name``, where that is inside ``base`` also when every link is followed.

    Raises:
        HostError: ``escapes`` for absolute names, drives, ``..``, NUL, lone surrogates and links that
            lead out.
    """
    if problem := _escape(name):
        raise name_error(action, name, problem, hint="use a relative name that stays inside")
    with explained(action, base / name, run=run):
        real, home = os.path.realpath(base / name), os.path.realpath(base)
    if os.path.commonpath([real, home]) != home:
        hint = f"remove the link, then cadenza resume {run}"
        raise name_error(action, os.fspath(base / name), f"is a link that leads out, to {real!r}", hint=hint)
    return base / name


def report_path(folder: Path, name: str, action: str, *, run: str = ANY_RUN) -> Path:
    """The file of a report in the run's folder; sub-folders are allowed.

    Raises:
        HostError: ``escapes`` as :func:`inside`; ``failed`` for other names that no report may have.
    """
    problem = report_name_problem(name)
    if problem and not _escape(name):
        raise name_error(action, name, problem, hint="rename the report in the piece", code="failed")
    return inside(inside(folder, "reports", action, run=run), name, action, run=run)


def _existing(path: Path, action: str, run: str) -> Path:
    with explained(action, path, run=run):
        is_folder = _is_path(path) and stat.S_ISDIR(path.stat().st_mode)
    if not is_folder:
        message = f"cannot {action} {shown(path)}: this is not a folder"
        raise HostError(message, code="not_found", hint=f"put a folder there, then cadenza resume {run}")
    return Path(os.path.realpath(path))


def _escape(name: str) -> str | None:
    if not _is_path(name):
        return "holds a NUL character or a lone surrogate"
    if name.startswith(("/", "\\")) or PureWindowsPath(name).drive:
        return "is an absolute path"
    return "leaves its folder" if ".." in name.replace("\\", "/").split("/") else None


def _is_path(name: str | Path) -> bool:
    """Whether the operating system takes it; bytes that are not UTF-8 come and go as surrogates."""
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        return False


def _is_safe(char: str) -> bool:
    return char in "-_." or unicodedata.category(char)[0] in "LMN"
