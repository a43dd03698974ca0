"""A script: what a pretended model answers, and which of its entries answers which call.

**The rule.** An entry's *pattern* is what it asks of a call: any of ``movement``, ``persona`` and
``purpose``, or nothing. Entries with the same pattern form a queue, in file order, in which an entry
stands ``times`` times.

1. A call goes to the queue with the most specific pattern that matches it: three fields before two
   before one before none; among equally many, one that names the purpose first, then one that names the
   movement, then one that names the persona.
2. When that queue is used up, the call goes on to the next queue in the same order whose pattern asks for
   *less of the same* (its fields are among those of the queue it leaves, with equal values), and so on.
   A queue for ``movement: plan`` is thus never continued by one for ``persona: coder``.
3. When no queue is left, the script has run dry.

Every queue has one successor, so the queues form trees, and how many calls have reached a queue follows
from *how many* calls were made before (per movement, persona and purpose), not from their order::

    reached(Q) = calls whose first queue is Q  +  the overflow of each queue that is continued by Q
    overflow(Q) = max(0, reached(Q) - length(Q))

Nothing has to be remembered between two calls: after a crash the same call gets the same answer. Another
attempt of one call is the same call.

**TAKT scenarios** have two kinds of pattern only (a persona, or none), and an answer of their own where
a script of ours runs dry: see :meth:`Script.pick`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from pathlib import PurePosixPath
from typing import Any, Literal

import msgspec

from cadenza.core.outcomes import Usage
from cadenza.providers.base import CallKey, ToolCall

Pattern = tuple[str | None, str | None, str | None]
"""(movement, persona, purpose); ``None`` matches everything."""

Status = Literal["done", "blocked", "error"]
JUDGE_PURPOSE = "rules"
"""The purpose of the call that asks which rule matched: a TAKT scenario knows it as ``conductor``."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """How a call fails before it is answered: on its first ``times`` attempts (``inf``: on all)."""

    code: str
    message: str
    retriable: bool
    status: int | None = None
    retry_after: float | None = None
    times: float = 1


class Chunk(msgspec.Struct, frozen=True):
    """A piece of streamed text, sent ``delay`` seconds after the one before."""

    text: str
    delay: float = 0


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One answer and the calls it may be given to. ``times`` is a number of calls, or ``inf``."""

    movement: str | None = None
    persona: str | None = None
    purpose: str | None = None
    text: str = ""
    structured: Any = None
    failure: Failure | None = None
    delay: float = 0
    hangs: bool = False
    chunks: tuple[Chunk, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    status: Status = "done"
    times: float = 1
    where: str = ""

    @property
    def pattern(self) -> Pattern:
        return (self.movement, self.persona, self.purpose)


class Script:
    """Entries, and the rule that finds the one for a call.

    ``name`` is what messages call it (its file). ``dialect`` is ``cadenza`` or ``takt``.
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        *,
        name: str = "<script>",
        dialect: Literal["cadenza", "takt"] = "cadenza",
    ) -> None:
        self.entries = tuple(entries)
        self.name = name
        self.dialect = dialect
        self._queues = _queues(self.entries)
        self._next = {pattern: _successor(pattern, tuple(self._queues)) for pattern in self._queues}
        self._first: dict[CallKey, Pattern | None] = {}

    @classmethod
    def from_entries(cls, entries: Iterable[Mapping[str, Any]], *, name: str = "<script>") -> Script:
        """A script of our own form, from the dicts that its ``entries:`` would hold.

        Raises:
            PieceError: an entry is not well formed; ``problems`` names each by its number.
        """
        from cadenza.providers.models.script_file import entries_from_dicts

        return cls(entries_from_dicts(entries, name), name=name)

    def pick(self, key: CallKey, earlier: Mapping[CallKey, int]) -> Entry | None:
        """The entry for the call ``key`` after the calls counted in ``earlier``; none: run dry."""
        pattern = self._first_queue(key)
        while pattern is not None:
            position = self._reached(pattern, earlier)
            entry = _at(self._queues[pattern], position)
            if entry is not None:
                return entry
            pattern = self._next[pattern]
        return None

    def candidates(self, key: CallKey) -> tuple[Entry, ...]:
        """Every entry whose pattern matches the call, whether or not it can be reached."""
        seen = self.known_as(key)
        return tuple(entry for entry in self.entries if _matches(entry.pattern, seen))

    def known_as(self, key: CallKey) -> CallKey:
        """The call as this script's dialect sees it."""
        if self.dialect == "cadenza":
            return key
        movement, persona, purpose = key
        return movement, "conductor" if purpose == JUDGE_PURPOSE else takt_persona(persona), purpose

    def _first_queue(self, key: CallKey) -> Pattern | None:
        if key not in self._first:
            seen = self.known_as(key)
            self._first[key] = next((p for p in self._queues if _matches(p, seen)), None)
        return self._first[key]

    def _reached(self, pattern: Pattern, earlier: Mapping[CallKey, int]) -> float:
        own = sum(count for key, count in earlier.items() if self._first_queue(key) == pattern)
        before = [other for other, successor in self._next.items() if successor == pattern]
        return own + sum(max(0, self._reached(other, earlier) - self._length(other)) for other in before)

    def _length(self, pattern: Pattern) -> float:
        return sum(entry.times for entry in self._queues[pattern])


def takt_persona(spec: str | None) -> str:
    """A persona's name in a TAKT scenario: the name as it is, or a ``.md`` path's last part, with its folder
    before it unless that is ``personas`` (TAKT engine, mock provider). A name is its own name."""
    if not spec:
        return "default"
    path = PurePosixPath(spec.replace("\\", "/"))
    if path.suffix != ".md":
        return spec
    folder = path.parent.name
    return path.stem if folder in ("", "personas") else f"{folder}/{path.stem}"


def _queues(entries: tuple[Entry, ...]) -> dict[Pattern, tuple[Entry, ...]]:
    grouped: dict[Pattern, list[Entry]] = {}
    for entry in entries:
        grouped.setdefault(entry.pattern, []).append(entry)
    return {pattern: tuple(grouped[pattern]) for pattern in sorted(grouped, key=_rank)}


def _rank(pattern: Pattern) -> tuple[int, bool, bool, bool]:
    """Most specific first. Patterns that name the same fields never match one call, so ties are free."""
    movement, persona, purpose = pattern
    named = sum(field is not None for field in pattern)
    return (-named, purpose is None, movement is None, persona is None)


def _matches(pattern: Pattern, key: tuple[str | None, ...]) -> bool:
    return all(wanted is None or wanted == given for wanted, given in zip(pattern, key, strict=True))


def _successor(pattern: Pattern, ordered: tuple[Pattern, ...]) -> Pattern | None:
    rest = ordered[ordered.index(pattern) + 1 :]
    return next((other for other in rest if _matches(other, pattern)), None)


def _at(queue: tuple[Entry, ...], position: float) -> Entry | None:
    for entry in queue:
        if position < entry.times:
            return entry
        position -= entry.times
    return None


FOREVER = inf
