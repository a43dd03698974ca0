"""Work tools: a call is carried out by an executor, and may need a person in between."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from cadenza.core.demands import AskPerson, CallTool
from cadenza.core.movements.tools.desk import Desk, Done
from cadenza.core.movements.tools.talk import Call
from cadenza.core.outcomes import Answered, AnyOutcome, Did, Expired, Wanted
from cadenza.core.performance import Performance
from cadenza.core.tooling import ToolSpec
from cadenza.ids import Hash

MOST_ASKED = 5
"""How often one call may need a person before it has failed."""


class Place(msgspec.Struct, frozen=True):
    """Where a call stands: the reply's turn, the calls of the reply by hash, and its index among them.
    ``wrapped``: it came through ``use_tool``."""

    turn: int
    calls: Hash
    index: int
    wrapped: bool = False

    def key(self, what: str) -> str:
        """The key of a demand that the call needs."""
        return f"{what}:{self.turn}:{self.index}"


def work(desk: Desk, place: Place, call: Call, spec: ToolSpec, decision: Any = None) -> Performance[Done]:
    """Carry a call out. Where the tool needs a person first, the run parks and the tool is called again with
    the decision."""
    for again in range(MOST_ASKED):
        what = "tool" if not again else f"tool~{again}"
        outcome: AnyOutcome = yield desk.visit.need(place.key(what), _demand(desk, place, spec, decision))
        if not isinstance(outcome, Did):
            return Done(text=desk.trouble(outcome))
        if outcome.wants is None:
            return Done(kept=outcome.text)
        asked = "ask" if not again else f"ask~{again}"
        decision = yield from _ask(desk, place.key(asked), spec, outcome.wants)
        if decision is None:
            return Done(text=desk.words.expired)
    return Done(text=desk.words.failed_call.replace("{message}", f"a person was needed {MOST_ASKED} times"))


def _demand(desk: Desk, place: Place, spec: ToolSpec, decision: Any) -> CallTool:
    park = spec.park
    waits = park is not None and park.needed and park.status != "waiting_human"
    rights: dict[str, Any] = msgspec.to_builtins(desk.rights)
    return CallTool(
        name=spec.name,
        effect=spec.effect,
        calls=place.calls,
        index=place.index,
        wrapped=place.wrapped,
        rights=rights,
        decision=decision,
        every=park.every if park is not None and waits else 0.0,
        status=park.status if park is not None and waits else None,
        reason=park.reason if park is not None and waits else "",
    )


def _ask(desk: Desk, key: str, spec: ToolSpec, wants: Wanted) -> Performance[Any]:
    """What a person decided, or None: nobody did in time."""
    visit, policy = desk.visit, desk.visit.piece.requests
    park = spec.park
    schema = None if wants.schema is None else visit.put(json.dumps(wants.schema, ensure_ascii=False))
    outcome: AnyOutcome = yield visit.need(
        key,
        AskPerson(
            question=visit.put(wants.question),
            reason=wants.reason or (park.reason if park else spec.name),
            sentinel=park.sentinel if park else "",
            schema=schema,
            screen=wants.screen,
            generation=wants.generation,
            deadline=policy.deadline if park is None or park.deadline is None else park.deadline,
            on_deadline=policy.on_deadline if park is None or park.deadline is None else park.on_deadline,
            remind=policy.remind if park is None or park.remind is None else park.remind,
        ),
    )
    if isinstance(outcome, Expired) or not isinstance(outcome, Answered):
        return None
    return True if outcome.value is None else outcome.value
