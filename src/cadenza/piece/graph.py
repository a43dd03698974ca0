"""A piece as a graph: its movements, the ways between them, and the monitors that watch them.

The graph is plain data; :func:`render` draws it as text for a terminal, as a Mermaid flowchart, or in
Graphviz's language. A picture (SVG) is made from the latter by a program: see :mod:`cadenza.host.graphviz`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from cadenza.errors import UsageError
from cadenza.piece.columns import one_line
from cadenza.piece.model import LoopMonitor, Movement, Piece, Rule
from cadenza.piece.vocabulary import ABORT, COMPLETE, WAIT_SUBTASKS

GraphFormat = Literal["text", "mermaid", "dot"]
GRAPH_FORMATS: tuple[GraphFormat, ...] = ("text", "mermaid", "dot")


@dataclass(frozen=True, slots=True)
class Lane:
    """A sub-movement of a parallel movement, and the labels that it can end with."""

    name: str
    performer: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A movement. ``place`` is where it stands in the file, from 0; ``detail`` is what else to say."""

    name: str
    kind: str
    performer: str
    place: int
    lanes: tuple[Lane, ...] = ()
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """A way out of ``source``. ``target`` is a movement, COMPLETE or ABORT; ``note`` is its condition's
    small print."""

    source: str
    target: str
    label: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class GraphMonitor:
    """A loop monitor: the movements that it watches, and the ways that its judge may choose."""

    name: str
    cycle: tuple[str, ...]
    threshold: int
    performer: str
    edges: tuple[GraphEdge, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """A whole piece. ``ends`` are those of COMPLETE and ABORT that something leads to."""

    name: str
    description: str | None
    initial: str
    limit: int
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    monitors: tuple[GraphMonitor, ...]
    ends: tuple[str, ...]

    def ways_from(self, name: str) -> list[GraphEdge]:
        """The ways out of one movement, in the order of its rules."""
        return [edge for edge in self.edges if edge.source == name]


def graph_of(piece: Piece) -> Graph:
    """The graph of a piece. Everything in it is one line of clean text."""
    edges = [edge for movement in piece.movements for edge in _ways(movement, tools=piece.control == "tools")]
    monitors = tuple(_monitor(monitor) for monitor in piece.loop_monitors)
    reached = {edge.target for edge in (*edges, *(edge for watch in monitors for edge in watch.edges))}
    return Graph(
        name=one_line(piece.name),
        description=one_line(piece.description) if piece.description else None,
        initial=one_line(piece.initial_movement),
        limit=piece.max_movements,
        nodes=tuple(_node(movement, place) for place, movement in enumerate(piece.movements)),
        edges=tuple(edges),
        monitors=monitors,
        ends=tuple(end for end in (COMPLETE, ABORT) if end in reached),
    )


def render(graph: Graph, format: GraphFormat) -> str:
    """The graph in one of :data:`GRAPH_FORMATS`, ending with a line break.

    Raises:
        UsageError: there is no such format.
    """
    match format:
        case "text":
            from cadenza.piece.graph_text import as_text

            return as_text(graph)
        case "mermaid":
            from cadenza.piece.graph_mermaid import as_mermaid

            return as_mermaid(graph)
        case "dot":
            from cadenza.piece.graph_dot import as_dot

            return as_dot(graph)
    raise UsageError(f"a graph has no format {format!r}", hint=f"known: {', '.join(GRAPH_FORMATS)}, svg")


def _node(movement: Movement, place: int) -> GraphNode:
    lanes = tuple(
        Lane(
            one_line(lane.name),
            one_line(lane.performer),
            tuple(one_line(rule.parsed.shown) for rule in lane.rules),
        )
        for lane in movement.lanes
    )
    performer = "" if lanes else one_line(movement.performer)
    return GraphNode(one_line(movement.name), movement.kind, performer, place, lanes, _detail(movement))


def _detail(movement: Movement) -> str | None:
    """What a reader should know of a movement whose kind makes up its lanes while it is played."""
    if movement.team_leader is not None:
        leader = movement.team_leader
        who = leader.part_persona_name or (leader.part_persona.name if leader.part_persona else None)
        return f"up to {leader.max_parts} parts at once{f', each by {one_line(who)}' if who else ''}"
    if movement.arpeggio is not None:
        batch, lanes = movement.arpeggio.batch_size, movement.arpeggio.concurrency
        rows = "row by row" if batch == 1 else f"{batch} rows at a time"
        return f"over a table, {rows}{f', {lanes} at once' if lanes > 1 else ''}"
    return None


def _ways(movement: Movement, *, tools: bool) -> Iterator[GraphEdge]:
    """The ways out of a movement. An agent with tools may end the work, too; after its sub-tasks
    ``default_next`` comes."""
    for rule in movement.rules:
        edge = _edge(movement.name, rule)
        if edge.target == WAIT_SUBTASKS:
            target = one_line(movement.default_next or COMPLETE)
            edge = GraphEdge(edge.source, target, edge.label, "after its sub-tasks")
        yield edge
    if tools and movement.may_complete and not movement.lanes:
        yield GraphEdge(one_line(movement.name), COMPLETE, "complete", "a tool")


def _edge(source: str, rule: Rule) -> GraphEdge:
    note = "asks a person" if rule.requires_user_input else None
    if rule.interactive_only:
        note = "only with a person"
    label = one_line(rule.parsed.shown)
    return GraphEdge(one_line(source), one_line(rule.next or ABORT), label, note)


def _monitor(monitor: LoopMonitor) -> GraphMonitor:
    persona = monitor.judge.persona
    return GraphMonitor(
        name=one_line(monitor.name),
        cycle=tuple(one_line(name) for name in monitor.cycle),
        threshold=monitor.threshold,
        performer=one_line(persona.name) if persona else "judge",
        edges=tuple(_edge(monitor.name, rule) for rule in monitor.judge.rules),
    )


__all__ = [
    "GRAPH_FORMATS",
    "Graph",
    "GraphEdge",
    "GraphFormat",
    "GraphMonitor",
    "GraphNode",
    "Lane",
    "graph_of",
    "render",
]
