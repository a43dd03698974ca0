"""One entry of a script: its keys, taken apart and checked. Every mistake becomes a problem with its
place."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from cadenza.core.outcomes import Usage
from cadenza.errors import PieceError
from cadenza.providers.base import ToolCall
from cadenza.providers.models.script import FOREVER, Chunk, Entry, Failure
from cadenza.providers.models.status import CODES, RETRIABLE, code_of

ENTRY_KEYS = (
    *("movement", "persona", "purpose", "text", "json", "chunks", "error"),
    *("delay", "usage", "status", "times", "calls"),
)
CALL_KEYS = ("name", "arguments")
ERROR_KEYS = ("code", "status", "message", "retry_after", "times")
USAGE_KEYS = ("input", "output", "cached")
CHUNK_KEYS = ("text", "delay")
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
            self.bad(key, f"must be {told} ({shown(value)})", f"correct it{quote}")
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
        self.bad(key, f"must be a whole number from 1, or `forever` ({shown(value)})", "correct it")
        return default

    def sub(self, key: str, keys: tuple[str, ...]) -> _Fields | None:
        value = self.take(key, "mapping")
        if value is None:
            return None
        path = (*self.path, key)
        self.problems += unknown(value, keys, self.place, path)
        return _Fields(value, path, self.place, self.problems)

    def bad(self, key: str, what: str, todo: str) -> None:
        self.problems.append(f"{self.place((*self.path, key))}: `{key}` {what}; {todo}")


def read_entries(
    data: list[Any], place: Place, read: Callable[[_Fields], Entry], name: str
) -> tuple[Entry, ...]:
    """All entries; raises PieceError with every mistake in them."""
    problems: list[str] = []
    entries = []
    for index, item in enumerate(data):
        if isinstance(item, dict):
            entries.append(read(_Fields(item, (index,), place, problems)))
        else:
            problems.append(
                f"{place((index,))}: an entry must be a mapping ({shown(item)}); write `text: …` in it"
            )
    if problems:
        raise refused(problems)
    return tuple(entries)


def own_entry(fields: _Fields) -> Entry:
    """An entry of our own form."""
    fields.problems += unknown(fields.data, ENTRY_KEYS, fields.place, fields.path)
    chunks = _chunks(fields, "chunks", "seconds")
    failure = _failure(fields)
    _check_answers(fields, failure)
    calls = _calls(fields)
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
        calls=calls,
        usage=_usage(fields),
        status=_one_of(fields, "status", STATUSES, "done"),
        times=fields.times("times"),
        where=fields.place(fields.path),
    )


def _check_answers(fields: _Fields, failure: Failure | None) -> None:
    given = [key for key in ("text", "json", "chunks") if key in fields.data]
    if not given and "calls" in fields.data:
        return
    if len(given) > 1:
        fields.bad(given[1], f"stands beside `{given[0]}`", "an entry has one of text, json and chunks")
    elif not given and failure is None:
        where = fields.place(fields.path)
        fields.problems.append(
            f"{where}: this entry answers nothing; give it text, json, chunks, calls or error"
        )
    elif not given and failure is not None and failure.times != FOREVER:
        fields.bad("error", "ends after some attempts", "give the entry a text too, or leave out error.times")


def _failure(fields: _Fields) -> Failure | None:
    error = fields.sub("error", ERROR_KEYS)
    if error is None:
        return None
    status = error.take("status", "status")
    code = _one_of(error, "code", CODES, code_of(status) if status else "failed")
    answers = any(key in fields.data for key in ("text", "json", "chunks", "calls"))
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
            fields.problems += unknown(item, ("text", delay), fields.place, path)
            seconds = part.take(delay, unit, 0) / (1 if unit == "seconds" else 1000)
            chunks.append(Chunk(part.take("text", "text", ""), seconds))
        else:
            where = fields.place(path)
            fields.problems.append(f"{where}: a chunk must be text, or text and {delay} ({shown(item)})")
    return tuple(chunks)


def _calls(fields: _Fields) -> tuple[ToolCall, ...]:
    """Tool calls; arguments are a mapping, or a text that is sent as it is (to pretend that it is broken)."""
    calls = []
    for index, item in enumerate(fields.take("calls", "list", [])):
        path = (*fields.path, "calls", index)
        if not isinstance(item, dict):
            fields.problems.append(
                f"{fields.place(path)}: a call must be {{name, arguments}} ({shown(item)})"
            )
            continue
        part = _Fields(item, path, fields.place, fields.problems)
        fields.problems += unknown(item, CALL_KEYS, fields.place, path)
        name = part.take("name", "text", "")
        if not name:
            part.bad("name", "is missing", "name the tool")
        given = item.get("arguments", {})
        if isinstance(given, dict):
            given = _arguments_text(part, given)
        elif not isinstance(given, str):
            part.bad("arguments", f"must be a mapping or a text ({shown(given)})", "correct it")
            given = "{}"
        calls.append(ToolCall("", name, given))
    return tuple(calls)


def _arguments_text(part: _Fields, given: dict[Any, Any]) -> str:
    try:
        return json.dumps(given, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        part.bad("arguments", f"holds what JSON cannot ({error})", "quote dates, leave out NaN")
        return "{}"


def _json_text(fields: _Fields) -> str:
    try:
        text = json.dumps(fields.data["json"], ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        fields.bad("json", f"holds what JSON cannot ({error})", "quote dates, leave out NaN and infinities")
        return ""
    return text


def takt_entry(fields: _Fields) -> Entry:
    """An answer of a TAKT scenario."""
    fields.problems += unknown(fields.data, TAKT_KEYS, fields.place, fields.path)
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
    fields.bad(key, f"is not known ({shown(value)}{_near(value, allowed)})", f"one of: {', '.join(allowed)}")
    return default


def unknown(data: dict[Any, Any], known: tuple[str, ...], place: Place, path: tuple[Any, ...]) -> list[str]:
    """Keys that nobody reads, as problems."""
    return [
        f"{place((*path, key))}: unknown key ({shown(key)}{_near(key, known)}); known: {', '.join(known)}"
        for key in data
        if key not in known
    ]


def _near(value: Any, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(str(value), list(known), n=1, cutoff=0.5)
    return f", did you mean `{near[0]}`?" if near else ""


def shown(value: Any) -> str:
    """A value for a message."""
    told = "nothing" if value is None else repr(value)
    return told if len(told) <= 60 else told[:57] + "..."


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def refused(problems: list[str]) -> PieceError:
    """The error that tells all mistakes."""
    return PieceError("\n".join(problems), problems=tuple(problems))
