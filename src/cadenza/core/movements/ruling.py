"""Which rule an output matches, and what follows from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from cadenza.core.demands import AskPerson
from cadenza.core.outcomes import Answered, AnyOutcome, Replied
from cadenza.core.performance import Performance
from cadenza.core.prompts.judging import judge_prompt, read_verdict, verdict_schema
from cadenza.core.prompts.notices import no_match, status_not_found
from cadenza.core.signals import Judged, LaneResult, Signal
from cadenza.core.tags import last_tag
from cadenza.core.visit import Visit
from cadenza.ids import Hash
from cadenza.piece.model import Movement, Rule


class Matched(msgspec.Struct, frozen=True):
    """The rule that was found (its index), or None; and how: ``tag``, ``judge`` or ``aggregate``."""

    rule: int | None
    method: str | None = None


def match_rules(visit: Visit, movement: Movement, output: Hash) -> Performance[Matched]:
    """The status tag decides; without one in range, a judge does (TAKT engine, rule evaluation)."""
    tag = last_tag(visit.text(output))
    if tag is not None and tag < len(movement.rules):
        return Matched(tag, "tag")
    rules = dict(enumerate(movement.rules))
    return (yield from ask_judge(visit, rules, output))


def ask_judge(visit: Visit, rules: Mapping[int, Rule], output: Hash) -> Performance[Matched]:
    """A model without tools reads the output and names one of ``rules`` (by index), or none.

    A judge that fails, or answers what is no index, has named none.
    """
    if not rules:
        return Matched(None)
    indexes = list(rules)
    conditions = tuple(rules[index].condition for index in indexes)
    prompt = judge_prompt(visit.text(output), conditions, visit.language)
    schema = visit.put(json.dumps(verdict_schema(len(conditions))))
    outcome: AnyOutcome = yield visit.call("rules", prompt, purpose="rules", schema=schema)
    if not isinstance(outcome, Replied):
        return Matched(None)
    verdict = read_verdict(visit.text(outcome.text), len(conditions))
    return Matched(None) if verdict is None else Matched(indexes[verdict], "judge")


def conclude(
    visit: Visit,
    matched: Matched,
    output: Hash,
    *,
    judged: Judged | None = None,
    lanes: tuple[LaneResult, ...] = (),
) -> Performance[Signal]:
    """The visit's signal. A rule that needs a person asks first; the answer visits the movement anew."""
    common: dict[str, Any] = {"output": output, "judged": judged, "lanes": lanes}
    rules = visit.movement.rules
    if matched.rule is None:
        tried = tuple(rule.condition for rule in rules)
        message = no_match(visit.language, visit.movement.name, tried, visit.text(output))
        if visit.piece.phases == "three":
            message = f"{status_not_found(visit.movement.name)}\n{message}"
        return Signal(kind="no_match", code="rule_no_match", tried=tried, message=message, **common)
    rule = rules[matched.rule]
    found: dict[str, Any] = {"rule": matched.rule, "label": rule.parsed.text, "method": matched.method}
    if rule.requires_user_input:
        answer: AnyOutcome = yield visit.need("question", AskPerson(question=output))
        if isinstance(answer, Answered):
            return Signal(kind="again", answer=visit.put(str(answer.value)), **found, **common)
        return Signal(kind="failed", code="question_lost", message="the question was not answered", **common)
    return Signal(kind="rule", next=rule.next, **found, **common)
