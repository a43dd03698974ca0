"""Structural checks of drawings: small readers of Mermaid's, Graphviz's and SVG's outlines."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from cadenza.piece.columns import columns
from cadenza.piece.graph import Graph

_SVG = "{http://www.w3.org/2000/svg}"
_QUOTED = r'"([^"]*)"'
_MERMAID_LINES = [
    re.compile(pattern)
    for pattern in (
        r"  begin\(\(\(\" \"\)\)\) --> \w+",
        rf" +(?P<id>m\d+(?:l\d+)?)\[{_QUOTED}\]",
        rf"  subgraph (?P<id>m\d+)\[{_QUOTED}\]",
        r"  end",
        rf"  (?P<id>complete|abort)\(\[{_QUOTED}\]\):::\w+",
        rf"  (?P<id>w\d+)\{{\{{{_QUOTED}\}}\}}:::watch",
        rf"  (?P<source>\w+) (?:-->|-\.->)\|{_QUOTED}\| (?P<target>\w+)",
        r"  (?P<source>m\d+) -\.- (?P<target>w\d+)",
        r"  classDef \w+ [\w#:,. -]+",
    )
]


def check_drawing(graph: Graph, format: str, text: str) -> None:
    """Whether a drawing is of the format and has all movements and ways of the graph."""
    {"text": _check_text, "mermaid": _check_mermaid, "dot": _check_dot, "svg": _check_svg}[format](
        graph, text
    )


def _ways(graph: Graph) -> int:
    return len(graph.edges) + sum(len(monitor.edges) for monitor in graph.monitors)


def _check_text(graph: Graph, text: str) -> None:
    lines = text.splitlines()
    heads = [line[2:].split(" · ")[0] for line in lines if line[:1] in ("●", "○")]
    assert heads == [node.name for node in graph.nodes]
    ways = [line for line in lines if re.match(r"  [├└][─┄] ", line) and re.search(r"[─┄] [→↑] \S", line)]
    assert len(ways) == _ways(graph)
    assert sum(line.startswith("  ║ ") for line in lines) == sum(len(node.lanes) for node in graph.nodes)
    for block in text.split("\n\n"):
        arrows = {
            columns(line[: max(line.rfind("→ "), line.rfind("↑ "))])
            for line in block.splitlines()
            if line.startswith(("  ├", "  └")) and "no way out" not in line
        }
        assert len(arrows) <= 1, f"arrows stand below each other:\n{block}"


def _check_mermaid(graph: Graph, text: str) -> None:
    head, *lines = text.splitlines()
    assert head == "flowchart TD"
    found = []
    for line in lines:
        match = next((match for pattern in _MERMAID_LINES if (match := pattern.fullmatch(line))), None)
        assert match is not None, line
        found.append((line, match.groupdict()))
    ids = [groups["id"] for _, groups in found if groups.get("id")]
    assert len(ids) == len(set(ids))
    ways = [groups for line, groups in found if "|" in line and groups.get("source")]
    assert len(ways) == _ways(graph)
    assert {way[end] for way in ways for end in ("source", "target")} <= set(ids)
    assert lines.count("  end") == sum(line.startswith("  subgraph ") for line in lines)
    movements = sum(bool(re.fullmatch(r"m\d+", id)) for id in ids)
    assert (movements, sum(id.startswith("w") for id in ids)) == (len(graph.nodes), len(graph.monitors))


def _check_dot(graph: Graph, text: str) -> None:
    assert text.startswith("digraph ")
    assert text.endswith("}\n")
    assert len(re.findall(r"^  \w+ -> \w+ \[label=<", text, re.M)) == _ways(graph)
    assert len(re.findall(r"^  m\d+ \[label=<", text, re.M)) == len(graph.nodes)


def _check_svg(graph: Graph, text: str) -> None:
    root = ET.fromstring(text)
    titles = [title.text or "" for title in root.iter(f"{_SVG}title")]
    assert sum(bool(re.fullmatch(r"m\d+", title)) for title in titles) == len(graph.nodes)
    shown = "".join("".join(words.itertext()) for words in root.iter(f"{_SVG}text"))
    squeezed = re.sub(r"\s", "", shown)
    for node in graph.nodes:
        assert re.sub(r"\s", "", node.name) in squeezed
