"""The JSON Schema of piece files: what it lets through, and what it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from cadenza.piece.dialects.native import NATIVE
from cadenza.piece.dialects.takt import TAKT
from cadenza.piece.find import package_root
from cadenza.piece.schema import piece_schema
from cadenza.piece.source import parse, read_source
from cadenza.piece.vocabulary import Dialect

RULES: list[Any] = [{"condition": "done", "next": "COMPLETE"}]
MOVEMENT: dict[str, Any] = {"name": "write", "rules": RULES}
TAKT_PIECE: dict[str, Any] = {"name": "essay", "movements": [MOVEMENT]}
OUR_PIECE: dict[str, Any] = {"cadenza": 1, **TAKT_PIECE}


def problems(dialect: Dialect, piece: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(piece_schema(dialect)).iter_errors(piece)]


def with_movement(**keys: Any) -> dict[str, Any]:
    return TAKT_PIECE | {"movements": [MOVEMENT | keys]}


@pytest.mark.parametrize("dialect", ["takt", "native"])
def test_it_is_a_schema_with_a_line_about_every_key(dialect: Dialect) -> None:
    schema = piece_schema(dialect)
    Draft202012Validator.check_schema(schema)
    tables = [schema, *(part for part in schema["$defs"].values() if "properties" in part)]
    for table in tables:
        assert all(key["description"] for key in table["properties"].values())
        assert table["additionalProperties"] is False


@pytest.mark.parametrize("grammar", [TAKT, NATIVE], ids=lambda grammar: grammar.dialect)
def test_it_has_the_keys_that_the_reader_knows(grammar: Any) -> None:
    schema = piece_schema(grammar.dialect)
    assert set(schema["properties"]) == set(grammar.piece)
    names = ("movement", "lane", "rule", "report", "monitor", "judge", "team_leader", "arpeggio", "gate")
    for name in names:
        assert set(schema["$defs"][name]["properties"]) == set(getattr(grammar, name)), name


@pytest.mark.parametrize("path", sorted(package_root().rglob("pieces/*.yaml")), ids=lambda path: path.stem)
def test_the_packages_pieces_are_valid(path: Path) -> None:
    piece = read_source(path).root.plain()
    assert problems("native" if "cadenza" in piece else "takt", piece) == []


@pytest.mark.parametrize(
    "piece",
    [
        TAKT_PIECE,
        {"name": "essay", "steps": [MOVEMENT], "initial_step": "write", "max_steps": 3},
        with_movement(report={"name": "01-plan.md", "format": "plan"}),
        with_movement(report="plan.md"),
        with_movement(report=[{"Summary": "summary.md"}, {"Scope": "scope.md"}]),
        with_movement(output_contracts={"report": [{"name": "plan.md", "order": "…", "format": "plan"}]}),
        with_movement(policy="kind", knowledge=["a", "b"], provider={"type": "codex", "model": "m"}),
        with_movement(quality_gates=["All tests pass", {"type": "command", "command": "make test"}]),
        with_movement(instruction=None, edit=None, parallel=None),
        with_movement(parallel=[{"name": "a", "rules": [{"condition": "ok"}]}]),
        with_movement(team_leader={"max_parts": 3, "timeout_ms": 1000}),
        with_movement(mcp_servers={"any": {"thing": [1]}}),
        TAKT_PIECE | {"personas": {"coder": "../coder.md"}, "output_contracts": {"plan": "plan.md"}},
        TAKT_PIECE | {"piece_config": {"provider": "codex", "runtime": {"prepare": ["node"]}}},
    ],
)
def test_what_is_right_is_valid(piece: Any) -> None:
    assert problems("takt", piece) == []


@pytest.mark.parametrize(
    "piece",
    [
        [],
        {},
        {"name": "essay"},
        {"name": " ", "movements": [MOVEMENT]},
        TAKT_PIECE | {"movements": []},
        TAKT_PIECE | {"max_movements": 0},
        TAKT_PIECE | {"max_movements": "ten"},
        TAKT_PIECE | {"max_movments": 3},
        TAKT_PIECE | {"phases": "two"},
        TAKT_PIECE | {"personas": {"coder": 1}},
        TAKT_PIECE | {"permission_mode": "full"},
        TAKT_PIECE | {"loop_monitors": [{"cycle": ["a"], "judge": {"rules": RULES}}]},
        TAKT_PIECE | {"loop_monitors": [{"cycle": ["a", "b"]}]},
        with_movement(name="COMPLETE"),
        with_movement(name=3),
        with_movement(instrction="x"),
        with_movement(edit="yes"),
        with_movement(session="new"),
        with_movement(required_permission_mode="all"),
        with_movement(rules=[{"condition": "done"}]),
        with_movement(rules=[{"next": "COMPLETE"}]),
        with_movement(rules=[{"condition": "", "next": "COMPLETE"}]),
        with_movement(report={"name": "a.md", "fromat": "x"}),
        with_movement(report=[3]),
        with_movement(parallel=[]),
        with_movement(parallel=[{"name": "a"}], team_leader={}),
        with_movement(team_leader={"max_parts": 4}),
        with_movement(arpeggio={"source": "csv"}),
        with_movement(provider={"model": "m"}),
        with_movement(quality_gates=[{"command": "make"}]),
    ],
)
def test_what_is_wrong_is_not(piece: Any) -> None:
    assert problems("takt", piece)


@pytest.mark.parametrize(
    ("keys", "valid"),
    [
        ({}, True),
        ({"facets": {"personas": {"coder": "x"}, "output-contracts": {}}}, True),
        ({"language": "ja", "provider": "openai", "model": "m"}, True),
        ({"cadenza": 2}, False),
        ({"language": "fr"}, False),
        ({"personas": {}}, False),
        ({"facets": {"person": {}}}, False),
        ({"steps": []}, False),
        ({"movements": [MOVEMENT | {"instruction_template": "x"}]}, False),
    ],
)
def test_our_own_format_has_one_spelling(keys: dict[str, Any], valid: bool) -> None:
    assert (problems("native", OUR_PIECE | keys) == []) is valid


def test_words_like_on_and_off_are_words_to_the_schema_too() -> None:
    piece = parse("name: on\nmovements: [{name: off, rules: [{condition: yes, next: COMPLETE}]}]\n", file="x")
    assert problems("takt", piece.plain()) == []


def test_a_piece_of_ours_says_its_version() -> None:
    assert problems("native", TAKT_PIECE)


@pytest.mark.parametrize("dialect", ["takt", "native"])
def test_lint_prints_it(dialect: Dialect) -> None:
    from cadenza.cli.app import app

    shown = CliRunner().invoke(app, ["lint", "--schema", dialect])
    assert (shown.exit_code, json.loads(shown.stdout)) == (0, piece_schema(dialect))
    assert CliRunner().invoke(app, ["lint"]).exit_code == 2
