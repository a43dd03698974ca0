"""How a run is to be played, and what can be taken as its task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from cadenza.core.spending import Spend
from cadenza.core.tooling import ToolSpec
from cadenza.errors import InputRefused, NotFound
from cadenza.piece.vocabulary import Language, PermissionMode, Phases

MAX_TASK_BYTES = 1024 * 1024
"""The longest task or answer, in bytes of UTF-8."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is to be played. ``provider`` and ``model`` win over what the piece names.

    ``provider`` is ``openai``, ``scripted:PATH`` or a plug-in's name; ``any_provider``: whoever plays the
    run answers to every name. ``phases`` and ``max_movements`` replace the piece's own. ``interactive``:
    somebody is there, so ``interactive_only`` rules count. ``workspace`` is a name that listings can be
    narrowed to; ``shared``: others work there too. ``budget`` replaces limits of the piece's own. ``tools``
    are those of servers, as they were discovered.
    """

    cwd: Path | None = None
    language: Language | None = None
    permission: PermissionMode = "default"
    provider: str | None = None
    model: str | None = None
    any_provider: bool = False
    phases: Phases | None = None
    max_movements: int | None = None
    interactive: bool = False
    providers: Mapping[str, str] = {}
    workspace: str = "default"
    shared: bool = False
    budget: Spend = Spend()
    tools: Sequence[ToolSpec] | None = None


def working_directory(options: Options) -> Path:
    """Where the run works. Raises NotFound where that is no folder."""
    cwd = (options.cwd or Path.cwd()).resolve()
    if not cwd.is_dir():
        raise NotFound(f"the working directory {cwd} is not there", hint="make it, or give another --cwd")
    return cwd


def check_text(text: str, what: str) -> None:
    """Refuse what cannot be stored, before anything is begun.

    Raises:
        InputRefused: empty, over the limit, NUL or a lone surrogate; the message says where.
    """
    if not text.strip():
        raise InputRefused(f"{what} is empty", hint="give some text")
    bad = next((i for i, c in enumerate(text) if c == "\0" or "\ud800" <= c <= "\udfff"), None)
    if bad is not None:
        shown = f"U+{ord(text[bad]):04X}"
        raise InputRefused(
            f"{what} holds {shown} at character {bad}, which cannot be stored", hint="take it out"
        )
    size = len(text.encode("utf-8"))
    if size > MAX_TASK_BYTES:
        raise InputRefused(
            f"{what} is {size:,} bytes long; the limit is {MAX_TASK_BYTES:,}",
            hint="shorten it",
        )
