"""Derives a script from a piece's own rules: which tags its agents must answer for the run to end so."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import product
from typing import Any

import msgspec

from cadenza.core.aggregates import holds
from cadenza.piece.model import Movement, Piece


class Move(msgspec.Struct, frozen=True):
    """One visit: the rule that is to match (None: no rule is), and the tag of each lane."""

    movement: str
    rule: int | None
    lanes: tuple[int | None, ...] = ()


def moves(movement: Movement) -> Iterator[Move]:
    """Every rule of a movement that can be made to match without a person, and how."""
    if movement.lanes:
        yield from _parallel_moves(movement)
        return
    for index, rule in enumerate(movement.rules):
        if not rule.requires_user_input:
            yield Move(movement.name, index)


def _parallel_moves(movement: Movement) -> Iterator[Move]:
    found: set[int] = set()
    choices = [range(len(lane.rules)) for lane in movement.lanes]
    for tags in product(*choices):
        labels = [lane.rules[tag].parsed.text for lane, tag in zip(movement.lanes, tags, strict=True)]
        for index, rule in enumerate(movement.rules):
            if holds(rule.parsed, labels):
                if index not in found:
                    found.add(index)
                    yield Move(movement.name, index, tags)
                break


def route_to(piece: Piece, end: str, *, start: str | None = None) -> list[Move] | None:
    """The shortest sequence of moves from ``start`` that ends the run with ``end``; None if no rule does."""
    first = start or piece.initial_movement
    ways: deque[tuple[str, list[Move]]] = deque([(first, [])])
    seen = {first}
    while ways:
        name, path = ways.popleft()
        movement = piece.by_name[name]
        for move in moves(movement):
            target = movement.rules[move.rule or 0].next
            if target == end:
                return [*path, move]
            if target in piece.by_name and target not in seen:
                seen.add(target)
                ways.append((target, [*path, move]))
    return None


def unmatched(piece: Piece) -> list[Move]:
    """A run that ends because nothing matches at the first movement."""
    movement = piece.by_name[piece.initial_movement]
    return [Move(movement.name, None, tuple(None for _ in movement.lanes))]


def entries(piece: Piece, path: list[Move]) -> list[dict[str, Any]]:
    """The script that plays ``path``: each agent says something and its tag."""
    made: list[dict[str, Any]] = []
    for move in path:
        movement = piece.by_name[move.movement]
        if movement.lanes:
            for lane, tag in zip(movement.lanes, move.lanes, strict=True):
                made += _said(lane, tag)
            if move.rule is None:
                made.append({"movement": movement.name, "purpose": "rules", "text": "none"})
        else:
            made += _said(movement, move.rule)
    return made


def _said(movement: Movement, rule: int | None) -> list[dict[str, Any]]:
    said: dict[str, Any] = {"movement": movement.name, "purpose": "perform"}
    if rule is not None:
        text = f"{movement.name} did its part.\n\n```markdown\n# {movement.name}\nfine\n```\n\n[STEP:{rule}]"
        return [{**said, "text": text}]
    return [
        {**said, "text": f"{movement.name} cannot tell."},
        {"movement": movement.name, "purpose": "rules", "json": {"rule": None, "reason": "nothing fits"}},
    ]
