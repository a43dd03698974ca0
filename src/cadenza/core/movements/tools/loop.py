"""The agent loop: model call, tool calls, model call, until a tool ends or parks the movement.

Calls of one turn are carried out in their order up to the first that ends the movement; the others are
answered "not executed", so that the transcript stays valid (Maestro B.12).
"""

from __future__ import annotations

from itertools import count
from typing import Any

from cadenza.core.arguments import parse_arguments, problems_of
from cadenza.core.movements.tools.context import Gauge, summarise
from cadenza.core.movements.tools.controls import CONTROLS
from cadenza.core.movements.tools.desk import Desk, Done
from cadenza.core.movements.tools.guards import aborted, max_iterations, text_only_limit
from cadenza.core.movements.tools.opening import open_talk
from cadenza.core.movements.tools.parking import park
from cadenza.core.movements.tools.talk import Call
from cadenza.core.movements.tools.working import Place, work
from cadenza.core.outcomes import AnyOutcome, Failed, Replied
from cadenza.core.performance import Performance, Tell
from cadenza.core.prompts.guidance import fill
from cadenza.core.prompts.notices import cut_short
from cadenza.core.signals import CATALOGUE, Signal
from cadenza.core.tooling import ToolSpec


def converse(desk: Desk) -> Performance[Signal]:
    """Play an agent's movement, or its lane; the signal is all that leaves it."""
    yield from open_talk(desk)
    signal = yield from _turns(desk)
    if signal.fresh or desk.in_lane:
        return signal
    return _owing(desk, signal)


def _owing(desk: Desk, signal: Signal) -> Signal:
    from msgspec.structs import replace

    return replace(signal, carry=desk.talk.owed)


def _turns(desk: Desk) -> Performance[Signal]:
    visit, movement = desk.visit, desk.movement
    limit, gauge, texts = max_iterations(visit.piece, movement), Gauge(desk), 0
    for turn in count(1):
        if turn > limit:
            return aborted("max_iterations", f'movement "{movement.name}" used its {limit} turns')
        outcome: AnyOutcome = yield desk.talk.ask(f"turn:{turn}")
        if gauge.overflow(outcome):
            moved = yield from _hand_over(desk, gauge, turn, ask=False)
            if moved is not None:
                return moved
            continue
        if not isinstance(outcome, Replied):
            return _failed(desk, outcome)
        if outcome.finish == "length":
            yield Tell("cut_short", cut_short(visit.language, movement.name))
        calls = desk.talk.heard(outcome)
        texts = 0 if calls else texts + 1
        if texts > text_only_limit(visit.piece, movement):
            message = f'movement "{movement.name}": {texts} turns in a row without a tool call'
            return aborted("text_only_limit", message)
        if calls:
            assert outcome.calls is not None
            over = yield from _carry_out(
                desk, [(Place(turn, outcome.calls, i), c) for i, c in enumerate(calls)]
            )
            if over is not None:
                return over
        else:
            most = str(text_only_limit(visit.piece, movement))
            desk.talk.say(fill(desk.words.nudge, count=str(texts), limit=most))
        gauge.read(outcome.usage)
        if gauge.is_full:
            moved = yield from _hand_over(desk, gauge, turn)
            if moved is not None:
                return moved
        gauge.tell()
    raise AssertionError("counting ends never")


def _failed(desk: Desk, outcome: AnyOutcome) -> Signal:
    message = outcome.message if isinstance(outcome, Failed) else "the call did not come back"
    return Signal(kind="failed", code="movement_failed", message=message)


def _carry_out(desk: Desk, calls: list[tuple[Place, Call]]) -> Performance[Signal | None]:
    """One turn's calls in their order; the first that ends the movement wins."""
    signal: Signal | None = None
    winner: str | None = None
    for place, call in calls:
        if winner is not None:
            desk.talk.result(call, fill(desk.words.not_executed, name=winner))
            continue
        done: Done = yield from _one(desk, place, call)
        if done.kept is not None:
            desk.talk.said(done.kept, call)
        else:
            desk.talk.result(call, done.text)
        if done.signal is not None or done.stops:
            signal, winner = done.signal, call.name
    return signal


def _one(desk: Desk, place: Place, call: Call) -> Performance[Done]:
    """One call: may it be made, does it fit, what comes of it. A refusal tells the model what it can do."""
    refused = desk.refusal(call.name)
    if refused is not None:
        return Done(text=refused)
    spec = desk.box.by_name[call.name]
    arguments = parse_arguments(call.arguments)
    problems = [arguments] if isinstance(arguments, str) else problems_of(spec.parameters, arguments)
    if problems or isinstance(arguments, str):
        told = fill(desk.words.bad_arguments, name=call.name, problems="; ".join(problems))
        if call.name == "transition" and isinstance(arguments, dict) and desk.choices:
            names = ", ".join(dict.fromkeys(choice.next for choice in desk.choices))
            told = fill(desk.words.bad_target, next=str(arguments.get("next")), choices=names)
        return Done(text=told)
    return (yield from _perform(desk, place, call, spec, arguments))


def _perform(
    desk: Desk, place: Place, call: Call, spec: ToolSpec, arguments: dict[str, Any]
) -> Performance[Done]:
    handler = CONTROLS.get(spec.name) if spec.kind == "control" else None
    if handler is not None:
        return (yield from handler(desk, place, call, spec, arguments))
    if spec.kind == "terminal":
        return _end(desk, spec, arguments)
    if spec.park is not None and spec.park.needed:
        return (yield from park(desk, place, call, spec, arguments))
    return (yield from work(desk, place, call, spec))


def _end(desk: Desk, spec: ToolSpec, arguments: dict[str, Any]) -> Done:
    """A terminal tool of another package ends the run as its definition says."""
    ends = spec.ends
    if ends is None:
        return Done(signal=Signal(kind="sentinel", code="unsettled", message=f"{spec.name} settled nothing"))
    result = arguments.get(ends.result)
    text = result if isinstance(result, str) else ""
    signal = Signal(
        kind="sentinel",
        next=ends.sentinel,
        status=ends.status,
        code=ends.reason or ends.sentinel.lower(),
        message=text or None,
        output=desk.visit.put(text) if text else None,
    )
    return Done(text=desk.words.done, signal=signal)


def _hand_over(desk: Desk, gauge: Gauge, turn: int, *, ask: bool = True) -> Performance[Signal | None]:
    """The context is full: on to ``default_next`` where that is a movement, else a new conversation in the
    same one."""
    summary = yield from summarise(desk, f"handover:{turn}", ask=ask)
    target = desk.movement.default_next
    if target in desk.visit.piece.by_name and not desk.in_lane and target not in CATALOGUE:
        note = desk.visit.put(summary)
        return Signal(
            kind="moved", next=target, method="context", code="context", note=note, output=note, fresh=True
        )
    desk.talk.restart()
    yield from open_talk(desk, summary=summary, key=f"prepare:{turn}")
    gauge.empty()
    return None
