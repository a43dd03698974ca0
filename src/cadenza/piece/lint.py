"""All problems of a piece file at once, each with its place, the value and the fix.

Lint looks at what loading looks at, and at more: movements that
nothing leads to, and cycles that nothing ends. Our own format is read
strictly; in TAKT's an unknown key is a warning, because TAKT ignores it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cadenza.piece.dialects import Reading, dialect_of_node
from cadenza.piece.dialects.checks import endless, unreachable
from cadenza.piece.find import find_piece, read_found
from cadenza.piece.problems import Problem, Refused, in_order
from cadenza.piece.source import read_source
from cadenza.piece.vocabulary import Dialect, Language


def lint(
    path: str | Path, *, cwd: str | Path | None = None, language: Language | None = None
) -> list[Problem]:
    """The problems of one piece, by their place in the file; ``path`` may be a piece's name as well.

    Raises:
        NotFound: there is no such file or piece. Everything else is a problem in the list.
    """
    cwd = Path.cwd() if cwd is None else cwd
    found = find_piece(str(path), cwd=cwd, language=language)
    try:
        reading = read_found(found, shown=str(path), cwd=cwd, language=language)
    except Refused as error:
        return list(error.details)
    _look_closer(reading)
    return in_order(reading.problems.found)


def _look_closer(reading: Reading) -> None:
    if reading.draft is None:
        return
    for placed in unreachable(reading.draft):
        what = "nothing leads to this movement"
        fix = "name it in a rule's next:, or remove it"
        reading.problems.warning(placed.fields.at("name"), what, placed.movement.name, fix)
    for placed in endless(reading.draft):
        what = "no way leads from here to an end: only max_movements stops it"
        fix = "add a rule with next: COMPLETE or ABORT to the cycle, or a loop monitor"
        reading.problems.warning(placed.fields.at("name"), what, placed.movement.name, fix)


def dialect_of(path: str | Path) -> Dialect:
    """The format that a piece file is of: ``native`` (top-level ``cadenza:``) or ``takt``.

    Raises:
        NotFound: there is no such file.
        PieceError: it cannot be read or parsed.
    """
    return dialect_of_node(read_source(path).root)


def has_errors(problems: Iterable[Problem]) -> bool:
    """Whether any of ``problems`` keeps the piece from being played."""
    return any(problem.severity == "error" for problem in problems)


__all__ = ["Problem", "dialect_of", "has_errors", "lint"]
