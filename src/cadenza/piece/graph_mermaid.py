"""A piece's graph as a Mermaid flowchart, as Markdown pages show it.

Every identifier is made up here and every text stands in quotes with its special characters as entities,
so no name of a piece can be read as Mermaid's own language.
"""

from __future__ import annotations

from collections.abc import Iterator

from cadenza.piece.columns import wrapped
from cadenza.piece.graph import Graph, GraphEdge, GraphMonitor, GraphNode

LINE = 36
"""Columns after which a text is broken."""

_ENTITIES = {char: f"#{ord(char)};" for char in '#"<>&`{}|[]()\\*_~$%@^'}


def as_mermaid(graph: Graph) -> str:
    """The graph in Mermaid's language, without a Markdown fence around it."""
    ids = {node.name: f"m{node.place}" for node in graph.nodes} | {end: end.lower() for end in graph.ends}
    lines = ["flowchart TD", f"  begin((({_text('')}))) --> {ids.get(graph.initial, 'begin')}"]
    for node in graph.nodes:
        lines += _movement(node, ids[node.name])
    lines += [f"  {ids[end]}([{_text(end)}]):::{ids[end]}" for end in graph.ends]
    lines += [f"  {ids[edge.source]} -->|{_text(_words(edge))}| {ids[edge.target]}" for edge in graph.edges]
    for number, monitor in enumerate(graph.monitors):
        lines += _monitor(monitor, f"w{number}", ids)
    lines += [
        "  classDef complete fill:#d9f2df,stroke:#2e7d32,color:#1b1b1b",
        "  classDef abort fill:#fbe0e0,stroke:#b3261e,color:#1b1b1b",
        "  classDef watch fill:#fff8e1,stroke:#a67c00,color:#1b1b1b,stroke-dasharray:4 3",
    ]
    return "\n".join(lines) + "\n"


def _movement(node: GraphNode, id: str) -> Iterator[str]:
    about = [node.performer] if node.performer else []
    if node.kind != "agent":
        about.append(node.kind.replace("_", " "))
    if node.detail:
        about.append(node.detail)
    if not node.lanes:
        yield f"  {id}[{_text(node.name, ' · '.join(about))}]"
        return
    yield f"  subgraph {id}[{_text(' · '.join([node.name, *about]))}]"
    for number, lane in enumerate(node.lanes):
        yield f"    {id}l{number}[{_text(lane.name, lane.performer)}]"
    yield "  end"


def _monitor(monitor: GraphMonitor, id: str, ids: dict[str, str]) -> Iterator[str]:
    times = f"{monitor.threshold} times: {monitor.performer} decides"
    yield f"  {id}{{{{{_text(' → '.join(monitor.cycle), times)}}}}}:::watch"
    for name in dict.fromkeys(monitor.cycle):
        if name in ids:
            yield f"  {ids[name]} -.- {id}"
    for edge in monitor.edges:
        yield f"  {id} -.->|{_text(_words(edge))}| {ids[edge.target]}"


def _words(edge: GraphEdge) -> str:
    return f"{edge.label} ({edge.note})" if edge.note else edge.label


def _text(*paragraphs: str) -> str:
    """Texts in quotes, one below the other, each wrapped; a space where there is nothing to say."""
    lines = [line for text in paragraphs if text for line in wrapped(text, LINE)]
    return '"' + "<br/>".join(_escaped(line) for line in lines or [" "]) + '"'


def _escaped(line: str) -> str:
    return "".join(_ENTITIES.get(char, char) for char in line)
