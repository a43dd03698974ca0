"""The name of a run's folder: ``{timestamp}-{slug}``.

Source of behaviour: TAKT engine, "extraction and storage of reports". A suffix when the folder is
already there is the business of the host.
"""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

_LENGTH = 30


def slugify(task: str) -> str:
    """The first 30 characters of ``task`` as a folder name.

    Letters and digits of any script stay, with the marks that belong to them; every run of other
    characters becomes one ``-``; lower case; no ``-`` at either end; ``task`` when nothing is left. So
    the result never holds a dot, a path separator, a blank or a control character.
    """
    slug = ""
    for char in unicodedata.normalize("NFC", task[:_LENGTH]).lower():
        if _is_letter_or_digit(char) or (slug and slug[-1] != "-" and _is_mark(char)):
            slug += char
        elif slug and slug[-1] != "-":
            slug += "-"
    return slug.rstrip("-") or "task"


def timestamp(at: float) -> str:
    """``YYYYMMDD-HHmmss``, UTC, of seconds since the epoch."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y%m%d-%H%M%S")


def _is_letter_or_digit(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] == "L" or category == "Nd"


def _is_mark(char: str) -> bool:
    emoji_style = "\ufe00" <= char <= "\ufe0f"
    return unicodedata.category(char) in ("Mn", "Mc") and not emoji_style
