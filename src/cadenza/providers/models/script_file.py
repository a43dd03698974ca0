"""Reading scripts: our own YAML form, and TAKT's scenario files.

Our own form::

    cadenza-script: 1
    entries:
      - movement: plan            # any of movement, persona, purpose; none of them: every call
        text: "1. Do it. [PLAN:0]"
      - purpose: rules            # the call that asks which rule matched
        json: {rule: 0}           # sent as its text, on one line
        times: forever            # how many calls it may answer; 1 unless said
      - movement: review
        error: {status: 429, retry_after: 0.2, times: 2}   # the first two attempts fail, then:
        text: "[REVIEW:0]"
      - persona: coder
        chunks: ["str", "eam"]    # or {text, delay}; the text is their sum
        delay: 0.5                # seconds before the first
        usage: {input: 120, output: 30, cached: 100}
        status: blocked           # done unless said
      - movement: build
        calls:                    # tools that the model calls; beside a text or alone
          - {name: read_file, arguments: {path: a.txt}}

A file whose first character is ``[``, or whose name ends in ``.json`` and which is not an object, is a
TAKT scenario. Every mistake is reported as ``file:line:column``, all of them at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cadenza.errors import NotFound
from cadenza.providers.models.script import Entry, Script
from cadenza.providers.models.script_entries import (
    Place,
    own_entry,
    read_entries,
    refused,
    shown,
    takt_entry,
    unknown,
)

FILE_KEYS = ("cadenza-script", "description", "entries")


def load_script(path: str | Path) -> Script:
    """Read a script file of either format.

    Raises:
        NotFound: there is no such file.
        PieceError: it cannot be read; ``problems`` holds one line for each mistake.
    """
    file = Path(path)
    text = _read(file)
    start = text.lstrip()
    if start.startswith("[") or (file.suffix == ".json" and not start.startswith("{")):
        return Script(_read_takt(text, str(file)), name=str(file), dialect="takt")
    return Script(_read_yaml(text, str(file)), name=str(file))


def entries_from_dicts(entries: Iterable[Mapping[str, Any]], name: str) -> tuple[Entry, ...]:
    """Entries of our own form that were written in Python.

    Raises:
        PieceError: some are not well formed.
    """

    def place(path: tuple[Any, ...]) -> str:
        return f"{name}: entry {path[0] + 1}"

    return read_entries([dict(entry) for entry in entries], place, own_entry, name)


# Files


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NotFound(f"{file}: there is no such script", hint="give --script the path of a file") from None
    except UnicodeDecodeError as error:
        raise refused([f"{file}:1:1: not UTF-8 (byte {error.start}); save it as UTF-8"]) from None
    except OSError as error:
        raise refused([f"{file}:1:1: cannot be read ({error.strerror}); give --script a file"]) from None


def _read_yaml(text: str, name: str) -> tuple[Entry, ...]:
    data, places = _parse_yaml(text, name)

    def place(path: tuple[Any, ...]) -> str:
        while path and path not in places:
            path = path[:-1]
        line, column = places.get(path, (1, 1))
        return f"{name}:{line}:{column}"

    entries = _checked_head(data, place)
    return read_entries(entries, lambda path: place(("entries", *path)), own_entry, name)


def _parse_yaml(text: str, name: str) -> tuple[Any, dict[tuple[Any, ...], tuple[int, int]]]:
    import yaml

    places: dict[tuple[Any, ...], tuple[int, int]] = {}
    problems: list[str] = []

    def walk(node: Any, path: tuple[Any, ...]) -> None:
        places.setdefault(path, (node.start_mark.line + 1, node.start_mark.column + 1))
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                walk(item, (*path, index))
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                where = (*path, key.value if isinstance(key.value, str) else "?")
                mark = (key.start_mark.line + 1, key.start_mark.column + 1)
                if where in places:
                    problems.append(f"{name}:{mark[0]}:{mark[1]}: `{key.value}` stands here twice; keep one")
                places[where] = mark
                walk(value, where)

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            raise refused([f"{name}:1:1: the script is empty; start with `cadenza-script: 1`"])
        walk(node, ())
        data = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        raise refused([f"{name}:{at}: broken YAML ({error.problem}); correct it there"]) from None
    except yaml.YAMLError as error:
        raise refused([f"{name}:1:1: broken YAML ({str(error).splitlines()[0]}); correct it"]) from None
    except (RecursionError, ValueError) as error:
        raise refused([f"{name}:1:1: cannot be read ({error}); write it more plainly"]) from None
    if problems:
        raise refused(problems)
    return data, places


def _checked_head(data: Any, place: Place) -> list[Any]:
    if not isinstance(data, dict) or "cadenza-script" not in data:
        raise refused([f"{place(())}: not a script; its first line must be `cadenza-script: 1`"])
    problems = unknown(data, FILE_KEYS, place, ())
    if data["cadenza-script"] != 1 or data["cadenza-script"] is True:
        told = shown(data["cadenza-script"])
        problems.append(f"{place(('cadenza-script',))}: unknown script version ({told}); this one reads 1")
    if not isinstance(data.get("entries"), list):
        problems.append(f"{place(('entries',))}: `entries` must be a list ({shown(data.get('entries'))})")
    if problems:
        raise refused(problems)
    entries: list[Any] = data["entries"]
    return entries


def _read_takt(text: str, name: str) -> tuple[Entry, ...]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        at = f"{name}:{error.lineno}:{error.colno}"
        raise refused([f"{at}: broken JSON ({error.msg}); correct it there"]) from None
    except RecursionError:
        raise refused([f"{name}:1:1: nested too deeply; write it more plainly"]) from None
    if not isinstance(data, list):
        raise refused([f"{name}:1:1: a scenario must be an array of answers ({shown(data)})"])
    starts = _element_starts(text)

    def place(path: tuple[Any, ...]) -> str:
        offset = starts[path[0]] if path else 0
        for key in path[1:]:
            found = text.find(json.dumps(key), offset) if isinstance(key, str) else -1
            offset = found if found >= 0 else offset
        line = text.count("\n", 0, offset) + 1
        return f"{name}:{line}:{offset - text.rfind(chr(10), 0, offset)}"

    return read_entries(data, place, takt_entry, name)


def _element_starts(text: str) -> list[int]:
    """The offset of each element of the array that ``text`` holds (valid JSON)."""
    decoder, starts = json.JSONDecoder(), []
    offset = _skip(text, text.index("[") + 1)
    while text[offset] != "]":
        starts.append(offset)
        offset = _skip(text, decoder.raw_decode(text, offset)[1])
    return starts


def _skip(text: str, offset: int) -> int:
    found = re.compile(r"[\s,]*").match(text, offset)
    return found.end() if found else offset
