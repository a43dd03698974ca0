"""The words that pieces and engine share: sentinels, kinds, modes."""

from __future__ import annotations

from typing import Literal

COMPLETE = "COMPLETE"
ABORT = "ABORT"
ASK = "ASK"
WAIT_SUBTASKS = "WAIT_SUBTASKS"
WAITING_HUMAN_BROWSER = "WAITING_HUMAN_BROWSER"
WAITING_HUMAN_TOOL_REQUEST = "WAITING_HUMAN_TOOL_REQUEST"
WAITING_HUMAN_SPAWN_REQUEST = "WAITING_HUMAN_SPAWN_REQUEST"

SENTINELS = frozenset(
    {
        COMPLETE,
        ABORT,
        ASK,
        WAIT_SUBTASKS,
        WAITING_HUMAN_BROWSER,
        WAITING_HUMAN_TOOL_REQUEST,
        WAITING_HUMAN_SPAWN_REQUEST,
    }
)
"""Values of ``next`` that are no movement. No movement may bear such a name."""

VARIABLES = frozenset(
    {
        "task",
        "previous_response",
        "iteration",
        "max_movements",
        "movement_iteration",
        "report_dir",
        "cycle_count",
        "user_inputs",
    }
)
"""Every ``{variable}`` of an instruction, ``{report:FILE}`` aside."""

Dialect = Literal["takt", "native"]
Phases = Literal["single", "three"]
Control = Literal["tags", "tools"]
Language = Literal["en", "ja"]
PermissionMode = Literal["default", "acceptEdits", "bypassPermissions"]
"""What the person allowed for the whole run, in the words of the TAKT skill."""

FacetKind = Literal["personas", "policies", "knowledge", "instructions", "output-contracts"]
FACET_KINDS: tuple[FacetKind, ...] = ("personas", "policies", "knowledge", "instructions", "output-contracts")
