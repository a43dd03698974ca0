"""What must hold in a piece whose agents act by tools (Maestro, lint and load rules)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cadenza.piece.dialects.fields import Fields
from cadenza.piece.dialects.movements import PlacedMovement, PlacedRule
from cadenza.piece.facets import nearest
from cadenza.piece.problems import Problems
from cadenza.piece.vocabulary import ABORT, COMPLETE, SENTINELS, WAIT_SUBTASKS

DEFAULTS = (COMPLETE, ABORT)
"""The sentinels that ``default_next`` may name: a park has nobody to wait for there."""

TOOLS = {
    "read_file": "readonly",
    "list_dir": "readonly",
    "file_info": "readonly",
    "glob": "readonly",
    "grep": "readonly",
    "write_file": "edit",
    "edit_file": "edit",
    "append_file": "edit",
    "delete_file": "edit",
    "make_dir": "edit",
    "run_command": "edit",
    "shell": "full",
    "fetch_url": "readonly",
    "transition": "readonly",
    "complete": "readonly",
    "use_tool": "readonly",
    "write_report": "readonly",
    "spawn_task": "readonly",
    "wait_subtasks": "readonly",
    "spin_off_task": "readonly",
    "request_tool": "readonly",
    "request_package": "readonly",
}
"""The package's tools, and the permission that each needs."""

_INSTEAD = {
    COMPLETE: "remove the rule: the agent ends the work with the tool complete",
    ABORT: "remove the rule: the agent gives up with the tool complete, status aborted",
    "ASK": "remove the rule: the agent asks with the tool complete, status needs_user_input",
}


def check_target(rule: PlacedRule, movement: str, names: Sequence[str], problems: Problems) -> None:
    """A rule leads to a movement, or to ``WAIT_SUBTASKS``; every other sentinel is a tool's to give."""
    target = rule.rule.next
    if target is None:
        problems.error(rule.fields.node, "this rule leads nowhere", rule.rule.condition, "add next:")
    elif target in SENTINELS and target != WAIT_SUBTASKS:
        what = f'the rule "{rule.rule.condition}" of movement {movement} cannot lead there: tools do'
        fix = _INSTEAD.get(target, "remove the rule: a tool parks the run when it is needed")
        problems.error(rule.fields.at("next"), what, target, fix)
    elif target not in names and target != WAIT_SUBTASKS:
        fix = _which(target, [WAIT_SUBTASKS, *names])
        problems.error(rule.fields.at("next"), "no movement has this name", target, fix)
    if rule.rule.requires_user_input:
        fix = "remove it: the agent asks with the tool complete, status needs_user_input"
        problems.error(
            rule.fields.at("requires_user_input"), "rules ask nobody where agents have tools", None, fix
        )


def check_tools(
    movements: Sequence[PlacedMovement], names: Sequence[str], piece: Fields, problems: Problems
) -> None:
    """Defaults that lead somewhere, tools that exist, commands that can be run."""
    servers = piece.mapping("mcp_servers")
    declared = [str(key) for key, _ in servers] if servers is not None else []
    for top in movements:
        _check_default(top, names, problems)
        for placed in (top, *top.lanes):
            _check_allowed(placed, declared, problems)
            _check_commands(placed, problems)


def _check_default(placed: PlacedMovement, names: Sequence[str], problems: Problems) -> None:
    target = placed.movement.default_next
    if target is not None and target not in names and target not in DEFAULTS:
        at = placed.fields.at("default_next")
        what = "default_next leads to no movement"
        problems.error(at, what, target, _which(target, [*DEFAULTS, *names]))
    waits = next((rule for rule in placed.rules if rule.rule.next == WAIT_SUBTASKS), None)
    if waits is not None and target in (None, COMPLETE):
        what = "after the sub-tasks the run ends here: nobody reads their results"
        fix = "name a movement in default_next:, or let the agent call wait_subtasks"
        problems.warning(waits.fields.at("next"), what, WAIT_SUBTASKS, fix)


def _check_allowed(placed: PlacedMovement, servers: Sequence[str], problems: Problems) -> None:
    for node in placed.fields.items("allowed_tools"):
        name = node.text
        if name.startswith("mcp__"):
            yields = name.removeprefix("mcp__").partition("__")[0].rstrip("*")
            if not any(
                server == yields or (name.endswith("*") and server.startswith(yields)) for server in servers
            ):
                what = "the piece declares no such server"
                problems.error(node, what, name, f"declare it under mcp_servers:; {_known(servers)}")
        elif name.endswith("*"):
            if not any(tool.startswith(name[:-1]) for tool in TOOLS):
                problems.warning(node, "no tool of the package begins so", name, "a plug-in's may")
        elif name not in TOOLS:
            near = nearest(name, TOOLS)
            fix = f"did you mean {near}?" if near else "a plug-in must bring it"
            problems.warning(node, "the package has no such tool", name, fix)
    for name in _out_of_reach(placed):
        what = f"this movement can never use {name}: it may change nothing"
        fix = "write edit: true, or take it out of allowed_tools"
        problems.warning(placed.fields.at("allowed_tools"), what, None, fix)


def _out_of_reach(placed: PlacedMovement) -> Iterator[str]:
    movement = placed.movement
    if movement.edit is not False and movement.required_permission_mode != "readonly":
        return
    for name in movement.allowed_tools or ():
        if TOOLS.get(name) in ("edit", "full"):
            yield name


def _check_commands(placed: PlacedMovement, problems: Problems) -> None:
    movement = placed.movement
    names = movement.allowed_tools or ()
    runs = any(
        name == "run_command" or (name.endswith("*") and "run_command".startswith(name[:-1]))
        for name in names
    )
    if movement.allowed_commands and not runs:
        what = "allowed_commands without run_command among allowed_tools: nothing can be run"
        problems.warning(placed.fields.at("allowed_commands"), what, None, "add run_command to allowed_tools")
    elif runs and movement.allowed_commands is None and movement.required_permission_mode != "full":
        what = "run_command without allowed_commands runs nothing but in mode full"
        problems.warning(placed.fields.at("allowed_tools"), what, None, "add allowed_commands: [git, make]")


def _known(names: Sequence[str]) -> str:
    return f"declared are {', '.join(names)}" if names else "none is declared"


def _which(name: str, known: Sequence[str]) -> str:
    near = nearest(name, known)
    return f"did you mean {near}?" if near else f"known are {', '.join(dict.fromkeys(known))}"
