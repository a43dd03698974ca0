"""The team leader: one agent splits the work into parts, others work them off side by side."""

from __future__ import annotations

import json
from functools import partial

from cadenza.core.demands import CallModel, Message
from cadenza.core.movements.playing import failure, prepare
from cadenza.core.movements.three.agent import ask_blocked
from cadenza.core.movements.three.finishing import finish
from cadenza.core.movements.three.turn import Session, Turn, compose_turn, system_text
from cadenza.core.outcomes import AnyOutcome, Replied
from cadenza.core.performance import Need, NextOf, Performance, guarded
from cadenza.core.prompts.notices import plan_refused
from cadenza.core.signals import Signal
from cadenza.core.teams import (
    Part,
    PartResult,
    PlanError,
    all_failed,
    decomposition_prompt,
    decomposition_schema,
    merged,
    part_prompt,
    read_plan,
    read_refill,
    refill_prompt,
    refill_schema,
    room_for,
)
from cadenza.core.visit import Visit
from cadenza.piece.model import Movement, TeamLeader

PLAN_TRIES = 2
"""A plan that cannot be used is sent back once, with what is wrong with it."""


class Team:
    """The work of one visit: what is planned, what waits, what is being done, what has ended."""

    def __init__(self, visit: Visit, leader: TeamLeader, instruction: str) -> None:
        self.visit = visit
        self.leader = leader
        self.instruction = instruction
        self.session = Session(visit)
        self.planned: list[Part] = []
        self.waiting: list[Part] = []
        self.working: dict[str, Performance[PartResult]] = {}
        self.results: dict[str, PartResult] = {}
        self.planning = True
        self.refills = 0

    @property
    def timeout_ms(self) -> int:
        """The time limit of a part that names none, in milliseconds."""
        return int(self.leader.timeout * 1000)

    def plan(self, parts: tuple[Part, ...]) -> None:
        """Add parts."""
        self.planned += parts
        self.waiting += parts

    def ended(self) -> list[PartResult]:
        """The results so far, in the order in which their parts were planned."""
        return [self.results[part.id] for part in self.planned if part.id in self.results]


def perform_team_leader(visit: Visit) -> Performance[Signal]:
    """Plan, work the parts off with at most ``max_parts`` at once, ask for more while the plan is not done
    (TAKT's command-line engine, team leader). A part that fails is a result; when all fail so does the
    movement."""
    leader = visit.movement.team_leader or TeamLeader()
    prepared = yield from prepare(visit)
    team = Team(visit, leader, compose_turn(visit, prepared))
    refused = yield from _decompose(team)
    if refused is not None:
        return refused
    yield from _work_off(team)
    results = team.ended()
    failed = all_failed(results)
    if failed is not None:
        return Signal(kind="failed", code="movement_failed", message=failed)
    output = visit.put(merged(results))
    turn = Turn(output=output)
    return (yield from finish(visit, output, session=team.session, turn=turn))


def _decompose(team: Team) -> Performance[Signal | None]:
    most = team.leader.max_parts
    message = decomposition_prompt(team.instruction, most, team.visit.language)
    for tried in range(1, PLAN_TRIES + 1):
        key = "plan" if tried == 1 else f"plan:{tried}"
        outcome: AnyOutcome = yield _ask(team, key, message, decomposition_schema(most))
        team.session.hear(outcome)
        if not isinstance(outcome, Replied):
            played = failure(outcome)
            return Signal(kind="failed", code=played.code, message=played.error)
        if outcome.blocked:
            return (yield from ask_blocked(team.visit, outcome.text))
        try:
            team.plan(read_plan(team.visit.text(outcome.text), most, team.timeout_ms))
            return None
        except PlanError as error:
            problem = str(error)
        message = plan_refused(team.visit.language, problem)
    return Signal(kind="failed", code="movement_failed", message=f"the plan cannot be used: {problem}")


def _work_off(team: Team) -> Performance[None]:
    while team.waiting or team.working:
        while team.waiting and len(team.working) < team.leader.max_parts:
            part = team.waiting.pop(0)
            number = team.planned.index(part) + 1
            team.working[f"part-{number}"] = guarded(_part(team, part), partial(_broken, part))
        name, result = yield NextOf(dict(team.working))
        del team.working[name]
        team.results[result.part.id] = result
        if team.planning and len(team.waiting) <= team.leader.refill_threshold:
            yield from _refill(team)


def _refill(team: Team) -> Performance[None]:
    room = room_for(team.leader.max_parts, len(team.planned))
    if room == 0:
        team.planning = False
        return
    team.refills += 1
    known = [part.id for part in team.planned]
    message = refill_prompt(team.instruction, team.ended(), known, room, team.visit.language)
    answer = team.session.hear((yield _ask(team, f"refill:{team.refills}", message, refill_schema(room))))
    parts = read_refill(answer or "", known, room, team.timeout_ms).parts
    team.plan(parts)
    team.planning = bool(parts)


def _ask(team: Team, key: str, message: str, schema: object) -> Need:
    """A call of the leader, in the leader's own conversation, answered under a schema."""
    return team.session.say(key, message, schema=team.visit.put(json.dumps(schema)))


def _broken(part: Part, words: str) -> PartResult:
    return PartResult(part=part, error=words)


def _part(team: Team, part: Part) -> Performance[PartResult]:
    branch = team.visit.branch(_part_movement(team, part))
    branch.movement_iteration = team.visit.movement_iteration
    text = part_prompt(part, team.visit.text(team.visit.run.task), team.visit.language)
    movement = branch.movement
    demand = CallModel(
        conversation=branch.conversation(f"part:{part.id}"),
        append=(
            Message("system", branch.put(system_text(branch))),
            Message("user", branch.put(compose_turn(branch, text=text))),
        ),
        movement=movement.name,
        persona=movement.performer,
        provider=branch.provider,
        model=branch.model,
        timeout=part.timeout_ms / 1000,
    )
    outcome: AnyOutcome = yield branch.need("perform", demand)
    if isinstance(outcome, Replied) and not outcome.blocked:
        return PartResult(part=part, output=branch.text(outcome.text))
    if isinstance(outcome, Replied):
        return PartResult(part=part, error=f"blocked: {branch.text(outcome.text)}")
    return PartResult(part=part, error=failure(outcome).error)


def _part_movement(team: Team, part: Part) -> Movement:
    movement, leader = team.visit.movement, team.leader
    own = leader.part_persona is not None
    changes = {
        "name": f"{movement.name}.{part.id}",
        "kind": "agent",
        "persona": leader.part_persona if own else movement.persona,
        "persona_name": leader.part_persona_name if own else movement.persona_name,
        "edit": leader.part_edit if leader.part_edit is not None else movement.edit,
        "reports": (),
        "rules": (),
        "quality_gates": (),
        "team_leader": None,
    }
    return movement.changed(**changes)
