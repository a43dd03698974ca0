"""Derives scripts from a piece's own rules: what its agents must answer for the run to go a wanted way."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import msgspec

from cadenza.core.aggregates import holds
from cadenza.core.demands import CallModel
from cadenza.core.prompts.phases import movement_tag
from cadenza.piece.model import Movement, Piece
from cadenza.piece.vocabulary import Phases

Tags = Mapping[str, int | None]
"""Which rule an agent says, by its movement or lane; None: something that no rule is in."""


class Move(msgspec.Struct, frozen=True):
    """One visit: the rule that is to match (None: no rule is), and the rule of each lane."""

    movement: str
    rule: int | None
    lanes: tuple[int | None, ...] = ()


def moves(movement: Movement) -> Iterator[Move]:
    """Every rule of a movement that can be made to match, and how. A person may be needed."""
    if movement.lanes:
        yield from _parallel_moves(movement)
        return
    for index in range(len(movement.rules)):
        yield Move(movement.name, index)


def _parallel_moves(movement: Movement) -> Iterator[Move]:
    found: set[int] = set()
    choices = [range(len(lane.rules)) for lane in movement.lanes]
    for tags in product(*choices):
        index = _aggregate(movement, tags)
        if index is not None and index not in found:
            found.add(index)
            yield Move(movement.name, index, tags)


def _aggregate(movement: Movement, tags: tuple[int, ...]) -> int | None:
    labels = [lane.rules[tag].parsed.text for lane, tag in zip(movement.lanes, tags, strict=True)]
    return next((i for i, rule in enumerate(movement.rules) if holds(rule.parsed, labels)), None)


def route_to(piece: Piece, end: str, *, start: str | None = None) -> list[Move] | None:
    """The shortest sequence of moves from ``start`` that leads to ``end`` (a movement, COMPLETE or ABORT)
    without a person; None if no rule does."""
    first = start or piece.initial_movement
    if first == end:
        return []
    ways: deque[tuple[str, list[Move]]] = deque([(first, [])])
    seen = {first}
    while ways:
        name, path = ways.popleft()
        movement = piece.by_name[name]
        for move in moves(movement):
            rule = movement.rules[move.rule or 0]
            if rule.requires_user_input:
                continue
            if rule.next == end:
                return [*path, move]
            if rule.next is not None and rule.next in piece.by_name and rule.next not in seen:
                seen.add(rule.next)
                ways.append((rule.next, [*path, move]))
    return None


def unmatched(piece: Piece) -> list[Move]:
    """The shortest run that ends because nothing matches: in the first movement where an agent can say what
    no rule is in. Where there is none (one rule each: nobody is asked) an agent of the first one fails."""
    paths = [(m, route_to(piece, m.name)) for m in piece.movements if not m.lanes and len(m.rules) > 1]
    found = [(len(path), movement.name, path) for movement, path in paths if path is not None]
    if not found:
        movement = piece.by_name[piece.initial_movement]
        return [Move(movement.name, None, tuple(None for _ in movement.lanes))]
    _, name, path = min(found, key=lambda item: item[0])
    return [*path, Move(name, None)]


def asks_status(movement: Movement) -> bool:
    """Whether ``phases: three`` asks which rule of an agent's movement matched."""
    return len(movement.rules) > 1 and any(rule.parsed.kind == "label" for rule in movement.rules)


def tags_of(piece: Piece, move: Move) -> dict[str, int | None]:
    """What each agent of a visit is to say."""
    movement = piece.by_name[move.movement]
    if movement.lanes:
        return {lane.name: tag for lane, tag in zip(movement.lanes, move.lanes, strict=True)}
    return {movement.name: move.rule}


def said(name: str, tag: int | None, phases: Phases) -> str:
    """What an agent says whose rule is ``tag``: its part, a report, the tag that its mode reads."""
    if tag is None:
        return f"{name} cannot tell."
    mark = f"[STEP:{tag}]" if phases == "single" else movement_tag(name, tag + 1)
    return f"{name} did its part.\n\n```markdown\n# {name}\nfine\n```\n\n{mark}"


def verdict(tag: int | None, phases: Phases) -> dict[str, Any]:
    """What a judge answers who finds ``tag``."""
    reason = "as the script wants it"
    if phases == "single":
        return {"rule": tag, "reason": reason}
    return {"step": 0 if tag is None else tag + 1, "reason": reason}


PLAN = {
    "done": True,
    "reasoning": "one is enough",
    "parts": [{"id": "1", "title": "all", "instruction": "do all of it", "timeout_ms": None}],
}
"""A team leader's plan, which is also its answer to whether there is more to do."""


def reply_to(call: CallModel, tags: Tags, phases: Phases, leaders: frozenset[str]) -> str:
    """What the model answers to ``call`` when the agents of the current visit are to say ``tags``."""
    if call.purpose == "report":
        return f"# {call.movement}\nfine"
    name = call.movement.partition(".")[0] if call.movement not in tags else call.movement
    if call.purpose == "rules":
        return json.dumps(verdict(tags[name], phases))
    if call.movement in leaders:
        return json.dumps(PLAN)
    return said(name, tags[name], phases)


def entries(piece: Piece, path: list[Move], phases: Phases = "single") -> list[dict[str, Any]]:
    """The script that plays ``path``: each agent does its part, writes its reports and says its rule."""
    made: list[dict[str, Any]] = []
    for move in path:
        movement = piece.by_name[move.movement]
        for agent in movement.lanes or (movement,):
            made += _entries_of(agent, tags_of(piece, move)[agent.name], phases)
        if movement.lanes and move.rule is None:
            made.append({"movement": movement.name, "purpose": "rules", "text": "none"})
    return made


def _entries_of(agent: Movement, tag: int | None, phases: Phases) -> Iterator[dict[str, Any]]:
    who = {"movement": agent.name}
    work = {"purpose": "perform", "text": said(agent.name, tag, phases)}
    failing = tag is None and len(agent.rules) < 2
    if failing:
        yield {**who, "purpose": "perform", "error": {"message": "the script lets this agent fail"}}
        return
    if agent.kind == "team_leader":
        yield {**who, "purpose": "perform", "json": PLAN, "times": 2}
        yield {"movement": f"{agent.name}.1", **work}
    else:
        yield {**who, **work}
    if phases == "three":
        yield from ({**who, "purpose": "report", "text": f"# {report.name}"} for report in agent.reports)
        if tag is None:
            yield {**who, "purpose": "rules", "json": verdict(tag, phases), "times": 3}
        elif asks_status(agent):
            yield {**who, "purpose": "rules", "json": verdict(tag, phases)}
    elif tag is None:
        yield {**who, "purpose": "rules", "json": verdict(tag, phases)}
