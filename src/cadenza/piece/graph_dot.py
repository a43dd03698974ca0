"""A piece's graph in Graphviz's language.

Texts stand in HTML-like labels, escaped, so that no name of a piece can be read as a command. Each
movement that can end in ABORT gets a small ABORT of its own: one for all would pull a line from everywhere
across the whole picture.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from cadenza.piece.columns import wrapped
from cadenza.piece.graph import Graph, GraphEdge, GraphMonitor, GraphNode
from cadenza.piece.vocabulary import ABORT

LINE = 30
"""Columns after which a label is broken."""

_HEAD = """\
  graph [rankdir=TB, nodesep=0.4, ranksep=0.55, pad=0.3, bgcolor=white, fontname="Helvetica"]
  node [shape=box, style="rounded,filled", fillcolor="#eef3fb", color="#3f5f94", fontname="Helvetica",
    fontsize=12, margin="0.25,0.08"]
  edge [color="#555555", fontname="Helvetica", fontsize=10, arrowsize=0.7]
  begin [shape=circle, label="", margin=0, width=0.18, fixedsize=true, fillcolor="#3f5f94"]"""
_END_STYLES = {
    "COMPLETE": 'fillcolor="#d9f2df", color="#2e7d32"',
    "ABORT": 'fillcolor="#fbe0e0", color="#b3261e", fontsize=9, margin="0.06,0.03", height=0.2',
}
_DASHED = 'style=dashed, color="#a67c00", fontcolor="#7a5c00"'


def as_dot(graph: Graph) -> str:
    """The graph as a ``digraph``."""
    ids = {node.name: f"m{node.place}" for node in graph.nodes}
    lines = [f"digraph {_quoted(graph.name)} {{", _HEAD]
    lines += [f"  {ids[node.name]} [label={_movement(node)}]" for node in graph.nodes]
    if graph.initial in ids:
        lines.append(f"  begin -> {ids[graph.initial]}")
    ends = _Ends()
    for edge in graph.edges:
        target = ids.get(edge.target) or ends.id(edge.target, ids[edge.source])
        lines.append(f"  {ids[edge.source]} -> {target} [{_label(edge)}]")
    for number, monitor in enumerate(graph.monitors):
        lines += _monitor(monitor, f"w{number}", ids, ends)
    return "\n".join([*lines, *ends.lines(), "}"]) + "\n"


class _Ends:
    """The nodes of COMPLETE (one) and ABORT (one for each movement that leads there)."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}

    def id(self, end: str, source: str) -> str:
        id = f"abort_{source}" if end == ABORT else end.lower()
        self._words[id] = end
        return id

    def lines(self) -> Iterator[str]:
        for id, end in self._words.items():
            yield f"  {id} [label={_quoted(end)}, {_END_STYLES[end]}]"


def _movement(node: GraphNode) -> str:
    about = [text for text in (node.performer, node.detail) if text]
    if node.kind != "agent":
        about.insert(1, node.kind.replace("_", " "))
    rows = [f"<B>{_lines(node.name)}</B>", *(_small(text) for text in about)]
    if not node.lanes:
        return f"<{'<BR/>'.join(rows)}>"
    cells = "".join(
        f'<TD BORDER="1" STYLE="ROUNDED" BGCOLOR="white" CELLPADDING="9">{_lines(lane.name, 24)}<BR/>'
        f"{_small(lane.performer, 26)}</TD>"
        for lane in node.lanes
    )
    span = len(node.lanes)
    head = f'<TR><TD COLSPAN="{span}" BORDER="0">{"<BR/>".join(rows)}</TD></TR>'
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="4">{head}<TR>{cells}</TR></TABLE>>'


def _monitor(monitor: GraphMonitor, id: str, ids: dict[str, str], ends: _Ends) -> Iterator[str]:
    told = [
        _lines(" → ".join(monitor.cycle)),
        _small(f"{monitor.threshold} times: {monitor.performer} decides"),
    ]
    look = 'shape=note, style="filled,dashed", fillcolor="#fff8e1", color="#a67c00", fontsize=10'
    yield f"  {id} [label=<{'<BR/>'.join(told)}>, {look}]"
    for name in dict.fromkeys(monitor.cycle):
        if name in ids:
            yield f"  {ids[name]} -> {id} [dir=none, {_DASHED}, constraint=false]"
    for edge in monitor.edges:
        target = ids.get(edge.target) or ends.id(edge.target, id)
        yield f"  {id} -> {target} [{_label(edge)}, {_DASHED}]"


def _label(edge: GraphEdge) -> str:
    words = _lines(edge.label)
    if edge.note:
        words += f"<BR/><I>{_lines(edge.note)}</I>"
    return f"label=<{words}>"


def _small(text: str, width: int = LINE) -> str:
    return f'<FONT POINT-SIZE="10" COLOR="#444444">{_lines(text, width)}</FONT>'


def _lines(text: str, width: int = LINE) -> str:
    return "<BR/>".join(escape(line) or " " for line in wrapped(text, width))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
