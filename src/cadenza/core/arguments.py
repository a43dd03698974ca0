"""A model's arguments: read from the text that it wrote, and held against a tool's schema.

Nothing is guessed and nothing converted. What is wrong is said so that the model can mend it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

MOST_BYTES = 16 * 1024 * 1024
"""Arguments longer than this are not read at all."""

MOST_PROBLEMS = 20


class _Refused(ValueError):
    pass


def parse_arguments(text: str) -> dict[str, Any] | str:
    """The arguments as a mapping, or what is wrong with them. No text at all is an empty mapping."""
    if not text.strip():
        return {}
    try:
        value = _read(text)
    except _Refused as refused:
        return str(refused)
    if not isinstance(value, dict):
        return f"the arguments must be a JSON object, and this is {_kind(value)}"
    return value


def _read(text: str) -> Any:
    if len(text) > MOST_BYTES:
        many = f"the arguments are {len(text):,} characters long"
        raise _Refused(f"{many}; the most that is read is {MOST_BYTES:,}")
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 20) : error.pos + 20].replace("\n", "\\n")
        where = f"line {error.lineno}, column {error.colno}"
        raise _Refused(f"the arguments are not valid JSON: {error.msg} at {where}, near {near!r}") from None
    except RecursionError:
        raise _Refused("the arguments are nested too deeply") from None
    except ValueError as error:
        raise _Refused(f"the arguments cannot be taken: {error}") from None


def canonical(value: Any) -> str:
    """A value as JSON in one spelling: keys sorted, no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def problems_of(schema: Mapping[str, Any], value: Any) -> list[str]:
    """What does not fit a JSON Schema, each with its place; empty where it fits."""
    from jsonschema import Draft202012Validator
    from referencing import Registry

    validator = Draft202012Validator(dict(schema), registry=Registry())  # nothing is fetched
    try:
        found = sorted(validator.iter_errors(value), key=lambda e: list(map(str, e.path)))
    except Exception as error:  # a stranger's schema: whatever it breaks is told, never raised
        return [f"the schema cannot be applied: {type(error).__name__}: {error}"]
    told = [_told(error) for error in found[:MOST_PROBLEMS]]
    return [*told, f"and {len(found) - MOST_PROBLEMS} more"] if len(found) > MOST_PROBLEMS else told


def _told(error: Any) -> str:
    place = ".".join(str(part) for part in error.path) or "the whole"
    message = error.message if len(error.message) <= 300 else error.message[:297] + "..."
    return f"{place}: {message}"


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Refused(f"the key {key!r} stands there twice")
        found[key] = value
    return found


def _no_constant(name: str) -> Any:
    raise _Refused(f"{name} is no JSON")


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null")
