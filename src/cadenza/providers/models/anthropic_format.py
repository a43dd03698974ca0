"""A request in Anthropic's messages format.

System messages are lifted out of the conversation, a message without text is left out (the service
refuses it, and joins what then stands side by side), and two marks say how far the prompt may be cached:
the end of the system text and the end of the last message, which the next request begins with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

import msgspec

from cadenza.providers.base import ChatMessage, ModelRequest, ToolCall

_MARK = {"type": "ephemeral"}
_KEPT = frozenset({"type", "enum", "const", "required", "description", "title", "default", "$ref"})
_NESTED = frozenset({"properties", "$defs"})
_LISTED = {"anyOf": "anyOf", "oneOf": "anyOf", "allOf": "allOf"}
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)


def parameters(request: ModelRequest, model: str, limit: int, refused: Set[str]) -> dict[str, Any]:
    """What to send, less the fields that this server has ``refused``.

    A schema becomes the service's structured output; else the input of a tool that must be called; else
    a plain instruction at the end.
    """
    marked = "cache_control" not in refused
    messages = list(request.messages)
    wanted: dict[str, Any] = {"model": model, "max_tokens": limit, "stream": True}
    if request.schema is not None:
        form = next((form for form in ("output_config", "tool_choice") if form not in refused), None)
        if form == "output_config":
            schema = portable(request.schema)
            wanted["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        elif form == "tool_choice":
            wanted |= _tool(request)
        else:
            messages.append(ChatMessage("user", _instruction(request.schema)))
    if request.tools and "tools" not in wanted:
        wanted["tools"] = [_offered(tool) for tool in request.tools]
    system = [_block(message) for message in messages if message.role == "system" and message.content.strip()]
    spoken = [message for message in messages if message.role != "system"]
    turns = _turns(spoken) if request.tools else _texts(spoken)
    if system:
        wanted["system"] = _marked(system) if marked else system
    if turns and marked:
        turns[-1] |= {"content": _marked(turns[-1]["content"])}
    return wanted | {"messages": turns}


def _offered(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}


def _texts(spoken: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """One turn a message; those without text are left out."""
    return [{"role": _role(said), "content": [_block(said)]} for said in spoken if said.content.strip()]


def _turns(spoken: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Turns of blocks: what stands side by side on one side is one turn, as the service demands of the
    results
    of a turn's calls."""
    turns: list[dict[str, Any]] = []
    for message in spoken:
        blocks = _blocks(message)
        if not blocks:
            continue
        role = _role(message)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: ChatMessage) -> list[dict[str, Any]]:
    if message.role == "tool":
        id = _NO_ID.sub("_", message.call or "")
        return [{"type": "tool_result", "tool_use_id": id, "content": message.content or "-"}]
    blocks = [_block(message)] if message.content.strip() else []
    return blocks + [_use(call) for call in message.calls]


def _use(call: ToolCall) -> dict[str, Any]:
    """A call as it was made; arguments that are no JSON object are told as the text of one key."""
    try:
        given: Any = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        given = None
    given = given if isinstance(given, dict) else {"broken": call.arguments}
    return {"type": "tool_use", "id": _NO_ID.sub("_", call.id), "name": call.name, "input": given}


_NO_ID = re.compile("[^a-zA-Z0-9_-]")


def has_marks(refused: Set[str]) -> bool:
    """Whether a call carries cache marks."""
    return "cache_control" not in refused


def _role(message: ChatMessage) -> str:
    return "assistant" if message.role == "assistant" else "user"


def _block(message: ChatMessage) -> dict[str, Any]:
    return {"type": "text", "text": message.content}


def _marked(blocks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [*blocks[:-1], {**blocks[-1], "cache_control": _MARK}]


def _tool(request: ModelRequest) -> dict[str, Any]:
    assert request.schema is not None
    tool = {
        "name": request.schema_name,
        "description": "Give your answer.",
        "input_schema": dict(request.schema),
    }
    return {"tools": [tool], "tool_choice": {"type": "tool", "name": request.schema_name}}


def _instruction(schema: Mapping[str, Any]) -> str:
    return f"Answer with one JSON value and nothing else. It follows this JSON Schema:\n{_json(schema)}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def portable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON Schema in the part of the language that structured outputs take.

    What they do not take (bounds, lengths, patterns) is told in the description, so that the model may
    still keep to it. Objects are closed, as the service demands.
    """
    kept: dict[str, Any] = {}
    told: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NESTED:
            kept[key] = {name: portable(inner) for name, inner in value.items()}
        elif key in _LISTED:
            kept[_LISTED[key]] = [portable(inner) for inner in value]
        elif key == "items":
            kept[key] = portable(value)
        elif (
            key in _KEPT or (key == "format" and value in _FORMATS) or (key == "minItems" and value in (0, 1))
        ):
            kept[key] = value
        elif key not in ("additionalProperties", "$schema"):
            told[key] = value
    if kept.get("type") == "object" or "properties" in kept:
        kept["additionalProperties"] = False
    if "enum" in kept or "const" in kept:
        kept.pop("type", None)
    if told:
        limits = ", ".join(f"{key}: {_json(value)}" for key, value in told.items())
        kept["description"] = " ".join(filter(None, (kept.get("description"), f"({limits})")))
    return kept
