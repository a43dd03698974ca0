"""Park tools: the run waits for a person, and what was decided once is never asked again (Maestro B.8).

A tool's definition says which row of the catalogue it parks on, what an answer must fit and what follows a
yes; nothing here knows a tool by its name.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from cadenza.core import control
from cadenza.core.demands import AskPerson, CallTool, StartRun
from cadenza.core.events import ToolGranted
from cadenza.core.movements.tools.desk import Desk, Done
from cadenza.core.movements.tools.talk import Call
from cadenza.core.movements.tools.working import Place, work
from cadenza.core.outcomes import Answered, AnyOutcome, Did, Returned
from cadenza.core.performance import Performance, Record
from cadenza.core.prompts.guidance import fill
from cadenza.core.tooling import Park, ToolSpec, allows

INSTALL = "install_package"
"""The executor that puts a package into the run's own environment."""


def park(
    desk: Desk, place: Place, call: Call, spec: ToolSpec, arguments: dict[str, Any]
) -> Performance[Done]:
    """Ask for what a park tool wants; go on with what was decided, now or earlier."""
    wanted = spec.park
    assert wanted is not None
    if wanted.status != "waiting_human":
        return (yield from work(desk, place, call, spec))
    early = _settled_before(desk, wanted, arguments)
    if early is not None:
        return Done(text=early)
    key = desk.key_of(spec.name, arguments)
    outcome: AnyOutcome = yield desk.visit.need(
        place.key("ask"), _request(desk, spec, wanted, arguments, key)
    )
    if not isinstance(outcome, Answered):
        return Done(text=desk.words.expired)
    if wanted.schema == control.APPROVAL and not control.approved(outcome.value):
        note = control.note_of(outcome.value)
        return Done(text=fill(desk.words.declined, note=f" {note}" if note else ""))
    return (yield from _follow(desk, place, call, spec, (arguments, outcome.value)))


def _request(desk: Desk, spec: ToolSpec, wanted: Park, arguments: dict[str, Any], key: str) -> AskPerson:
    visit, policy = desk.visit, desk.visit.piece.requests
    schema = None if wanted.schema is None else visit.put(json.dumps(wanted.schema, ensure_ascii=False))
    own = wanted.deadline is not None
    return AskPerson(
        question=visit.put(_question(desk, spec, wanted, arguments)),
        reason=wanted.reason,
        schema=schema,
        sentinel=wanted.sentinel,
        key=key,
        deadline=wanted.deadline if own else policy.deadline,
        on_deadline=wanted.on_deadline if own else policy.on_deadline,
        remind=wanted.remind if wanted.remind is not None else policy.remind,
    )


def _question(desk: Desk, spec: ToolSpec, wanted: Park, arguments: dict[str, Any]) -> str:
    said = {name: value if isinstance(value, str) else json.dumps(value) for name, value in arguments.items()}
    words = desk.words
    if wanted.decides == "grant":
        description = desk.box.by_name[said["name"]].description
        return fill(words.approve_tool, name=said["name"], reason=said["reason"], description=description)
    if wanted.decides == "install":
        return fill(words.approve_package, name=said["name"], reason=said["reason"])
    if wanted.decides == "spawn":
        return fill(words.approve_spawn, workspace=said["workspace"], task=said["task"])
    if wanted.question:
        return fill(wanted.question, **said)
    lines = [f"{name}: {value}" for name, value in said.items() if name != control.NEW_REQUEST]
    return "\n".join((f"{spec.name}: {spec.description}", *lines))


def _settled_before(desk: Desk, wanted: Park, arguments: dict[str, Any]) -> str | None:
    """What needs no person: a tool that is there already, or that nobody could grant."""
    if wanted.decides != "grant":
        return None
    name = arguments["name"]
    if name in set(desk.usable()) or name in desk.granted:
        return fill(desk.words.already_yours, name=name)
    grantable = [spec.name for spec in _grantable(desk)]
    if name not in grantable:
        return fill(desk.words.not_grantable, name=name, tools=", ".join(grantable) or "-")
    return None


def _grantable(desk: Desk) -> list[ToolSpec]:
    """What a person can grant: tools that this movement has not, within the run's permission mode."""
    usable = set(desk.usable())
    known = [spec for spec in desk.box.by_name.values() if spec.kind == "work" and spec.name not in usable]
    return [spec for spec in known if allows(desk.rights.permission, spec.permission)]


def _follow(
    desk: Desk, place: Place, call: Call, spec: ToolSpec, decided: tuple[dict[str, Any], Any]
) -> Performance[Done]:
    """What a yes leads to; ``decided`` is what was asked for and what was answered."""
    arguments, answer = decided
    assert spec.park is not None
    key = desk.key_of(spec.name, arguments)
    match spec.park.decides:
        case "run":
            return (yield from work(desk, place, call, spec, answer))
        case "grant":
            return (yield from _grant(desk, arguments["name"]))
        case "install":
            return (yield from _install(desk, place, arguments["name"]))
        case "spawn":
            return (yield from spin_off(desk, place, arguments, key))
    shown = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return Done(text=fill(desk.words.answered, answer=shown))


def _grant(desk: Desk, name: str) -> Performance[Done]:
    yield Record(ToolGranted(name=name))
    if name not in desk.granted:
        desk.granted.append(name)
    spec = desk.box.by_name[name]
    schema = json.dumps(spec.parameters, ensure_ascii=False)
    return Done(text=fill(desk.words.granted_now, name=name, schema=schema, description=spec.description))


def _install(desk: Desk, place: Place, requirement: str) -> Performance[Done]:
    demand = CallTool(
        name=INSTALL,
        arguments={"requirement": requirement},
        effect="idempotent",
        rights=msgspec.to_builtins(desk.rights),
    )
    outcome: AnyOutcome = yield desk.visit.need(place.key("install"), demand)
    if not isinstance(outcome, Did):
        return Done(text=desk.trouble(outcome))
    if outcome.error:
        return Done(kept=outcome.text)
    output = desk.visit.text(outcome.text)
    return Done(text=fill(desk.words.installed, name=requirement, output=output))


def spin_off(desk: Desk, place: Place, arguments: dict[str, Any], key: str) -> Performance[Done]:
    """Start a task that stands alone."""
    demand = StartRun(
        task=desk.visit.put(arguments["task"]),
        key=key,
        piece=arguments.get("piece"),
        workspace=arguments.get("workspace"),
        detached=True,
    )
    outcome: AnyOutcome = yield desk.visit.need(place.key("start"), demand)
    if not isinstance(outcome, Returned):
        return Done(text=desk.trouble(outcome))
    return Done(text=fill(desk.words.started_alone, run=outcome.value["run"]))
