"""Which names a report may have as a file, and when two names are one file.

Source of behaviour: TAKT engine, storage of reports (a report stays in the report folder).
"""

from __future__ import annotations

import posixpath
import re
import unicodedata

NAME_LIMIT = 200
"""The longest name, in bytes of UTF-8."""

_DRIVE = re.compile(r"[A-Za-z]:")


def report_name_problem(name: str) -> str | None:
    """What is wrong with ``name`` as a file in the report folder, or ``None``.

    A relative path with ``/`` is fine. Refused: nothing, absolute paths and drives, ``..``, a name that
    is a folder, backslashes, control characters, lone surrogates, and more than 200 bytes.
    """
    parts = name.split("/")
    checks = (
        (not name.strip(), "is empty"),
        ("\0" in name, "holds a NUL character"),
        (any(unicodedata.category(char) in ("Cc", "Cs") for char in name), "holds a control character"),
        ("\\" in name, "holds a backslash; write folders with /"),
        (name.startswith("/") or _DRIVE.match(name) is not None, "is an absolute path"),
        (".." in parts, "leaves the report folder"),
        (parts[-1].strip() in ("", "."), "names a folder"),
        (len(name.encode("utf-8", "replace")) > NAME_LIMIT, f"is longer than {NAME_LIMIT} bytes"),
    )
    return next((problem for wrong, problem in checks if wrong), None)


def same_file(name: str) -> str:
    """What two names have in common where some file system takes them for one file.

    ``./Plan.md`` and ``plan.md`` do: folders are written in their shortest form, and neither case nor the
    way in which an accent is encoded counts.
    """
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", posixpath.normpath(name)).casefold())


__all__ = ["NAME_LIMIT", "report_name_problem", "same_file"]
