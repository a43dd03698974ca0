"""A piece's graph as text: one block for each movement, its ways out below it.

::

    ● plan · planner
      ├─ The plan is clear ────── → build
      └─ Something is missing ─── → ABORT

    ○ review · parallel
      ║ style · stylist
      ║ facts · checker
      ├─ all("approved") ──────── → COMPLETE
      └─ any("needs_fix") ─────── ↑ build

``●`` is where the piece begins; ``↑`` leads back to a movement that stands earlier, or to the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cadenza.piece.columns import columns, padded, wrapped
from cadenza.piece.graph import Graph, GraphEdge, GraphMonitor, GraphNode

LABEL_WIDTH = 56
"""Columns that a condition may take before it is wrapped."""


def as_text(graph: Graph) -> str:
    """The graph for a terminal."""
    lines = list(_heading(graph))
    for node in graph.nodes:
        lines += ["", *_movement(graph, node)]
    for monitor in graph.monitors:
        lines += ["", *_monitor(graph, monitor)]
    return "\n".join(lines) + "\n"


def _heading(graph: Graph) -> Iterator[str]:
    yield graph.name
    if graph.description:
        yield from (f"  {line}" for line in wrapped(graph.description, 76))
    yield f"  begins at {graph.initial}; at most {graph.limit} movements"


def _movement(graph: Graph, node: GraphNode) -> Iterator[str]:
    mark = "●" if node.name == graph.initial else "○"
    about = [node.name, *([node.performer] if node.performer else [])]
    if node.kind != "agent":
        about.append(node.kind.replace("_", " "))
    if node.detail:
        about.append(node.detail)
    yield f"{mark} {' · '.join(about)}"
    yield from (f"  ║ {lane.name} · {lane.performer}" for lane in node.lanes)
    edges = graph.ways_from(node.name)
    if not edges:
        yield "  └─ no way out"
    yield from _ways(graph, edges, node.place)


def _monitor(graph: Graph, monitor: GraphMonitor) -> Iterator[str]:
    times = "once" if monitor.threshold == 1 else f"{monitor.threshold} times"
    yield f"◌ {' → '.join(monitor.cycle)} · {times} in a row: {monitor.performer} decides"
    yield from _ways(graph, monitor.edges, None, dashed=True)


def _ways(
    graph: Graph, edges: Sequence[GraphEdge], place: int | None, *, dashed: bool = False
) -> Iterator[str]:
    labels = [wrapped(_words(edge), LABEL_WIDTH) for edge in edges]
    room = max((columns(line) for lines in labels for line in lines), default=0)
    places = {node.name: node.place for node in graph.nodes}
    line = "┄" if dashed else "─"
    for at, (edge, lines) in enumerate(zip(edges, labels, strict=True)):
        last = at == len(edges) - 1
        back = place is not None and places.get(edge.target, place + 1) <= place
        run = padded(f"{lines[0]} ", room + 1, line) + line * 2
        yield f"  {'└' if last else '├'}{line} {run} {'↑' if back else '→'} {edge.target}"
        yield from (f"  {' ' if last else '│'}  {more}" for more in lines[1:])


def _words(edge: GraphEdge) -> str:
    return f"{edge.label} ({edge.note})" if edge.note else edge.label
