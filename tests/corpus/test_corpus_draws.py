"""Every piece of TAKT 0.28 can be drawn in every format, and validates against the schema of its format."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from cadenza.host.graphviz import svg_of
from cadenza.piece.find import load_piece
from cadenza.piece.graph import GRAPH_FORMATS, graph_of, render
from cadenza.piece.schema import piece_schema
from cadenza.piece.source import read_source
from tests.corpus.test_corpus_loads import CORPUS, PIECES, name_of
from tests.unit.drawings import check_drawing

DRAWN = [path for path in PIECES if path.stem != "broken"]

pytestmark = pytest.mark.skipif(
    not CORPUS, reason="CADENZA_CORPUS is not set: the folder that holds takt-0.28"
)


@pytest.mark.parametrize("path", DRAWN, ids=name_of)
def test_a_piece_is_drawn_whole_in_every_format(path: Path, tmp_path: Path) -> None:
    graph = graph_of(load_piece(str(path), cwd=tmp_path).piece)
    for format in GRAPH_FORMATS:
        check_drawing(graph, format, render(graph, format))
    check_drawing(graph, "svg", svg_of(render(graph, "dot")))


@pytest.mark.parametrize("path", DRAWN, ids=name_of)
def test_a_piece_validates_against_the_schema(path: Path) -> None:
    validator = Draft202012Validator(piece_schema("takt"))
    assert [error.message for error in validator.iter_errors(read_source(path).root.plain())] == []
