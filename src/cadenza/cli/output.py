"""The one writer: stdout is the data, stderr the talk. Each line is flushed; a closed pipe is no error."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, TextIO


class Output:
    """Writes to the streams that ``sys`` names at that moment.

    When the reader of stdout goes away, the rest is dropped and the command goes on to its end: a run is
    not harmed by ``| head -1``. ``failed`` says that stdout could not be written for another reason.
    """

    def __init__(self) -> None:
        self.failed = False

    def line(self, text: str = "") -> None:
        """A line of data."""
        self.raw(f"{text}\n")

    def json(self, value: Any, *, indent: int | None = 2) -> None:
        """A value as JSON; on one line with ``indent=None``."""
        import json

        separators = (",", ":") if indent is None else None
        self.line(json.dumps(value, ensure_ascii=False, indent=indent, separators=separators))

    def raw(self, text: str) -> None:
        """Text as it is."""
        if sys.stdout is None:
            return
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            _drop(sys.stdout)
        except OSError as error:
            _drop(sys.stdout)
            self.failed = True
            self.note(f"error: the output cannot be written: {error.strerror}")

    def note(self, text: str) -> None:
        """A line of talk."""
        if sys.stderr is None:
            return
        try:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
        except OSError:
            _drop(sys.stderr)


def _drop(stream: TextIO) -> None:
    """Let whatever else is written to ``stream`` vanish, also what is still in its buffer."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


def is_terminal() -> bool:
    """Whether stdout is a terminal that a cursor can be moved on."""
    return bool(sys.stdout and sys.stdout.isatty() and os.environ.get("TERM") not in (None, "", "dumb"))


out = Output()
