"""What an agent with tools has before it during one visit, and how it is told what it may do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from cadenza.core import control
from cadenza.core.arguments import canonical
from cadenza.core.movements.tools.talk import Talk
from cadenza.core.outcomes import AnyOutcome, Failed, Unknown
from cadenza.core.prompts.guidance import Choice, fill
from cadenza.core.prompts.texts_tools import ToolTexts, tool_texts
from cadenza.core.signals import Signal
from cadenza.core.toolboxes import may_use, narrowed, rights_of, usable
from cadenza.core.tooling import Rights, Toolbox, ToolSpec, allows
from cadenza.core.visit import Visit
from cadenza.ids import Hash, derive


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one tool call: a text for the model (or one that is kept already), and the signal where
    the
    movement is over. ``stops``: it
    parked, so what was called behind it in the same turn is not carried out."""

    text: str = ""
    kept: Hash | None = None
    signal: Signal | None = None
    stops: bool = False


class Desk:
    """One visit, or one lane of it, of an agent with tools."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self.movement = visit.movement
        self.words: ToolTexts = tool_texts(visit.language)
        box = visit.toolbox
        self.box: Toolbox = narrowed(box, visit.movement) if visit.piece.stable_tools == "movement" else box
        self.talk = Talk(visit, visit.put(self.box.array) if self.box.offered else None)
        self.rights: Rights = rights_of(visit.movement, visit.run.permission)
        self.granted: list[str] = list(visit.granted)
        self.written: set[str] = set()
        self.answers: list[Hash] = []

    @property
    def in_lane(self) -> bool:
        """Whether others run beside it: it cannot move on then."""
        return bool(self.visit.lane)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Where the movement can lead. Without a person attached, ``interactive_only`` ways are none."""
        there = self.visit.run.interactive
        rules = (rule for rule in self.movement.rules if there or not rule.interactive_only)
        return tuple(Choice(rule.next, rule.condition) for rule in rules if rule.next is not None)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of a lane."""
        return tuple(rule.parsed.text for rule in self.movement.rules)

    @property
    def owing(self) -> list[str]:
        """Reports that are owed and not written."""
        return [report.name for report in self.movement.reports if report.name not in self.written]

    def tools(self) -> str:
        """The names of what the movement may use, for a message."""
        return ", ".join(self.usable())

    def usable(self) -> Iterable[str]:
        """What the movement may use here: in a lane there is no moving on, without targets neither."""
        for name in usable(self.movement, self.box):
            if name == control.TRANSITION and (self.in_lane or not self.choices):
                continue
            if name == control.WRITE_REPORT and not self.movement.reports:
                continue
            if name == control.USE_TOOL and not self.granted:
                continue
            spec = self.box.by_name[name]
            if spec.kind != "work" or allows(self.rights.permission, spec.permission):
                yield name

    def refusal(self, name: str) -> str | None:
        """Why a tool that is offered cannot be used here; None where it can."""
        spec = self.box.by_name.get(name)
        if spec is None or spec not in self.box.offered:
            return fill(self.words.unknown_tool, name=name, tools=self.tools())
        if not may_use(self.movement, spec):
            return fill(self.words.forbidden_tool, name=name, tools=self.tools())
        return self.too_little(spec)

    def too_little(self, spec: ToolSpec) -> str | None:
        """Whether the movement's permission is less than a tool needs, in words."""
        if allows(self.rights.permission, spec.permission):
            return None
        have, need = self.rights.permission, spec.permission
        return fill(self.words.permission, name=spec.name, need=need, have=have, tools=self.tools())

    def key_of(self, tool: str, arguments: dict[str, Any]) -> str:
        """A request's place in the run's ledger: the same for the same tool and arguments."""
        return derive(self.visit.run.seed, "request", tool, canonical(arguments))

    def trouble(self, outcome: AnyOutcome) -> str:
        """What the model is told of a call that came to nothing."""
        if isinstance(outcome, Unknown):
            return fill(self.words.lost, message=outcome.message or "-")
        message = outcome.message if isinstance(outcome, Failed) else type(outcome).__name__.lower()
        return fill(self.words.failed_call, message=message)
