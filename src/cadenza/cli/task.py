"""Where a run's task comes from: the command line, a file, stdin, or a question at the terminal."""

from __future__ import annotations

import os
import sys
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import typer

from cadenza.cli.output import out
from cadenza.errors import InputRefused, NotFound, UsageError
from cadenza.piece.find import looks_like_path


def read_task(task: str | None, file: Path | None) -> str:
    """The task's text.

    Raises:
        UsageError: none is given and nobody can be asked, or two are.
        NotFound, InputRefused: the file is not there, cannot be read, or is no UTF-8.
    """
    if file is not None:
        if task is not None:
            raise UsageError("the task is given twice", hint="give either TASK or --task-file")
        return _decoded(_file(file), str(file), "the task")
    if task is not None:
        return typed(task, "the task")
    if not is_attended():
        raise UsageError("no task is given", hint="give TASK, '-' to read it from stdin, or --task-file FILE")
    try:
        return str(typer.prompt("Task", err=True))
    except typer.Abort:
        out.note("")
        raise


def is_attended() -> bool:
    """Whether somebody is there who could be asked: stdin is a terminal."""
    return bool(sys.stdin and sys.stdin.isatty())


def piece_reference(piece: str, cwd: Path | None) -> str:
    """A piece as the engine is to look for it: a path is meant from here, wherever ``--cwd`` is."""
    if cwd is None or not looks_like_path(piece):
        return piece
    return os.path.abspath(os.path.expanduser(piece))


@contextmanager
def suggesting(piece: str) -> Iterator[None]:
    """Where no piece has this name and a file here is called so, the hint names the file."""
    try:
        yield
    except NotFound as error:
        if not looks_like_path(piece) and error.message.startswith(f"there is no piece {piece!r}"):
            for file in (f"{piece}.yaml", f"{piece}.yml"):
                if os.path.isfile(file):
                    raise NotFound(error.message, hint=f"did you mean {file}?") from None
        raise


def _file(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return _limited(opened, "the task")
    except FileNotFoundError:
        raise NotFound(f"{file}: there is no such file", hint="check what follows --task-file") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputRefused(f"{file}: the task cannot be read: {why}", hint="give a readable file") from None


def _limited(stream: BinaryIO, what: str) -> bytes:
    """All that can be read; not a byte more than it takes to know that it is too much.

    Raises:
        InputRefused: it is.
    """
    from cadenza.service import MAX_TASK_BYTES

    data = stream.read(MAX_TASK_BYTES + 1)
    if data.startswith(BOM_UTF8):
        data += stream.read(len(BOM_UTF8))
    if len(data.removeprefix(BOM_UTF8)) > MAX_TASK_BYTES:
        raise InputRefused(f"{what} is longer than the limit of {MAX_TASK_BYTES:,} bytes", hint="shorten it")
    return data


def _decoded(data: bytes, source: str, what: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputRefused(
            f"{source}:{line}: {what} is not UTF-8: byte 0x{data[error.start]:02X} at {error.start}",
            hint="save it as UTF-8",
        ) from None


def typed(words: str, what: str) -> str:
    """Text from the command line; ``-`` stands for stdin.

    Raises:
        InputRefused: it holds bytes that are no UTF-8.
    """
    if words == "-":
        return _decoded(_limited(sys.stdin.buffer, what) if sys.stdin else b"", "stdin", what)
    at = next((i for i, char in enumerate(words) if "\udc80" <= char <= "\udcff"), None)
    if at is not None:
        raise InputRefused(
            f"{what} is not valid text: byte 0x{ord(words[at]) - 0xDC00:02X} after {at} characters",
            hint="check the terminal's encoding, or read it from a file",
        )
    return words
