"""Cadenza's own piece files: they begin with ``cadenza: 1``.

One spelling for each thing, section maps under ``facets:``, and nothing is guessed: an unknown key is an
error, and so is a name or path that leads to no facet.
"""

from __future__ import annotations

from cadenza.piece.dialects.grammar import Grammar
from cadenza.piece.dialects.takt import TAKT
from cadenza.piece.dialects.tooling import GUARDS
from cadenza.piece.problems import Problems
from cadenza.piece.source import Node
from cadenza.piece.vocabulary import FACET_KINDS

VERSION = 1
"""The version of the format that this version of Cadenza reads."""

_NOT_OURS = {
    "instruction_template", "output_contracts", "mcp_servers", "provider_options", "permission_mode",
    "return", "network_access", "sandbox", "inline_js", "file",
}  # fmt: skip


def _ours(keys: dict[str, str]) -> dict[str, str]:
    return {key: words for key, words in keys.items() if key not in _NOT_OURS}


_TOOLS = {
    "default_next": "where it leads when nobody chooses",
    "may_complete": "false: its agent cannot end the work with success",
    "text_only_limit": GUARDS["text_only_limit"],
    "max_iterations": GUARDS["max_iterations"],
    "max_revisits": GUARDS["max_revisits"],
    "allowed_commands": "programs that run_command may start",
    "network": "whether commands and fetch_url may reach the network",
    "tool_timeout": "how long one tool call may take",
}

NATIVE = Grammar(
    dialect="native",
    strict=True,
    piece={
        "cadenza": "the version of this format",
        "name": "what the piece is called",
        "description": "what it is for",
        "language": "en or ja: the language of the engine's own words",
        "phases": "single or three: how a movement is asked",
        "control": "tools or tags: how a movement says where it leads",
        "provider": "which agent performs it",
        "model": "which model",
        "max_movements": "how many movements may be played in all",
        "initial_movement": "where the piece begins",
        "facets": "section maps: personas, policies, knowledge, instructions, output-contracts",
        "movements": "the parts of the piece",
        "loop_monitors": "cycles that a judge watches",
        **GUARDS,
        "context": "the model's context window, and what happens when it fills",
        "requests": "deadlines and reminders of all requests",
        "budget": "what a run and its children may spend",
        "mcp_servers": "servers whose tools the agents use",
        "stable_tools": "piece (one tools array for all movements) or movement",
    },
    movement=_ours(dict(TAKT.movement)) | _TOOLS,
    lane=_ours(dict(TAKT.lane)) | _TOOLS,
    rule=_ours(dict(TAKT.rule)),
    report=dict(TAKT.report),
    monitor=dict(TAKT.monitor),
    judge=_ours(dict(TAKT.judge)),
    team_leader=dict(TAKT.team_leader),
    arpeggio=dict(TAKT.arpeggio),
    merge=_ours(dict(TAKT.merge)),
    gate=dict(TAKT.gate),
    provider=_ours(dict(TAKT.provider)),
    sections={kind: kind for kind in FACET_KINDS},
    sections_under="facets",
)


def is_native(root: Node) -> bool:
    """Whether a file's value is of our own format: a mapping with the key ``cadenza``."""
    return isinstance(root.value, dict) and "cadenza" in root.value


def check_version(root: Node, problems: Problems) -> None:
    """Complain about a file that was written for another version of the format."""
    assert isinstance(root.value, dict)
    node = next(node for key, node in root.value.items() if key == "cadenza")
    if isinstance(node.value, str) and node.value.strip() == str(VERSION):
        what = f"the version must be the number {VERSION}, not text"
        problems.error(node, what, node.value, f"write cadenza: {VERSION}, without quotes")
    elif node.value != VERSION or isinstance(node.value, bool):
        what = "this version of the piece format is not known"
        problems.error(
            node, what, node.text or node.kind, f"write cadenza: {VERSION}, or use a later Cadenza"
        )
