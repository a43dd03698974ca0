"""How much room text takes on a terminal or in a drawing, where some characters are two columns wide."""

from __future__ import annotations

import re
import unicodedata

_WIDE = r"\u1100-\u11ff\u2e80-\uffdc\U0001f000-\U0003fffd"
_PARTS = re.compile(rf"\s+|[^\s{_WIDE}/-]*[/-]+|[^\s{_WIDE}/-]+|.", re.S)
"""What a line may be broken behind: white space, words, hyphens and slashes, and single characters of scripts
without spaces."""

_NOT_FIRST = "、。，．・：；？！）］｝」』】〉》〕ーぁぃぅぇぉっゃゅょァィゥェォッャュョ…々"
"""What no line may begin with (Japanese typesetting)."""


def columns(text: str) -> int:
    """How many columns of a terminal ``text`` takes."""
    if text.isascii():
        return len(text)
    return sum(_width(char) for char in text)


def _width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Cc"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def padded(text: str, width: int, fill: str = " ") -> str:
    """``text`` with ``fill`` behind it up to ``width`` columns."""
    return text + fill * (width - columns(text))


def wrapped(text: str, width: int) -> list[str]:
    """The lines of ``text``, each at most ``width`` columns wide; at least one.

    Lines break at white space and between the characters of scripts that have none; a word that is
    longer than a line is broken inside.
    """
    lines, line = [], ""
    for part in _breakable(text, width):
        if line and columns(line) + columns(part.rstrip()) > width and part[0] not in _NOT_FIRST:
            lines.append(line.rstrip())
            line = ""
        line += part if line else part.lstrip()
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def _breakable(text: str, width: int) -> list[str]:
    parts: list[str] = []
    for part in _PARTS.findall(one_line(text)):
        while columns(part) > width:
            parts.append(part[:width])
            part = part[width:]  # noqa: PLW2901
        parts.append(part)
    return parts


def one_line(text: str) -> str:
    """``text`` on one line, without control characters and what turns the reading order."""
    return "".join(char for char in " ".join(text.split()) if not _steers(char))


def _steers(char: str) -> bool:
    return (
        unicodedata.category(char) in ("Cc", "Cs")
        or "\u202a" <= char <= "\u202e"
        or "\u2066" <= char <= "\u2069"
    )
