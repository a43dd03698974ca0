"""Short ways to write the JSON Schemas of tools."""

from __future__ import annotations

from typing import Any


def schema(required: tuple[str, ...], **properties: dict[str, Any]) -> dict[str, Any]:
    """A closed object."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def text(description: str) -> dict[str, Any]:
    """A text."""
    return {"type": "string", "description": description}


def number(description: str, least: int = 1) -> dict[str, Any]:
    """A whole number from ``least``."""
    return {"type": "integer", "minimum": least, "description": description}


def flag(description: str) -> dict[str, Any]:
    """True or false."""
    return {"type": "boolean", "description": description}


def texts(description: str) -> dict[str, Any]:
    """A list of texts with at least one."""
    return {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": description}
