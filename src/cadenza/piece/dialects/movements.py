"""Movements, rules and loop monitors as they stand in a file, with the places they came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cadenza.piece.dialects.fields import Fields, mapping_of, text_of
from cadenza.piece.dialects.grammar import Grammar
from cadenza.piece.dialects.reports import Placed, read_reports
from cadenza.piece.facets import FacetResolver
from cadenza.piece.model import Facet, Judge, LoopMonitor, Movement, Rule
from cadenza.piece.problems import Problems
from cadenza.piece.source import Node
from cadenza.piece.vocabulary import FacetKind

PERMISSIONS = ("readonly", "edit", "full")
SESSIONS = ("continue", "refresh")


@dataclass(frozen=True, slots=True)
class PlacedRule:
    """A rule and the mapping that it was read from."""

    rule: Rule
    fields: Fields


@dataclass(frozen=True, slots=True)
class PlacedMovement:
    """A movement, and the places of its parts."""

    movement: Movement
    fields: Fields
    rules: tuple[PlacedRule, ...] = ()
    reports: tuple[Placed, ...] = ()
    lanes: tuple[PlacedMovement, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedMonitor:
    """A loop monitor, and the places of its parts."""

    monitor: LoopMonitor
    fields: Fields
    cycle: tuple[Node, ...]
    rules: tuple[PlacedRule, ...]


@dataclass(frozen=True, slots=True)
class Performer:
    """The provider and model that a movement inherits: from its piece, or from its parent."""

    provider: str | None = None
    model: str | None = None


@dataclass(slots=True)
class MovementReader:
    """Reads the movements of one file."""

    grammar: Grammar
    facets: FacetResolver
    problems: Problems
    inherited: Performer = field(default_factory=Performer)

    def movement(self, node: Node) -> PlacedMovement | None:
        """One movement with its lanes. ``None``: it is no mapping at all."""
        fields = mapping_of(node, self.problems, "a movement")
        if fields is None:
            return None
        lanes = self._lanes(fields)
        kind = "parallel" if fields.get("parallel") is not None else "agent"
        return self._placed(fields, self.grammar.movement, self.inherited, kind=kind, lanes=lanes)

    def _refuse(self, fields: Fields) -> None:
        for key, node in fields:
            if key in self.grammar.refused:
                self.problems.error(key, f"{key} is not read", node.text or None, self.grammar.refused[key])
            elif key in self.grammar.unplayed:
                name = fields.get("name")
                what = f"{self.grammar.unplayed[key]}: this version does not play them yet"
                self.problems.error(
                    key, what, name.text if name else None, "use another piece, or a later version"
                )

    def _lanes(self, fields: Fields) -> tuple[PlacedMovement, ...]:
        inherited = performer(fields, self.problems, self.inherited)
        lanes = []
        for node in fields.items("parallel"):
            lane = mapping_of(node, self.problems, "a parallel sub-movement")
            if lane is not None:
                lanes.append(self._placed(lane, self.grammar.lane, inherited))
        if fields.get("parallel") is not None and not lanes:
            self.problems.error(
                fields.at("parallel"), "parallel has no sub-movements", None, "list at least one"
            )
        return tuple(lanes)

    def _placed(
        self,
        fields: Fields,
        known: Any,
        inherited: Performer,
        *,
        kind: str = "agent",
        lanes: tuple[PlacedMovement, ...] = (),
    ) -> PlacedMovement:
        fields.check_keys(known, strict=self.grammar.strict)
        self._refuse(fields)
        rules = self.rules(fields)
        reports = tuple(read_reports(fields, self.facets, self.grammar))
        name = fields.required_text("name")
        persona, performer_name = self._persona(fields, name)
        who = performer(fields, self.problems, inherited)
        movement = Movement(
            name=name,
            kind=kind,
            description=fields.text("description"),
            persona=persona,
            persona_name=fields.text("persona_name") or performer_name,
            policies=self._facets(fields, "policies", "policy"),
            knowledge=self._facets(fields, "knowledge", "knowledge"),
            instruction=self.instruction(fields),
            reports=tuple(report for report, _ in reports),
            rules=tuple(placed.rule for placed in rules),
            lanes=tuple(lane.movement for lane in lanes),
            edit=fields.flag("edit"),
            pass_previous_response=fields.flag("pass_previous_response") is not False,
            provider=who.provider,
            model=who.model,
            session=fields.choice("session", SESSIONS) or "continue",
            allowed_tools=self._names(fields, "allowed_tools"),
            required_permission_mode=fields.choice("required_permission_mode", PERMISSIONS),
            quality_gates=self._names(fields, "quality_gates") or (),
        )
        return PlacedMovement(movement, fields, rules, reports, lanes)

    def _persona(self, fields: Fields, movement: str) -> tuple[Facet | None, str | None]:
        if fields.text("persona") is None:
            return None, None
        return self.facets.persona(fields.at("persona"), movement)

    def _facets(self, fields: Fields, kind: FacetKind, name: str) -> tuple[Facet, ...]:
        nodes = fields.texts(name)
        found = [self.facets.facet(kind, node, f"inline-{number}") for number, node in enumerate(nodes, 1)]
        return tuple(facet for facet in found if facet is not None)

    def instruction(self, fields: Fields) -> str | None:
        """The hash of the instruction's text; the template wins where both keys are there (TAKT)."""
        names = self.grammar.instruction_names
        if fields.text(*names) is None:
            return None
        return self.facets.text("instructions", fields.at(*names))

    def _names(self, fields: Fields, name: str) -> tuple[str, ...] | None:
        if fields.get(name) is None:
            return None
        texts = [text_of(node, self.problems, f"an item of {name}") for node in fields.items(name)]
        return tuple(text for text in texts if text is not None)

    def rules(self, fields: Fields) -> tuple[PlacedRule, ...]:
        """The rules of a movement, a lane or a judge."""
        placed = []
        for node in fields.items("rules"):
            rule = mapping_of(node, self.problems, "a rule")
            if rule is None:
                continue
            rule.check_keys(self.grammar.rule, strict=self.grammar.strict)
            read = Rule(
                condition=rule.required_text("condition"),
                next=rule.text("next"),
                requires_user_input=rule.flag("requires_user_input") is True,
                interactive_only=rule.flag("interactive_only") is True,
                appendix=rule.text("appendix"),
            )
            placed.append(PlacedRule(read, rule))
        return tuple(placed)

    def monitor(self, node: Node) -> PlacedMonitor | None:
        """One loop monitor. ``None``: it lacks what cannot be guessed."""
        fields = mapping_of(node, self.problems, "a loop monitor")
        if fields is None:
            return None
        fields.check_keys(self.grammar.monitor, strict=self.grammar.strict)
        cycle = tuple(fields.texts("cycle"))
        judge = fields.mapping("judge")
        if judge is None:
            if fields.get("judge") is None:
                self.problems.error(node, "a loop monitor has no judge", None, "add judge: with rules:")
            return None
        judge.check_keys(self.grammar.judge, strict=self.grammar.strict)
        rules = self.rules(judge)
        persona, _ = self._persona(judge, "judge")
        monitor = LoopMonitor(
            cycle=tuple(item.text for item in cycle),
            threshold=fields.count("threshold", default=3),
            judge=Judge(
                persona=persona,
                instruction=self.instruction(judge),
                rules=tuple(placed.rule for placed in rules),
            ),
        )
        return PlacedMonitor(monitor, fields, cycle, rules)


def performer(fields: Fields, problems: Problems, inherited: Performer) -> Performer:
    """Provider and model of ``fields``: a name, or a block with ``type`` and ``model``.

    A model is inherited unless the mapping names a provider of its own (TAKT's schema).
    """
    node = fields.get("provider")
    model = fields.text("model")
    if node is None:
        return Performer(inherited.provider, model or inherited.model)
    if isinstance(node.value, dict):
        block = Fields(node, problems, "provider")
        return Performer(block.text("type") or inherited.provider, model or block.text("model"))
    return Performer(text_of(node, problems, "provider") or inherited.provider, model)
