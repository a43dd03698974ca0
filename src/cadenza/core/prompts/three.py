"""Phase 1 of ``phases: three``: the system text, and the user message with the work.

Source of behaviour: the TAKT command-line engine, its instruction builder, corrected by its later
versions where these were. The message's sections, from the top; one without content is left out::

     1  Execution Context          5  Retry Note                 9  Instructions
     2  Execution Rules            6  User Request              10  Quality Gates
     3  Knowledge                  7  Previous Response         11  Policy
     4  Piece Context              8  Additional User Inputs

Knowledge, policy and the previous response are cut to :data:`CUT` characters each, the previous response
also where the instruction holds ``{previous_response}``; the file with the whole text is named below.
What differs from the engine, and why:

* A template is expanded in one pass, so values keep their braces (it makes them full-width).
* ``{report:FILE}`` becomes the report's content, as in the later versions, or a notice that names the
  missing file; it was the file's path.
* The report directory is always named, since instructions of movements without a report refer to it.
* The system text says nothing about the position in the piece, so that a provider can cache it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from cadenza.core.prompts.templates import expand, mentions, reports_mentioned
from cadenza.core.prompts.texts_three import Language, ThreeTexts, texts_three

CUT = 2000
"""How many characters of the knowledge, the policy and the previous response each are shown."""
TRUNCATED = "\n...TRUNCATED..."
INPUTS = 100
"""How many of a person's inputs are given, from the latest backwards."""
INPUT_LENGTH = 10_000
"""How many characters of one input are given."""

_SEPARATOR = "\n\n---\n\n"


class Listed(NamedTuple):
    """A movement as the list of the piece's movements shows it."""

    name: str
    description: str | None = None


class ThreePrompt(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one visit's Phase 1 message is made of. All texts are content, not names of facets.

    ``movements`` are the piece's; ``position`` is the one to mark as current where that is not
    ``movement`` itself: a lane's parent. A ``..._source`` is the path of the snapshot that holds the
    whole text. ``previous`` is the latest output of the run; with ``pass_previous`` off it is left out
    and ``{previous_response}`` stays as it is written. ``inputs`` is all that a person has answered to
    this movement. ``reports`` holds the files that the instruction mentions, ``None`` for one that does
    not exist; ``report_names`` are the files that the movement owes. ``edit`` unset adds no rule. A
    ``literal`` instruction is no template: what stands in braces stays.
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
    description: str | None = None
    movements: tuple[Listed, ...] = ()
    position: str | None = None
    policies: tuple[str, ...] = ()
    policy_source: str | None = None
    knowledge: tuple[str, ...] = ()
    knowledge_source: str | None = None
    previous: str | None = None
    previous_source: str | None = None
    pass_previous: bool = True
    inputs: tuple[str, ...] = ()
    reports: Mapping[str, str | None] = {}
    report_names: tuple[str, ...] = ()
    quality_gates: tuple[str, ...] = ()
    edit: bool | None = None
    retry_note: str | None = None
    literal: bool = False
    cycle_count: int | None = None
    language: Language = "en"


def system_three(
    persona: str | None,
    piece: str,
    description: str | None,
    movement_names: Sequence[str],
    language: Language = "en",
) -> str:
    """The system text: the piece, its movements, and the persona after them.

    It holds no counter and no position, so it is the same bytes for every movement of a run that has
    the same persona.
    """
    return _SEPARATOR.join(
        filter(None, (_about(piece, description, movement_names, language), _trimmed(persona)))
    )


def _about(piece: str, description: str | None, names: Sequence[str], language: Language) -> str:
    words = texts_three(language)
    parts = [fill(words.system, piece=piece)]
    if text := _trimmed(description):
        parts.append(fill(words.system_description, description=text))
    if names:
        listed = "\n".join(f"{at}. {name}" for at, name in enumerate(names, 1))
        parts.append(fill(words.system_movements, movements=listed))
    return "\n\n".join(parts)


def compose_three(prompt: ThreePrompt) -> str:
    """The whole user message of Phase 1."""
    return "\n\n".join(_sections(prompt, texts_three(prompt.language)))


def _sections(prompt: ThreePrompt, words: ThreeTexts) -> Iterator[str]:
    template = _trimmed(prompt.instruction)
    asked = "" if prompt.literal else template
    yield fill(words.context, cwd=prompt.cwd)
    yield "\n".join(_rules(prompt.edit, words))
    if knowledge := _joined(prompt.knowledge):
        shown = _excerpt(knowledge, words.knowledge_source, prompt.knowledge_source, words)
        yield fill(words.knowledge, knowledge=shown)
    yield "\n".join(_piece(prompt, words))
    if prompt.report_names and prompt.report_dir:
        yield words.report_note
    if note := _trimmed(prompt.retry_note):
        yield fill(words.retry_note, retry_note=note)
    if prompt.task and not mentions(asked, "task"):
        yield fill(words.task, task=prompt.task)
    yield from _context(prompt, asked, words)
    if template:
        yield fill(words.instructions, instruction=_expanded(template, prompt, words))
    if prompt.quality_gates:
        yield fill(words.gates, gates=_bullets(prompt.quality_gates))
    if policies := _joined(prompt.policies):
        yield fill(
            words.policy, policies=_excerpt(policies, words.policy_source, prompt.policy_source, words)
        )


def _context(prompt: ThreePrompt, template: str, words: ThreeTexts) -> Iterator[str]:
    """The previous response and a person's inputs, where the instruction does not hold them itself."""
    if prompt.previous and prompt.pass_previous and not mentions(template, "previous_response"):
        yield fill(words.previous, previous_response=_previous(prompt, words))
    if prompt.inputs and not mentions(template, "user_inputs"):
        yield fill(words.inputs, user_inputs=kept_inputs(prompt.inputs))


def _rules(edit: bool | None, words: ThreeTexts) -> Iterator[str]:
    yield words.rules
    if edit is not None:
        yield words.may_edit if edit else words.may_not_edit


def _piece(prompt: ThreePrompt, words: ThreeTexts) -> Iterator[str]:
    yield fill(words.piece, piece=prompt.piece)
    if description := _one_line(prompt.description):
        yield fill(words.description, description=description)
    if prompt.movements:
        listed = "\n".join(_listed(prompt, words))
        yield fill(words.movements, count=str(len(prompt.movements)), movements=listed)
    yield fill(words.counters, **variables(prompt), movement=prompt.movement)
    if prompt.report_dir:
        yield fill(words.report_directory, report_dir=prompt.report_dir)
        yield from _files(prompt, words)


def _listed(prompt: ThreePrompt, words: ThreeTexts) -> Iterator[str]:
    current = prompt.position or prompt.movement
    for number, movement in enumerate(prompt.movements, 1):
        description = _one_line(movement.description)
        about = f": {description}" if description else ""
        mark = f" {words.current}" if movement.name == current else ""
        yield f"  {number}. {movement.name}{about}{mark}"


def _files(prompt: ThreePrompt, words: ThreeTexts) -> Iterator[str]:
    names = prompt.report_names
    if len(names) == 1:
        yield fill(words.report_file, report_dir=prompt.report_dir, name=names[0])
    elif names:
        paths = "\n".join(f"  - {prompt.report_dir}/{name}" for name in names)
        yield fill(words.report_files, names=paths)


def _expanded(template: str, prompt: ThreePrompt, words: ThreeTexts) -> str:
    if prompt.literal:
        return template
    reports: dict[str, str | None] = {
        file: fill(words.missing_report, name=file) if content is None else content
        for file in reports_mentioned(template)
        for content in (prompt.reports.get(file),)
    }
    values = variables(prompt)
    if prompt.pass_previous:
        values["previous_response"] = _previous(prompt, words) if prompt.previous else ""
    return expand(template, values, reports, missing_report="")


def variables(prompt: ThreePrompt) -> dict[str, str]:
    """What the variables of an instruction or of a report's ``order`` stand for, all but
    ``{previous_response}`` and ``{report:FILE}``."""
    values = {
        "task": prompt.task,
        "iteration": str(prompt.iteration),
        "max_movements": str(prompt.max_movements),
        "movement_iteration": str(prompt.movement_iteration),
        "report_dir": prompt.report_dir,
        "user_inputs": kept_inputs(prompt.inputs),
    }
    if prompt.cycle_count is not None:
        values["cycle_count"] = str(prompt.cycle_count)
    return values


def kept_inputs(inputs: Sequence[str]) -> str:
    """The last :data:`INPUTS` of what a person answered, :data:`INPUT_LENGTH` characters of each."""
    return "\n".join(text[:INPUT_LENGTH] for text in inputs[-INPUTS:])


def cut(text: str) -> str:
    """``text``, or its first :data:`CUT` characters and a mark that there was more."""
    return text if len(text) <= CUT else text[:CUT] + TRUNCATED


def _previous(prompt: ThreePrompt, words: ThreeTexts) -> str:
    return _excerpt(prompt.previous or "", words.previous_source, prompt.previous_source, words)


def _excerpt(text: str, label: str, path: str | None, words: ThreeTexts) -> str:
    """``text``, cut, and where the whole of it is."""
    lines = [cut(text)]
    if path:
        lines.append("")
        if len(text) > CUT:
            lines.append(fill(words.was_cut, limit=str(CUT)))
        lines += [fill(label, path=path), words.precedence]
    return "\n".join(lines)


def _bullets(items: Sequence[str]) -> str:
    return "\n".join("- " + item.strip().replace("\n", "\n  ") for item in items)


def _joined(facets: tuple[str, ...]) -> str:
    return _SEPARATOR.join(text for facet in facets if (text := _trimmed(facet)))


def _trimmed(text: str | None) -> str:
    """A text without the line breaks at its end; nothing when there are only blanks."""
    return (text or "").rstrip("\r\n") if (text or "").strip() else ""


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def fill(template: str, **values: str) -> str:
    """One of the engine's own texts with its values put in; these are never read again."""
    return expand(template, values, {}, missing_report="")
