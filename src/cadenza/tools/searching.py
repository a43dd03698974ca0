"""Tools that look for files and for text in them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from cadenza.core.tooling import ToolSpec
from cadenza.tools.base import Tool, ToolContext, ToolError, ToolResult
from cadenza.tools.guard import inside, shown
from cadenza.tools.schemas import flag, number, schema, text

MOST_FOUND = 500
MOST_LINE = 400
SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv"})
"""Folders that no search goes into, unless it is told to begin there."""

SEARCH_SECONDS = 20.0
"""How long a pattern may be looked for: one that never ends is given up then."""


def _walk(root: Path) -> Iterator[Path]:
    """Every regular file below a folder, by name; links are not followed."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(files):
            place = Path(folder, name)
            if place.is_file() and not place.is_symlink():
                yield place


def _glob(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    root = inside(context.workspace, arguments.get("path", "."))
    pattern = arguments["pattern"].lstrip("/")
    found = [
        shown(context.workspace, place) for place in _walk(root) if _fits(place.relative_to(root), pattern)
    ]
    body = "\n".join(found[:MOST_FOUND]) or "(nothing found)"
    left = len(found) - MOST_FOUND
    return ToolResult(text=body + (f"\n[{left} more]" if left > 0 else ""), data={"found": len(found)})


def _fits(path: Path, pattern: str) -> bool:
    """Whether a path fits: ``**`` stands for any folders, ``*`` for part of one name."""
    return _parts(path.parts, tuple(pattern.split("/")))


def _parts(path: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Which beginnings of the path each beginning of the pattern fits, pattern part by pattern part."""
    reached = {0}
    for part in pattern:
        if part == "**":
            reached = set(range(min(reached), len(path) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(path) and fnmatchcase(path[at], part)}
    return len(path) in reached


def _grep(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    """Look in another process: a pattern that takes for ever is killed with it."""
    root = inside(context.workspace, arguments.get("path", "."))
    if not root.exists():
        raise ToolError(f"there is no {arguments.get('path')}", code="not_found")
    files = [root] if root.is_file() else list(_walk(root))
    wanted = arguments.get("glob")
    if wanted:
        files = [
            place for place in files if fnmatchcase(place.name, wanted) or _fits_below(root, place, wanted)
        ]
    flags = "i" if arguments.get("ignore_case") else ""
    most = str(arguments.get("limit", MOST_FOUND))
    command = [sys.executable, "-I", "-c", _SEARCH, arguments["pattern"], flags, most, str(MOST_LINE)]
    names = "\0".join(map(str, files)).encode("utf-8", "surrogateescape")
    try:
        done = subprocess.run(command, input=names, capture_output=True, timeout=SEARCH_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        message = f"the pattern took longer than {SEARCH_SECONDS:g} seconds; make it simpler"
        raise ToolError(message, code="timeout") from None
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode == 2:
        raise ToolError(f"the pattern cannot be read: {output.strip()}", code="bad_pattern")
    if done.returncode != 0:
        raise ToolError(f"the search failed: {done.stderr.decode('utf-8', 'replace')[-300:]}")
    prefix = os.path.realpath(context.workspace) + "/"
    lines = [line.removeprefix(prefix) for line in output.splitlines()]
    return ToolResult(text="\n".join(lines) or "(nothing found)", data={"found": len(lines)})


def _fits_below(root: Path, place: Path, pattern: str) -> bool:
    return root.is_dir() and _fits(place.relative_to(root), pattern)


_SEARCH = r"""
import re, sys
pattern, flags, most, longest = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
try:
    wanted = re.compile(pattern, re.IGNORECASE if "i" in flags else 0)
except (re.error, RecursionError, OverflowError) as error:
    print(error)
    sys.exit(2)
found = 0
sys.stdout.reconfigure(encoding="utf-8", errors="replace")
for name in sys.stdin.buffer.read().split(b"\0"):
    if not name:
        continue
    shown = name.decode("utf-8", "replace")
    try:
        with open(name, "rb") as file:
            if b"\0" in file.read(8192):
                continue
            file.seek(0)
            for number, line in enumerate(file, 1):
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                if wanted.search(text):
                    found += 1
                    if found > most:
                        print("[more; narrow the search]")
                        sys.exit(0)
                    print(f"{shown}:{number}: {text[:longest]}")
    except OSError:
        continue
"""

SEARCHING: tuple[Tool, ...] = (
    Tool(
        ToolSpec(
            name="glob",
            description="Find files by name: * stands for part of a name, ** for any folders.",
            parameters=schema(
                ("pattern",),
                pattern=text("As src/**/*.py."),
                path=text("Where to begin; leave it out for the workspace."),
            ),
            effect="read",
        ),
        _glob,
    ),
    Tool(
        ToolSpec(
            name="grep",
            description="Find lines of text files that fit a regular expression.",
            parameters=schema(
                ("pattern",),
                pattern=text("A regular expression (Python's)."),
                path=text("A file or a folder; leave it out for the workspace."),
                glob=text("Only files whose name fits, as *.py."),
                ignore_case=flag("Do not tell large and small letters apart."),
                limit=number("At most so many lines."),
            ),
            effect="read",
        ),
        _grep,
    ),
)
"""The search tools in their order."""
