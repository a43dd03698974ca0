"""Named queries: all SQL lives in ``sql/*.sql``, each statement under a ``-- name --`` line and a comment."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_NAME = re.compile(r"^-- (\w+) --$", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n", re.MULTILINE)


@cache
def load(file: str) -> dict[str, str]:
    """The statements of one file of the package's ``sql`` folder by name, in the file's order."""
    text = (Path(__file__).parent / "sql" / file).read_text(encoding="utf-8")
    _, *pairs = _NAME.split(text)
    names, bodies = pairs[::2], pairs[1::2]
    return {
        name: _COMMENT.sub("", body).strip().rstrip(";") for name, body in zip(names, bodies, strict=True)
    }
