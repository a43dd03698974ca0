"""Phases 2 and 3 of ``phases: three``: the report calls, the status call, and what is read from them.

Source of behaviour: the TAKT command-line engine, report phase and status judgement, and its later
versions. Both phases are played without tools. Phase 2 asks for one file at a time in Phase 1's session,
and once more in a new one that is told what was done. Phase 3 is a judge in a new session with up to
three stages: a structured answer, a tag, an evaluation; the judge reads the movement's text and its
reports (reports alone lacked the evidence, and finished work was aborted).

Every reader here returns the number that the model was asked to write, from 1, or ``None``: no number,
0, or out of range. None of them raises. ``None`` means that the stage failed and the next one decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from cadenza.core.prompts.answers import digits, field, json_answer, whole, within
from cadenza.core.prompts.report_order import ReportItem
from cadenza.core.prompts.templates import expand, reports_mentioned
from cadenza.core.prompts.texts_three import Language, texts_three
from cadenza.core.prompts.three import fill
from cadenza.piece.conditions import display_condition

REASON_LENGTH = 200
"""How long a judge's reason may be, so that a tiny model cannot babble past the end of its answer."""

_SEPARATOR = "\n\n---\n\n"
_JUDGE_TAG = re.compile(r"\[[ \t]{0,8}judge[ \t]{0,8}:[ \t]{0,8}([0-9]+)[ \t]{0,8}\]", re.I | re.A)
_BLOCKED = tuple(
    re.compile(rf"{label}[:：][^\S\r\n]*(\S[^\r\n]*)") for label in ("必要な情報", "質問", "理由", "確認")
)


class Choice(msgspec.Struct, frozen=True):
    """A rule as Phase 3 shows it: its number in the movement (from 1, hidden rules counted), its
    condition as the piece writes it, and what the answer is to append."""

    number: int
    condition: str
    appendix: str | None = None


def report_message(item: ReportItem, values: Mapping[str, str], language: Language) -> str:
    """Ask, in the session of Phase 1, for one report: the whole answer is the file.

    ``values`` are :func:`cadenza.core.prompts.three.variables`. The report's ``order`` is a template in
    which ``{report:FILE}`` is a path, as in the command-line engine: the file is yet to be written. Its
    ``format`` is full of blanks in braces and is given as it is.
    """
    words = texts_three(language)
    name = item.name if item.label is None else f"{item.name} ({item.label})"
    parts = [fill(words.report, name=name)]
    if item.order is not None:
        paths = {file: f"{values['report_dir']}/{file}" for file in reports_mentioned(item.order)}
        parts.append(expand(item.order.strip("\r\n"), values, paths, missing_report=""))
    if item.format is not None:
        parts.append(fill(words.report_contract, contract=item.format.strip("\r\n")))
    return "\n\n".join(parts)


def report_retry(item: ReportItem, work: str, values: Mapping[str, str], language: Language) -> str:
    """Ask for one report in a new session, which is told the text of Phase 1, uncut."""
    context = fill(texts_three(language).previous_work, work=work)
    return f"{context}\n\n{report_message(item, values, language)}"


def read_report(text: str) -> str | None:
    """The report that an answer is: all of it, trimmed; ``None`` when there is nothing."""
    return text.strip() or None


def conductor(language: Language) -> str:
    """The system text of the judge of Phase 3."""
    return texts_three(language).conductor


def judge_input(text: str, reports: Sequence[tuple[str, str]], language: Language) -> str:
    """What the judge reads: the movement's text, then each of its reports (name, content)."""
    response = fill(texts_three(language).response, text=text)
    return _SEPARATOR.join([response, *(f"# {name}\n\n{content}" for name, content in reports)])


def step_prompt(work: str, choices: Sequence[Choice], language: Language) -> str:
    """Stage 1: a structured answer. ``work`` is :func:`judge_input`."""
    listed = "\n".join(f"{c.number}. {display_condition(c.condition)}" for c in choices)
    return fill(texts_three(language).step, work=work, conditions=listed)


def step_schema(choices: Sequence[Choice]) -> dict[str, Any]:
    """The JSON Schema of stage 1's answer; 0 is none of them."""
    return _number_and_reason("step", [c.number for c in choices])


def read_step(text: str, count: int) -> int | None:
    """The rule that stage 1 named: ``step`` of a JSON object, alone or in the only code block, or a bare
    number; an integer from 1 to ``count``, the number of the movement's rules. No tag is read here."""
    return within(_named(text, "step"), count)


def movement_tag(name: str, number: int) -> str:
    """The status tag of a movement's rule: ``[PLAN:1]``."""
    return f"[{name.upper()}:{number}]"


def tag_prompt(work: str, name: str, choices: Sequence[Choice], language: Language) -> str:
    """Stage 2: a status tag, with the template of what to append for the rules that have one."""
    words = texts_three(language)
    tags = {movement_tag(name, c.number): c for c in choices}
    listed = "\n".join(f"{tag} = {display_condition(c.condition)}" for tag, c in tags.items())
    appendices = (
        fill(words.appendix, tag=tag, appendix=c.appendix.strip("\r\n"))
        for tag, c in tags.items()
        if c.appendix
    )
    return "\n\n".join([fill(words.tag, work=work, conditions=listed), *appendices])


def last_movement_tag(text: str, name: str, count: int) -> int | None:
    """The N of the last ``[NAME:N]`` in ``text``, whatever the case of NAME.

    ``None`` when there is no such tag, and when the last one is 0 or above ``count``: an earlier tag in
    range does not come back. Blanks beside the brackets and the colon are allowed, as for ``[STEP:N]``.
    """
    number = None
    for tag in _tag_pattern(name).finditer(text):
        number = tag[1]
    return None if number is None else within(digits(number), count)


def _tag_pattern(name: str) -> re.Pattern[str]:
    """Both spellings, since the upper case of some letters is not found again without it (ß, SS)."""
    names = "|".join(re.escape(spelling) for spelling in dict.fromkeys((name, name.upper())))
    blank = r"[ \t]{0,8}"
    return re.compile(rf"\[{blank}(?:{names}){blank}:{blank}([0-9]+){blank}\]", re.I)


def evaluation_prompt(work: str, conditions: Sequence[str], language: Language) -> str:
    """Stage 3, and the question about ``ai()`` rules alone: which of ``conditions`` holds.

    They are numbered from 1 in the order given; a caller that left rules out maps the number back.
    """
    listed = "\n".join(f"{at}. {display_condition(text)}" for at, text in enumerate(conditions, 1))
    return fill(texts_three(language).evaluation, work=work, conditions=listed)


def evaluation_schema(count: int) -> dict[str, Any]:
    """The JSON Schema of an evaluation over ``count`` conditions; 0 is none of them."""
    return _number_and_reason("matched_index", range(1, count + 1))


def read_evaluation(text: str, count: int) -> int | None:
    """The condition that an evaluation named: ``matched_index`` of a JSON object, or a bare number, or
    the first ``[JUDGE:N]`` of the text where there is no such JSON in range."""
    if (number := within(_named(text, "matched_index"), count)) is not None:
        return number
    tag = _JUDGE_TAG.search(text)
    return within(digits(tag[1]), count) if tag else None


def blocked_question(text: str) -> str:
    """What a blocked movement asks a person: the text after the first label that has one on its line.

    The labels in order of precedence are 必要な情報, 質問, 理由 and 確認 with a colon of either width.
    Without any it is the whole text.
    """
    return next(_labelled(text), text)


def _labelled(text: str) -> Iterator[str]:
    for pattern in _BLOCKED:
        if found := pattern.search(text):
            yield found[1].rstrip()


def _named(text: str, name: str) -> int | None:
    answer = json_answer(text)
    return whole(field(answer, name) if isinstance(answer, dict) else answer)


def _number_and_reason(name: str, numbers: Sequence[int]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            name: {"type": "integer", "enum": [0, *numbers]},
            "reason": {"type": "string", "maxLength": REASON_LENGTH},
        },
        "required": [name, "reason"],
        "additionalProperties": False,
    }
