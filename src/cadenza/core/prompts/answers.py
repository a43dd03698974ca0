"""Reading what a model answered when it was asked for JSON.

Small models wrap their JSON in a code block, larger ones explain it first; nothing here raises, whatever
the text. Strings out of JSON can hold what plain replies cannot (``\\ud800``, ``\\u0000``), so whoever
keeps one runs it through :func:`clean` first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_UNKEPT = re.compile("[\x00\ud800-\udfff]")
_DIGITS = 9


def json_answer(text: str) -> object:
    """The JSON that ``text`` is, or that its only code block holds; ``None`` when it is no JSON.

    Blocks in another language than JSON do not count; those without a language do.
    """
    if len(blocks := [block for _, block in _blocks(text)]) == 1:
        text = blocks[0]
    return parsed(text)


def json_blocks(text: str) -> Iterator[object]:
    """What the ```` ```json ```` blocks of ``text`` hold, the last one first."""
    for language, block in reversed(list(_blocks(text))):
        if language:
            yield parsed(block)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The language (``json`` or none) and the content of each closed code block."""
    opened: str | None = None
    lines: list[str] = []
    for line in text.split("\n"):
        mark = line.strip()
        if opened is None:
            if mark.startswith("```") and "`" not in mark[3:]:
                opened, lines = mark[3:].strip().lower(), []
        elif mark != "```":
            lines.append(line)
        else:
            if opened in ("", "json"):
                yield opened, "\n".join(lines)
            opened = None


def parsed(text: str) -> object:
    """``text`` as JSON, or ``None``."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def field(answer: object, name: str) -> object:
    """``answer[name]`` where the answer is an object that has it, else ``None``."""
    return answer.get(name) if isinstance(answer, dict) else None


def whole(value: object) -> int | None:
    """``value`` if it is an integer. ``true``, ``1.0`` and ``"1"`` are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def digits(text: str) -> int | None:
    """ASCII digits as a number; ``None`` for more than nine significant ones, and for anything else."""
    if not (text.isascii() and text.isdigit()):
        return None
    text = text.lstrip("0")
    return int(text or "0") if len(text) <= _DIGITS else None


def within(number: int | None, count: int) -> int | None:
    """``number`` if it is one of 1 to ``count``."""
    return number if number is not None and 1 <= number <= count else None


def clean(text: str) -> str:
    """``text`` as the journal can keep it: NUL and lone surrogates become U+FFFD."""
    return _UNKEPT.sub("\ufffd", text)
