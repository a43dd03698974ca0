"""The twelve-part prompt of a movement under ``phases: single``.

Source of behaviour: TAKT engine, "prompt construction". The parts, from the top::

     1  persona                 5  execution context      9  output of the previous movement
     2  ---                     6  knowledge                 (a person's answer)
     3  policy                  7  instruction           10  report instruction
     4  ---                     8  the user's task       11  status tags
                                                         12  policy reminder

A part without content is left out, a separator with the part that it follows. Parts are one blank line
apart. A facet loses the line breaks at its end; tasks, outputs and answers arrive as they are. Nothing
is cut to a length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from cadenza.core.prompts.report_order import ReportItem, ReportOrder, render_order
from cadenza.core.prompts.templates import expand, mentions
from cadenza.core.prompts.texts import Language, Texts, texts
from cadenza.piece.conditions import display_condition

__all__ = ["ReportItem", "ReportOrder", "SinglePrompt", "compose", "display_condition"]

_SEPARATOR = "---"


class SinglePrompt(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one visit's prompt is made of. All texts are content, not names of facets.

    ``previous`` is the latest output of the run, ``None`` when there is none. ``pass_previous`` (the
    movement's ``pass_previous_response``) decides about part 9 only: ``{previous_response}`` in the
    instruction always expands. ``answer`` is what a person answered after ``requires_user_input`` and
    ``earlier_answers`` what was answered to this movement before that: one line break apart they are
    ``{user_inputs}``, or a section of their own where the instruction does not mention it. ``reports``
    holds the files that the instruction mentions, ``None`` for one that does not exist. ``rules`` are
    the conditions as the piece writes them.
    """

    instruction: str
    task: str
    cwd: str
    piece: str
    movement: str
    iteration: int
    max_movements: int
    movement_iteration: int
    report_dir: str
    persona: str | None = None
    policies: tuple[str, ...] = ()
    knowledge: tuple[str, ...] = ()
    previous: str | None = None
    pass_previous: bool = True
    answer: str | None = None
    earlier_answers: tuple[str, ...] = ()
    gate: str | None = None
    reports: Mapping[str, str | None] = {}
    cycle_count: int | None = None
    report: ReportOrder | None = None
    rules: tuple[str, ...] = ()
    language: Language = "en"


def compose(prompt: SinglePrompt) -> str:
    """The whole prompt: one user message."""
    return "\n\n".join(_parts(prompt, texts(prompt.language)))


def _parts(prompt: SinglePrompt, words: Texts) -> Iterator[str]:
    policies = _joined(prompt.policies)
    if persona := _trimmed(prompt.persona):
        yield persona
        yield _SEPARATOR
    if policies:
        yield _fill(words.policy, policies=policies)
        yield _SEPARATOR
    yield _context(prompt, words)
    if knowledge := _joined(prompt.knowledge):
        yield _fill(words.knowledge, knowledge=knowledge)
    yield from _instruction(prompt, words)
    if prompt.report and prompt.report.items:
        yield render_order(prompt.report, words, _variables(prompt))
    if prompt.rules:
        yield _fill(words.tags, tags=status_tags(prompt.rules))
    if policies:
        yield _fill(words.reminder, policies=policies)


def _instruction(prompt: SinglePrompt, words: Texts) -> Iterator[str]:
    """Parts 7 to 9 and the answer: the template, then what it does not mention itself."""
    template = _trimmed(prompt.instruction)
    if template:
        yield _fill(words.instruction, instruction=_expanded(template, prompt, words))
    if prompt.task and not mentions(template, "task"):
        yield _fill(words.task, task=prompt.task)
    if prompt.previous and prompt.pass_previous and not mentions(template, "previous_response"):
        yield _fill(words.previous, previous_response=prompt.previous)
    if prompt.answer is not None and not mentions(template, "user_inputs"):
        yield _fill(words.answer, answer=_answers(prompt))
    if prompt.gate is not None:
        yield _fill(words.gate, gate=prompt.gate)


def _expanded(template: str, prompt: SinglePrompt, words: Texts) -> str:
    return expand(template, _variables(prompt), prompt.reports, missing_report=words.missing_report)


def _variables(prompt: SinglePrompt) -> dict[str, str]:
    variables = {
        "task": prompt.task,
        "previous_response": prompt.previous or "",
        "iteration": str(prompt.iteration),
        "max_movements": str(prompt.max_movements),
        "movement_iteration": str(prompt.movement_iteration),
        "report_dir": prompt.report_dir,
        "user_inputs": _answers(prompt),
    }
    if prompt.cycle_count is not None:
        variables["cycle_count"] = str(prompt.cycle_count)
    return variables


def _answers(prompt: SinglePrompt) -> str:
    return "\n".join(prompt.earlier_answers + (() if prompt.answer is None else (prompt.answer,)))


def _context(prompt: SinglePrompt, words: Texts) -> str:
    return _fill(
        words.context,
        cwd=prompt.cwd,
        piece_name=prompt.piece,
        movement_name=prompt.movement,
        iteration=str(prompt.iteration),
        max_movements=str(prompt.max_movements),
        movement_iteration=str(prompt.movement_iteration),
    )


def status_tags(rules: tuple[str, ...]) -> str:
    """``[STEP:0] = condition``, one line per rule, counted from 0."""
    return "\n".join(f"[STEP:{at}] = {display_condition(rule)}" for at, rule in enumerate(rules))


def _joined(facets: tuple[str, ...]) -> str:
    return f"\n\n{_SEPARATOR}\n\n".join(text for facet in facets if (text := _trimmed(facet)))


def _trimmed(facet: str | None) -> str:
    """A facet without the line breaks at its end; nothing when there are only blanks."""
    return (facet or "").rstrip("\r\n") if (facet or "").strip() else ""


def _fill(template: str, **values: str) -> str:
    return expand(template, values, {}, missing_report="")
