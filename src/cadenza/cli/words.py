"""Figures, ages and texts as a person reads them."""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from cadenza.cli.output import is_terminal


def clean(text: str) -> str:
    """``text`` without what could move a terminal's cursor, change its colours, or turn its reading order."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char for char in text if char in "\n\t" or not _steers(char))


def _steers(char: str) -> bool:
    return (
        unicodedata.category(char) in ("Cc", "Cs")
        or "\u202a" <= char <= "\u202e"
        or ("\u2066" <= char <= "\u2069")
    )


_LAST_TAG = re.compile(r"[ \t]*\[[ \t]*step[ \t]*:[ \t]*[0-9]+[ \t]*\]\Z", re.IGNORECASE)


def answer_words(value: Any) -> str:
    """An answer as a person reads it: text as it is, a decision in a word, all else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and isinstance(value.get("approved"), bool):
        word = "approved" if value["approved"] else "declined"
        return f"{word}: {value['note']}" if value.get("note") else word
    if isinstance(value, bool):
        return "yes" if value else "no"
    return json.dumps(value, ensure_ascii=False)


def without_tag(text: str) -> str:
    """A model's text without the status tags (``[STEP:N]``) that it ends with; they are for the engine."""
    from cadenza.core.tags import is_tag_line

    while True:
        kept = text.rstrip()
        before, newline, last = kept.rpartition("\n")
        shorter = before if is_tag_line(last) else _LAST_TAG.sub("", kept)
        if shorter == kept:
            return text
        text = shorter.rstrip() + ("\n" if newline else "")


def one_line(text: str, width: int = 72) -> str:
    """The beginning of ``text`` on one line."""
    return cut(" ".join(clean(text).split()), width)


def cut(text: str, width: int) -> str:
    """``text``, or what fits into ``width`` columns with ``…`` behind it."""
    if columns(text) <= width:
        return text
    kept = ""
    for char in text:
        if columns(kept + char) > width - 1:
            break
        kept += char
    return f"{kept}…"


def columns(text: str) -> int:
    """How many columns of a terminal ``text`` takes."""
    if text.isascii():
        return len(text)
    return sum(_width(char) for char in text)


def _width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def duration(seconds: float) -> str:
    """``0.3 s``, ``4 min 10 s``, ``2 h 5 min``, ``3 d 4 h``."""
    if seconds < 60:
        return f"{max(seconds, 0):.1f} s"
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def age(seconds: float) -> str:
    """The largest unit only: ``12 s``, ``4 min``, ``2 h``, ``3 d``."""
    whole = max(0, int(seconds))
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if whole >= size:
            return f"{whole // size} {unit}"
    return f"{whole} s"


def tokens(read: int, written: int, cached: int = 0) -> str:
    """``1,234 tokens in (1,000 cached), 56 out``."""
    kept = f" ({cached:,} cached)" if cached else ""
    return f"{read:,} tokens in{kept}, {written:,} out"


def size(count: int) -> str:
    """Bytes for people."""
    if count < 10_000:
        return f"{count:,} bytes"
    if count < 10_000_000:
        return f"{count / 1000:,.0f} kB"
    return f"{count / 1_000_000:,.1f} MB"


def plural(count: int, noun: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    indent: str = "",
    drop: Sequence[str] = (),
    shrink: Mapping[str, int] = MappingProxyType({}),
) -> list[str]:
    """Lines of aligned columns. On a terminal they fit its width: columns of ``drop`` are left out, the first
    named first, those of ``shrink`` become narrower (to so much), and at last each line is cut."""
    cells = [list(heads), *([one_line(cell, 10_000) for cell in row] for row in rows)]
    widths = [max(columns(row[i]) for row in cells) for i in range(len(heads))]
    if is_terminal():
        room = terminal_width() - len(indent)
        kept, widths = _fitted(heads, widths, room, drop, shrink)
        cells = [[cut(row[i], width) for i, width in zip(kept, widths, strict=True)] for row in cells]
        return [cut(indent + "  ".join(_padded(row, widths)).rstrip(), room + len(indent)) for row in cells]
    return [indent + "  ".join(_padded(row, widths)).rstrip() for row in cells]


def _fitted(
    heads: Sequence[str], widths: Sequence[int], room: int, drop: Sequence[str], shrink: Mapping[str, int]
) -> tuple[list[int], list[int]]:
    """Which columns are shown, and how wide each is."""
    least = [min(width, shrink.get(head, width)) for width, head in zip(widths, heads, strict=True)]
    kept, going = list(range(len(heads))), list(drop)
    while going and sum(least[i] + 2 for i in kept) - 2 > room:
        kept.remove(heads.index(going.pop(0)))
    now = {i: widths[i] for i in kept}
    while sum(width + 2 for width in now.values()) - 2 > room:
        widest = max(kept, key=lambda i: (now[i] - least[i] > 0, now[i]))
        if now[widest] <= least[widest]:
            break
        now[widest] -= 1
    return kept, list(now.values())


def terminal_width() -> int:
    """How many columns the terminal has."""
    return shutil.get_terminal_size().columns


def wrapped(head: str, text: str) -> list[str]:
    """``head`` and ``text``; on a terminal in lines of its width, each but the first indented like the first.

    A word that is longer than a line (a path, a command) stays whole, so that it can be copied.
    """
    width, lines, line, empty = terminal_width(), list[str](), head, True
    if not is_terminal() or columns(head + text) <= width:
        return [head + text]
    gap = " " * min(columns(head), 13)
    for word in text.split(" "):
        if not empty and columns(f"{line} {word}") > width:
            lines.append(line)
            line, empty = gap, True
        line = line + word if empty else f"{line} {word}"
        empty = False
    return [*lines, line]


def _padded(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [cell + " " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True)]
