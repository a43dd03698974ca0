"""Answers as people type them, made into what a request asks for."""

from __future__ import annotations

import json
from typing import Any

from cadenza.core.control import APPROVAL
from cadenza.errors import InputRefused

YES = frozenset({"y", "yes", "approve", "approved", "ok", "はい"})
NO = frozenset({"n", "no", "decline", "declined", "いいえ"})


def read_answer(typed: str, schema: dict[str, Any] | None) -> Any:
    """What was typed, as the request's schema wants it: a text as it is, yes or no, one of several by its
    number
    or its words, else JSON.

    Raises:
        InputRefused: it is none of these.
    """
    if schema is None:
        return typed
    words = typed.strip()
    if schema == APPROVAL:
        return _approval(words)
    if isinstance(schema.get("enum"), list):
        return _choice(words, schema["enum"])
    if schema.get("type") == "string":
        return typed
    if schema.get("type") == "boolean" and words.lower() in YES | NO:
        return words.lower() in YES
    try:
        return json.loads(words)
    except ValueError as error:
        hint = f"write JSON that fits {brief(schema)}"
        raise InputRefused(f"the answer is no JSON: {error}", hint=hint) from error


def _approval(words: str) -> Any:
    first, _, note = words.partition(" ")
    said = first.strip(",.:").lower()
    if said not in YES | NO:
        try:
            return json.loads(words)
        except ValueError:
            raise InputRefused(f"{words!r} is neither yes nor no", hint="write yes or no") from None
    answer: dict[str, Any] = {"approved": said in YES}
    if note.strip():
        answer["note"] = note.strip()
    return answer


def _choice(words: str, choices: list[Any]) -> Any:
    if words in choices:
        return words
    if words.isdecimal() and 1 <= int(words) <= len(choices):
        return choices[int(words) - 1]
    near = [choice for choice in choices if str(choice).lower() == words.lower()]
    if near:
        return near[0]
    listed = ", ".join(map(str, choices))
    raise InputRefused(f"{words!r} is none of the choices", hint=f"write one of: {listed}")


def wanted(schema: dict[str, Any] | None) -> str:
    """In few words, what an answer must be."""
    if schema is None:
        return "a text"
    if schema == APPROVAL:
        return "yes or no"
    if isinstance(schema.get("enum"), list):
        return " / ".join(f"{number} {choice}" for number, choice in enumerate(schema["enum"], 1))
    return brief(schema)


def brief(schema: dict[str, Any]) -> str:
    """A schema on one line."""
    text = json.dumps(schema, ensure_ascii=False)
    return text if len(text) <= 160 else text[:157] + "..."
