"""The ways between movements: what leads nowhere, what never ends, and what can go to and fro unwatched.

Nothing here keeps a piece from being played; lint says it.

**Unwatched cycles.** Most pieces have many cycles: a movement that is stuck leads back to the plan, a
reviewer back to the builder. To name them all would be noise. A *back way* leads to a movement that stands
earlier in the file; it is the *usual* one where it is the movement's first rule, because writers put the
expected outcome first. A cycle is pointed out when all its back ways are usual ones: then going round is
what its movements do when all goes well, as when ``fix`` returns to ``review``, and only a judge's mood
ends it. A way back that is an exception (``build`` finds that the plan is wrong) needs no monitor. A loop
monitor watches a cycle when it names the same movements in the same order, begun anywhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from cadenza.piece.dialects.checks import ENDS, Draft
from cadenza.piece.dialects.movements import PlacedMonitor, PlacedMovement, PlacedRule

Ways = dict[str, set[str]]


def unreachable(draft: Draft) -> list[PlacedMovement]:
    """The movements that no rule and no judge leads to."""
    first = draft.initial.text if draft.initial is not None else next(iter(draft.names), "")
    judged = {rule.rule.next or "" for monitor in draft.monitors for rule in monitor.rules}
    ways = _ways(draft)
    reached: set[str] = set()
    ahead = {first, *judged}
    while ahead:
        name = ahead.pop()
        if name in ways and name not in reached:
            reached.add(name)
            ahead |= ways[name]
    return [placed for placed in draft.movements if placed.movement.name not in reached]


def endless(draft: Draft) -> list[PlacedMovement]:
    """The movements from which no rule and no judge ever leads to an end."""
    ways = _ways(draft)
    for monitor in draft.monitors:
        for name in monitor.monitor.cycle:
            ways.setdefault(name, set()).update(rule.rule.next or "" for rule in monitor.rules)
    ending: set[str] = set(ENDS)
    while more := {name for name, targets in ways.items() if name not in ending and targets & ending}:
        ending |= more
    return [placed for placed in draft.movements if placed.rules and placed.movement.name not in ending]


def unwatched(draft: Draft) -> Iterator[tuple[PlacedRule, tuple[str, ...]]]:
    """The cycles that go round when all goes well, and that no loop monitor watches; with the rule that
    closes each. Those that never end at all are left to :func:`endless`."""
    place = {name: at for at, name in reversed(list(enumerate(draft.names)))}
    ways = _usual_ways(draft, place)
    never = {placed.movement.name for placed in endless(draft)}
    watched = [monitor.monitor.cycle for monitor in draft.monitors]
    for placed in draft.movements:
        name, rule = placed.movement.name, next(iter(placed.rules), None)
        target = rule.rule.next or "" if rule else ""
        if rule is None or name in never or place.get(target, len(place)) >= place[name]:
            continue
        cycle = _shortest(ways, target, name)
        if cycle and not any(_same_cycle(cycle, other) for other in watched):
            yield rule, cycle


def overlapping(monitors: Sequence[PlacedMonitor]) -> Iterator[tuple[PlacedMonitor, PlacedMonitor, str]]:
    """Pairs of monitors that watch one step in common, the later one first, and that step.

    When one judge has spoken the history of all monitors begins anew, so one keeps the other from ever
    counting to its threshold.
    """
    for at, later in enumerate(monitors):
        for earlier in monitors[:at]:
            steps = _steps(later.monitor.cycle)
            common = next((step for step in steps if step in _steps(earlier.monitor.cycle)), None)
            if common is not None:
                yield later, earlier, " → ".join(common)
                break


def _ways(draft: Draft) -> Ways:
    return {
        placed.movement.name: {rule.rule.next or "" for rule in placed.rules} for placed in draft.movements
    }


def _usual_ways(draft: Draft, place: Mapping[str, int]) -> Mapping[str, list[str]]:
    """Where each movement leads when all goes well: onwards by any rule, back by its first."""
    ways: dict[str, list[str]] = {}
    for placed in draft.movements:
        here = place[placed.movement.name]
        targets = [rule.rule.next or "" for rule in placed.rules]
        known = [(at, target) for at, target in enumerate(targets) if target in place]
        ways[placed.movement.name] = [target for at, target in known if at == 0 or place[target] > here]
    return ways


def _shortest(ways: Mapping[str, list[str]], start: str, end: str) -> tuple[str, ...] | None:
    """The shortest way from ``start`` to ``end``, both named."""
    ahead: deque[tuple[str, ...]] = deque([(start,)])
    seen = {start}
    while ahead:
        path = ahead.popleft()
        if path[-1] == end:
            return path
        for target in ways.get(path[-1], ()):
            if target not in seen:
                seen.add(target)
                ahead.append((*path, target))
    return None


def _same_cycle(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two cycles are one, begun at different places."""
    turned = [*one, *one]
    return len(one) == len(other) and any(turned[at : at + len(one)] == [*other] for at in range(len(one)))


def _steps(cycle: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))


__all__ = ["endless", "overlapping", "unreachable", "unwatched"]
