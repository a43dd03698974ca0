"""What looks mistyped in the words of a piece: placeholders that stay as they are, reports that nobody
writes, conditions that were meant to be more than a label. Lint alone looks at these; all are warnings.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from cadenza.errors import PieceError
from cadenza.ids import Hash
from cadenza.piece.conditions import parse_condition
from cadenza.piece.dialects.checks import Draft
from cadenza.piece.dialects.movements import PlacedMovement, PlacedRule
from cadenza.piece.facets import nearest
from cadenza.piece.problems import Problems
from cadenza.piece.report_files import same_file
from cadenza.piece.source import Node
from cadenza.piece.vocabulary import VARIABLES

_REPORT = re.compile(r"\{report:([^{}\r\n]+)\}")
_WORD = re.compile(r"\{[ \t]*([A-Za-z][A-Za-z_-]*)[ \t]*\}")
_SAID_ELSEWHERE = {
    "max_iterations": "max_movements",
    "max_steps": "max_movements",
    "step_iteration": "movement_iteration",
}
"""What TAKT's earlier and later versions call a variable."""

_NEAR = 0.75
"""How alike a placeholder and a variable are where one is taken for the other: ``{version}`` is no slip."""

_MOST = 200
"""How many placeholders of one text are looked at: a text full of braces is no template."""

_CALLS = ("all", "any", "ai")
_CALL = re.compile(
    r"""([a-z]{1,5})\s*[(\[{（]\s*["'“”‘’「]|(all|any|ai)\(|(all|any|ai)\s*["“]""", re.IGNORECASE
)
"""What begins like one of them: with a bracket and a quote, or with its very name."""

_QUOTED = re.compile(r'"[^"]+"')


def look_at_placeholders(
    draft: Draft, texts: Mapping[Hash, str], shared: Collection[Node], problems: Problems
) -> None:
    """The placeholders of every instruction and of every order of a report.

    ``shared`` are the places of texts that were found by their bare names. Many pieces use these, so that
    they name reports which only some of the pieces write.
    """
    written = _written(draft)
    asks = any(rule.rule.requires_user_input for rule in _rules(draft))
    for at, hash in _templates(draft):
        text = texts.get(hash, "")
        for placeholder, meant in _mistyped(text):
            what = "this is no variable: it stays as it is written"
            problems.warning(at, what, placeholder, f"did you mean {{{meant}}}?")
        named = () if at in shared else (match[1].strip() for match in _REPORT.finditer(text))
        for name in islice(dict.fromkeys(named), _MOST):
            _look_at_report(at, name, written, asks, problems)


def _look_at_report(at: Node, name: str, written: Sequence[str], asks: bool, problems: Problems) -> None:
    """A report that nobody writes. Where a run asks a person on its way, that person may put the file into
    the report folder: then only a name that looks like another one's is a slip."""
    if same_file(name) in {same_file(known) for known in written}:
        return
    near = nearest(name, written)
    if near is None and asks:
        return
    known = f"reports are {', '.join(dict.fromkeys(written))}" if written else "the piece writes no reports"
    fix = f"did you mean {near}?" if near else known
    problems.warning(at, "no movement writes this report", f"{{report:{name}}}", fix)


def _written(draft: Draft) -> list[str]:
    """The reports that somebody writes: neither a parent of sub-movements nor an arpeggio does."""
    movements = [item for placed in draft.movements for item in (placed, *placed.lanes)]
    movements = [item for item in movements if item.movement.kind not in ("parallel", "arpeggio")]
    return [report.name for placed in movements for report, _ in placed.reports]


def _templates(draft: Draft) -> Iterator[tuple[Node, Hash]]:
    """Every text whose placeholders are replaced, and where it is named."""
    for placed in draft.movements:
        for item in (placed, *placed.lanes):
            yield from _of_movement(item)
    for watched in draft.monitors:
        judge = watched.fields.mapping("judge")
        if judge is not None and watched.monitor.judge.instruction is not None:
            yield judge.at("instruction_template", "instruction"), watched.monitor.judge.instruction


def _of_movement(placed: PlacedMovement) -> Iterator[tuple[Node, Hash]]:
    if placed.movement.instruction is not None:
        yield placed.fields.at("instruction_template", "instruction"), placed.movement.instruction
    for report, at in placed.reports:
        if report.order is not None:
            yield at, report.order


def _mistyped(text: str) -> Iterator[tuple[str, str]]:
    """Each placeholder that is no variable and looks like one, once, and the variable."""
    found = {match[0]: match[1] for match in _WORD.finditer(text) if match[0][1:-1] not in VARIABLES}
    for placeholder, word in islice(found.items(), _MOST):
        if (meant := _variable(word)) is not None:
            yield placeholder, meant


def _variable(word: str) -> str | None:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).replace("-", "_").lower()
    if name in VARIABLES:
        return name
    if name in _SAID_ELSEWHERE:
        return _SAID_ELSEWHERE[name]
    near = difflib.get_close_matches(name, sorted(VARIABLES), n=1, cutoff=_NEAR)
    return near[0] if near else None


def look_at_conditions(draft: Draft, problems: Problems) -> None:
    """Conditions that begin like all(), any() or ai() and are something else."""
    for rule in _rules(draft):
        _look_at_condition(rule, problems)


def _rules(draft: Draft) -> Iterator[PlacedRule]:
    for placed in draft.movements:
        for item in (placed, *placed.lanes):
            yield from item.rules
    for watched in draft.monitors:
        yield from watched.rules


def _look_at_condition(rule: PlacedRule, problems: Problems) -> None:
    text, at = rule.rule.condition.strip(), rule.fields.at("condition")
    try:
        condition = parse_condition(text)
    except PieceError:
        return  # it was reported when it was read
    if condition.kind == "label" and (name := _meant_call(text)) is not None:
        what = f"this begins like {name}(), and is taken as a plain label"
        problems.warning(at, what, text, f'write {name}("…"), closed, or reword the label')
    elif condition.is_aggregate and _QUOTED.sub("", text[text.index("(") + 1 : -1]).strip(", \t\r\n"):
        what = f"only what stands in quotes counts in {condition.kind}()"
        fix = f'write {condition.kind}("…", "…"), and nothing else'
        problems.warning(at, what, text, fix)


def _meant_call(text: str) -> str | None:
    """Which of the calls a label was meant to be, if it looks like one."""
    match = _CALL.match(text)
    if match is None:
        return None
    word = (match[1] or match[2] or match[3]).lower()
    near = [word] if word in _CALLS else difflib.get_close_matches(word, _CALLS, n=1, cutoff=0.65)
    return near[0] if near else None
