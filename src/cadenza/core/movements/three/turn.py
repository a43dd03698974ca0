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
    """What Phase 1 came to: an output in a conversation, perhaps blocked, or a code and an error."""

    conversation: str = ""
    output: Hash | None = None
    blocked: bool = False
    code: str | None = None
    error: str | None = None


class Session:
    """Who speaks in which conversation.

    A session is named after the persona (or the movement), the provider that the movement names, and the
    lane: two lanes never share one (TAKT's command-line engine raced here).
    """

    def __init__(self, visit: Visit) -> None:
        movement = visit.movement
        who = movement.persona.name if movement.persona else movement.name
        provider = f":{movement.provider}" if movement.provider else ""
        lane = f"@{visit.lane}" if visit.lane else ""
        self.visit = visit
        self.key = f"{who}{provider}{lane}"

    def current(self) -> str | None:
        """The conversation to go on in, where the movement wants one that is there. A visit that is played
        once more begins a new one: what its first try said may have been answered by nobody."""
        if self.visit.movement.session == "refresh" or self.visit.started.attempt > 1:
            return None
        return self.visit.sessions.get(self.key)

    def say(
        self,
        key: str,
        text: str,
        *,
        conversation: str | None,
        purpose: str = "perform",
        schema: Hash | None = None,
    ) -> tuple[str, Need]:
        """A message of ours, in ``conversation`` or in a new one; the conversation and the demand."""
        visit, movement = self.visit, self.visit.movement
        append = [Message("user", visit.put(text))]
        continues = conversation is not None
        if conversation is None:
            conversation = visit.conversation(key)
            append.insert(0, Message("system", visit.put(system_text(visit))))
        demand = CallModel(
            conversation=conversation,
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
        return conversation, visit.need(key, demand)


def take_turn(visit: Visit, session: Session) -> Performance[Turn]:
    """Phase 1, asked again in a new session as long as the answer is blank."""
    prepared = yield from prepare(visit)
    prompt = compose_turn(visit, prepared)
    conversation = session.current()
    purpose = "perform" if visit.cycle_count is None else "loop-judge"
    for tried in range(1, BLANK_TRIES + 1):
        name = "perform" if tried == 1 else f"perform:{tried}"
        conversation, ask = session.say(name, prompt, conversation=conversation, purpose=purpose)
        outcome: AnyOutcome = yield ask
        if not isinstance(outcome, Replied):
            played = failure(outcome)
            return Turn(conversation=conversation, code=played.code, error=played.error)
        if outcome.finish == "length":
            yield Tell("cut_short", cut_short(visit.language, visit.movement.name))
        if visit.text(outcome.text).strip():
            return Turn(conversation=conversation, output=outcome.text, blocked=outcome.blocked)
        conversation = None
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
