"""Phase 1: the work itself, in the session of whoever performs it."""

from __future__ import annotations

import msgspec

from cadenza.core.demands import CallModel, Message
from cadenza.core.movements.playing import Prepared, failure, prepare
from cadenza.core.outcomes import AnyOutcome, Replied
from cadenza.core.performance import Need, Performance, Tell
from cadenza.core.prompts.notices import cut_short
from cadenza.core.prompts.three import Listed, ThreePrompt, compose_three, system_three
from cadenza.core.visit import Visit
from cadenza.ids import Hash

BLANK_TRIES = 3
"""An agent that answers with nothing is asked this often before its movement fails."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What Phase 1 came to: an output, perhaps of an agent that is blocked, or a code and an error."""

    output: Hash | None = None
    blocked: bool = False
    code: str | None = None
    error: str | None = None


class Session:
    """One agent's conversation: what is said in it, and whether it goes on.

    It is named after who speaks (the persona's text, else the movement), the provider that the movement
    names, and the lane: no two lanes, and no two personas, ever share one. A conversation whose last message
    was not answered, or with nothing, is left behind.
    """

    def __init__(self, visit: Visit) -> None:
        movement, started = visit.movement, visit.started
        persona = movement.persona
        who = f"{persona.name}#{persona.text[:12]}" if persona else f"={movement.name}"
        provider = f":{movement.provider}" if movement.provider else ""
        lane = f"@{started.movement}/{visit.lane}" if visit.lane else ""
        self.visit = visit
        self.key = f"{who}{provider}{lane}"
        anew = movement.session == "refresh" or started.attempt > 1
        self.conversation: str | None = None if anew else visit.sessions.get(self.key)
        """The conversation to go on in; None where the next message opens one."""

    def say(self, key: str, text: str, *, purpose: str = "perform", schema: Hash | None = None) -> Need:
        """A message of ours; its answer is to be given to :meth:`hear`."""
        visit, movement = self.visit, self.visit.movement
        append = [Message("user", visit.put(text))]
        continues = self.conversation is not None
        if self.conversation is None:
            self.conversation = visit.conversation(key)
            append.insert(0, Message("system", visit.put(system_text(visit))))
        demand = CallModel(
            conversation=self.conversation,
            append=tuple(append),
            movement=movement.name,
            persona=movement.performer,
            purpose=purpose,
            provider=visit.provider,
            model=visit.model,
            schema=schema,
            session=self.key,
            continues=continues,
        )
        return visit.need(key, demand)

    def hear(self, outcome: AnyOutcome) -> str | None:
        """The text of an answer; None, and a new conversation from now on, where there is none."""
        text = self.visit.text(outcome.text) if isinstance(outcome, Replied) else ""
        if text.strip():
            return text
        self.conversation = None
        return None


def take_turn(visit: Visit, session: Session) -> Performance[Turn]:
    """Phase 1, asked again in a new session as long as the answer is blank."""
    prepared = yield from prepare(visit)
    prompt = compose_turn(visit, prepared)
    purpose = "perform" if visit.cycle_count is None else "loop-judge"
    for tried in range(1, BLANK_TRIES + 1):
        name = "perform" if tried == 1 else f"perform:{tried}"
        outcome: AnyOutcome = yield session.say(name, prompt, purpose=purpose)
        answered = session.hear(outcome) is not None
        if not isinstance(outcome, Replied):
            played = failure(outcome)
            return Turn(code=played.code, error=played.error)
        if outcome.finish == "length":
            yield Tell("cut_short", cut_short(visit.language, visit.movement.name))
        if answered:
            return Turn(output=outcome.text, blocked=outcome.blocked)
    message = f"the agent answered with nothing {BLANK_TRIES} times"
    return Turn(code="blank_output", error=message)


def system_text(visit: Visit) -> str:
    """The persona in its frame: the same for every movement of the run, as the prompt cache needs it."""
    persona = visit.movement.persona
    return system_three(
        persona=visit.text(persona.text) if persona else None,
        piece=visit.piece.name,
        description=visit.piece.description,
        movement_names=tuple(movement.name for movement in visit.piece.movements),
        language=visit.language,
    )


def compose_turn(visit: Visit, prepared: Prepared | None = None, *, text: str | None = None) -> str:
    """Phase 1's message; ``text`` takes the instruction's place as it is, with the task in it."""
    prompt = prompt_of_three(visit, prepared or Prepared())
    if text is not None:
        prompt = msgspec.structs.replace(prompt, instruction=text, literal=True, task="", previous=None)
    return compose_three(prompt)


def prompt_of_three(visit: Visit, prepared: Prepared) -> ThreePrompt:
    """Phase 1's message, from the movement and the visit."""
    movement, snapshots = visit.movement, prepared.snapshots
    return ThreePrompt(
        cwd=visit.run.cwd,
        edit=movement.edit,
        knowledge=tuple(visit.text(facet.text) for facet in movement.knowledge),
        knowledge_source=snapshots.get("knowledge"),
        policies=tuple(visit.text(facet.text) for facet in movement.policies),
        policy_source=snapshots.get("policy"),
        piece=visit.piece.name,
        description=visit.piece.description,
        movements=tuple(Listed(m.name, m.description) for m in visit.piece.movements),
        position=visit.started.movement,
        movement=movement.name,
        iteration=visit.iteration,
        max_movements=visit.limit,
        movement_iteration=visit.movement_iteration,
        report_dir=visit.report_dir,
        report_names=tuple(report.name for report in movement.reports),
        task=visit.text(visit.run.task),
        previous=visit.text(visit.previous) if visit.previous else None,
        previous_source=snapshots.get("previous"),
        pass_previous=movement.pass_previous_response,
        retry_note=visit.gate_note(),
        inputs=tuple(visit.text(text) for text in visit.user_inputs),
        instruction=visit.text(movement.instruction) if movement.instruction else "{task}",
        quality_gates=movement.quality_gates,
        reports=prepared.reports,
        cycle_count=visit.cycle_count,
        language=visit.language,
    )
