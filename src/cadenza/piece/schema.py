"""The JSON Schema of a piece file, for completion and underlining in editors.

Which keys there are, and what each is for, comes from the key tables that the reader itself uses
(:class:`~cadenza.piece.dialects.grammar.Grammar`); a key without a shape here is a mistake that shows at
once. An editor underlines what lint would only warn about, too: a key that nobody reads.

What a schema cannot say (names that exist, cycles that end, ``3.0``: to JSON Schema that is a
whole number) is lint's to find.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cadenza.piece.dialects.grammar import Grammar, Keys
from cadenza.piece.dialects.kinds import KINDS, MOST_PARTS, PERMISSIONS
from cadenza.piece.dialects.movements import SESSIONS, TOOL_SESSIONS
from cadenza.piece.dialects.native import NATIVE, VERSION
from cadenza.piece.dialects.reading import LANGUAGES, PHASES
from cadenza.piece.dialects.reports import NAMED
from cadenza.piece.dialects.takt import TAKT
from cadenza.piece.dialects.tooling import (
    BUDGET,
    CONTEXT,
    CONTROLS,
    ON_DEADLINE,
    REQUESTS,
    SERVER_NAME,
    STABLE,
)
from cadenza.piece.report_files import NAME_LIMIT
from cadenza.piece.vocabulary import SENTINELS, Dialect

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_GRAMMARS: Mapping[Dialect, Grammar] = {"takt": TAKT, "native": NATIVE}
_TITLES: Mapping[Dialect, str] = {"takt": "A piece in TAKT's format", "native": "A piece of Cadenza"}

_ANY: Schema = {}
_NOTHING: Schema = {"type": "null"}
_TEXT: Schema = {"type": "string"}
_SAID: Schema = {"type": "string", "pattern": r"\S"}
_FLAG: Schema = {"type": "boolean"}
_TEXTS: Schema = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_NAMES: Schema = {"type": "array", "items": _TEXT}
_NO_CONTROLS = r"^(?![\s\S]*[\u0000-\u001f\u007f-\u009f])"
_INSIDE = r"(?!/)(?!([\s\S]*/)?\.\.(/|$))"
"""A path that is not absolute and goes up nowhere."""
_LINE: Schema = {"type": "string", "pattern": _NO_CONTROLS}
_NAME: Schema = {"type": "string", "pattern": rf"{_NO_CONTROLS}[\s\S]*\S"}
_FILE: Schema = {
    "type": "string",
    "pattern": rf"{_NO_CONTROLS}{_INSIDE}(?![A-Za-z]:)(?![\s\S]*\\)(?!([\s\S]*/)?\s*\.?\s*$)",
    "maxLength": NAME_LIMIT,
}
"""A report's name; see :func:`~cadenza.piece.report_files.report_name_problem`."""
_SECTION: Schema = {"type": "object", "propertyNames": _LINE, "additionalProperties": _TEXT}


def _count(least: int = 1, most: int | None = None) -> Schema:
    return {"type": "integer", "minimum": least} | ({} if most is None else {"maximum": most})


def _or_nothing(shape: Schema) -> Schema:
    """A key with nothing behind it is read as if it were not there."""
    if not shape or shape == _NOTHING:
        return shape
    return {"anyOf": [*(shape["anyOf"] if set(shape) == {"anyOf"} else [shape]), _NOTHING]}


def _one_of(*choices: Any) -> Schema:
    return {"enum": list(choices)}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _list(name: str) -> Schema:
    return {"type": "array", "items": _ref(name)}


_ABOVE: Schema = {"type": "number", "exclusiveMinimum": 0}
_PERCENT = _count(most=100)
_TIME: Schema = {"anyOf": [_ABOVE, {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*[smhd]\s*$"}]}


def _block(shapes: Mapping[str, Schema], words: Keys) -> Schema:
    """A closed mapping whose keys may stand there without a value."""
    properties = {name: {"description": words[name], **_or_nothing(shape)} for name, shape in shapes.items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


_SERVERS: Schema = {
    "type": "object",
    "propertyNames": {"pattern": f"^{SERVER_NAME.pattern}$"},
    "additionalProperties": {
        "type": "object",
        "properties": {
            "command": {"type": "array", "items": _TEXT},
            "url": _TEXT,
            "env": _NAMES,
            "headers": {"type": "object", "additionalProperties": _TEXT},
            "timeout": _TIME,
        },
        "additionalProperties": False,
    },
}

_SHAPES: Mapping[str, Schema] = {
    "allowed_tools": _NAMES,
    "answer_agent": _ANY,
    "appendix": _TEXT,
    "arpeggio": _ref("arpeggio"),
    "batch_size": _count(),
    "cadenza": _one_of(VERSION),
    "command": _SAID,
    "concurrency": _count(),
    "condition": _SAID,
    "control": _one_of("tags"),
    "default_next": _TEXT,
    "may_complete": _FLAG,
    "text_only_limit": _count(),
    "max_iterations": _count(),
    "max_revisits": _count(),
    "ask_limit": _count(0),
    "ask_limit_deflections": _count(0),
    "context": _block({"window": _count(), "warn": _PERCENT, "urge": _PERCENT, "force": _PERCENT}, CONTEXT),
    "requests": _block({"deadline": _TIME, "on_deadline": _one_of(*ON_DEADLINE), "remind": _TIME}, REQUESTS),
    "budget": _block(
        {"tokens": _count(), "cost": _ABOVE, "tool_calls": _count(), "wall_time": _TIME}, BUDGET
    ),
    "stable_tools": _one_of(*STABLE),
    "allowed_commands": _NAMES,
    "network": _FLAG,
    "tool_timeout": _TIME,
    "cwd": {"type": "string", "pattern": f"^{_INSIDE}"},
    "cycle": {"type": "array", "items": _TEXT, "minItems": 2},
    "description": _TEXT,
    "edit": _FLAG,
    "file": _NOTHING,
    "format": _TEXT,
    "initial_movement": _TEXT,
    "initial_step": _TEXT,
    "inline_js": _NOTHING,
    "instruction": _TEXT,
    "instruction_template": _TEXT,
    "interactive_mode": _ANY,
    "interactive_only": _FLAG,
    "judge": _ref("judge"),
    "knowledge": _TEXTS,
    "label": _TEXT,
    "language": _one_of(*LANGUAGES),
    "loop_monitors": _list("monitor"),
    "max_movements": _count(),
    "max_parts": _count(most=MOST_PARTS),
    "max_retries": _count(0),
    "max_steps": _count(),
    "mcp_servers": _ANY,
    "merge": _ref("merge"),
    "model": _TEXT,
    "movements": _list("movement") | {"minItems": 1},
    "name": _SAID,
    "network_access": _ANY,
    "next": _TEXT,
    "order": _TEXT,
    "output_contracts": {
        "anyOf": [
            _ref("reports"),
            {"type": "object", "properties": {"report": {"anyOf": [_ref("reports"), _NOTHING]}}},
        ]
    },
    "output_path": _TEXT,
    "parallel": _list("lane") | {"minItems": 1},
    "part_allowed_tools": _NAMES,
    "part_edit": _FLAG,
    "part_permission_mode": _one_of(*PERMISSIONS),
    "part_persona": _TEXT,
    "pass_previous_response": _FLAG,
    "persona": _TEXT,
    "persona_name": _LINE,
    "phases": _one_of(*PHASES),
    "piece_config": _ref("config"),
    "policy": _TEXTS,
    "provider": {"anyOf": [_TEXT, _ref("provider")]},
    "provider_options": _ANY,
    "quality_gates": {"type": "array", "items": {"anyOf": [_TEXT, _ref("gate")]}},
    "refill_threshold": _count(0, MOST_PARTS),
    "report": _ref("reports"),
    "required_permission_mode": _one_of(*PERMISSIONS),
    "requires_user_input": _FLAG,
    "retry_delay_ms": _count(0),
    "return": _ANY,
    "rules": _list("rule"),
    "runtime": _ANY,
    "sandbox": _ANY,
    "separator": _TEXT,
    "session": _one_of(*SESSIONS),
    "source": _one_of("csv"),
    "source_path": _SAID,
    "steps": _list("movement") | {"minItems": 1},
    "strategy": _one_of("concat"),
    "team_leader": _ref("team_leader"),
    "template": _SAID,
    "threshold": _count(),
    "timeout_ms": _count(),
    "use_judge": _FLAG,
    "workflow_config": _ref("config"),
}
"""What a key holds, wherever it stands. Section maps are added to these for the top level."""

_SPECIAL: Mapping[str, Mapping[str, Schema]] = {
    "movement": {"name": _NAME},
    "lane": {"name": _NAME, "rules": _list("lane_rule")},
    "judge": {"rules": _list("rule") | {"minItems": 1}},
    "report": {"name": _FILE},
    "gate": {"type": _one_of("command"), "name": _TEXT},
    "provider": {"type": _SAID},
}
"""Keys that mean something else in one place."""

_OURS: Mapping[str, Mapping[str, Schema]] = {
    "piece": {"control": _one_of(*CONTROLS), "mcp_servers": _SERVERS},
    "movement": {"session": _one_of(*TOOL_SESSIONS)},
    "lane": {"session": _one_of(*TOOL_SESSIONS)},
}
"""Keys that mean more in our own format."""

_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "piece": ("name",),
    "movement": ("name",),
    "lane": ("name",),
    "rule": ("condition", "next"),
    "lane_rule": ("condition",),
    "report": ("name",),
    "monitor": ("cycle", "judge"),
    "judge": ("rules",),
    "arpeggio": ("source", "source_path", "template"),
    "gate": ("type", "command"),
    "provider": ("type",),
}


def piece_schema(dialect: Dialect) -> Schema:
    """The JSON Schema (draft 2020-12) of the piece files of one format."""
    grammar = _GRAMMARS[dialect]
    sections: dict[str, Schema] = dict.fromkeys(grammar.sections, _SECTION)
    if grammar.sections_under:
        closed = {"type": "object", "properties": sections, "additionalProperties": False}
        sections = {grammar.sections_under: closed}
    piece = _mapping(grammar, "piece", grammar.piece, sections)
    piece["allOf"] = [_one_needed(grammar.movements_names)]
    if "cadenza" in grammar.piece:
        piece["required"] = ["cadenza", *piece["required"]]
    return {"$schema": DIALECT, "title": _TITLES[dialect], **piece, "$defs": _definitions(grammar)}


def _definitions(grammar: Grammar) -> dict[str, Schema]:
    tables = {
        "movement": grammar.movement,
        "lane": grammar.lane,
        "rule": grammar.rule,
        "lane_rule": grammar.rule,
        "report": grammar.report,
        "monitor": grammar.monitor,
        "judge": grammar.judge,
        "team_leader": grammar.team_leader,
        "arpeggio": grammar.arpeggio,
        "merge": grammar.merge,
        "gate": grammar.gate,
        "provider": grammar.provider,
    } | ({"config": grammar.config} if grammar.config_names else {})
    found = {name: _mapping(grammar, name, keys) for name, keys in tables.items()}
    found["reports"] = _reports()
    for name in ("movement", "lane"):
        named = found[name]["properties"]["name"]
        found[name]["properties"]["name"] = named | {"not": {"enum": sorted(SENTINELS)}}
    found["movement"]["allOf"] = [_not_both(*pair) for pair in _pairs(KINDS)]
    return found


def _mapping(
    grammar: Grammar, table: str, keys: Keys, sections: Mapping[str, Schema] | None = None
) -> Schema:
    """One kind of mapping: all its keys with their words, and no others."""
    special = {**_SPECIAL.get(table, {}), **(sections or {}), **_OURS.get(table, {})}
    if grammar.dialect != "native":
        special = {name: shape for name, shape in special.items() if name not in _OURS.get(table, {})}
    required = [key for key in _REQUIRED.get(table, ()) if key in keys]
    properties = {}
    for key, words in keys.items():
        if key in grammar.refused:
            properties[key] = {"description": grammar.refused[key], "not": {}}
            continue
        shape = special[key] if key in special else _SHAPES[key]
        properties[key] = {"description": words, **(shape if key in required else _or_nothing(shape))}
    found: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return found | ({"required": required} if required else {})


def _reports() -> Schema:
    """The forms in which reports are named: a file name, a mapping of the known keys, labels and files."""
    labels = {
        "type": "object",
        "propertyNames": {"not": {"enum": sorted(NAMED)}},
        "additionalProperties": _FILE,
    }
    one = [_FILE, _ref("report"), labels]
    return {"anyOf": [*one, {"type": "array", "items": {"anyOf": one}}]}


def _one_needed(names: tuple[str, ...]) -> Schema:
    return {"anyOf": [_all_said(name) for name in names]}


def _not_both(one: str, other: str) -> Schema:
    return {"not": _all_said(one, other)}


def _all_said(*names: str) -> Schema:
    """All of ``names`` are there, with something behind them."""
    return {"required": list(names), "properties": {name: {"not": _NOTHING} for name in names}}


def _pairs(names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(one, other) for at, one in enumerate(names) for other in names[at + 1 :]]


__all__ = ["piece_schema"]
