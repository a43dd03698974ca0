"""The team leader's plan: what it is asked, how its answer is read, what its parts come to.

Source of behaviour: the TAKT command-line engine, team leader. A leader divides the work into parts, the
parts are played at the same time, and after each one the leader may add more while few are waiting:
parts that are planned already are dropped, and nothing new, ``done`` or an unusable answer ends the
planning. An unusable *first* answer (:class:`PlanError`) is the movement's failure.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from cadenza.core.prompts.answers import clean, field, json_answer, json_blocks, whole
from cadenza.core.prompts.phases import REASON_LENGTH
from cadenza.core.prompts.texts_three import Language, texts_three
from cadenza.core.prompts.three import cut, fill

TOTAL_PARTS = 20
"""How many parts a leader can plan in one visit, refills included."""
TIMEOUT_LIMIT = 24 * 60 * 60 * 1000
"""The longest time limit of a part in milliseconds, a day; a longer one is shortened to it."""

_ID_LENGTH = 40
_TITLE_LENGTH = 100
_INSTRUCTION_LENGTH = 2000
_SEPARATOR = "\n\n---\n\n"


class PlanError(ValueError):
    """A leader's answer is no plan. The message says what is wrong with it, in one line."""


class Part(msgspec.Struct, frozen=True):
    """One part of the work. ``timeout_ms`` is its time limit in milliseconds."""

    id: str
    title: str
    instruction: str
    timeout_ms: int


class PartResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a part came to: its output, or an error (also when it has neither)."""

    part: Part
    output: str | None = None
    error: str | None = None

    @property
    def shown(self) -> str:
        """The output, or ``[ERROR]`` and why there is none."""
        return f"[ERROR] {self.error or 'no output'}" if self.output is None else self.output


class Refill(msgspec.Struct, frozen=True):
    """The parts that a leader added. With none the planning ends; ``reason`` says why, for the record."""

    parts: tuple[Part, ...]
    reason: str


def decomposition_prompt(instruction: str, max_parts: int, language: Language) -> str:
    """Ask for the first parts. ``instruction`` is the movement's Phase 1 message."""
    return fill(texts_three(language).decompose, instruction=instruction, max_parts=str(max_parts))


def decomposition_schema(max_parts: int) -> dict[str, Any]:
    """The JSON Schema of the first plan: 1 to ``max_parts`` parts."""
    return _object({"parts": {**_parts_schema(max_parts), "minItems": 1}})


def refill_prompt(
    instruction: str, results: Sequence[PartResult], known: Sequence[str], room: int, language: Language
) -> str:
    """Ask whether more parts are needed.

    ``results`` are the parts that have ended, each shown cut; ``known`` the ids of all that were planned;
    ``room`` is :func:`room_for`.
    """
    words = texts_three(language)
    ended = "\n\n".join(f"### {r.part.id}: {r.part.title}\n{cut(r.shown)}" for r in results)
    values = {"known": ", ".join(known), "results": ended or words.refill_nothing, "room": str(room)}
    return fill(words.refill, instruction=instruction, **values)


def refill_schema(room: int) -> dict[str, Any]:
    """The JSON Schema of a refill: up to ``room`` parts."""
    return _object(
        {
            "done": {"type": "boolean"},
            "reasoning": {"type": "string", "maxLength": REASON_LENGTH},
            "parts": _parts_schema(room),
        }
    )


def room_for(max_parts: int, planned: int) -> int:
    """How many parts a refill may add when ``planned`` were planned; with 0 nobody is to be asked."""
    return max(0, min(max_parts, TOTAL_PARTS - planned))


def read_plan(text: str, max_parts: int, default_timeout_ms: int) -> tuple[Part, ...]:
    """The parts of a leader's first answer.

    They are the ``parts`` of a JSON object (alone, or in the only code block), a JSON array alone, or
    what the last ```` ```json ```` block with either of these holds.

    Raises:
        PlanError: no such list; none or more than ``max_parts`` parts; a part without id, title or
            instruction; an id given twice; a time limit that is neither null nor a positive integer.
    """
    found = _listed(text)
    if found is None:
        raise PlanError("the team leader's answer holds no list of parts")
    if not 1 <= len(found) <= max_parts:
        raise PlanError(f"the team leader planned {len(found)} parts; 1 to {max_parts} are allowed")
    parts = tuple(_part(at, part, default_timeout_ms) for at, part in enumerate(found, 1))
    ids = [part.id for part in parts]
    if twice := sorted({id for id in ids if ids.count(id) > 1}):
        raise PlanError(f"the team leader gave an id to two parts: {', '.join(twice)}")
    return parts


def read_refill(text: str, known: Collection[str], room: int, default_timeout_ms: int) -> Refill:
    """The parts that an answer adds: those whose id is new, ``room`` of them at most. Never raises."""
    answer = json_answer(text)
    reason = clean(str(field(answer, "reasoning") or ""))
    if field(answer, "done") is True:
        return Refill((), reason or "done")
    if (found := _listed(text)) is None:
        return Refill((), "the answer holds no list of parts")
    try:
        parts = _new_parts(found, known, default_timeout_ms)
    except PlanError as problem:
        return Refill((), str(problem))
    return Refill(parts[:room], reason if parts else "no new part was planned")


def _new_parts(found: list[Any], known: Collection[str], default_timeout_ms: int) -> tuple[Part, ...]:
    parts: dict[str, Part] = {}
    for number, raw in enumerate(found, 1):
        part = _part(number, raw, default_timeout_ms)
        if part.id not in known:
            parts.setdefault(part.id, part)
    return tuple(parts.values())


def part_prompt(part: Part, task: str, language: Language) -> str:
    """What whoever does a part is told: the whole task, and the part."""
    values = {"task": task, "title": part.title, "instruction": part.instruction}
    return fill(texts_three(language).part, **values)


def merged(results: Sequence[PartResult]) -> str:
    """The movement's output: the plan, then every part in the order in which they were planned."""
    plan = json.dumps({"parts": [msgspec.to_builtins(r.part) for r in results]}, ensure_ascii=False, indent=2)
    outputs = [f"## {r.part.id}: {r.part.title}\n{r.shown}" for r in results]
    return _SEPARATOR.join([f"## decomposition\n{plan}", *outputs])


def all_failed(results: Sequence[PartResult]) -> str | None:
    """Why the movement failed when every part did: one clause a part. ``None`` when some part did not."""
    if any(result.output is not None for result in results):
        return None
    errors = "; ".join(f"{r.part.id}: {r.error or 'no output'}" for r in results)
    return f"all parts of the team leader failed: {errors}"


def _listed(text: str) -> list[Any] | None:
    answer = json_answer(text)
    for candidate in (answer, *json_blocks(text)):
        parts = field(candidate, "parts") if isinstance(candidate, dict) else candidate
        if isinstance(parts, list):
            return parts
    return None


def _part(number: int, part: object, default_timeout_ms: int) -> Part:
    if not isinstance(part, dict):
        raise PlanError(f"part {number} of the plan is no object")
    id, title = (" ".join(_text(number, part, name).split()) for name in ("id", "title"))
    timeout_ms = _timeout(id, part.get("timeout_ms"), default_timeout_ms)
    return Part(id, title, _text(number, part, "instruction"), timeout_ms)


def _text(number: int, part: Mapping[str, object], name: str) -> str:
    value = part.get(name)
    if not isinstance(value, str) or not value.strip():
        raise PlanError(f"part {number} of the plan has no {name}")
    return clean(value).strip()


def _timeout(id: str, value: object, default: int) -> int:
    if value is None:
        return default
    number = whole(value)
    if number is None or number < 1:
        raise PlanError(f"part {id}: timeout_ms must be null or a positive integer, not {value!r}")
    return min(number, TIMEOUT_LIMIT)


def _parts_schema(most: int) -> dict[str, Any]:
    part = _object(
        {
            "id": _string(_ID_LENGTH),
            "title": _string(_TITLE_LENGTH),
            "instruction": _string(_INSTRUCTION_LENGTH),
            "timeout_ms": {"type": ["integer", "null"], "minimum": 1, "maximum": TIMEOUT_LIMIT},
        }
    )
    return {"type": "array", "items": part, "maxItems": most}


def _string(length: int) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": length}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
