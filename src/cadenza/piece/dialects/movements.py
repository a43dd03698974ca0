"""Movements, rules and loop monitors as they stand in a file, with the places they came from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from cadenza.piece.dialects.fields import Fields, check_line, mapping_of, names_of, text_of
from cadenza.piece.dialects.gates import read_gates
from cadenza.piece.dialects.grammar import Grammar
from cadenza.piece.dialects.kinds import PERMISSIONS, KindReader, kind_of
from cadenza.piece.dialects.reports import Placed, read_reports
from cadenza.piece.dialects.tooling import duration, read_limits
from cadenza.piece.facets import FacetResolver
from cadenza.piece.model import Facet, Judge, LoopMonitor, Movement, Rule
from cadenza.piece.problems import Problems
from cadenza.piece.source import Node
from cadenza.piece.vocabulary import FacetKind

SESSIONS = ("continue", "refresh")
TOOL_SESSIONS = (*SESSIONS, "handover")


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
        kind, lanes = kind_of(fields), self._lanes(fields)
        placed = self._placed(fields, self.grammar.movement, self.inherited, kind=kind, lanes=lanes)
        reader = KindReader(self.grammar, self.facets, self.problems)
        found: dict[str, Any] = {}
        if kind == "team_leader":
            found = {"team_leader": reader.team_leader(fields)}
            if (leader := reader.leader(fields)) is not None:
                persona, name = self.facets.persona(leader, placed.movement.name)
                found |= {"persona": persona, "persona_name": fields.text("persona_name") or name}
        elif kind == "arpeggio":
            found = {"arpeggio": reader.arpeggio(fields)}
        return replace(placed, movement=placed.movement.changed(**found)) if found else placed

    def _refuse(self, fields: Fields) -> None:
        for key, node in fields:
            if key in self.grammar.refused:
                self.problems.error(key, f"{key} is not read", node.text or None, self.grammar.refused[key])

    def _lanes(self, fields: Fields) -> tuple[PlacedMovement, ...]:
        inherited = performer(fields, self.problems, self.inherited, self.grammar)
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
        who = performer(fields, self.problems, inherited, self.grammar)
        words, commands = read_gates(fields, self.grammar)
        native = self.grammar.dialect == "native"
        limits = read_limits(fields)
        movement = Movement(
            name=name,
            kind=kind,
            description=fields.text("description"),
            persona=persona,
            persona_name=self._persona_name(fields) or performer_name,
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
            session=fields.choice("session", TOOL_SESSIONS if native else SESSIONS) or "continue",
            default_next=fields.text("default_next"),
            may_complete=fields.flag("may_complete") is not False,
            text_only_limit=limits.text_only_limit,
            max_iterations=limits.max_iterations,
            max_revisits=limits.max_revisits,
            allowed_commands=names_of(fields, "allowed_commands"),
            network=fields.flag("network") is True,
            tool_timeout=duration(fields, "tool_timeout"),
            allowed_tools=names_of(fields, "allowed_tools"),
            required_permission_mode=fields.choice("required_permission_mode", PERMISSIONS),
            quality_gates=words,
            command_gates=commands,
        )
        return PlacedMovement(movement, fields, rules, reports, lanes)

    def _persona_name(self, fields: Fields) -> str | None:
        name = fields.text("persona_name")
        if name:
            check_line(fields.at("persona_name"), "persona_name", name, self.problems)
        return name

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
        who = performer(judge, self.problems, self.inherited, self.grammar)
        monitor = LoopMonitor(
            cycle=tuple(item.text for item in cycle),
            threshold=fields.count("threshold", default=3),
            judge=Judge(
                persona=persona,
                instruction=self.instruction(judge),
                rules=tuple(placed.rule for placed in rules),
                provider=who.provider,
                model=who.model,
            ),
        )
        return PlacedMonitor(monitor, fields, cycle, rules)


def performer(fields: Fields, problems: Problems, inherited: Performer, grammar: Grammar) -> Performer:
    """Provider and model of ``fields``: a name, or a block with ``type`` and ``model``.

    A model is inherited unless the mapping names a provider of its own (TAKT's schema).
    """
    node = fields.get("provider")
    model = fields.text("model")
    if node is None:
        return Performer(inherited.provider, model or inherited.model)
    if isinstance(node.value, dict):
        block = Fields(node, problems, "a provider")
        block.check_keys(grammar.provider, strict=grammar.strict)
        return Performer(block.required_text("type") or inherited.provider, model or block.text("model"))
    return Performer(text_of(node, problems, "provider") or inherited.provider, model)
