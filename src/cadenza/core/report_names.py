"""How a text names a report. Which names a report may have: :mod:`cadenza.piece.report_files`.

Source of behaviour: TAKT engine, "extraction and storage of reports" (clues to the file name).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeVar

from cadenza.piece.report_files import report_name_problem

__all__ = ["Named", "Names", "Naming", "ReportWanted", "report_name_problem"]

_T = TypeVar("_T")


class ReportWanted(NamedTuple):
    """A report that a movement owes: its file name and, in form 2, its label."""

    name: str
    label: str | None = None


class Naming(IntEnum):
    """How well a text names a report, from weak to strong."""

    PART = 1
    """the label, or the words of the file name, stand among other words"""
    MENTION = 2
    """prose mentions the file name"""
    WORDS = 3
    """the text is the words of the file name"""
    LABEL = 4
    """the text is the label"""
    FILE = 5
    """the text holds the file name"""


class Named(NamedTuple):
    """The one report that a text names best; ``report`` is its index."""

    naming: Naming
    report: int


class Names:
    """The reports of one movement, as other texts may name them."""

    def __init__(self, wanted: Sequence[ReportWanted]) -> None:
        self._labels = [_words(report.label or "") for report in wanted]
        self._stems = [_unnumbered(_words(_stem(report.name))) for report in wanted]
        self._files = [
            (at, _mention(name)) for at, report in enumerate(wanted) for name in _spellings(report)
        ]

    def best(self, title: str) -> Named | None:
        """The report that a heading or a comment names, in whatever way."""
        exact = self.exact(title)
        return self._part(_words(title)) if exact is None and not self.files(title) else exact

    def exact(self, text: str) -> Named | None:
        """The one report whose file name ``text`` holds; where it holds none, whose title it is."""
        if files := self.files(text):
            return Named(Naming.FILE, files.pop()) if len(files) == 1 else None
        return self.equal(text)

    def equal(self, title: str) -> Named | None:
        """The report whose label or whose file name's words ``title`` is."""
        words = _words(title)
        if not words:
            return None
        spoken = (words, _unnumbered(words))
        return _only(Naming.LABEL, self._labels, lambda label: label in spoken) or _only(
            Naming.WORDS, self._stems, lambda stem: stem in spoken
        )

    def files(self, text: str) -> set[int]:
        """The reports whose file names ``text`` mentions; ``x-plan.md`` does not mention ``plan.md``."""
        found = [(match.span(), at) for at, pattern in self._files for match in pattern.finditer(text)]
        spans = [span for span, _ in found]
        return {at for span, at in found if not any(_wider(other, span) for other in spans)}

    def _part(self, words: tuple[str, ...]) -> Named | None:
        """The report whose label or words stand in ``words``; the longest where there are several."""
        lengths = [
            max((len(name) for name in pair if name and _within(name, words)), default=0)
            for pair in zip(self._labels, self._stems, strict=True)
        ]
        longest = max(lengths, default=0)
        return _only(Naming.PART, lengths, lambda length: length == longest) if longest else None


def _only(naming: Naming, names: Sequence[_T], fits: Callable[[_T], bool]) -> Named | None:
    hits = [at for at, name in enumerate(names) if name and fits(name)]
    return Named(naming, hits[0]) if len(hits) == 1 else None


def _words(text: str) -> tuple[str, ...]:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return tuple(word for word in re.split(r"[\W_]+", folded) if word)


def _unnumbered(words: tuple[str, ...]) -> tuple[str, ...]:
    """``01-ai-review`` and ``1. AI Review`` are both about ``ai review``."""
    return words[1:] if words and words[0].isdecimal() else words


def _stem(name: str) -> str:
    file = name.rpartition("/")[2]
    return file.rpartition(".")[0] or file


def _spellings(report: ReportWanted) -> Iterable[str]:
    return {name for name in (report.name, report.name.rpartition("/")[2]) if name}


def _mention(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z0-9_.-]){re.escape(name)}(?![A-Za-z0-9_-]|\.[A-Za-z0-9])", re.IGNORECASE)


def _wider(other: tuple[int, int], span: tuple[int, int]) -> bool:
    return other != span and other[0] <= span[0] and span[1] <= other[1]


def _within(name: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """Whether ``name`` stands in ``words``; a single word of a script without blanks inside one, too."""
    if len(name) == 1 and not name[0].isascii():
        return any(name[0] in word for word in words)
    return any(words[at : at + len(name)] == name for at in range(len(words) - len(name) + 1))
