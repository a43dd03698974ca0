"""Where a run's task comes from: the command line, a file, stdin, or a question at the terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import typer

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
    return str(typer.prompt("Task", err=True))


def is_attended() -> bool:
    """Whether somebody is there who could be asked: stdin is a terminal."""
    return bool(sys.stdin and sys.stdin.isatty())


def piece_reference(piece: str, cwd: Path | None) -> str:
    """A piece as the engine is to look for it: a path is meant from here, wherever ``--cwd`` is."""
    if cwd is None or not looks_like_path(piece):
        return piece
    return os.path.abspath(os.path.expanduser(piece))


def _file(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"{file}: there is no such file", hint="check what follows --task-file") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputRefused(f"{file}: the task cannot be read: {why}", hint="give a readable file") from None


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
        return _decoded(sys.stdin.buffer.read() if sys.stdin else b"", "stdin", what)
    at = next((i for i, char in enumerate(words) if "\udc80" <= char <= "\udcff"), None)
    if at is not None:
        raise InputRefused(
            f"{what} is not valid text: byte 0x{ord(words[at]) - 0xDC00:02X} after {at} characters",
            hint="check the terminal's encoding, or read it from a file",
        )
    return words
