"""What is wrong with a file: one line per problem, with its place, the value and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from cadenza.errors import PieceError

Severity = Literal["error", "warning"]


class Place(Protocol):
    """Anything that knows where it stands in a file (1-based)."""

    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake, or one thing worth a second look. ``value`` is as written, ``fix`` says what to do."""

    file: str
    line: int
    column: int
    severity: Severity
    message: str
    value: str | None = None
    fix: str | None = None

    def __str__(self) -> str:
        line = f"{self.file}:{self.line}:{self.column}: {self.message}"
        if self.value is not None:
            line += f" ({shown(self.value)})"
        return f"{line}; {self.fix}" if self.fix else line


@dataclass(slots=True)
class Problems:
    """Collects the problems of one file, so that a person sees them all at once."""

    file: str
    found: list[Problem] = field(default_factory=list)
    _seen: set[Problem] = field(default_factory=set)

    def error(self, place: Place, message: str, value: object = None, fix: str | None = None) -> None:
        """Something that must be mended before the piece can be played."""
        self._add("error", place, message, value, fix)

    def warning(self, place: Place, message: str, value: object = None, fix: str | None = None) -> None:
        """Something that is played all the same, perhaps not as meant."""
        self._add("warning", place, message, value, fix)

    def _add(self, severity: Severity, place: Place, message: str, value: object, fix: str | None) -> None:
        text = None if value is None else str(value)
        problem = Problem(self.file, place.line, place.column, severity, message, text, fix)
        if problem not in self._seen:  # one text named by many movements is one problem
            self._seen.add(problem)
            self.found.append(problem)

    @property
    def errors(self) -> list[Problem]:
        """The errors, by their place in the file."""
        return [problem for problem in in_order(self.found) if problem.severity == "error"]

    @property
    def warnings(self) -> list[Problem]:
        """The warnings, by their place in the file."""
        return [problem for problem in in_order(self.found) if problem.severity == "warning"]

    def raise_errors(self) -> None:
        """Raise all errors as one.

        Raises:
            PieceError: there is at least one error; ``problems`` has a line for each.
        """
        if self.errors:
            raise refused(self.errors)


class Refused(PieceError):
    """A :class:`PieceError` that still knows its problems as data, for lint."""

    def __init__(self, details: Iterable[Problem]) -> None:
        self.details = tuple(details)
        lines = tuple(str(problem) for problem in self.details)
        PieceError.__init__(self, "\n".join(lines), problems=lines)


def refused(problems: Iterable[Problem]) -> Refused:
    """The error that carries ``problems``."""
    return Refused(problems)


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """By line and column; equal places keep their order."""
    return sorted(problems, key=lambda problem: (problem.line, problem.column))


def shown(value: str, limit: int = 60) -> str:
    """``value`` on one short line: what an error quotes."""
    line = " ".join(value.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
