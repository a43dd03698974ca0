"""A movement kind whose lanes do everything that a lane can do, for tests of concurrency."""

from __future__ import annotations

import json
from collections.abc import Mapping

from cadenza.core.demands import AskPerson, CallTool, Effect
from cadenza.core.movements import MovementKind
from cadenza.core.outcomes import Answered, AnyOutcome, Replied, Returned
from cadenza.core.performance import Lanes, Need, NextOf, Performance
from cadenza.core.signals import LaneResult, Signal
from cadenza.core.visit import Visit
from cadenza.testing import PROBE_KINDS, Scenario, Script, WriteProbe
from tests.crash.scenarios import altered, piece_of

LANES: Mapping[str, tuple[str, ...]] = {
    "asks": ("call", "ask", "call"),
    "writes": ("write", "read", "write"),
    "works": ("call", "idempotent", "nested"),
}
TOOLS: Mapping[str, Effect] = {"read": "read", "idempotent": "idempotent", "write": "write"}


def perform_fan(visit: Visit) -> Performance[Signal]:
    """Three lanes with a question, writes, calls and lanes of their own; then two that race, both awaited."""
    found: list[list[str]] = yield Lanes({name: _lane(visit, name, LANES[name]) for name in LANES})
    racing = {name: _lane(visit, name, ("read", "call")) for name in ("first", "second")}
    while racing:
        name, result = yield NextOf(racing)
        del racing[name]
        found.append([name, *result])
    found[len(LANES) :] = sorted(found[len(LANES) :])
    lanes = tuple(
        LaneResult(name=name, label=" ".join(words)) for name, words in zip(LANES, found, strict=False)
    )
    rule = visit.movement.rules[0]
    output = visit.put(json.dumps(found))
    return Signal(kind="rule", next=rule.next, rule=0, label=rule.condition, output=output, lanes=lanes)


def _lane(visit: Visit, name: str, steps: tuple[str, ...]) -> Performance[list[str]]:
    words = []
    for number, step in enumerate(steps):
        key = f"{number}-{step}"
        if step == "nested":
            inner: list[list[str]] = yield Lanes(
                {
                    "left": _lane(visit, f"{name}-left", ("read",)),
                    "right": _lane(visit, f"{name}-right", ("ask",)),
                }
            )
            words += ["[", *inner[0], *inner[1], "]"]
            continue
        if step == "call":
            outcome: AnyOutcome = yield visit.call(f"{name}-{key}", f"{name} {number}")
        elif step == "ask":
            outcome = yield Need(key, AskPerson(question=visit.put(f"{name}, {number}?")))
        else:
            arguments = {"movement": name, "visit": number}
            outcome = yield Need(key, CallTool(name="write_probe", arguments=arguments, effect=TOOLS[step]))
        words.append(_word(visit, outcome))
    return words


def _word(visit: Visit, outcome: AnyOutcome) -> str:
    if isinstance(outcome, Replied):
        return visit.text(outcome.text)
    if isinstance(outcome, Answered | Returned):
        return json.dumps(outcome.value)
    return type(outcome).__name__


FAN_KINDS: Mapping[str, MovementKind] = {**PROBE_KINDS, "fan": MovementKind(perform_fan)}

FAN = """
cadenza: 1
control: tags
name: fan
max_movements: 5
initial_movement: before
movements:
  - name: before
    instruction: Do it.
    rules: [{condition: done, next: fan}]
  - name: fan
    instruction: Fan out.
    rules: [{condition: joined, next: after}]
  - name: after
    instruction: Finish it.
    rules: [{condition: done, next: COMPLETE}]
"""


def fan() -> Scenario:
    """A movement, the fan, a movement."""
    loaded = piece_of(FAN)
    movements = [
        {**movement.model_dump(), "kind": "fan" if movement.name == "fan" else movement.kind}
        for movement in loaded.piece.movements
    ]
    entries = [{"text": "Done. [STEP:0]", "times": "forever"}]
    return Scenario(
        name="fan",
        piece=altered(loaded, movements=movements),
        script=Script.from_entries(entries),
        kinds=FAN_KINDS,
        tools=lambda folder: {"write_probe": WriteProbe(folder / "writes")},
    )
