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

A file whose first character is ``[``, or whose name ends in ``.json`` and which is not an object, is a
TAKT scenario. Every mistake is reported as ``file:line:column``, all of them at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cadenza.core.outcomes import Usage
from cadenza.errors import NotFound, PieceError
from cadenza.providers.models.script import FOREVER, Chunk, Entry, Failure, Script
from cadenza.providers.models.status import CODES, RETRIABLE, code_of

ENTRY_KEYS = (
    *("movement", "persona", "purpose", "text", "json", "chunks", "error"),
    *("delay", "usage", "status", "times"),
)
ERROR_KEYS = ("code", "status", "message", "retry_after", "times")
USAGE_KEYS = ("input", "output", "cached")
CHUNK_KEYS = ("text", "delay")
FILE_KEYS = ("cadenza-script", "description", "entries")
STATUSES = ("done", "blocked", "error")
TAKT_KEYS = (
    *("persona", "status", "content", "structured_output", "error", "failure_category"),
    *("delay_ms", "wait_for_abort", "stream_events", "text_chunks", "file_writes"),
)
TAKT_STATUSES = {
    "done": "done",
    "approved": "done",
    "rejected": "done",
    "improve": "done",
    "blocked": "blocked",
    "error": "error",
    "rate_limited": "done",
}

Place = Callable[[tuple[Any, ...]], str]
"""Where the value at a path (entry number, key, key …) stands, for a message."""

_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "text": ((str,), "text"),
    "seconds": ((int, float), "a number of seconds, 0 or more"),
    "milliseconds": ((int, float), "a number of milliseconds, 0 or more"),
    "count": ((int,), "a whole number, 0 or more"),
    "status": ((int,), "an HTTP status such as 429"),
    "mapping": ((dict,), "a mapping"),
    "list": ((list,), "a list"),
    "flag": ((bool,), "true or false"),
}


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

    return _entries([dict(entry) for entry in entries], place, _own_entry, name)


# Files


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise NotFound(f"{file}: there is no such script", hint="give --script the path of a file") from None
    except UnicodeDecodeError as error:
        raise _refused([f"{file}:1:1: not UTF-8 (byte {error.start}); save it as UTF-8"]) from None
    except OSError as error:
        raise _refused([f"{file}:1:1: cannot be read ({error.strerror}); give --script a file"]) from None


def _read_yaml(text: str, name: str) -> tuple[Entry, ...]:
    data, places = _parse_yaml(text, name)

    def place(path: tuple[Any, ...]) -> str:
        while path and path not in places:
            path = path[:-1]
        line, column = places.get(path, (1, 1))
        return f"{name}:{line}:{column}"

    entries = _checked_head(data, place)
    return _entries(entries, lambda path: place(("entries", *path)), _own_entry, name)


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
            raise _refused([f"{name}:1:1: the script is empty; start with `cadenza-script: 1`"])
        walk(node, ())
        data = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        raise _refused([f"{name}:{at}: broken YAML ({error.problem}); correct it there"]) from None
    except yaml.YAMLError as error:
        raise _refused([f"{name}:1:1: broken YAML ({str(error).splitlines()[0]}); correct it"]) from None
    except (RecursionError, ValueError) as error:
        raise _refused([f"{name}:1:1: cannot be read ({error}); write it more plainly"]) from None
    if problems:
        raise _refused(problems)
    return data, places


def _checked_head(data: Any, place: Place) -> list[Any]:
    if not isinstance(data, dict) or "cadenza-script" not in data:
        raise _refused([f"{place(())}: not a script; its first line must be `cadenza-script: 1`"])
    problems = _unknown(data, FILE_KEYS, place, ())
    if data["cadenza-script"] != 1 or data["cadenza-script"] is True:
        told = _shown(data["cadenza-script"])
        problems.append(f"{place(('cadenza-script',))}: unknown script version ({told}); this one reads 1")
    if not isinstance(data.get("entries"), list):
        problems.append(f"{place(('entries',))}: `entries` must be a list ({_shown(data.get('entries'))})")
    if problems:
        raise _refused(problems)
    entries: list[Any] = data["entries"]
    return entries


def _read_takt(text: str, name: str) -> tuple[Entry, ...]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        at = f"{name}:{error.lineno}:{error.colno}"
        raise _refused([f"{at}: broken JSON ({error.msg}); correct it there"]) from None
    except RecursionError:
        raise _refused([f"{name}:1:1: nested too deeply; write it more plainly"]) from None
    if not isinstance(data, list):
        raise _refused([f"{name}:1:1: a scenario must be an array of answers ({_shown(data)})"])
    starts = _element_starts(text)

    def place(path: tuple[Any, ...]) -> str:
        offset = starts[path[0]] if path else 0
        for key in path[1:]:
            found = text.find(json.dumps(key), offset) if isinstance(key, str) else -1
            offset = found if found >= 0 else offset
        line = text.count("\n", 0, offset) + 1
        return f"{name}:{line}:{offset - text.rfind(chr(10), 0, offset)}"

    return _entries(data, place, _takt_entry, name)


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


# Entries


class _Fields:
    """A mapping being taken apart: each wrong value becomes a problem, and its default is used."""

    def __init__(
        self, data: dict[Any, Any], path: tuple[Any, ...], place: Place, problems: list[str]
    ) -> None:
        self.data, self.path, self.place, self.problems = data, path, place, problems

    def take(self, key: str, kind: str, default: Any = None) -> Any:
        value = self.data.get(key)
        if value is None:
            if key in self.data:
                self.bad(key, "has no value", "write one or leave the key out")
            return default
        types, told = _KINDS[kind]
        wrong = not isinstance(value, types) or (isinstance(value, bool) and bool not in types)
        if wrong or (isinstance(value, int | float) and not 0 <= value < FOREVER):
            quote = "; quote it" if kind == "text" and isinstance(value, bool | int | float) else ""
            self.bad(key, f"must be {told} ({_shown(value)})", f"correct it{quote}")
            return default
        if isinstance(value, str) and _has_surrogate(value):
            self.bad(key, "holds half a surrogate pair", "write the whole character")
            return default
        return value

    def times(self, key: str, default: float = 1) -> float:
        value = self.data.get(key, default)
        if value == "forever":
            return FOREVER
        if value == FOREVER or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
            return float(value)
        self.bad(key, f"must be a whole number from 1, or `forever` ({_shown(value)})", "correct it")
        return default

    def sub(self, key: str, keys: tuple[str, ...]) -> _Fields | None:
        value = self.take(key, "mapping")
        if value is None:
            return None
        path = (*self.path, key)
        self.problems += _unknown(value, keys, self.place, path)
        return _Fields(value, path, self.place, self.problems)

    def bad(self, key: str, what: str, todo: str) -> None:
        self.problems.append(f"{self.place((*self.path, key))}: `{key}` {what}; {todo}")


def _entries(data: list[Any], place: Place, read: Callable[[_Fields], Entry], name: str) -> tuple[Entry, ...]:
    problems: list[str] = []
    entries = []
    for index, item in enumerate(data):
        if isinstance(item, dict):
            entries.append(read(_Fields(item, (index,), place, problems)))
        else:
            problems.append(
                f"{place((index,))}: an entry must be a mapping ({_shown(item)}); write `text: …` in it"
            )
    if problems:
        raise _refused(problems)
    return tuple(entries)


def _own_entry(fields: _Fields) -> Entry:
    fields.problems += _unknown(fields.data, ENTRY_KEYS, fields.place, fields.path)
    chunks = _chunks(fields, "chunks", "seconds")
    failure = _failure(fields)
    _check_answers(fields, failure)
    text = fields.take("text", "text", "".join(chunk.text for chunk in chunks))
    if "json" in fields.data:
        text = _json_text(fields)
    return Entry(
        movement=fields.take("movement", "text"),
        persona=fields.take("persona", "text"),
        purpose=fields.take("purpose", "text"),
        text=text,
        structured=fields.data.get("json"),
        failure=failure,
        delay=fields.take("delay", "seconds", 0),
        chunks=chunks,
        usage=_usage(fields),
        status=_one_of(fields, "status", STATUSES, "done"),
        times=fields.times("times"),
        where=fields.place(fields.path),
    )


def _check_answers(fields: _Fields, failure: Failure | None) -> None:
    given = [key for key in ("text", "json", "chunks") if key in fields.data]
    if len(given) > 1:
        fields.bad(given[1], f"stands beside `{given[0]}`", "an entry has one of text, json and chunks")
    elif not given and failure is None:
        where = fields.place(fields.path)
        fields.problems.append(f"{where}: this entry answers nothing; give it text, json, chunks or error")
    elif not given and failure is not None and failure.times != FOREVER:
        fields.bad("error", "ends after some attempts", "give the entry a text too, or leave out error.times")


def _failure(fields: _Fields) -> Failure | None:
    error = fields.sub("error", ERROR_KEYS)
    if error is None:
        return None
    status = error.take("status", "status")
    code = _one_of(error, "code", CODES, code_of(status) if status else "failed")
    answers = any(key in fields.data for key in ("text", "json", "chunks"))
    return Failure(
        code=code,
        status=status,
        message=error.take("message", "text", f"the script says that this call fails ({code})"),
        retriable=code in RETRIABLE,
        retry_after=error.take("retry_after", "seconds"),
        times=error.times("times", 1 if answers else FOREVER),
    )


def _usage(fields: _Fields) -> Usage | None:
    usage = fields.sub("usage", USAGE_KEYS)
    if usage is None:
        return None
    counts = {key: usage.take(key, "count", 0) for key in USAGE_KEYS}
    if counts["cached"] > counts["input"]:
        usage.bad(
            "cached", f"is more than `input` ({counts['cached']} > {counts['input']})", "it is a part of it"
        )
    return Usage(**counts)


def _chunks(fields: _Fields, key: str, unit: str) -> tuple[Chunk, ...]:
    delay = "delay" if unit == "seconds" else "delay_ms"
    chunks = []
    for index, item in enumerate(fields.take(key, "list", [])):
        path = (*fields.path, key, index)
        if isinstance(item, str) and not _has_surrogate(item):
            chunks.append(Chunk(item))
        elif isinstance(item, dict):
            part = _Fields(item, path, fields.place, fields.problems)
            fields.problems += _unknown(item, ("text", delay), fields.place, path)
            seconds = part.take(delay, unit, 0) / (1 if unit == "seconds" else 1000)
            chunks.append(Chunk(part.take("text", "text", ""), seconds))
        else:
            where = fields.place(path)
            fields.problems.append(f"{where}: a chunk must be text, or text and {delay} ({_shown(item)})")
    return tuple(chunks)


def _json_text(fields: _Fields) -> str:
    try:
        text = json.dumps(fields.data["json"], ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        fields.bad("json", f"holds what JSON cannot ({error})", "quote dates, leave out NaN and infinities")
        return ""
    return text


def _takt_entry(fields: _Fields) -> Entry:
    fields.problems += _unknown(fields.data, TAKT_KEYS, fields.place, fields.path)
    if "content" not in fields.data:
        fields.problems.append(f"{fields.place(fields.path)}: `content` is missing; write the answer's text")
    if fields.data.get("file_writes"):
        fields.bad("file_writes", "is not played: a model here writes no files", "leave it out")
    status = _one_of(fields, "status", tuple(TAKT_STATUSES), "done")
    content = fields.take("content", "text", "")
    message = fields.take("error", "text", "")
    return Entry(
        persona=fields.take("persona", "text"),
        text=content or message,
        structured=fields.take("structured_output", "mapping"),
        failure=_rate_limit(content or message) if status == "rate_limited" else None,
        delay=fields.take("delay_ms", "milliseconds", 0) / 1000,
        hangs=fields.take("wait_for_abort", "flag", False),
        chunks=_chunks(fields, "text_chunks", "milliseconds"),
        status=TAKT_STATUSES[status],  # type: ignore[arg-type]
        where=fields.place(fields.path),
    )


def _rate_limit(message: str) -> Failure:
    """Not retriable: the same entry would answer every attempt."""
    told = message or "the scenario says that the agent is rate limited"
    return Failure(code="rate_limited", message=told, retriable=False, status=429, times=FOREVER)


# Words


def _one_of(fields: _Fields, key: str, allowed: tuple[str, ...], default: str) -> Any:
    value = fields.take(key, "text", default)
    if value in allowed:
        return value
    fields.bad(key, f"is not known ({_shown(value)}{_near(value, allowed)})", f"one of: {', '.join(allowed)}")
    return default


def _unknown(data: dict[Any, Any], known: tuple[str, ...], place: Place, path: tuple[Any, ...]) -> list[str]:
    return [
        f"{place((*path, key))}: unknown key ({_shown(key)}{_near(key, known)}); known: {', '.join(known)}"
        for key in data
        if key not in known
    ]


def _near(value: Any, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(str(value), list(known), n=1, cutoff=0.5)
    return f", did you mean `{near[0]}`?" if near else ""


def _shown(value: Any) -> str:
    told = "nothing" if value is None else repr(value)
    return told if len(told) <= 60 else told[:57] + "..."


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def _refused(problems: list[str]) -> PieceError:
    return PieceError("\n".join(problems), problems=tuple(problems))
