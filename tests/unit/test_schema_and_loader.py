"""What loads is valid by the schema, and what the schema can refuse is what loading refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from cadenza.errors import PieceError
from cadenza.piece.find import load_piece
from cadenza.piece.schema import piece_schema
from cadenza.piece.source import parse

RULES = "rules: [{condition: ok, next: COMPLETE}]"
LANES = "parallel: [{name: l, rules: [{condition: ok}]}]"


def movement(extra: str, name: str = "a") -> str:
    return f"name: p\nmovements:\n  - name: {name}\n    {extra}\n    {RULES}\n"


def top(extra: str) -> str:
    return f"{extra}\n{movement('edit: true')}"


def judge(rules: str) -> str:
    return f"{movement('edit: true')}loop_monitors: [{{cycle: [a, a], judge: {{{rules}}}}}]\n"


LOADS = [
    movement("parallel:\n    team_leader: {max_parts: 2}"),
    movement(f"{LANES}\n    arpeggio: null"),
    movement("report: {label: x.md}"),
    movement("report: {Summary: x.md}"),
    movement("report: {}"),
    movement("report: []"),
    movement("report: [{Summary: s.md, Scope: a/b.md}, c.md, {name: ./d.md, label: D}]"),
    movement("report: ..x"),
    movement("report: a..md"),
    movement("output_contracts: {report: }"),
    movement("output_contracts: [{Summary: s.md}]"),
    movement("persona_name: Ann B."),
    movement("quality_gates: [{type: command, command: make, cwd: app/..x}]"),
    movement("team_leader: {part_persona: }"),
    top("max_movements: 3"),
    top("max_movements: ~"),
    top("control: tags"),
    top("personas: {coder: You write code.}"),
    f"name: p\nmovements: ~\nsteps: [{{name: a, {RULES}}}]\n",
    judge(RULES),
]

REFUSED = [
    movement("parallel: [{name: l}]\n    team_leader: {}"),
    *(movement(f"report: {name}") for name in ("../x", "/x.md", "a/../x", "a/", ".", "' '", "C:x", "'a\\b'")),
    movement('report: "a\\tb.md"'),
    movement('report: "a.md\\n"'),
    movement("report: " + "x" * 201),
    movement("report: {label: ../x}"),
    movement("report: {name: ../x}"),
    movement("report: {format: plain words}"),
    movement("edit: true", name='"a\\tb"'),
    movement('persona_name: "a\\tb"'),
    movement('persona_name: "a\\u001f"'),
    movement('persona_name: "a\\n"'),
    movement(LANES.replace("name: l", 'name: "l\\tm"')),
    movement("quality_gates: [{type: command, command: make, cwd: ../x}]"),
    movement("quality_gates: [{type: command, command: make, cwd: /x}]"),
    top('personas: {"a\\tb": You write code.}'),
    top('report_formats: {"a\\nb": You write code.}'),
    top("max_movements: 3.5"),
    top("max_movements: yes"),
    top("control: maybe"),
    "name: p\nmovements: ~\n",
    judge("rules: []"),
]

ONLY_THE_LOADER_KNOWS = {
    "3.0 is an integer to JSON Schema": top("max_movements: 3.0"),
    "which movements there are": top("initial_movement: b"),
    "where a rule leads": movement("edit: true").replace("COMPLETE", "b"),
    "names twice": "name: p\nmovements:\n" + 2 * f"  - {{name: a, {RULES}}}\n",
    "reports twice": movement("report: [a.md, ./A.md]"),
    "one number beside another": movement("team_leader: {max_parts: 1, refill_threshold: 2}"),
    "bytes, not letters": movement("report: " + "\u00e4" * 150),
    "what a condition says": movement("edit: true").replace("condition: ok", 'condition: any("ok")'),
    "which files there are": movement("arpeggio: {source: csv, source_path: a.csv, template: gone.md}"),
}


@pytest.fixture(autouse=True)
def _no_other_facets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def loads(text: str, folder: Path) -> bool:
    (folder / "p.yaml").write_text(text, encoding="utf-8")
    try:
        load_piece("./p.yaml", cwd=folder)
    except PieceError:
        return False
    return True


def valid(text: str) -> bool:
    native = text.startswith("cadenza")
    schema = piece_schema("native" if native else "takt")
    return Draft202012Validator(schema).is_valid(parse(text, file="p.yaml").plain())


def of(version: str, text: str) -> str:
    """The text in one of the formats; ours by tags, whose rules may end the run."""
    if not version or "control:" in text:
        return version + text
    return f"{version}{text.rstrip()}\ncontrol: tags\n"


@pytest.mark.parametrize("version", ["", "cadenza: 1\n"], ids=["takt", "native"])
@pytest.mark.parametrize("text", LOADS)
def test_what_loads_is_valid(text: str, version: str, tmp_path: Path) -> None:
    text = of(version, text)
    assert valid(text) == loads(text, tmp_path)
    assert version or valid(text)


@pytest.mark.parametrize("version", ["", "cadenza: 1\n"], ids=["takt", "native"])
@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused_is_not_valid(text: str, version: str, tmp_path: Path) -> None:
    assert (valid(of(version, text)), loads(of(version, text), tmp_path)) == (False, False)


@pytest.mark.parametrize("reason", ONLY_THE_LOADER_KNOWS)
def test_what_only_loading_knows(reason: str, tmp_path: Path) -> None:
    text = ONLY_THE_LOADER_KNOWS[reason]
    assert (valid(text), loads(text, tmp_path)) == (True, False)
