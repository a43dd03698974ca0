"""What the HTTP face can do, as data: the routes are made of it, and the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

_SHAPES: dict[str, dict[str, Any]] = {
    "at": {"type": "integer", "minimum": 1},
    "budget": {
        "type": "object",
        "properties": {
            "tokens": {"type": "integer"},
            "cost": {"type": "number"},
            "tool_calls": {"type": "integer"},
            "wall_time": {"type": "number"},
        },
    },
    "follow": {"enum": ["0", "1"]},
    "interactive": {"type": "boolean"},
    "language": {"enum": ["en", "ja"]},
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
    "permission": {"enum": ["default", "acceptEdits", "bypassPermissions"]},
    "restart_visit": {"type": "boolean"},
    "value": {"description": "What the request's schema asks for; a text where it has none."},
}


class Operation(msgspec.Struct, frozen=True):
    """One route: its handler's name, method and path, what it does, and what it takes."""

    name: str
    method: str
    path: str
    summary: str
    query: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    status: int = 200


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of ``operations``."""
    from cadenza import __version__

    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Cadenza", "version": __version__},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR},
        },
    }


_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"message": {"type": "string"}, "hint": {"type": ["string", "null"]}},
        }
    },
}


def _described(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {"operationId": operation.name, "summary": operation.summary}
    parameters = [_parameter(name, "path", needed=True) for name in re.findall(r"{(\w+)}", operation.path)]
    parameters += [_parameter(name, "query") for name in operation.query]
    if parameters:
        found["parameters"] = parameters
    if operation.body:
        schema = {
            "type": "object",
            "properties": {name: _SHAPES.get(name, {"type": "string"}) for name in operation.body},
            "required": list(operation.needed),
            "additionalProperties": False,
        }
        found["requestBody"] = {"required": bool(operation.needed), "content": _content(schema)}
    error = {
        "description": "It could not be done.",
        "content": _content({"$ref": "#/components/schemas/Error"}),
    }
    found["responses"] = {str(operation.status): {"description": "Done."}, "default": error}
    return found


def _parameter(name: str, place: str, *, needed: bool = False) -> dict[str, Any]:
    return {"name": name, "in": place, "required": needed, "schema": _SHAPES.get(name, {"type": "string"})}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
