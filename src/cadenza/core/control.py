"""The control-flow tools: what a model calls to end, move or park its movement, and to get more.

Definitions only; what a call does is in :mod:`cadenza.core.movements.tools`. There is one ``transition`` for
the whole piece, and no description says anything that changes during a run (Maestro, KV cache laws).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cadenza.core.tooling import Park, ToolSpec
from cadenza.piece import vocabulary as words
from cadenza.piece.model import Movement, Piece

TRANSITION = "transition"
COMPLETE = "complete"
USE_TOOL = "use_tool"
WRITE_REPORT = "write_report"
SPAWN_TASK = "spawn_task"
WAIT_SUBTASKS = "wait_subtasks"
SPIN_OFF_TASK = "spin_off_task"
REQUEST_TOOL = "request_tool"
REQUEST_PACKAGE = "request_package"

SUCCESS, ABORTED, NEEDS_USER_INPUT = "success", "aborted", "needs_user_input"

NEW_REQUEST = "new_request"
"""The argument that makes the same request another one."""

APPROVAL: dict[str, Any] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "note": {"type": "string"}},
    "required": ["approved"],
    "additionalProperties": False,
}
"""What an answer to a request for permission must be."""


def approved(value: Any) -> bool:
    """Whether an answer says yes; whatever is not plainly a yes is none."""
    return isinstance(value, dict) and value.get("approved") is True


def note_of(value: Any) -> str:
    """What the person said beside yes or no."""
    note = value.get("note") if isinstance(value, dict) else None
    return note if isinstance(note, str) else ""


def targets(piece: Piece) -> tuple[str, ...]:
    """Everything that any movement's rules lead to, each once, in the order of the piece. Sentinels are
    never among them, but for ``WAIT_SUBTASKS``."""
    found = [rule.next for movement in piece.movements for rule in movement.rules]
    kept = (name for name in found if name in piece.by_name or name == words.WAIT_SUBTASKS)
    return tuple(dict.fromkeys(name for name in kept if name is not None))


def _object(required: tuple[str, ...] = (), **properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_AGAIN = _text("Leave this out. Give any new word to ask anew for what was decided already.")
_LABEL = _text("Where you were given a list of labels: the one that holds.")


def transition(piece: Piece) -> ToolSpec | None:
    """The tool that goes on to another movement; None for a piece whose rules lead nowhere."""
    names = targets(piece)
    if not names:
        return None
    where = {"type": "string", "enum": list(names), "description": "One of the movements you were offered."}
    return ToolSpec(
        name=TRANSITION,
        description="End this movement and go on to another one that you were offered.",
        parameters=_object(
            ("next", "reason"), next=where, reason=_text("Why, and what the next one must know.")
        ),
        kind="control",
    )


def complete() -> ToolSpec:
    """The tool that ends the work, or asks the person."""
    status = {
        "type": "string",
        "enum": [SUCCESS, ABORTED, NEEDS_USER_INPUT],
        "description": "success: done; aborted: it cannot be done; needs_user_input: result is a question.",
    }
    choices = {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 2,
        "description": "With needs_user_input: the answers to choose from, where there are such.",
    }
    result = _text("The outcome in full: the only text that the person sees. Or the question.")
    return ToolSpec(
        name=COMPLETE,
        description="End the work with its result, or ask the person something.",
        parameters=_object(("status", "result"), status=status, result=result, label=_LABEL, choices=choices),
        kind="control",
    )


_USE_TOOL = ToolSpec(
    name=USE_TOOL,
    description="Call a tool that was granted to you while you worked.",
    parameters=_object(
        ("name",),
        name=_text("The tool's name."),
        arguments={"type": "object", "description": "The tool's arguments."},
    ),
    kind="control",
)
_WRITE_REPORT = ToolSpec(
    name=WRITE_REPORT,
    description="Write one of the reports that this movement owes.",
    parameters=_object(
        ("name", "content"), name=_text("The report's file name."), content=_text("The whole report.")
    ),
    effect="idempotent",
    kind="control",
)
_SPAWN_TASK = ToolSpec(
    name=SPAWN_TASK,
    description="Start a sub-task that another agent works on meanwhile. wait_subtasks gives its result.",
    parameters=_object(
        ("task",),
        task=_text("What is to be done, in full: the other agent knows nothing else."),
        piece=_text("The piece to play for it. Leave it out for this same piece."),
        new_request=_AGAIN,
    ),
    effect="idempotent",
    kind="control",
)
_WAIT_SUBTASKS = ToolSpec(
    name=WAIT_SUBTASKS,
    description="Wait until every sub-task has ended, and read their results.",
    parameters=_object(),
    effect="read",
    kind="control",
)
_SPIN_OFF_TASK = ToolSpec(
    name=SPIN_OFF_TASK,
    description="Start a task whose result you do not need. In another workspace a person must agree.",
    parameters=_object(
        ("task",),
        task=_text("What is to be done, in full."),
        workspace=_text("The name of another workspace. Leave it out to start the task here."),
        piece=_text("The piece to play for it. Leave it out for this same piece."),
        new_request=_AGAIN,
    ),
    effect="idempotent",
    kind="control",
    park=Park(
        sentinel=words.WAITING_HUMAN_SPAWN_REQUEST, reason="spawn_request", schema=APPROVAL, decides="spawn"
    ),
)
_REQUEST_TOOL = ToolSpec(
    name=REQUEST_TOOL,
    description="Ask the person for a tool that you may not use. When granted, call it with use_tool.",
    parameters=_object(
        ("name", "reason"), name=_text("The tool's name."), reason=_text("What for."), new_request=_AGAIN
    ),
    effect="idempotent",
    kind="park",
    park=Park(
        sentinel=words.WAITING_HUMAN_TOOL_REQUEST, reason="tool_request", schema=APPROVAL, decides="grant"
    ),
)
_REQUEST_PACKAGE = ToolSpec(
    name=REQUEST_PACKAGE,
    description="Ask the person to install a Python package for your commands.",
    parameters=_object(
        ("name", "reason"),
        name=_text("The package, with a version where one is needed: name or name==1.2."),
        reason=_text("What for."),
        new_request=_AGAIN,
    ),
    effect="idempotent",
    kind="park",
    park=Park(
        sentinel=words.WAITING_HUMAN_TOOL_REQUEST, reason="tool_request", schema=APPROVAL, decides="install"
    ),
)

ON_REQUEST = (
    _SPAWN_TASK,
    _WAIT_SUBTASKS,
    _SPIN_OFF_TASK,
    _REQUEST_TOOL,
    _REQUEST_PACKAGE,
)
"""Control tools that are offered only where a movement's ``allowed_tools`` names them."""


def control_tools(piece: Piece, named: frozenset[str]) -> Iterator[ToolSpec]:
    """The control tools of a piece in their fixed order; ``named`` are those that its movements name."""
    moving = transition(piece)
    if moving is not None:
        yield moving
    yield complete()
    if any(owes_reports(movement) for top in piece.movements for movement in (top, *top.lanes)):
        yield _WRITE_REPORT
    if REQUEST_TOOL in named or USE_TOOL in named:
        yield _USE_TOOL
    yield from (spec for spec in ON_REQUEST if spec.name in named)


def owes_reports(movement: Movement) -> bool:
    """Whether a movement has to write reports."""
    return bool(movement.reports)
