"""What must hold between the parts of a piece: names, ways out, monitors, reports.

All checks run before anything is played or paid for, and each records what it finds with its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cadenza.errors import PieceError
from cadenza.piece.conditions import Condition, parse_condition
from cadenza.piece.dialects.fields import Fields, check_line
from cadenza.piece.dialects.movements import PlacedMonitor, PlacedMovement, PlacedRule
from cadenza.piece.dialects.reports import Placed
from cadenza.piece.dialects.tool_checks import check_target, check_tools
from cadenza.piece.facets import nearest
from cadenza.piece.problems import Problems
from cadenza.piece.report_files import same_file
from cadenza.piece.source import Node
from cadenza.piece.vocabulary import ABORT, COMPLETE, SENTINELS, Control

_MOST_NAMED = 12

ENDS = frozenset({COMPLETE, ABORT})


@dataclass(frozen=True, slots=True)
class Draft:
    """A piece as read, before its parts are held against each other."""

    fields: Fields
    movements: Sequence[PlacedMovement]
    monitors: Sequence[PlacedMonitor]
    initial: Node | None
    strict: bool
    control: Control = "tags"

    @property
    def names(self) -> list[str]:
        """The movements' names, in order."""
        return [placed.movement.name for placed in self.movements]


def check(draft: Draft, problems: Problems) -> None:
    """Run every check that a piece must pass before it is played."""
    _check_names(draft.movements, problems)
    _check_initial(draft, problems)
    for placed in draft.movements:
        _check_names(placed.lanes, problems, "sub-movement")
        _check_exits(placed, draft, problems)
        _check_reports(placed, problems)
    for monitor in draft.monitors:
        _check_monitor(monitor, draft, problems)
    if draft.control == "tools":
        check_tools(draft.movements, draft.names, draft.fields, problems)


def _check_names(movements: Iterable[PlacedMovement], problems: Problems, whose: str = "movement") -> None:
    seen: dict[str, int] = {}
    for placed in movements:
        name, at = placed.movement.name, placed.fields.at("name")
        if name in SENTINELS:
            fix = "rename it: this word ends or parks a run"
            problems.error(at, "no movement may have this name", name, fix)
        elif not check_line(at, f"a {whose}'s name", name, problems):
            pass
        elif name in seen:
            fix = "give it another name"
            problems.error(at, f"the name was given already on line {seen[name]}", name, fix)
        if name:
            seen.setdefault(name, at.line)


def _check_initial(draft: Draft, problems: Problems) -> None:
    if draft.initial is not None and draft.initial.text not in draft.names:
        what = "the first movement does not exist"
        problems.error(draft.initial, what, draft.initial.text, _which(draft.initial.text, draft.names))


def _check_exits(placed: PlacedMovement, draft: Draft, problems: Problems) -> None:
    parallel = placed.movement.kind == "parallel"
    if not placed.rules and (parallel or draft.control == "tags"):
        fix = "add rules:, or the run ends here with ABORT"
        problems.warning(
            placed.fields.at("name"), "no rule leads out of this movement", placed.movement.name, fix
        )
    for rule in placed.rules:
        condition = _condition(rule, problems)
        if draft.control == "tools":
            check_target(rule, placed.movement.name, draft.names, problems)
        else:
            _check_next(rule, draft.names, problems)
        if condition is not None and condition.kind in ("all", "any"):
            if parallel:
                _check_aggregate(condition, rule, placed.lanes, problems)
            else:
                _refuse_aggregate(rule, problems)
    for lane in placed.lanes:
        for rule in lane.rules:
            _check_lane_rule(rule, draft, problems)


def _check_lane_rule(rule: PlacedRule, draft: Draft, problems: Problems) -> None:
    condition = _condition(rule, problems)
    if condition is not None and condition.kind in ("all", "any"):
        _refuse_aggregate(rule, problems)
    if draft.strict and rule.rule.next is not None:
        fix = "remove it: the parent's rules decide"
        problems.warning(
            rule.fields.at("next"), "next is ignored in a parallel sub-movement", rule.rule.next, fix
        )


def _condition(rule: PlacedRule, problems: Problems) -> Condition | None:
    if not rule.rule.condition.strip():
        return None  # its absence was reported when it was read
    try:
        return parse_condition(rule.rule.condition)
    except PieceError as error:
        problems.error(rule.fields.at("condition"), error.message, None, error.hint)
        return None


def _refuse_aggregate(rule: PlacedRule, problems: Problems) -> None:
    what = "all() and any() count sub-movements, and this movement has none"
    fix = "use them in the rules of a parallel movement"
    problems.error(rule.fields.at("condition"), what, rule.rule.condition, fix)


def _check_next(rule: PlacedRule, names: Sequence[str], problems: Problems) -> None:
    target = rule.rule.next
    if target is None:
        problems.error(rule.fields.node, "this rule leads nowhere", rule.rule.condition, "add next:")
    elif target not in ENDS and target not in names:
        what = "no movement has this name"
        problems.error(rule.fields.at("next"), what, target, _which(target, [COMPLETE, ABORT, *names]))


def _check_aggregate(
    condition: Condition, rule: PlacedRule, lanes: Sequence[PlacedMovement], problems: Problems
) -> None:
    at = rule.fields.at("condition")
    positional = condition.kind == "all" and len(condition.args) > 1
    if positional and len(condition.args) != len(lanes):
        what = f"all() names {len(condition.args)} labels for {len(lanes)} sub-movements: it never holds"
        problems.warning(at, what, rule.rule.condition, "name one label for each sub-movement, in order")
        return
    for label in _unreachable_labels(condition, lanes, positional=positional):
        what = "no sub-movement that is asked can end with this label: the rule never holds"
        if condition.kind == "any":
            what = "no sub-movement can end with this label"
        problems.warning(
            at, what, label, _which(label, sorted({item for lane in lanes for item in _labels(lane)}))
        )


def _unreachable_labels(
    condition: Condition, lanes: Sequence[PlacedMovement], *, positional: bool
) -> Iterator[str]:
    known = [_labels(lane) for lane in lanes]
    for number, label in enumerate(condition.args):
        if positional:
            reachable = label in known[number]
        elif condition.kind == "all":
            reachable = all(label in labels for labels in known)
        else:
            reachable = any(label in labels for labels in known)
        if not reachable:
            yield label


def _labels(lane: PlacedMovement) -> set[str]:
    return {placed.rule.condition.strip() for placed in lane.rules}


def _check_reports(placed: PlacedMovement, problems: Problems) -> None:
    """Two reports of one visit with one name: the second would overwrite the first. Lanes write at the same
    time and into one folder, so names that only some file systems tell apart are one name."""
    seen: dict[str, int] = {}
    owed: list[Placed] = [*placed.reports, *(report for lane in placed.lanes for report in lane.reports)]
    for report, node in owed:
        key = same_file(report.name)
        if key in seen:
            what = f"this report's name was given already on line {seen[key]}"
            problems.error(node, what, report.name, "give each report of a movement its own name")
        elif (line := _nested(key, seen)) is not None:
            what = f"one of two reports would be the other's folder, see line {line}"
            problems.error(node, what, report.name, "rename one of them")
        seen.setdefault(key, node.line)


def _nested(name: str, seen: Mapping[str, int]) -> int | None:
    """The line of a report that would be a folder of ``name``, or the other way round."""
    lines = (
        line
        for other, line in seen.items()
        if f"{name}/".startswith(f"{other}/") or other.startswith(f"{name}/")
    )
    return next(lines, None)


def _check_monitor(placed: PlacedMonitor, draft: Draft, problems: Problems) -> None:
    if len(placed.cycle) < 2:
        problems.error(
            placed.fields.at("cycle"), "a cycle names at least two movements", None, "write cycle: [a, b]"
        )
    for node in placed.cycle:
        if node.text not in draft.names:
            problems.error(node, "no movement has this name", node.text, _which(node.text, draft.names))
    if not placed.rules:
        fix = "add rules: with condition and next"
        problems.error(placed.fields.at("judge"), "the judge has no rules", None, fix)
    for rule in placed.rules:
        _check_next(rule, draft.names, problems)
        condition = _condition(rule, problems)
        if condition is not None and condition.kind in ("all", "any"):
            _refuse_aggregate(rule, problems)


def _which(name: str, known: Sequence[str]) -> str:
    near = nearest(name, known)
    if near:
        return f"did you mean {near}?"
    known = list(dict.fromkeys(known))
    some = [*known[:_MOST_NAMED], *(["…"] if len(known) > _MOST_NAMED else [])]
    return f"known are {', '.join(some) or 'none'}"
