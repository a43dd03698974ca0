"""Tools that read and change files of the workspace."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from cadenza.core.tooling import ToolSpec
from cadenza.tools.base import Tool, ToolContext, ToolError, ToolResult
from cadenza.tools.guard import inside, shown
from cadenza.tools.schemas import flag, number, schema, text

LINES = 2_000
"""How many lines of a file are read when nothing else is asked for."""

MOST_READ = 16 * 1024 * 1024
"""Larger files are read in parts only, by ``offset`` and ``limit``."""


def _read(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    place = _file(context, arguments["path"])
    offset, limit = arguments.get("offset", 1), arguments.get("limit", LINES)
    lines, total = [], 0
    with place.open("rb") as file:
        if b"\0" in file.read(8192):
            raise ToolError(
                f"{arguments['path']} is no text file ({place.stat().st_size:,} bytes)", code="binary"
            )
        file.seek(0)
        for total, line in enumerate(file, 1):
            if offset <= total < offset + limit:
                lines.append(line.decode("utf-8", "replace"))
    body = "".join(lines)
    more = total - (offset + len(lines) - 1)
    if more > 0 and lines:
        body += f"\n[{more} more lines; go on with offset {offset + len(lines)}]"
    data = {"path": shown(context.workspace, place), "lines": total}
    return ToolResult(text=body or "(nothing there)", data=data)


def _write(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    place = inside(context.workspace, arguments["path"], writing=True)
    content = arguments["content"]
    write_whole(place, content)
    size = len(content.encode("utf-8"))
    return ToolResult(
        text=f"Wrote {shown(context.workspace, place)} ({size} bytes).",
        data={"path": shown(context.workspace, place), "bytes": size},
    )


def _append(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    place = inside(context.workspace, arguments["path"], writing=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    with os.fdopen(handle, "ab") as file:
        file.write(arguments["content"].encode("utf-8"))
    return ToolResult(
        text=f"Appended to {shown(context.workspace, place)}.",
        data={"path": shown(context.workspace, place), "bytes": place.stat().st_size},
    )


def _edit(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    place = _file(context, arguments["path"])
    inside(context.workspace, arguments["path"], writing=True)
    old, new = arguments["old"], arguments["new"]
    if old == new:
        raise ToolError("old and new are the same text: there is nothing to change", code="nothing")
    before = _text(place)
    found = before.count(old)
    if found == 0:
        raise ToolError(_not_found(before, old, arguments["path"]), code="not_found")
    if found > 1 and not arguments.get("all", False):
        message = f"the old text stands {found} times in {arguments['path']}: give more of it, or set all"
        raise ToolError(message, code="ambiguous")
    write_whole(place, before.replace(old, new))
    return ToolResult(
        text=f"Changed {shown(context.workspace, place)} ({found} places)."
        if found > 1
        else f"Changed {shown(context.workspace, place)}.",
        data={"path": shown(context.workspace, place), "changes": found},
    )


def _not_found(before: str, old: str, path: str) -> str:
    lines = before.splitlines()
    first = next((line for line in old.splitlines() if line.strip()), old)
    near = get_close_matches(first, lines[:20_000], n=1, cutoff=0.6)
    meant = f" The nearest line is {lines.index(near[0]) + 1}: {near[0].strip()!r}." if near else ""
    return f"the old text does not stand in {path}.{meant} Read the file and copy the text exactly."


def _delete(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    place = inside(context.workspace, arguments["path"], writing=True)
    if place.is_dir() and not place.is_symlink():
        if any(place.iterdir()):
            raise ToolError(f"{arguments['path']} is a folder that is not empty", code="not_empty")
        place.rmdir()
    else:
        existed = os.path.lexists(place)
        place.unlink(missing_ok=True)
        if not existed:
            return ToolResult(text=f"{arguments['path']} is not there.", data={"path": arguments["path"]})
    return ToolResult(text=f"Deleted {arguments['path']}.", data={"path": arguments["path"]})


def _list(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    place = inside(context.workspace, arguments.get("path", "."))
    if not place.is_dir():
        raise ToolError(f"{arguments.get('path', '.')} is no folder", code="not_found")
    entries = sorted(os.scandir(place), key=lambda entry: entry.name)
    names = [entry.name + ("/" if entry.is_dir() else "") for entry in entries]
    shown_names, left = names[:LINES], len(names) - LINES
    body = "\n".join(shown_names) or "(empty)"
    return ToolResult(text=body + (f"\n[{left} more]" if left > 0 else ""), data={"entries": len(names)})


def _make(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    place = inside(context.workspace, arguments["path"], writing=True)
    place.mkdir(parents=True, exist_ok=True)
    return ToolResult(text=f"{shown(context.workspace, place)} is there.", data={"path": arguments["path"]})


def _info(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
    place = inside(context.workspace, arguments["path"])
    try:
        found = place.stat()
    except FileNotFoundError:
        return ToolResult(text=f"{arguments['path']} is not there.", data={"exists": False})
    kind = "folder" if stat.S_ISDIR(found.st_mode) else "file" if stat.S_ISREG(found.st_mode) else "other"
    data = {"exists": True, "kind": kind, "bytes": found.st_size, "mode": stat.filemode(found.st_mode)}
    return ToolResult(text=f"{kind}, {found.st_size} bytes, {data['mode']}", data=data)


def _file(context: ToolContext, path: str) -> Path:
    """An existing regular file."""
    place = inside(context.workspace, path)
    if place.is_dir():
        raise ToolError(f"{path} is a folder; list_dir shows it", code="is_folder")
    if not place.is_file():
        near = get_close_matches(place.name, _names(place.parent), n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise ToolError(f"there is no file {path}{meant}", code="not_found")
    return place


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(folder)]
    except OSError:
        return []


def _text(place: Path) -> str:
    if place.stat().st_size > MOST_READ:
        raise ToolError(f"{place.name} is too large to be edited as a whole", code="too_large")
    try:
        return place.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolError(f"{place.name} is not UTF-8 (byte {error.start})", code="binary") from error


def write_whole(place: Path, content: str) -> None:
    """Write a file at once: whoever looks sees the old one or the new one, and a full disk leaves the old."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir():
        raise ToolError(f"{place.name} is a folder", code="is_folder")
    mode = stat.S_IMODE(place.stat().st_mode) if place.exists() else 0o644
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=".cadenza-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


_PATH = text("Path within the workspace.")

FILES: tuple[Tool, ...] = (
    Tool(
        ToolSpec(
            name="read_file",
            description="Read a text file, or a part of it by lines.",
            parameters=schema(
                ("path",),
                path=_PATH,
                offset=number("The first line to read, from 1."),
                limit=number("How many lines."),
            ),
            effect="read",
        ),
        _read,
    ),
    Tool(
        ToolSpec(
            name="write_file",
            description="Write a whole file. What was there before is replaced; folders are made.",
            parameters=schema(("path", "content"), path=_PATH, content=text("All of the file.")),
            effect="idempotent",
            permission="edit",
        ),
        _write,
    ),
    Tool(
        ToolSpec(
            name="edit_file",
            description="Replace a text in a file. The old text must stand there exactly once, or set all.",
            parameters=schema(
                ("path", "old", "new"),
                path=_PATH,
                old=text("The text as it stands there."),
                new=text("What it becomes."),
                all=flag("Replace every place where it stands."),
            ),
            effect="write",
            permission="edit",
        ),
        _edit,
    ),
    Tool(
        ToolSpec(
            name="append_file",
            description="Add text to the end of a file; it is made where there is none.",
            parameters=schema(("path", "content"), path=_PATH, content=text("What to add.")),
            effect="write",
            permission="edit",
        ),
        _append,
    ),
    Tool(
        ToolSpec(
            name="delete_file",
            description="Delete a file, or an empty folder.",
            parameters=schema(("path",), path=_PATH),
            effect="idempotent",
            permission="edit",
        ),
        _delete,
    ),
    Tool(
        ToolSpec(
            name="list_dir",
            description="List a folder: one name a line, folders with a slash.",
            parameters=schema((), path=text("A folder; leave it out for the workspace itself.")),
            effect="read",
        ),
        _list,
    ),
    Tool(
        ToolSpec(
            name="make_dir",
            description="Make a folder, and those above it.",
            parameters=schema(("path",), path=_PATH),
            effect="idempotent",
            permission="edit",
        ),
        _make,
    ),
    Tool(
        ToolSpec(
            name="file_info",
            description="Say whether something is there, of what kind, and how large.",
            parameters=schema(("path",), path=_PATH),
            effect="read",
        ),
        _info,
    ),
)
"""The file tools in their order."""
