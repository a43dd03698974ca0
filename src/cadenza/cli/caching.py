"""How much of each request a model server had already: the prompt cache, as ``show`` tells it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cadenza.core import events as ev
from cadenza.core.demands import CallModel
from cadenza.core.outcomes import Replied


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a conversation: its prompt in tokens, how many of them the server had (``reused``), and
    which
    part of the request before that was, in percent (None for a conversation's first)."""

    movement: str
    key: str
    prompt: int
    reused: int
    pct: float | None


def uses_of(events: Iterable[ev.Recorded]) -> list[Use]:
    """Every answered call that belongs to a conversation with tools."""
    issued: dict[str, ev.DemandIssued] = {}
    before: dict[str, int] = {}
    uses = []
    for recorded in events:
        event = recorded.event
        if isinstance(event, ev.DemandIssued) and isinstance(event.demand, CallModel):
            issued[event.id] = event
        elif isinstance(event, ev.DemandResolved) and isinstance(event.outcome, Replied):
            call = issued.get(event.id)
            if call is None or not isinstance(call.demand, CallModel) or call.demand.tools is None:
                continue
            conversation, usage = call.demand.conversation, event.outcome.usage
            last = before.get(conversation)
            pct = None if not last else round(100 * min(usage.cached, last) / last, 1)
            uses.append(
                Use(
                    movement=call.demand.movement,
                    key=call.key,
                    prompt=usage.input,
                    reused=usage.cached,
                    pct=pct,
                )
            )
            before[conversation] = usage.input
    return uses


def cache_lines(events: Iterable[ev.Recorded]) -> list[str]:
    """The last calls, a line each; nothing where no server says what it had."""
    uses = uses_of(events)
    if not any(use.reused for use in uses):
        return []
    lines = ["", "prompt cache:"]
    for use in uses[-SHOWN:]:
        pct = "-" if use.pct is None else f"{use.pct:.1f}"
        lines.append(
            f"  {use.movement} {use.key}: prompt={use.prompt} prompt_cache reused={use.reused} pct={pct}"
        )
    return lines


SHOWN = 12
