"""A YAML file as plain values that remember where they stand.

The resolver follows YAML 1.2: only ``true`` and ``false`` are booleans, so ``on``, ``off``, ``yes`` and
``no`` stay words, and nothing becomes a date. A key given twice is an error, and the first value is kept for
those who want to look further. Aliases and merge keys are
allowed; an alias points at the value it names and is never copied, and a file that would hold more
than :data:`MAX_VALUES` values is refused. JSON is read as the YAML that it is.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from cadenza.errors import NotFound
from cadenza.piece.problems import Place, Problem, Problems, refused

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 60
MAX_VALUES = 20_000

Scalar: TypeAlias = str | int | float | bool | None

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT = re.compile(r"[-+]?[0-9]{1,18}|0o[0-7]{1,20}|0x[0-9a-fA-F]{1,15}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
_WORDS: Mapping[str, Scalar] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_UNHOLDABLE = re.compile("[\0\ud800-\udfff]")
_TAG = "tag:yaml.org,2002:"


class Key(str):
    """A mapping's key, with its place."""

    __slots__ = ("column", "line")

    line: int
    column: int

    def __new__(cls, text: str, line: int = 1, column: int = 1) -> Key:
        key = super().__new__(cls, text)
        key.line, key.column = line, column
        return key


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One value of the file.

    ``value`` is a scalar, a list of nodes or a dictionary of nodes by :class:`Key`; ``size`` counts the
    values below it as if every alias were written out.
    """

    value: Scalar | list[Node] | dict[Key, Node]
    line: int
    column: int
    text: str = ""
    size: int = 1

    @property
    def kind(self) -> str:
        """What it is, in words a person uses."""
        match self.value:
            case None:
                return "nothing"
            case bool():
                return "true or false"
            case int() | float():
                return "a number"
            case str():
                return "text"
            case list():
                return "a list"
        return "a mapping"

    def plain(self) -> Any:
        """The value without places: dictionaries, lists and scalars."""
        if isinstance(self.value, dict):
            return {str(key): node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read: its name as the person gave it, where it is, its text, and its value.

    ``problems`` are errors that leave a value to go on with: see :func:`read_source`.
    """

    shown: str
    path: Path
    text: str
    root: Node
    problems: tuple[Problem, ...] = ()


def read_source(
    path: str | Path, *, shown: str | None = None, limit: int = MAX_BYTES, go_on: bool = False
) -> Source:
    """Read and parse one YAML file; problems call it ``shown``, or by its path.

    With ``go_on``, keys given twice and merges of what is no mapping are kept in ``problems`` and not
    raised: the first value of each key counts, and whoever reads on sees the rest of the file's mistakes.

    Raises:
        NotFound: there is no such file.
        PieceError: it cannot be read, or it is not the YAML described above; ``problems`` has a line each.
    """
    shown = shown or str(path)
    text = read_text(path, shown=shown, limit=limit)
    root, problems = _parse(text, file=shown)
    if problems and not go_on:
        raise refused(problems)
    return Source(shown, Path(path), text, root, tuple(problems))


def read_text(path: str | Path, *, shown: str | None = None, limit: int = MAX_BYTES) -> str:
    """The text of a UTF-8 file of at most ``limit`` bytes.

    Raises:
        NotFound: there is no such file.
        PieceError: a directory, not readable, too large, not UTF-8, or it holds NUL.
    """
    file = shown or str(path)
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise _bad(file, "this is a folder, not a file", fix="name the file in it")
        if not stat.S_ISREG(status.st_mode):
            raise _bad(file, "this is not a regular file", fix="copy it to one")
        with open(path, "rb") as stream:
            data = stream.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"{file}: there is no such file", hint="check the path") from None
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise _bad(
            file, f"this file cannot be read: {reason}", fix="check its name and permissions"
        ) from None
    if len(data) > limit:
        raise _bad(
            file, f"this file is larger than {limit} bytes", fix="shorten it or move texts to facet files"
        )
    return _decode(file, data)


def _decode(file: str, data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8", "replace")
        raise _bad(
            file,
            "this file is not UTF-8",
            _At.end_of(before),
            f"byte 0x{data[error.start]:02x}",
            "save it as UTF-8",
        ) from None
    at = text.find("\0")
    if at >= 0:
        raise _bad(file, "there is a NUL character", _At.end_of(text[:at]), None, "remove it")
    return text


def parse(text: str, *, file: str) -> Node:
    """Parse the text of one YAML document; ``file`` is only named in errors.

    Raises:
        PieceError: see the module; every duplicate key is reported, other errors end the parse.
    """
    root, problems = _parse(text, file=file)
    if problems:
        raise refused(problems)
    return root


def _parse(text: str, *, file: str) -> tuple[Node, list[Problem]]:
    """The document, and the errors that left a value to go on with."""
    builder = _Builder(file)
    try:
        root = builder.document(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = _At(mark.line + 1, mark.column + 1) if mark else _At()
        what = " ".join(part for part in (error.context, error.problem) if part)
        fix = "check indentation and quotes there"
        if (tab := _tab_near(text, at)) is not None:
            at, what, fix = tab, "a tab stands where only spaces may", "replace it with spaces"
        raise _bad(file, f"this is not valid YAML: {what}", at, fix=fix) from None
    except yaml.reader.ReaderError as error:
        at = _At.end_of(text[: error.position])
        value = f"U+{error.character:04X}" if isinstance(error.character, int) else None
        raise _bad(file, "there is a control character", at, value, "remove it") from None
    return root, builder.problems.errors


@dataclass(frozen=True, slots=True)
class _At:
    line: int = 1
    column: int = 1

    @classmethod
    def end_of(cls, text: str) -> _At:
        return cls(text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1)


def _tab_near(text: str, at: _At) -> _At | None:
    """The tab that a line which cannot be parsed begins with, or that stands where the parser stopped."""
    lines = text.split("\n")
    line = lines[at.line - 1] if at.line <= len(lines) else ""
    column = line.find("\t", 0, len(line) - len(line.lstrip()))
    if column < 0 and line[at.column - 1 : at.column] == "\t":
        column = at.column - 1
    return _At(at.line, column + 1) if column >= 0 else None


def _bad(
    file: str, message: str, at: Place | None = None, value: str | None = None, fix: str | None = None
) -> Exception:
    at = at or _At()
    return refused([Problem(file, at.line, at.column, "error", message, value, fix)])


class _Builder:
    """Builds nodes from parse events: no value is ever built twice, however often it is named."""

    def __init__(self, file: str) -> None:
        self.problems = Problems(file)
        self._anchors: dict[str, Node | None] = {}

    def document(self, events: Iterator[yaml.Event]) -> Node:
        """The one document of the stream."""
        root: Node | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    raise self._fail(event, "there is a second document", "---", "keep one piece per file")
                root = self._node(next(events), events, 0)
        if root is None or (root.value is None and not root.text):
            raise self._fail(None, "this file is empty", None, "write a piece into it")
        return root

    def _node(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self._fail(event, f"values are nested more than {MAX_DEPTH} deep", None, "flatten them")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        anchor: str | None = event.anchor  # type: ignore[attr-defined]
        if anchor:
            self._anchors[anchor] = None  # open: an alias to it from inside would never end
        node = self._collection_or_scalar(event, events, depth)
        if node.size > MAX_VALUES:
            fix = "split the file, or write fewer aliases"
            raise self._fail(event, f"this holds more than {MAX_VALUES} values", None, fix)
        if anchor:
            self._anchors[anchor] = node
        return node

    def _alias(self, event: yaml.AliasEvent) -> Node:
        target = self._anchors.get(str(event.anchor))
        if target is None:
            inside = event.anchor in self._anchors
            message = "this alias contains itself" if inside else "this alias names nothing above it"
            raise self._fail(event, message, f"*{event.anchor}", "write the value out")
        return target

    def _collection_or_scalar(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Node:
        at = _at(event)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, at)
        tag: str | None = event.tag  # type: ignore[attr-defined]
        if tag not in (None, "!", f"{_TAG}map", f"{_TAG}seq"):
            raise self._fail(event, "this YAML tag means nothing here", tag, "remove it")
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(event := next(events), yaml.SequenceEndEvent):
                items.append(self._node(event, events, depth + 1))
            return Node(items, at.line, at.column, size=1 + sum(item.size for item in items))
        entries = self._entries(events, depth)
        return Node(entries, at.line, at.column, size=1 + sum(node.size + 1 for node in entries.values()))

    def _entries(self, events: Iterator[yaml.Event], depth: int) -> dict[Key, Node]:
        entries: dict[Key, Node] = {}
        merged: list[Node] = []
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            named = self._node(event, events, depth + 1)
            at = _at(event)
            value = self._node(next(events), events, depth + 1)
            if isinstance(named.value, list | dict):
                raise self._fail(event, "a key must be a word", None, "write a plain word before the colon")
            key = Key(named.text, at.line, at.column)
            if key == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
                merged += value.value if isinstance(value.value, list) else [value]
            elif key in entries:
                first = next(known for known in entries if known == key).line
                self.problems.error(
                    key, f"this key was given already on line {first}", key, "keep one of the two"
                )
            else:
                entries[key] = value
        for source in merged:
            self._merge(entries, source)
        return entries

    def _merge(self, entries: dict[Key, Node], source: Node) -> None:
        if not isinstance(source.value, dict):
            self.problems.error(
                source, f"<< merges mappings, and this is {source.kind}", None, "name a mapping"
            )
            return
        for key, value in source.value.items():
            entries.setdefault(key, value)

    def _scalar(self, event: yaml.ScalarEvent, at: _At) -> Node:
        text = event.value
        if bad := _UNHOLDABLE.search(text):
            value = f"U+{ord(bad.group()):04X}"
            raise self._fail(event, "this text holds a character that no text may hold", value, "remove it")
        if event.tag in (f"{_TAG}str", "!") or (event.tag is None and not event.implicit[0]):
            return Node(text, at.line, at.column, text)
        if event.tag is not None and event.tag not in {
            _TAG + name for name in ("int", "float", "bool", "null")
        }:
            raise self._fail(event, "this YAML tag means nothing here", event.tag, "remove it")
        return Node(_resolve(text), at.line, at.column, text)

    def _fail(self, event: yaml.Event | None, message: str, value: str | None, fix: str) -> Exception:
        self.problems.error(_at(event) if event else _At(), message, value, fix)
        return refused(self.problems.errors)


def _at(event: yaml.Event) -> _At:
    mark = event.start_mark
    return _At(mark.line + 1, mark.column + 1) if mark else _At()


def _resolve(text: str) -> Scalar:
    """The value of a plain scalar, by YAML 1.2's core schema."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text, 0 if text[:2] in ("0o", "0x") else 10)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
