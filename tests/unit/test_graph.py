"""Pieces as graphs, and how they are drawn."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cadenza.errors import HostError, UsageError
from cadenza.host import graphviz
from cadenza.host.graphviz import svg_of
from cadenza.piece.columns import columns, wrapped
from cadenza.piece.find import load_piece
from cadenza.piece.graph import GRAPH_FORMATS, GraphEdge, graph_of, render
from cadenza.piece.model import Piece
from tests.unit.drawings import check_drawing

PIECE = """
name: essay
description: Write and check
max_movements: 9
initial_movement: write
movements:
  - name: write
    persona: writer
    rules:
      - {condition: done, next: check}
      - {condition: 'ai("the text is 完成")', next: write, requires_user_input: true}
      - {condition: hopeless, next: ABORT}
  - name: check
    parallel:
      - {name: style, persona: stylist, rules: [{condition: good}, {condition: bad}]}
      - {name: facts, persona: checker, rules: [{condition: good}, {condition: bad}]}
    rules:
      - {condition: 'all("good")', next: COMPLETE}
      - {condition: 'any("bad")', next: write}
loop_monitors:
  - cycle: [write, check]
    threshold: 2
    judge:
      persona: arbiter
      rules:
        - {condition: getting better, next: write}
        - {condition: stuck, next: ABORT}
"""

DRAWN = """\
essay
  Write and check
  begins at write; at most 9 movements

● write · writer
  ├─ done ────────────────────────────── → check
  ├─ the text is 完成 (asks a person) ── ↑ write
  └─ hopeless ────────────────────────── → ABORT

○ check · parallel
  ║ style · stylist
  ║ facts · checker
  ├─ all("good") ── → COMPLETE
  └─ any("bad") ─── ↑ write

◌ write → check · 2 times in a row: arbiter decides
  ├┄ getting better ┄┄ → write
  └┄ stuck ┄┄┄┄┄┄┄┄┄┄┄ → ABORT
"""

EVIL = """
name: '"]; end %% <script>'
movements:
  - name: 'end'
    persona: '"] click x'
    rules:
      - {condition: 'a | b --> "c" ; #quot; `d` <b>&amp;</b> $$x$$ {{y}} \\', next: 'sub graph"]'}
      - {condition: "two\\nlines\\twide \\e[31m\\u202e", next: COMPLETE}
  - name: 'sub graph"]'
    parallel: [{name: 'x"]', rules: [{condition: ok}]}, {name: 'y-->z', rules: [{condition: ok}]}]
    rules:
      - {condition: 'all("ok")', next: 'end'}
loop_monitors:
  - {cycle: ['end', 'sub graph"]'], judge: {rules: [{condition: '}} -.-> |', next: ABORT}]}}
"""


def piece_of(text: str, folder: Path) -> Piece:
    path = folder / "essay.yaml"
    path.write_text(text, encoding="utf-8")
    return load_piece(str(path), cwd=folder).piece


@pytest.fixture(autouse=True)
def no_other_facets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def test_the_graph_has_movements_ways_ends_and_monitors(tmp_path: Path) -> None:
    graph = graph_of(piece_of(PIECE, tmp_path))
    assert [(node.name, node.kind, node.performer) for node in graph.nodes] == [
        ("write", "agent", "writer"),
        ("check", "parallel", ""),
    ]
    assert [(lane.name, lane.performer, lane.labels) for lane in graph.nodes[1].lanes] == [
        ("style", "stylist", ("good", "bad")),
        ("facts", "checker", ("good", "bad")),
    ]
    assert graph.ways_from("write")[1] == GraphEdge("write", "write", "the text is 完成", "asks a person")
    assert (graph.initial, graph.limit, graph.ends) == ("write", 9, ("COMPLETE", "ABORT"))
    (monitor,) = graph.monitors
    assert (monitor.cycle, monitor.threshold, monitor.performer) == (("write", "check"), 2, "arbiter")
    assert [edge.target for edge in monitor.edges] == ["write", "ABORT"]


def test_text_stands_in_columns_with_wide_characters_too(tmp_path: Path) -> None:
    assert render(graph_of(piece_of(PIECE, tmp_path)), "text") == DRAWN


def test_movements_that_make_up_their_lanes_say_how_many(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a\n1\n")
    (tmp_path / "row.md").write_text("Look at {line:1}.")
    piece = """
name: many
movements:
  - name: lead
    team_leader: {max_parts: 2, part_persona: coder}
    rules: [{condition: done, next: each}]
  - name: each
    arpeggio: {source: csv, source_path: rows.csv, template: row.md, batch_size: 5, concurrency: 2}
    rules: [{condition: done, next: COMPLETE}]
"""
    graph = graph_of(piece_of(piece, tmp_path))
    assert [(node.kind, node.detail) for node in graph.nodes] == [
        ("team_leader", "up to 2 parts at once, each by coder"),
        ("arpeggio", "over a table, 5 rows at a time, 2 at once"),
    ]
    drawn = render(graph, "text")
    assert "team leader · up to 2 parts at once" in drawn


@pytest.mark.parametrize("format", [*GRAPH_FORMATS, "svg"])
@pytest.mark.parametrize("text", [PIECE, EVIL], ids=["plain", "evil"])
def test_no_text_of_a_piece_breaks_a_drawing(text: str, format: str, tmp_path: Path) -> None:
    graph = graph_of(piece_of(text, tmp_path))
    drawing = svg_of(render(graph, "dot")) if format == "svg" else render(graph, format)  # type: ignore[arg-type]
    check_drawing(graph, format, drawing)
    assert "\x1b" not in drawing
    assert "\u202e" not in drawing
    if format in ("svg", "mermaid"):
        assert "<script" not in drawing
        assert "<b>" not in drawing


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("format", [*GRAPH_FORMATS, "svg"])
def test_the_packages_pieces_are_drawn(format: str, language: str, tmp_path: Path) -> None:
    piece = load_piece("plan-build-review", cwd=tmp_path, language=language).piece  # type: ignore[arg-type]
    graph = graph_of(piece)
    drawing = svg_of(render(graph, "dot")) if format == "svg" else render(graph, format)  # type: ignore[arg-type]
    check_drawing(graph, format, drawing)


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no format 'png'"):
        render(graph_of(piece_of(PIECE, tmp_path)), "png")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 5, [""]),
        ("one two three", 7, ["one two", "three"]),
        ("日本語の文章です。", 8, ["日本語の", "文章です。"]),
        ("architecture-reviewer", 15, ["architecture-", "reviewer"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("  a\n\tb  ", 9, ["a b"]),
    ],
)
def test_text_is_wrapped_by_columns(text: str, width: int, lines: list[str]) -> None:
    assert wrapped(text, width) == lines


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("\u200b", 0), ("（a）", 5)]
)
def test_columns_count_what_a_terminal_shows(text: str, width: int) -> None:
    assert columns(text) == width


# Pictures


def test_without_a_program_that_draws_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(HostError, match=r"neither is installed") as caught:
        svg_of("digraph { a -> b }")
    assert "cadenza[svg]" in (caught.value.hint or "")
    assert caught.value.code == "not_found"


def test_what_cannot_be_drawn_says_why() -> None:
    with pytest.raises(HostError, match=r"could not draw the graph: .*syntax error"):
        svg_of("digraph { a -> ")


def test_graphviz_itself_is_used_where_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\ncat >/dev/null\necho '<svg/>'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert graphviz.svg_of("digraph {}") == "<svg/>\n"


# The command


def test_the_command_draws_to_the_terminal_and_to_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cadenza.cli.app import app

    piece_of(PIECE, tmp_path)
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(app, ["graph", "./essay.yaml"])
    assert (shown.exit_code, shown.stdout) == (0, DRAWN)
    for format, begin in (("mermaid", "flowchart"), ("dot", "digraph"), ("svg", "<?xml")):
        written = CliRunner().invoke(app, ["graph", "./essay.yaml", "--format", format, "-o", f"x.{format}"])
        assert (written.exit_code, written.stdout) == (0, "")
        assert (tmp_path / f"x.{format}").read_text(encoding="utf-8").startswith(begin)
