"""What the file system refuses, said to a person: what was tried, on which path, what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cadenza.errors import HostError

ANY_RUN = "RUN"
"""Stands in a hint where the caller did not say which run it is."""

_CODES = {
    errno.ENOSPC: "disk_full",
    errno.EDQUOT: "disk_full",
    errno.EROFS: "read_only",
    errno.EACCES: "read_only",
    errno.EPERM: "read_only",
    errno.ENOENT: "not_found",
}
_IN_THE_WAY = {errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY}
_TO_DO = {
    "disk_full": "free space",
    "read_only": "allow writing there",
    "not_found": "put it back",
    "in_the_way": "move away what is in the way",
    "failed": "put that right",
}


@contextmanager
def explained(action: str, path: str | Path, *, run: str = ANY_RUN) -> Iterator[None]:
    """Turn an OSError of the block into a HostError.

    Args:
        action: what is being done, to follow "cannot" ("save the report").
        path: the file or folder that a person knows, not a temporary one.
        run: the run's id, for the hint.

    Raises:
        HostError: with code ``disk_full`` (no space, quota), ``read_only`` (read-only disk, no
            permission), ``not_found`` or ``failed``.
    """
    try:
        yield
    except OSError as error:
        raise host_error(error, action, path, run=run) from error


def host_error(error: OSError, action: str, path: str | Path, *, run: str = ANY_RUN) -> HostError:
    """The HostError for an OSError; see :func:`explained`."""
    code = _CODES.get(error.errno or 0, "failed")
    to_do = _TO_DO["in_the_way" if error.errno in _IN_THE_WAY else code]
    reason = error.strerror or str(error) or type(error).__name__
    message = f"cannot {action} {shown(path)}: {reason}"
    return HostError(message, code=code, hint=f"{to_do}, then cadenza resume {run}")


def name_error(action: str, name: str, problem: str, *, hint: str, code: str = "escapes") -> HostError:
    """The HostError for a name that is not used as a path: ``problem`` says what is wrong with it."""
    return HostError(f"cannot {action} {name!r}: this name {problem}", code=code, hint=hint)


def shown(path: str | Path) -> str:
    """``path`` on one line, whatever is in it."""
    text = os.fspath(path)
    return text if text.isprintable() else ascii(text)
