"""What an agent with tools is told at the beginning of a movement: appended to its conversation as one
message, so that nothing before it changes (Maestro, KV cache laws)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from cadenza.core.prompts.single import SinglePrompt, compose, display_condition
from cadenza.core.prompts.templates import expand
from cadenza.core.prompts.texts_tools import ToolTexts, tool_texts
from cadenza.piece.vocabulary import WAIT_SUBTASKS


class Choice(msgspec.Struct, frozen=True):
    """One way out: a movement or ``WAIT_SUBTASKS``, and when it is to be taken."""

    next: str
    condition: str


class Owed(msgspec.Struct, frozen=True):
    """A report that the movement owes, and what it must look like."""

    name: str
    contract: str = ""


class Guidance(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the message is made of. ``prompt`` is the movement's own part (persona, policy,
    instruction, task …); ``labels`` are those of a lane; ``summary`` is what an earlier conversation handed
    over; ``note`` is what happened meanwhile; ``completes``: the work may end here."""

    prompt: SinglePrompt
    choices: tuple[Choice, ...] = ()
    labels: tuple[str, ...] | None = None
    tools: tuple[str, ...] = ()
    granted: tuple[str, ...] = ()
    reports: tuple[Owed, ...] = ()
    summary: str | None = None
    note: str | None = None
    completes: bool = True


def guidance(given: Guidance) -> str:
    """The message."""
    return "\n\n".join(_parts(given, tool_texts(given.prompt.language)))


def _parts(given: Guidance, words: ToolTexts) -> Iterator[str]:
    yield fill(words.movement, movement=given.prompt.movement)
    if given.summary:
        yield fill(words.handover_note, summary=given.summary)
    yield compose(given.prompt)
    if given.note:
        yield fill(words.note, note=given.note)
    tools = ", ".join(given.tools)
    yield fill(words.tools, tools=tools) if tools else words.no_tools
    if given.granted:
        yield fill(words.granted, tools=", ".join(given.granted))
    if given.reports:
        yield fill(words.reports, reports=_owed(given.reports, words))
    yield from _ending(given, words)


def _ending(given: Guidance, words: ToolTexts) -> Iterator[str]:
    if given.labels:
        yield fill(words.labels, labels="\n".join(f"- {label}" for label in given.labels))
        return
    if given.choices and given.labels is None:
        yield fill(words.choices, choices=_choices(given.choices, words))
    if given.completes:
        yield words.no_choices


def _choices(choices: Sequence[Choice], words: ToolTexts) -> str:
    lines = []
    for choice in choices:
        line = words.choice_wait if choice.next == WAIT_SUBTASKS else words.choice
        lines.append(fill(line, next=choice.next, condition=display_condition(choice.condition)))
    return "\n".join(lines)


def _owed(reports: Sequence[Owed], words: ToolTexts) -> str:
    lines = []
    for report in reports:
        contract = f"\n\n{report.contract}\n" if report.contract else ""
        lines.append(fill(words.report, name=report.name, contract=contract))
    return "\n".join(lines)


def fill(template: str, **values: str) -> str:
    """A text of the engine with its variables; what they hold is data."""
    return expand(template, values, {}, missing_report="")
