"""Files that are there whole or not at all, also after a kill or a power cut.

A file is written beside its place under a hidden name, flushed to the disk, and renamed. The hidden
names are in the run's folder itself, never in ``reports/`` or ``context/``: who lists those sees no
unfinished file. What a kill leaves behind is swept after ten minutes.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cadenza.clock import system_clock

SWEPT_AFTER = 600.0
"""Seconds after which an unfinished file is taken to be left over."""

_UNFINISHED = ".part-"
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM, errno.ENOSYS}
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def write(target: Path, data: bytes, *, scratch: Path) -> None:
    """Make ``target`` hold ``data``; nothing is done where it does already.

    Args:
        target: the file. Its folder is made when it is not there; a link at its place is replaced.
        scratch: the folder for the unfinished file, on the same disk.

    Raises:
        OSError: the old file, if any, is untouched and nothing is left over.
    """
    if holds(target, data):
        return sync_folder(target.parent)
    make_folder(target.parent)
    with _unfinished(data, scratch) as temp:
        os.replace(temp, target)
    sync_folder(target.parent)


def write_new(target: Path, data: bytes, *, scratch: Path) -> None:
    """As :func:`write`, but never over another file.

    Raises:
        FileExistsError: there is something at ``target``.
        OSError: nothing was written.
    """
    make_folder(target.parent)
    with _unfinished(data, scratch) as temp:
        _publish(temp, target)
    sync_folder(target.parent)


def holds(path: Path, data: bytes) -> bool:
    """Whether ``path`` is a plain file, no link, with exactly these bytes."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size != len(data):
        return False
    return path.read_bytes() == data


def make_folder(path: Path) -> None:
    """Make ``path`` and the folders above it, durably. Nothing is done where it is there."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Flush the names in a folder to the disk, where the file system can."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        if error.errno in _NO_SYNC:
            return
        raise
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)


def write_synced(path: Path, data: bytes) -> None:
    """Write a file that must not be there yet, and flush it. It is removed again when that fails."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def sweep(scratch: Path) -> None:
    """Remove the unfinished files in ``scratch`` that a killed process left there a while ago."""
    before = system_clock() - SWEPT_AFTER
    for path in scratch.glob(f"{_UNFINISHED}*"):
        with suppress(OSError):
            if path.lstat().st_mtime < before:
                path.unlink()


def discard(folder: Path) -> None:
    """Remove a folder and all in it, as far as possible."""
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _unfinished(data: bytes, scratch: Path) -> Iterator[Path]:
    temp = scratch / f"{_UNFINISHED}{secrets.token_hex(8)}"
    write_synced(temp, data)
    try:
        yield temp
    finally:
        temp.unlink(missing_ok=True)


def _publish(temp: Path, target: Path) -> None:
    """A link is made only where nothing is; where the disk has no links, look first."""
    try:
        os.link(temp, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(target)) from error
        os.rename(temp, target)
