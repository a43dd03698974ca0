"""How an agent's conversation begins in a movement: what came before, and what it is to do now."""

from __future__ import annotations

import msgspec

from cadenza.core.movements.playing import prepare, prompt_of
from cadenza.core.movements.tools.context import summarise
from cadenza.core.movements.tools.desk import Desk
from cadenza.core.performance import Performance
from cadenza.core.prompts.guidance import Guidance, Owed, guidance
from cadenza.core.prompts.single import SinglePrompt


def open_talk(desk: Desk, *, summary: str | None = None, key: str = "prepare") -> Performance[None]:
    """Take up the run's conversation or begin one, and say what the movement is about.

    ``summary``: the conversation before was full, and this is what it handed over.
    """
    talk, session = desk.talk, desk.movement.session
    if summary is None and session != "refresh":
        talk.resume()
        if session == "handover" and not talk.is_new:
            summary = yield from summarise(desk, "handover:0")
            talk.restart()
    prepared = yield from prepare(desk.visit, key=key)
    fresh = talk.is_new
    if fresh:
        talk.say(desk.words.system, "system")
    prompt = prompt_of(desk.visit, prepared.reports)
    talk.say(guidance(_guidance(desk, _own(desk, prompt, fresh=fresh), summary)))


def _own(desk: Desk, prompt: SinglePrompt, *, fresh: bool) -> SinglePrompt:
    """The movement's own part. What the conversation holds already is not said again: the task, and what the
    movement before put out."""
    return msgspec.structs.replace(
        prompt,
        rules=(),
        report=None,
        task=prompt.task if fresh else "",
        previous=prompt.previous if fresh else None,
        gate=prompt.gate if desk.visit.started.cause == "gate" else None,
    )


def _guidance(desk: Desk, prompt: SinglePrompt, summary: str | None) -> Guidance:
    visit = desk.visit
    note = visit.started.note
    told = visit.text(note) if note is not None and visit.started.cause in ("children", "context") else None
    if visit.started.cause == "context":
        summary, told = summary or told, None
    return Guidance(
        prompt=prompt,
        choices=desk.choices,
        labels=desk.labels if desk.in_lane else None,
        tools=tuple(desk.usable()),
        granted=tuple(desk.granted),
        reports=tuple(_owed(desk)),
        summary=summary,
        note=told,
        completes=desk.movement.may_complete or desk.in_lane,
    )


def _owed(desk: Desk) -> list[Owed]:
    found = []
    for report in desk.movement.reports:
        if report.name in desk.written:
            continue
        parts = [desk.visit.text(text) for text in (report.order, report.format) if text]
        found.append(Owed(report.name, "\n\n".join(parts)))
    return found
