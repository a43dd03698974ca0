"""The path guard: whatever a tool opens lies within the workspace, by real paths.

A path is refused when it is absolute (unless it names a place inside), holds a NUL, or when the place that
it really leads to, all links followed, is outside. What is opened for writing is opened below an already
checked folder and never through a link, so a link that is put there meanwhile leads nowhere.
"""

from __future__ import annotations

import os
from pathlib import Path

from cadenza.tools.base import ToolError

PROTECTED = frozenset({".git", ".cadenza", ".takt"})
"""Folders at the top of a workspace that tools read and do not change: the history, pieces and configuration
(an agent that could write them could give itself rights), the runs' own files."""


def inside(workspace: Path, path: str, *, writing: bool = False) -> Path:
    """The real place of ``path``.

    Raises:
        ToolError: it is outside, or nothing that tools may change.
    """
    if "\0" in path:
        raise ToolError("a path cannot hold a NUL character", code="bad_path")
    root = _real(workspace)
    if not root.is_dir():
        raise ToolError("the workspace is not there any more", code="workspace_gone")
    given = Path(path or ".")
    wanted = given if given.is_absolute() else root / given
    try:
        real = _real(wanted.parent) / wanted.name if writing else _real(wanted)
        if writing and (real.is_symlink() or wanted.name in ("", "..", ".")):
            real = _real(wanted)
    except (OSError, RuntimeError, ValueError) as error:
        raise ToolError(f"{path!r} cannot be followed: {error}", code="bad_path") from error
    if real != root and root not in real.parents:
        raise ToolError(f"{path!r} leads out of the workspace; give a path within it", code="outside")
    if writing:
        _check_changeable(root, real, path)
    return real


def _check_changeable(root: Path, real: Path, path: str) -> None:
    if real == root:
        raise ToolError(f"{path!r} is the workspace itself", code="bad_path")
    first = real.relative_to(root).parts[0]
    if first in PROTECTED:
        raise ToolError(f"{path!r} lies in {first}, which tools do not change", code="protected")


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def shown(workspace: Path, real: Path) -> str:
    """A place as the agent should call it: relative to the workspace."""
    root = _real(workspace)
    return "." if real == root else real.relative_to(root).as_posix()
