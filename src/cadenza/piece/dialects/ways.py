"""The ways between movements: what leads nowhere, what never ends, and what can go to and fro unwatched.

Nothing here keeps a piece from being played; lint says it. Cycles are looked at as *components*: movements
that all lead to one another (strongly connected), or one that leads to itself. In which order a movement's
rules stand makes no difference to any of it.

**Without an exit.** No rule leads out of the component, and no judge of a monitor that watches it does: only
the piece's limit ends the run. This is always said, once for each component.

**With an exit, unwatched.** Most pieces are one big component: a movement that is stuck leads back to the
plan, a reviewer back to the builder. To name them all would be noise, as a way back that is an exception
(``build`` finds that the plan is wrong) needs no monitor. So components are looked for among the *expected*
ways alone: all ways onwards, and of a movement that can do nothing but go back (``fix``), the way back to the
nearest. ``ABORT`` is no way onwards. Each such component is said once where no monitor watches it.

A monitor watches a component when all movements of its cycle are in it and each leads to the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cadenza.piece.dialects.checks import Draft
from cadenza.piece.dialects.movements import PlacedMonitor, PlacedMovement
from cadenza.piece.vocabulary import ABORT, COMPLETE, WAIT_SUBTASKS

Ways = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Component:
    """Movements that lead to one another, in the order of the file, and the shortest cycle through the
    first of them."""

    first: PlacedMovement
    names: tuple[str, ...]
    cycle: tuple[str, ...]


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
            ahead.update(ways[name])
    return [placed for placed in draft.movements if placed.movement.name not in reached]


def endless(draft: Draft) -> list[Component]:
    """The components that neither a rule nor a judge ever leads out of."""
    ways = _ways(draft)
    found = []
    for component in _components(draft, ways):
        inside = set(component.names)
        judged = {
            rule.rule.next or ""
            for monitor in draft.monitors
            if _watches(monitor, component, ways)
            for rule in monitor.rules
        }
        if not any(set(ways[name]) - inside for name in inside) and not judged - inside:
            found.append(component)
    return found


def unwatched(draft: Draft) -> list[Component]:
    """The components that go round when all goes well, and that no loop monitor watches. Those that never
    end at all are left to :func:`endless`, and those of one movement alone, which no monitor can watch."""
    ways = _ways(draft)
    never = {name for component in endless(draft) for name in component.names}
    return [
        component
        for component in _components(draft, _expected(draft, ways))
        if len(component.names) > 1
        and component.names[0] not in never
        and not any(_watches(monitor, component, ways) for monitor in draft.monitors)
    ]


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


def _targets(placed: PlacedMovement, *, tools: bool) -> set[str]:
    """Where a movement leads. An agent with tools can also end the work, unless it may not; after its
    sub-tasks, and when its context is full, ``default_next`` comes."""
    found = {rule.rule.next or "" for rule in placed.rules}
    if tools and not placed.lanes:
        found.discard(WAIT_SUBTASKS)
        found |= {COMPLETE} if placed.movement.may_complete else set()
        found |= {placed.movement.default_next} if placed.movement.default_next else set()
    return found


def _ways(draft: Draft) -> Ways:
    """Where each movement leads, each target once, in the order of the file; what is no movement last."""
    place = _places(draft)
    return {
        placed.movement.name: sorted(
            _targets(placed, tools=draft.control == "tools"),
            key=lambda target: (place.get(target, len(place)), target),
        )
        for placed in draft.movements
    }


def _places(draft: Draft) -> dict[str, int]:
    return {name: at for at, name in enumerate(dict.fromkeys(draft.names))}


def _expected(draft: Draft, ways: Ways) -> Ways:
    """Where each movement leads when all goes well: onwards, or, where it can only go back, the nearest."""
    place = _places(draft)
    expected = {}
    for name, targets in ways.items():
        onwards = [target for target in targets if place.get(target, len(place)) > place[name]]
        back = [target for target in targets if target in place and place[target] < place[name]]
        expected[name] = onwards if set(onwards) - {ABORT} else [*back[-1:], *onwards]
    return expected


def _watches(monitor: PlacedMonitor, component: Component, ways: Ways) -> bool:
    cycle = monitor.monitor.cycle
    return set(cycle) <= set(component.names) and all(then in ways[name] for name, then in _steps(cycle))


def _components(draft: Draft, ways: Ways) -> list[Component]:
    """The strongly connected components that hold a cycle, by their first movement in the file."""
    place = _places(draft)
    first = {placed.movement.name: placed for placed in reversed(draft.movements)}
    found = []
    for members in _strongly_connected(ways):
        names = sorted(members, key=place.__getitem__)
        inside = {name: [target for target in ways[name] if target in members] for name in names}
        cycle = _shortest(inside, names[0])
        if cycle:
            found.append(Component(first[names[0]], tuple(names), cycle))
    return sorted(found, key=lambda component: place[component.names[0]])


def _strongly_connected(ways: Ways) -> Iterator[set[str]]:
    """Kosaraju's way: what is left last going forth is gathered first going back. Without recursion, as a
    file may hold thousands of movements in a row."""
    back: dict[str, list[str]] = {name: [] for name in ways}
    for name, targets in ways.items():
        for target in targets:
            if target in back:
                back[target].append(name)
    left = [name for start, seen in _starts(ways) for name in _walk(ways, start, seen)]
    seen: set[str] = set()
    for start in reversed(left):
        if start not in seen:
            yield set(_walk(back, start, seen))


def _starts(ways: Ways) -> Iterator[tuple[str, set[str]]]:
    """Each movement that was not seen yet when its turn comes, with the set of those seen."""
    seen: set[str] = set()
    for start in ways:
        if start not in seen:
            yield start, seen


def _walk(ways: Ways, start: str, seen: set[str]) -> Iterator[str]:
    """All that can be reached from ``start`` and was not seen, each when everything behind it was."""
    seen.add(start)
    open_ = [(start, iter(ways[start]))]
    while open_:
        name, targets = open_[-1]
        target = next((item for item in targets if item in ways and item not in seen), None)
        if target is None:
            open_.pop()
            yield name
        else:
            seen.add(target)
            open_.append((target, iter(ways[target])))


def _shortest(ways: Ways, start: str) -> tuple[str, ...] | None:
    """The shortest cycle through ``start``, each movement named once."""
    ahead: deque[tuple[str, ...]] = deque([(start,)])
    seen: set[str] = set()
    while ahead:
        path = ahead.popleft()
        for target in ways[path[-1]]:
            if target == start:
                return path
            if target not in seen:
                seen.add(target)
                ahead.append((*path, target))
    return None


def _steps(cycle: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(cycle, [*cycle[1:], *cycle[:1]], strict=True))


__all__ = ["Component", "endless", "overlapping", "unreachable", "unwatched"]
