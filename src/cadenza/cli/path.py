"""The path that a run took: one row per visit, told by its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from cadenza.core import events as ev
from cadenza.core.outcomes import Replied, Usage
from cadenza.core.signals import Judged, LaneResult


class Step(msgspec.Struct, kw_only=True):
    """One visit. ``method`` is how its rule was found, ``next`` where it led; ``kind`` is the signal's."""

    visit: int
    movement: str
    iteration: int
    cause: str
    started_at: float
    ended_at: float | None = None
    kind: str | None = None
    label: str | None = None
    method: str | None = None
    next: str | None = None
    message: str | None = None
    lanes: tuple[LaneResult, ...] = ()
    judged: Judged | None = None
    retries: int = 0
    restarts: int = 0
    warnings: list[str] = []
    usage: Usage = Usage()


def path_of(events: Iterable[ev.Recorded]) -> list[Step]:
    """The visits of a run, in order; the last may still go on."""
    steps: list[Step] = []
    for recorded in events:
        event = recorded.event
        if isinstance(event, ev.VisitStarted) and event.attempt == 1:
            steps.append(_begun(event))
        elif steps:
            _fold(steps[-1], event, recorded.at)
    return steps


def _begun(event: ev.VisitStarted) -> Step:
    return Step(
        visit=event.visit,
        movement=event.movement,
        iteration=event.iteration,
        cause=event.cause,
        started_at=event.at,
    )


def _fold(step: Step, event: Any, at: float) -> None:
    if isinstance(event, ev.VisitStarted):
        step.restarts += 1
        step.ended_at = step.kind = step.message = None
    elif isinstance(event, ev.DemandRetried):
        step.retries += 1
    elif isinstance(event, ev.Warned):
        step.warnings.append(event.message)
    elif isinstance(event, ev.DemandResolved) and isinstance(event.outcome, Replied):
        step.usage = step.usage + event.outcome.usage
    elif isinstance(event, ev.VisitEnded):
        signal = event.signal
        step.ended_at = at
        step.kind, step.label, step.method = signal.kind, signal.label, signal.method
        step.next, step.message = signal.next, signal.message
        step.lanes, step.judged = signal.lanes, signal.judged
    elif isinstance(event, ev.RunEnded) and step.kind is None:
        step.ended_at, step.kind, step.message = at, event.status, event.message


def remarks(step: Step) -> Iterator[str]:
    """What does not fit into a visit's row: lanes, the loop judge, retries, warnings."""
    for lane in step.lanes:
        how = f" ({lane.method})" if lane.method else ""
        words = f"failed: {lane.error}" if lane.error else f"{lane.label or 'no rule matched'}{how}"
        yield f"{lane.name}: {words}"
    if step.judged is not None:
        yield f"loop judge after {step.judged.count} rounds: {step.judged.label or 'chose nothing'}"
    if step.retries:
        yield f"model calls tried again: {step.retries}"
    if step.restarts:
        yield f"restarted from its beginning: {step.restarts}"
    for warning in step.warnings:
        yield f"warning: {warning}"
