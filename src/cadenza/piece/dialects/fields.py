"""Typed access to the mappings of a piece file; what does not fit is collected, not raised.

After a problem each getter answers with its default, so one pass finds all mistakes of a file.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cadenza.piece.facets import nearest
from cadenza.piece.problems import Place, Problems
from cadenza.piece.source import Key, Node


class Fields:
    """One mapping of the file, read key by key."""

    def __init__(self, node: Node, problems: Problems, what: str) -> None:
        self.node = node
        self.problems = problems
        self.what = what
        self._entries: dict[Any, Node] = node.value if isinstance(node.value, dict) else {}

    def __iter__(self) -> Iterator[tuple[Key, Node]]:
        return iter(self._entries.items())

    def get(self, *names: str) -> Node | None:
        """The value of the first of ``names`` that is there and is not empty."""
        for name in names:
            node = self._entries.get(name)
            if node is not None and node.value is not None:
                return node
        return None

    def at(self, *names: str) -> Node:
        """Where to point for one of ``names``: its value, or this whole mapping."""
        return self.get(*names) or self.node

    def check_keys(self, known: Mapping[str, object], *, strict: bool) -> None:
        """Complain about every key that nobody reads."""
        for key in self._entries:
            if key in known:
                continue
            near = nearest(key, known)
            fix = f"did you mean {near}?" if near else "remove it"
            if strict:
                self.problems.error(key, f"{self.what} has no such key", key, fix)
            else:
                self.problems.warning(key, f"{self.what} has no such key: it is ignored", key, fix)

    def text(self, *names: str) -> str | None:
        """A text, or ``None``."""
        node = self.get(*names)
        return None if node is None else text_of(node, self.problems, names[0])

    def required_text(self, name: str) -> str:
        """A text that must be there and say something; ``""`` after a problem."""
        node = self.get(name)
        if node is None:
            self.problems.error(self.node, f"{self.what} has no {name}", None, f"add {name}:")
            return ""
        text = text_of(node, self.problems, name)
        if text is not None and not text.strip():
            self.problems.error(node, f"the {name} is empty", None, "write one")
        return text or ""

    def flag(self, name: str) -> bool | None:
        """``true``, ``false`` or ``None``."""
        node = self.get(name)
        if node is None or isinstance(node.value, bool):
            return None if node is None else bool(node.value)
        fix = "write true or false"
        self.problems.error(node, f"{name} must be true or false, not {node.kind}", node.text or None, fix)
        return None

    def count(self, *names: str, default: int, least: int = 1, most: int | None = None) -> int:
        """A whole number from ``least``, to ``most`` where there is one."""
        node = self.get(*names)
        if node is None:
            return default
        number = node.value if not isinstance(node.value, bool) else None
        if isinstance(number, int) and least <= number and (most is None or number <= most):
            return number
        what = node.kind if not isinstance(node.value, int) else "this"
        to = "" if most is None else f" to {most}"
        message = f"{names[0]} must be a whole number from {least}{to}, not {what}"
        self.problems.error(node, message, node.text or None, f"write {default}")
        return default

    def seconds(self, name: str, *, default: float, least: int = 1) -> float:
        """A time that the file gives in milliseconds, in seconds."""
        return self.count(name, default=round(default * 1000), least=least) / 1000

    def choice(self, name: str, choices: Sequence[str]) -> Any:
        """One of ``choices``, or ``None``."""
        node = self.get(name)
        if node is None:
            return None
        if node.value in choices:
            return node.value
        near = nearest(node.text, choices)
        fix = f"did you mean {near}?" if near else f"write {' or '.join(choices)}"
        self.problems.error(node, f"{name} must be one of {', '.join(choices)}", node.text or node.kind, fix)
        return None

    def items(self, *names: str) -> list[Node]:
        """A list's items; a problem and no items where it is something else."""
        node = self.get(*names)
        if node is None:
            return []
        if isinstance(node.value, list):
            return node.value
        self.problems.error(
            node, f"{names[0]} must be a list, not {node.kind}", node.text or None, "put - before each item"
        )
        return []

    def texts(self, *names: str) -> list[Node]:
        """A text, or a list of texts, as nodes."""
        node = self.get(*names)
        if node is None:
            return []
        items = node.value if isinstance(node.value, list) else [node]
        return [item for item in items if text_of(item, self.problems, names[0]) is not None]

    def mapping(self, *names: str) -> Fields | None:
        """A mapping under one of ``names``, or ``None``."""
        node = self.get(*names)
        return None if node is None else mapping_of(node, self.problems, names[0])


def text_of(node: Node, problems: Problems, name: str) -> str | None:
    """The text of a node; numbers and booleans are asked to be put in quotes."""
    if isinstance(node.value, str):
        return node.value
    fix = "put it in quotes" if node.text else "write a text"
    problems.error(node, f"{name} must be text, not {node.kind}", node.text or None, fix)
    return None


def mapping_of(node: Node, problems: Problems, what: str) -> Fields | None:
    """The fields of a node that must be a mapping."""
    if isinstance(node.value, dict):
        return Fields(node, problems, what)
    problems.error(
        node, f"{what} must be a mapping, not {node.kind}", node.text or None, "write key: value lines"
    )
    return None


def names_of(fields: Fields, name: str) -> tuple[str, ...] | None:
    """A list of texts, or ``None`` where there is none."""
    if fields.get(name) is None:
        return None
    texts = [text_of(node, fields.problems, f"an item of {name}") for node in fields.items(name)]
    return tuple(text for text in texts if text is not None)


def check_line(at: Place, what: str, text: str, problems: Problems) -> bool:
    """Whether ``text``, which is shown to people and kept as a name, is one line; a problem where not."""
    if has_controls(text):
        problems.error(at, f"{what} must be one line", text, "remove line breaks and control characters")
        return False
    return True


def has_controls(text: str) -> bool:
    """Whether a name holds line breaks or other control characters."""
    return any(unicodedata.category(char) == "Cc" for char in text)
