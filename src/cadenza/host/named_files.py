"""Files that a piece names itself: the table that an arpeggio reads, and the file that it writes."""

from __future__ import annotations

import os
from pathlib import Path

from cadenza.errors import HostError
from cadenza.host import files
from cadenza.host.trouble import ANY_RUN, explained

FILE_LIMIT = 64 * 1024 * 1024
"""The longest file that is read, in bytes."""


def read_file(cwd: str, path: str, *, run: str = ANY_RUN) -> str:
    """The text of a file; a relative ``path`` is taken from ``cwd``. NUL becomes U+FFFD.

    Raises:
        HostError: it is not there, too long, no UTF-8, or cannot be read.
    """
    target = Path(cwd) / path
    with explained("read", target, run=run):
        size = target.stat().st_size
        if size > FILE_LIMIT:
            message = f"cannot read {target}: it has {size} bytes, {FILE_LIMIT} at most"
            raise HostError(message, hint=f"shorten it, then cadenza resume {run}")
        data = target.read_bytes()
    try:
        return data.decode("utf-8").replace("\0", "\ufffd")
    except UnicodeDecodeError as error:
        message = f"cannot read {target}: it is no UTF-8 (byte {error.start})"
        raise HostError(message, hint=f"save it as UTF-8, then cadenza resume {run}") from error


def write_file(cwd: str, path: str, text: str, *, run: str = ANY_RUN) -> None:
    """Make a file hold ``text``, at once or not at all; a relative ``path`` is taken from ``cwd``.

    Raises:
        HostError: it cannot be written; ``escapes`` where it is not in ``cwd``, every link followed.
    """
    target = Path(cwd) / path
    home = os.path.realpath(cwd)
    if os.path.commonpath([os.path.realpath(target), home]) != home:
        message = f"cannot write {target}: it is outside the working directory {home}"
        hint = f"give the piece an output inside it, then start again; or cadenza cancel {run}"
        raise HostError(message, code="escapes", hint=hint)
    with explained("write", target, run=run):
        files.make_folder(target.parent)
        files.write(target, text.encode("utf-8", "replace"), scratch=target.parent)
