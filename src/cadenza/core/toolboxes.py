"""Which tools a run has, and which of them a movement may use.

The array is the union over all movements, in one order that nothing changes: control tools, the package's
own, plug-ins by name, servers in the order of the piece. What a movement may not use is refused when it
is called (Maestro, KV cache laws).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cadenza.core import control
from cadenza.core.tooling import Permission, Rights, Toolbox, ToolSpec
from cadenza.piece.model import Movement, Piece
from cadenza.piece.vocabulary import PermissionMode

ALWAYS = frozenset({control.TRANSITION, control.COMPLETE, control.USE_TOOL, control.WRITE_REPORT})
"""Control tools that every movement may use."""

RUN_MODES: dict[PermissionMode, Permission] = {
    "default": "readonly",
    "acceptEdits": "edit",
    "bypassPermissions": "full",
}


def make_toolbox(piece: Piece, work: Sequence[ToolSpec], others: Sequence[ToolSpec] = ()) -> Toolbox:
    """The toolbox of a run: ``work`` are the package's own tools in their order, ``others`` those of plug-ins
    and servers."""
    movements = list(_movements(piece))
    named = frozenset(name for movement in movements for name in movement.allowed_tools or ())
    known = [*work, *others]
    used = [spec for spec in known if any(_is_allowed(movement, spec) for movement in movements)]
    offered = (*control.control_tools(piece, named), *used)
    names = {spec.name for spec in offered}
    wanted = control.REQUEST_TOOL in names
    granted = tuple(spec for spec in known if spec.name not in names) if wanted else ()
    return Toolbox(offered=offered, granted=granted)


def narrowed(toolbox: Toolbox, movement: Movement) -> Toolbox:
    """The toolbox of one movement, for ``stable_tools: movement``."""
    offered = tuple(spec for spec in toolbox.offered if may_use(movement, spec))
    return Toolbox(offered=offered, granted=toolbox.granted)


def may_use(movement: Movement, spec: ToolSpec) -> bool:
    """Whether a movement's ``allowed_tools`` let it call a tool that is offered."""
    return spec.name in ALWAYS or _is_allowed(movement, spec)


def usable(movement: Movement, toolbox: Toolbox) -> Iterable[str]:
    """The names of the offered tools that a movement may use."""
    return (spec.name for spec in toolbox.offered if may_use(movement, spec))


def _is_allowed(movement: Movement, spec: ToolSpec) -> bool:
    """Without ``allowed_tools``: tools that read the workspace, and with ``edit: true`` those that change its
    files. Commands, the network, servers and plug-ins are named or not used."""
    if movement.allowed_tools is None:
        if spec.origin != "cadenza" or spec.kind != "work" or spec.name in NAMED_ONLY:
            return False
        return spec.permission == "readonly" or (spec.permission == "edit" and movement.edit is True)
    return any(_fits(name, spec.name) for name in movement.allowed_tools)


NAMED_ONLY = frozenset({"run_command", "shell", "fetch_url"})
"""Tools that no movement has by itself."""


def _fits(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _movements(piece: Piece) -> Iterable[Movement]:
    for top in piece.movements:
        yield top
        yield from top.lanes


def mode_of(movement: Movement, run: PermissionMode) -> Permission:
    """The permission mode of a movement's tools: what the person allowed for the run; less where the
    configuration lets this movement only read, or where it says ``edit: false``."""
    only_reads = movement.edit is False or movement.permission == "readonly"
    return "readonly" if only_reads else RUN_MODES[run]


def rights_of(movement: Movement, run: PermissionMode) -> Rights:
    """What each tool call of a movement may do."""
    mode = mode_of(movement, run)
    commands = movement.allowed_commands
    if commands is None and mode != "full":
        commands = ()
    rights = Rights(permission=mode, commands=commands, network=movement.network)
    if movement.tool_timeout is None:
        return rights
    return Rights(permission=mode, commands=commands, network=movement.network, seconds=movement.tool_timeout)
