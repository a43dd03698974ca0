"""A piece, resolved: everything a run needs, with no path left to follow.

Long texts (personas, policies, instructions, report formats) are held by content address; the texts
themselves travel beside the piece (:class:`LoadedPiece`) and are stored once in the journal. So the
piece's own JSON is small, its hash names every word of it, and a resume never reads a file again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from pydantic import BaseModel, ConfigDict

from cadenza.ids import Hash, text_hash
from cadenza.piece.conditions import Condition, parse_condition
from cadenza.piece.vocabulary import Control, Dialect, Language, Phases


class Model(BaseModel):
    """Frozen, and strict about unknown fields: a stored piece is read by the version that knows it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Facet(Model):
    """A named text: a persona, a policy, a piece of knowledge.

    ``origin`` is for people (a path or ``inline``); it is no part of what the agent reads.
    """

    name: str
    text: Hash
    origin: str = "inline"


class Rule(Model):
    """One way out of a movement. ``condition`` is as written: a label, ``ai("…")``, ``all(…)`` or
    ``any(…)``. ``next`` is a movement, ``COMPLETE`` or ``ABORT``; the rules of a lane have none."""

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


class LoopMonitor(Model):
    """Watches the history of movements for ``cycle`` repeated ``threshold`` times."""

    cycle: tuple[str, ...]
    threshold: int = 3
    judge: Judge

    @cached_property
    def name(self) -> str:
        """The judge's name as a movement: ``_loop_judge_review_fix``."""
        return "_loop_judge_" + "_".join(self.cycle)


class Movement(Model):
    """One part of a piece: who performs it, with which words, and where it can lead."""

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
    session: Literal["continue", "refresh"] = "continue"
    allowed_tools: tuple[str, ...] | None = None
    required_permission_mode: Literal["readonly", "edit", "full"] | None = None
    quality_gates: tuple[str, ...] = ()

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


class LoadedPiece(Model):
    """A piece with its texts, and what was noticed while it was read."""

    piece: Piece
    texts: dict[Hash, str]
    path: str
    warnings: tuple[str, ...] = ()
