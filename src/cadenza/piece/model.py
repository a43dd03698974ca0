"""A piece, resolved: everything a run needs, with no path left to follow.

Long texts (personas, policies, instructions, report formats) are held by content address; the texts
themselves travel beside the piece (:class:`LoadedPiece`) and are stored once in the journal. So the
piece's own JSON is small, its hash names every word of it, and a resume never reads a file again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from cadenza.errors import JournalNewer
from cadenza.ids import Hash, text_hash
from cadenza.piece.conditions import Condition, parse_condition
from cadenza.piece.vocabulary import Control, Dialect, Language, Phases


class Model(BaseModel):
    """Frozen, and strict about unknown fields: a stored piece is read by the version that knows it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def changed(self, **fields: Any) -> Self:
        """A copy with other values for some fields. What is cached of this one (hashes) is not carried over,
        as ``model_copy`` would."""
        kept = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self)(**{**kept, **fields})


class Facet(Model):
    """A named text: a persona, a policy, a piece of knowledge.

    ``origin`` is for people (a path or ``inline``); it is no part of what the agent reads.
    """

    name: str
    text: Hash
    origin: str = "inline"


class Rule(Model):
    """One way out of a movement. ``condition`` is as written: a label, ``ai("…")``, ``all(…)`` or
    ``any(…)``. ``next`` is a movement, ``COMPLETE`` or ``ABORT`` (with ``control: tools``: a movement or
    ``WAIT_SUBTASKS``); the rules of a lane have none."""

    condition: str
    next: str | None = None
    requires_user_input: bool = False
    interactive_only: bool = False
    appendix: str | None = None

    @cached_property
    def parsed(self) -> Condition:
        """The condition, taken apart (TAKT engine, rule evaluation)."""
        return parse_condition(self.condition)


class Report(Model):
    """A report that a movement owes: the file's name, and what it must look like.

    ``label`` comes from the list form (``- Summary: summary.md``); ``format`` and ``order`` are texts.
    """

    name: str
    label: str | None = None
    format: Hash | None = None
    order: Hash | None = None
    use_judge: bool = True


class Judge(Model):
    """Who decides what a loop monitor found."""

    persona: Facet | None = None
    instruction: Hash | None = None
    rules: tuple[Rule, ...]
    provider: str | None = None
    model: str | None = None


class LoopMonitor(Model):
    """Watches the history of movements for ``cycle`` repeated ``threshold`` times."""

    cycle: tuple[str, ...]
    threshold: int = 3
    judge: Judge

    @cached_property
    def name(self) -> str:
        """The judge's name as a movement: ``_loop_judge_review_fix``."""
        return "_loop_judge_" + "_".join(self.cycle)


class CommandGate(Model):
    """A command that must succeed before a movement is over (TAKT's command-line engine, quality gates).

    ``cwd`` is relative to the run's working directory; ``timeout`` is in seconds.
    """

    command: str
    name: str | None = None
    cwd: str | None = None
    timeout: float = 600.0


class TeamLeader(Model):
    """A movement whose agent splits the task into parts, which other agents work off.

    ``max_parts`` (1 to 3) are worked on at once; more are asked for when no more than ``refill_threshold``
    wait. ``timeout`` is in seconds per part.
    """

    max_parts: int = 3
    refill_threshold: int = 0
    timeout: float = 600.0
    part_persona: Facet | None = None
    part_persona_name: str | None = None
    part_edit: bool | None = None
    part_allowed_tools: tuple[str, ...] | None = None
    part_permission_mode: Literal["readonly", "edit", "full"] | None = None


class Arpeggio(Model):
    """A movement that plays one prompt over the rows of a table, batch by batch.

    ``source`` (a CSV file) and ``output`` are paths as the piece gives them, made absolute beside it;
    ``template`` is the whole prompt. ``retry_delay`` is in seconds.
    """

    source: str
    template: Hash
    batch_size: int = 1
    concurrency: int = 1
    separator: str = "\n"
    max_retries: int = 2
    retry_delay: float = 1.0
    output: str | None = None


class Guards(Model):
    """What ends an agent that does not come to an end by itself (Maestro, guards).

    ``text_only_limit``: turns in a row without a tool call; ``max_iterations``: turns of one movement;
    ``max_revisits``: how often a movement may be entered again in one run; ``ask_limit``: questions of the
    agent that park the run, after which ``ask_limit_deflections`` more are sent back unanswered.
    ``context_window`` is the model's, in tokens (0: not known, no guard); at so many percent of it the agent
    is warned, urged, and made to hand over.
    """

    text_only_limit: int = 3
    max_iterations: int = 200
    max_revisits: int = 10
    ask_limit: int = 3
    ask_limit_deflections: int = 2
    context_window: int = 0
    context_warn: int = 70
    context_urge: int = 85
    context_force: int = 95


class RequestPolicy(Model):
    """What holds for every request of a piece: ``deadline`` and ``remind`` in seconds, None for never."""

    deadline: float | None = None
    on_deadline: Literal["resume", "abort"] = "resume"
    remind: float | None = None


class Budget(Model):
    """What a run and all its children may spend together; None is no limit. ``cost`` in the currency of
    the price table, ``wall_time`` in seconds from the beginning of the first run."""

    tokens: int | None = None
    cost: float | None = None
    tool_calls: int | None = None
    wall_time: float | None = None


class McpServer(Model):
    """A server of the Model Context Protocol whose tools a piece uses.

    ``command`` is its argument list (stdio), or ``url`` its address (streamable HTTP). ``env`` and
    ``headers`` name environment variables whose values are handed on; values stand nowhere in a piece.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str | None = None
    env: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    timeout: float = 60.0


class Movement(Model):
    """One part of a piece: who performs it, with which words, and where it can lead.

    ``default_next`` is where it leads when nobody chooses (a movement or a sentinel); without
    ``may_complete`` its agent cannot end the work with success; ``allowed_tools`` names
    tools (``*`` at the end of a name stands for the rest of it; None: see ``core/toolboxes.py``),
    ``allowed_commands`` the programs that ``run_command`` may start; ``tool_timeout`` is in seconds a call.
    The three limits replace the piece's guards.
    ``required_permission_mode`` is what it needs at least; ``permission`` is what it has, as the
    configuration resolved it when the run began.
    """

    name: str
    kind: str = "agent"
    description: str | None = None
    persona: Facet | None = None
    persona_name: str | None = None
    policies: tuple[Facet, ...] = ()
    knowledge: tuple[Facet, ...] = ()
    instruction: Hash | None = None
    reports: tuple[Report, ...] = ()
    rules: tuple[Rule, ...] = ()
    lanes: tuple[Movement, ...] = ()
    edit: bool | None = None
    pass_previous_response: bool = True
    provider: str | None = None
    model: str | None = None
    session: Literal["continue", "refresh", "handover"] = "continue"
    default_next: str | None = None
    may_complete: bool = True
    text_only_limit: int | None = None
    max_iterations: int | None = None
    max_revisits: int | None = None
    allowed_commands: tuple[str, ...] | None = None
    network: bool = False
    tool_timeout: float | None = None
    allowed_tools: tuple[str, ...] | None = None
    required_permission_mode: Literal["readonly", "edit", "full"] | None = None
    permission: Literal["readonly", "edit", "full"] | None = None
    quality_gates: tuple[str, ...] = ()
    command_gates: tuple[CommandGate, ...] = ()
    team_leader: TeamLeader | None = None
    arpeggio: Arpeggio | None = None

    @property
    def performer(self) -> str:
        """The name of who performs it: for display, and for scripts to tell calls apart."""
        return self.persona_name or (self.persona.name if self.persona else "default")


class Piece(Model):
    """What is to be played."""

    name: str
    description: str | None = None
    dialect: Dialect = "takt"
    phases: Phases = "single"
    control: Control = "tags"
    language: Language | None = None
    max_movements: int = 10
    initial_movement: str
    movements: tuple[Movement, ...]
    loop_monitors: tuple[LoopMonitor, ...] = ()
    guards: Guards = Guards()
    requests: RequestPolicy = RequestPolicy()
    budget: Budget = Budget()
    mcp_servers: tuple[McpServer, ...] = ()
    stable_tools: Literal["piece", "movement"] = "piece"

    @cached_property
    def by_name(self) -> Mapping[str, Movement]:
        """Movements by name (lanes are not among them)."""
        return {movement.name: movement for movement in self.movements}

    @cached_property
    def source(self) -> str:
        """The piece as canonical JSON: what a run pins, and what :attr:`hash` names."""
        return self.model_dump_json(exclude_defaults=True)

    @cached_property
    def hash(self) -> Hash:
        """The content address of the whole piece."""
        return text_hash(self.source)


def read_piece(source: str, hash: Hash) -> Piece:
    """A piece from its canonical JSON, as a journal keeps it.

    Raises:
        JournalNewer: it was stored by a version whose pieces look otherwise.
    """
    try:
        return Piece.model_validate_json(source)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "its beginning"
        raise JournalNewer(
            f"the piece {hash} in the journal cannot be read: {first['msg']} ({where})",
            hint="play the run with the version of Cadenza that started it",
        ) from error


class LoadedPiece(Model):
    """A piece with its texts, and what was noticed while it was read."""

    piece: Piece
    texts: dict[Hash, str]
    path: str
    warnings: tuple[str, ...] = ()
