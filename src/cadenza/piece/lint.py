"""All problems of a piece file at once, each with its place, the value and the fix.

Lint looks at what loading looks at, and at more, all of it warnings: movements that nothing leads to,
cycles that nothing ends or watches, monitors in each other's way, things written twice or never read, data
that is not there, placeholders and conditions that look mistyped (:mod:`.dialects.wording`), words that
nobody is ever given. A key that is given twice is an error, and the rest of the file is looked at with its
first value. Our own format is read strictly; in TAKT's an unknown key is a warning, because TAKT ignores it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cadenza.errors import NotFound
from cadenza.piece.dialects import Reading, dialect_of_node
from cadenza.piece.dialects.checks import Draft
from cadenza.piece.dialects.fields import Fields
from cadenza.piece.dialects.movements import PlacedMovement, PlacedRule
from cadenza.piece.dialects.takt import TAKT
from cadenza.piece.dialects.ways import Component, endless, overlapping, unreachable, unwatched
from cadenza.piece.dialects.wording import look_at_conditions, look_at_placeholders
from cadenza.piece.find import find_piece, read_found
from cadenza.piece.problems import Problem, Problems, Refused, in_order
from cadenza.piece.source import read_source
from cadenza.piece.vocabulary import Dialect, Language


def lint(
    path: str | Path, *, cwd: str | Path | None = None, language: Language | None = None
) -> list[Problem]:
    """The problems of one piece, by their place in the file; ``path`` may be a piece's name as well.

    Raises:
        NotFound: there is no such file or piece. Everything else is a problem in the list.
    """
    cwd = Path.cwd() if cwd is None else cwd
    found = find_piece(str(path), cwd=cwd, language=language)
    try:
        reading = read_found(found, shown=str(path), cwd=cwd, language=language)
    except Refused as error:
        return list(error.details)
    _look_closer(reading)
    return in_order(reading.problems.found)


def _look_closer(reading: Reading) -> None:
    if reading.draft is None:
        return
    draft, problems = reading.draft, reading.problems
    _look_at_ways(draft, problems)
    _look_at_monitors(draft, problems)
    _look_at_spellings(draft, problems)
    three = reading.draft.fields.get("phases")
    _look_at_flags(draft, problems, three=three is not None and three.value == "three")
    shared = {file.node for file in reading.files if file.kind is not None}
    look_at_placeholders(draft, reading.texts, shared, problems)
    look_at_conditions(draft, problems)
    names = {placed.movement.name: placed.fields.at("name").line for placed in reversed(draft.movements)}
    for placed in draft.movements:
        _look_for_twins(placed, names, problems)
        if placed.movement.kind == "parallel":
            _look_at_parent(placed, problems)
        if placed.movement.kind == "arpeggio":
            _look_at_arpeggio(placed, problems)


def _look_at_ways(draft: Draft, problems: Problems) -> None:
    for placed in unreachable(draft):
        what = "nothing leads to this movement"
        fix = "name it in a rule's next:, or remove it"
        problems.warning(placed.fields.at("name"), what, placed.movement.name, fix)
    for component in endless(draft):
        what = "no way leads out of this cycle: only max_movements stops it"
        fix = "add a rule with next: COMPLETE or ABORT to the cycle"
        if len(component.names) > 1:
            fix += ", or a loop monitor that leads out of it"
        problems.warning(component.first.fields.at("name"), _among(what, component), _round(component), fix)
    for component in unwatched(draft):
        what = "no loop monitor watches this cycle"
        fix = f"add one to loop_monitors, with cycle: [{', '.join(component.cycle)}]"
        problems.warning(component.first.fields.at("name"), _among(what, component), _round(component), fix)


def _round(component: Component) -> str:
    return " → ".join((*component.cycle, component.cycle[0]))


def _among(what: str, component: Component) -> str:
    """``what``, with how many others go round with the cycle that is named."""
    more = len(component.names) - len(component.cycle)
    return f"{what}, which is one of several among {len(component.names)} movements" if more else what


def _look_at_monitors(draft: Draft, problems: Problems) -> None:
    for later, earlier, step in overlapping(draft.monitors):
        line = earlier.fields.at("cycle").line
        what = f"the monitor on line {line} watches this step too: each begins the other's count anew"
        problems.warning(later.fields.at("cycle"), what, step, "watch it in one monitor")


def _look_at_spellings(draft: Draft, problems: Problems) -> None:
    """Two spellings of one thing, both there: the second is never read. Our own format has but one each."""
    if draft.strict:
        return
    for names in (TAKT.movements_names, TAKT.initial_names, TAKT.limit_names, TAKT.config_names):
        _look_at_spelling(draft.fields, names, problems)
    for placed in draft.movements:
        for movement in (placed, *placed.lanes):
            _look_at_spelling(movement.fields, TAKT.instruction_names, problems)
    for monitor in draft.monitors:
        judge = monitor.fields.mapping("judge")
        if judge is not None:
            _look_at_spelling(judge, TAKT.instruction_names, problems)


def _look_at_spelling(fields: Fields, names: tuple[str, ...], problems: Problems) -> None:
    said = {str(key): key for key, node in fields if key in names and node.value is not None}
    read = next((name for name in names if name in said), None)
    for name, key in said.items():
        if name != read:
            what = f"{name} is ignored, because {read} is there too (line {said[str(read)].line})"
            problems.warning(key, what, name, "keep one of the two")


def _look_at_flags(draft: Draft, problems: Problems, *, three: bool) -> None:
    """Flags of rules that nobody looks at, and movements that have no rule where nobody is there."""
    for placed in draft.movements:
        for lane in placed.lanes:
            for rule in lane.rules:
                _look_at_flag(rule, "requires_user_input", "a sub-movement", problems)
                if not three:
                    _look_at_flag(rule, "interactive_only", "a sub-movement", problems)
        for movement in (placed, *placed.lanes):
            if movement.rules and all(rule.rule.interactive_only for rule in movement.rules):
                what = "all rules are interactive_only: in phases three none is left where nobody is there"
                fix = "add a rule without it"
                problems.warning(movement.fields.at("name"), what, movement.movement.name, fix)
    for monitor in draft.monitors:
        for rule in monitor.rules:
            _look_at_flag(rule, "requires_user_input", "a loop monitor's judge", problems)


def _look_at_flag(rule: PlacedRule, flag: str, whose: str, problems: Problems) -> None:
    node = rule.fields.get(flag)
    if node is not None and node.value is True:
        what = f"{flag} is ignored in a rule of {whose}"
        fix = "remove it, or put it into a rule of a movement"
        problems.warning(node, what, rule.rule.condition, fix)


def _look_for_twins(placed: PlacedMovement, names: dict[str, int], problems: Problems) -> None:
    """Conditions written twice, and lanes that bear a movement's name."""
    for movement in (placed, *placed.lanes):
        seen: dict[str, int] = {}
        for rule in movement.rules:
            condition, at = rule.rule.condition.strip(), rule.fields.at("condition")
            if condition and condition in seen:
                what = f"this condition stands already on line {seen[condition]}: nobody can tell them apart"
                problems.warning(at, what, condition, "reword one, or remove it")
            seen.setdefault(condition, at.line)
    for lane in placed.lanes:
        name, at = lane.movement.name, lane.fields.at("name")
        if name in names:
            what = f"the movement on line {names[name]} has this name too: they share one count of visits"
            problems.warning(at, what, name, "give the sub-movement another name")


def _look_at_parent(placed: PlacedMovement, problems: Problems) -> None:
    """The parent of sub-movements asks nobody: what it would be asked with is never used."""
    for key, node in placed.fields:
        if key in ("instruction", "instruction_template", "persona") and node.value is not None:
            what = f"a parallel movement is asked nothing itself: its {key} is never used"
            problems.warning(key, what, None, "move it into the sub-movements, or remove it")
    if placed.reports:
        report, at = placed.reports[0]
        what = "a parallel movement writes no reports itself"
        problems.warning(
            at, what, report.name, "move it into a sub-movement, or let a later movement write it"
        )


def _look_at_arpeggio(placed: PlacedMovement, problems: Problems) -> None:
    if placed.reports:
        what = "an arpeggio writes no reports"
        at = placed.reports[0][1]
        problems.warning(at, what, placed.reports[0][0].name, "let a later movement write it")
    block = placed.movement.arpeggio
    if block is not None and not Path(block.source).is_file():
        at = placed.fields.at("arpeggio")
        place = Fields(at, problems, "arpeggio").at("source_path")
        fix = "put it there before the run comes to this movement"
        problems.warning(place, "there is no such table yet", place.text, fix)


def not_there(path: str, error: NotFound) -> Problem:
    """A file or piece that was to be looked at with others, and is not there, as a problem of its own."""
    return Problem(path, 1, 1, "error", error.message.removeprefix(f"{path}: "), None, error.hint)


def dialect_of(path: str | Path) -> Dialect:
    """The format that a piece file is of: ``native`` (top-level ``cadenza:``) or ``takt``.

    Raises:
        NotFound: there is no such file.
        PieceError: it cannot be read or parsed.
    """
    return dialect_of_node(read_source(path, go_on=True).root)


def has_errors(problems: Iterable[Problem]) -> bool:
    """Whether any of ``problems`` keeps the piece from being played."""
    return any(problem.severity == "error" for problem in problems)


__all__ = ["Problem", "dialect_of", "has_errors", "lint", "not_there"]
