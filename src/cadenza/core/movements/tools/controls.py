"""The engine's own tools: each handler says what the model is told, and whether the movement is over.

A sentinel is a signal; the catalogue (:mod:`cadenza.core.signals`) says what it does to the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from cadenza.core import control
from cadenza.core.demands import AskPerson, StartRun, WaitForRuns
from cadenza.core.events import AskDeflected
from cadenza.core.movements.tools.desk import Desk, Done
from cadenza.core.movements.tools.parking import park, spin_off
from cadenza.core.movements.tools.talk import Call
from cadenza.core.movements.tools.working import Place, work
from cadenza.core.outcomes import Answered, AnyOutcome, Returned
from cadenza.core.performance import Performance, Record
from cadenza.core.prompts.guidance import fill
from cadenza.core.signals import Signal
from cadenza.core.tooling import ToolSpec
from cadenza.ids import Hash
from cadenza.piece import vocabulary as words

Arguments = dict[str, Any]
Handler = Callable[[Desk, Place, Call, ToolSpec, Arguments], Performance[Done]]

SHOWN_REPORT = 4_000
"""How many characters of each of a sub-task's reports its parent is shown."""


def transition(
    desk: Desk, place: Place, call: Call, spec: ToolSpec, arguments: Arguments
) -> Performance[Done]:
    """Go on to another movement, if this one leads there (Maestro: validateTransition)."""
    if desk.in_lane:
        return Done(text=desk.words.in_lane)
    target, offered = arguments["next"], [choice.next for choice in desk.choices]
    if not offered:
        return Done(text=desk.words.nowhere)
    if target not in offered:
        return Done(text=fill(desk.words.bad_target, next=target, choices=", ".join(dict.fromkeys(offered))))
    if desk.owing:
        return Done(text=fill(desk.words.reports_missing, reports=", ".join(desk.owing)))
    reason = desk.visit.put(arguments["reason"])
    index, rule = next((i, r) for i, r in enumerate(desk.movement.rules) if r.next == target)
    if target == words.WAIT_SUBTASKS:
        return (yield from _wait_by_rule(desk, place, reason))
    signal = Signal(
        kind="moved", next=target, rule=index, label=rule.parsed.text, method="tool", output=reason
    )
    return Done(text=fill(desk.words.moved, next=target), signal=signal)


def _wait_by_rule(desk: Desk, place: Place, reason: Hash) -> Performance[Done]:
    """Wait for the children; then the movement's ``default_next`` (Maestro B.6, entry by ``transition``)."""
    told = yield from _children(desk, place)
    following = desk.movement.default_next or words.COMPLETE
    output = desk.visit.put(told)
    if following in desk.visit.piece.by_name:
        signal = Signal(kind="moved", next=following, method="children", output=reason, note=output)
    else:
        signal = Signal(
            kind="sentinel", next=following, method="children", output=output, code="default_next"
        )
    return Done(text=told, signal=signal)


def wait_subtasks(
    desk: Desk, place: Place, call: Call, spec: ToolSpec, arguments: Arguments
) -> Performance[Done]:
    """Wait for the children and go on in the same movement (Maestro B.6, entry by the tool)."""
    return Done(text=(yield from _children(desk, place)), stops=True)


def _children(desk: Desk, place: Place) -> Performance[str]:
    outcome: AnyOutcome = yield desk.visit.need(place.key("children"), WaitForRuns())
    if not isinstance(outcome, Returned):
        return desk.trouble(outcome)
    ended = outcome.value["children"]
    if not ended:
        return desk.words.no_children
    return fill(desk.words.children, children="\n\n".join(_child(desk, child) for child in ended))


def _child(desk: Desk, child: Mapping[str, Any]) -> str:
    """One sub-task's status, result and reports, as its parent reads them."""
    reason = f" ({child['reason']})" if child.get("reason") not in (None, "", "complete") else ""
    output = child.get("output")
    said = desk.visit.text(output) if output else child.get("message") or "-"
    parts = [fill(desk.words.child, run=child["run"], status=child["status"], reason=reason, output=said)]
    for name, hash in child.get("reports", {}).items():
        text = desk.visit.text(hash)
        shown = text if len(text) <= SHOWN_REPORT else text[:SHOWN_REPORT] + "\n…"
        parts.append(f"#### {name}\n{shown}")
    return "\n\n".join(parts)


def complete(desk: Desk, place: Place, call: Call, spec: ToolSpec, arguments: Arguments) -> Performance[Done]:
    """End the work, or ask the person. The result is all that the person is shown."""
    status, result = arguments["status"], arguments["result"]
    if status == control.NEEDS_USER_INPUT:
        return (yield from _ask(desk, place, result, arguments.get("choices")))
    if status == control.ABORTED:
        message = result.strip() or desk.words.aborted
        signal = Signal(
            kind="sentinel", next=words.ABORT, code="agent", message=message, output=desk.visit.put(result)
        )
        return Done(text=desk.words.aborted, signal=signal)
    refused = _not_yet(desk, arguments)
    if refused is not None:
        return Done(text=refused)
    signal = Signal(
        kind="sentinel",
        next=words.COMPLETE,
        code="complete",
        label=arguments.get("label"),
        output=desk.visit.put(result),
    )
    return Done(text=desk.words.done, signal=signal)


def _not_yet(desk: Desk, arguments: Arguments) -> str | None:
    """Why the work cannot be over yet."""
    if not desk.movement.may_complete and not desk.in_lane:
        offered = ", ".join(dict.fromkeys(choice.next for choice in desk.choices)) or "-"
        return fill(desk.words.not_here, choices=offered)
    if desk.owing:
        return fill(desk.words.reports_missing, reports=", ".join(desk.owing))
    if desk.in_lane and desk.labels and arguments.get("label") not in desk.labels:
        return fill(desk.words.bad_label, labels=", ".join(desk.labels))
    return None


def _ask(desk: Desk, place: Place, question: str, choices: list[str] | None) -> Performance[Done]:
    """Park on a question; over the limit send it back, and at last give up (Maestro B.4)."""
    guards, shared = desk.visit.piece.guards, desk.visit.shared
    if shared.asks >= guards.ask_limit:
        return (yield from _over_the_limit(desk))
    shared.asks += 1
    policy = desk.visit.piece.requests
    schema = None
    if choices:
        schema = desk.visit.put(json.dumps({"type": "string", "enum": choices}, ensure_ascii=False))
    outcome: AnyOutcome = yield desk.visit.need(
        place.key("ask"),
        AskPerson(
            question=desk.visit.put(question),
            reason="",
            schema=schema,
            sentinel=words.ASK,
            deadline=policy.deadline,
            on_deadline=policy.on_deadline,
            remind=policy.remind,
        ),
    )
    if not isinstance(outcome, Answered):
        return Done(text=desk.words.expired, stops=True)
    value = outcome.value
    answer = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    desk.answers.append(desk.visit.put(answer))
    return Done(text=fill(desk.words.answered, answer=answer), stops=True)


def _over_the_limit(desk: Desk) -> Performance[Done]:
    guards, shared = desk.visit.piece.guards, desk.visit.shared
    limit = guards.ask_limit
    if shared.deflections >= guards.ask_limit_deflections:
        message = f"the agent asked again after {limit} questions and {shared.deflections} refusals"
        return Done(
            text=desk.words.aborted,
            signal=Signal(kind="sentinel", next=words.ABORT, code="ask_limit_reached", message=message),
        )
    shared.deflections += 1
    yield Record(AskDeflected(lane=desk.visit.lane))
    return Done(text=fill(desk.words.deflected, limit=str(limit)))


def write_report(
    desk: Desk, place: Place, call: Call, spec: ToolSpec, arguments: Arguments
) -> Performance[Done]:
    """Save one of the reports that the movement owes."""
    name, owed = arguments["name"], [report.name for report in desk.movement.reports]
    if name not in owed:
        return Done(text=fill(desk.words.no_such_report, name=name, reports=", ".join(owed) or "-"))
    visit = desk.visit
    reports = {name: visit.put(arguments["content"])}
    outcome: AnyOutcome = yield visit.host(
        place.key("report"), "save_reports", folder=visit.folder, at=visit.started.at, reports=reports
    )
    if not isinstance(outcome, Returned):
        return Done(text=desk.trouble(outcome))
    desk.written.add(name)
    return Done(text=fill(desk.words.report_saved, name=name))


def spawn_task(
    desk: Desk, place: Place, call: Call, spec: ToolSpec, arguments: Arguments
) -> Performance[Done]:
    """Start a child run."""
    demand = StartRun(
        task=desk.visit.put(arguments["task"]),
        key=desk.key_of(spec.name, arguments),
        piece=arguments.get("piece"),
    )
    outcome: AnyOutcome = yield desk.visit.need(place.key("start"), demand)
    if not isinstance(outcome, Returned):
        return Done(text=desk.trouble(outcome))
    return Done(text=fill(desk.words.started, run=outcome.value["run"]))


def spin_off_task(
    desk: Desk, place: Place, call: Call, spec: ToolSpec, arguments: Arguments
) -> Performance[Done]:
    """Start a task that stands alone: here at once, in another workspace when a person agrees."""
    if arguments.get("workspace"):
        return (yield from park(desk, place, call, spec, arguments))
    return (yield from spin_off(desk, place, arguments, desk.key_of(spec.name, arguments)))


def use_tool(desk: Desk, place: Place, call: Call, spec: ToolSpec, arguments: Arguments) -> Performance[Done]:
    """Call a granted tool; its schema is checked where it is carried out."""
    name = arguments["name"]
    wanted = desk.box.by_name.get(name)
    if wanted is None or name not in desk.granted:
        granted = ", ".join(desk.granted) or "-"
        return Done(text=fill(desk.words.not_grantable, name=name, tools=granted))
    too_little = desk.too_little(wanted)
    if too_little is not None:
        return Done(text=too_little)
    inner = Place(turn=place.turn, calls=place.calls, index=place.index, wrapped=True)
    return (yield from work(desk, inner, call, wanted))


CONTROLS: Mapping[str, Handler] = MappingProxyType(
    {
        control.TRANSITION: transition,
        control.COMPLETE: complete,
        control.USE_TOOL: use_tool,
        control.WRITE_REPORT: write_report,
        control.SPAWN_TASK: spawn_task,
        control.WAIT_SUBTASKS: wait_subtasks,
        control.SPIN_OFF_TASK: spin_off_task,
    }
)
