"""Phase 3: which rule the work matches, asked in calls of their own, stage by stage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from cadenza.core.aggregates import holds
from cadenza.core.demands import CallModel, Message
from cadenza.core.movements.ruling import Matched
from cadenza.core.outcomes import AnyOutcome, Replied
from cadenza.core.performance import Performance
from cadenza.core.prompts.phases import (
    Choice,
    conductor,
    evaluation_prompt,
    evaluation_schema,
    judge_input,
    last_movement_tag,
    read_evaluation,
    read_step,
    step_prompt,
    step_schema,
    tag_prompt,
)
from cadenza.core.visit import JUDGE_TOKENS, Visit
from cadenza.ids import Hash
from cadenza.piece.model import Rule


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What is judged: the movement's text and its reports."""

    output: Hash
    reports: Mapping[str, Hash] = {}


def visible_rules(visit: Visit) -> dict[int, Rule]:
    """The rules that may match here: ``interactive_only`` ones count only where somebody is there."""
    rules = enumerate(visit.movement.rules)
    return {i: rule for i, rule in rules if visit.run.interactive or not rule.interactive_only}


def find_rule(visit: Visit, work: Work, labels: list[str | None] | None = None) -> Performance[Matched]:
    """The rule that ``work`` matches. ``labels`` are those of a parallel movement's lanes.

    Phase 3 asks where some rule is a plain label; where it finds nothing, and where it does not apply, the
    evaluator of Phase 1 decides (TAKT's command-line engine, status judgement and rule evaluator).
    """
    rules = visible_rules(visit)
    plain = any(rule.parsed.kind == "label" for rule in visit.movement.rules)
    if plain and labels is None:
        matched = yield from _ask_status(visit, work, rules)
        if matched.rule is not None:
            return matched
        return _tagged(visit, work, rules)
    return (yield from _evaluate(visit, work, rules, labels or []))


def _ask_status(visit: Visit, work: Work, rules: Mapping[int, Rule]) -> Performance[Matched]:
    if len(visit.movement.rules) == 1 or not rules:
        return Matched(next(iter(rules)), "auto_select") if rules else Matched(None)
    count, name, language = len(visit.movement.rules), visit.movement.name, visit.language
    given = _judged(visit, work)
    choices = [Choice(index + 1, rule.condition, rule.appendix) for index, rule in rules.items()]
    prompt = step_prompt(given, choices, language)
    answer = yield from _judge(visit, "status:step", prompt, step_schema(choices))
    if (number := read_step(answer, count)) is not None and number - 1 in rules:
        return Matched(number - 1, "structured_output")
    answer = yield from _judge(visit, "status:tag", tag_prompt(given, name, choices, language))
    if (number := last_movement_tag(answer, name, count)) is not None and number - 1 in rules:
        return Matched(number - 1, "phase3_tag")
    return (yield from _ask_evaluation(visit, work, rules, "status:evaluation", "ai_judge"))


def _evaluate(
    visit: Visit, work: Work, rules: Mapping[int, Rule], labels: list[str | None]
) -> Performance[Matched]:
    """The evaluator: aggregates from the top, Phase 1's tag, ai() rules, every rule."""
    for index, rule in rules.items():
        if holds(rule.parsed, labels):
            return Matched(index, "aggregate")
    tagged = _tagged(visit, work, rules)
    if tagged.rule is not None:
        return tagged
    asking = {i: rule for i, rule in rules.items() if rule.parsed.kind == "ai"}
    if asking:
        matched = yield from _ask_evaluation(visit, work, asking, "rules:ai", "ai_judge")
        if matched.rule is not None:
            return matched
    rest = {i: rule for i, rule in rules.items() if not rule.parsed.is_aggregate}
    if not rest or rest == asking:
        return Matched(None)
    return (yield from _ask_evaluation(visit, work, rest, "rules:all", "ai_judge_fallback"))


def _tagged(visit: Visit, work: Work, rules: Mapping[int, Rule]) -> Matched:
    number = last_movement_tag(visit.text(work.output), visit.movement.name, len(visit.movement.rules))
    return Matched(number - 1, "phase1_tag") if number and number - 1 in rules else Matched(None)


def _ask_evaluation(
    visit: Visit, work: Work, rules: Mapping[int, Rule], key: str, method: str
) -> Performance[Matched]:
    indexes = list(rules)
    conditions = tuple(rule.condition for rule in rules.values())
    prompt = evaluation_prompt(_judged(visit, work), conditions, visit.language)
    answer = yield from _judge(visit, key, prompt, evaluation_schema(len(conditions)))
    chosen = read_evaluation(answer, len(conditions))
    return Matched(None) if chosen is None else Matched(indexes[chosen - 1], method)


def _judge(visit: Visit, key: str, prompt: str, schema: Mapping[str, Any] | None = None) -> Performance[str]:
    """One call of the judge, in a new session, with no tools; an empty answer when it fails."""
    demand = CallModel(
        conversation=visit.conversation(key),
        append=(
            Message("system", visit.put(conductor(visit.language))),
            Message("user", visit.put(prompt)),
        ),
        movement=visit.movement.name,
        persona="conductor",
        purpose="rules",
        provider=visit.provider,
        model=visit.model,
        schema=visit.put(json.dumps(schema)) if schema is not None else None,
        max_tokens=JUDGE_TOKENS,
    )
    outcome: AnyOutcome = yield visit.need(key, demand)
    return visit.text(outcome.text) if isinstance(outcome, Replied) else ""


def _judged(visit: Visit, work: Work) -> str:
    """What every stage is shown: the text, and those reports that the judge may use."""
    usable = [r.name for r in visit.movement.reports if r.use_judge and r.name in work.reports]
    reports = [(name, visit.text(work.reports[name])) for name in usable]
    return judge_input(visit.text(work.output), reports, visit.language)
