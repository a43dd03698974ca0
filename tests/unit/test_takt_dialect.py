"""TAKT's piece files: what is read, from where, and what is said about mistakes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cadenza.errors import PieceError
from cadenza.piece.find import load_piece
from cadenza.piece.model import Facet, LoadedPiece, Movement

Load = Callable[..., LoadedPiece]

MINIMAL = """
name: p
movements:
  - name: work
    rules: [{condition: Done, next: COMPLETE}]
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Write a piece (and other files) below tmp_path and load it."""

    def loaded(text: str, **files: str) -> LoadedPiece:
        for name, words in files.items():
            _put(tmp_path, name.replace("__", "/") + ".md", words)
        _put(tmp_path, "pieces/p.yaml", textwrap.dedent(text))
        return load_piece("pieces/p.yaml", cwd=tmp_path)

    return loaded


def _put(root: Path, name: str, words: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(words, encoding="utf-8")


def movement(extra: str, top: str = "") -> str:
    body = textwrap.indent(textwrap.dedent(extra).strip(), "    ")
    rules = "    rules: [{condition: Done, next: COMPLETE}]\n"
    return f"name: p\n{textwrap.dedent(top)}movements:\n  - name: work\n{body}\n{rules}"


def first(loaded: LoadedPiece) -> Movement:
    return loaded.piece.movements[0]


def persona_of(loaded: LoadedPiece) -> Facet:
    persona = first(loaded).persona
    assert persona is not None
    return persona


# What is read


def test_the_smallest_piece_has_takts_defaults(load: Load) -> None:
    piece = load(MINIMAL).piece
    assert (piece.dialect, piece.max_movements, piece.initial_movement) == ("takt", 10, "work")
    work = piece.movements[0]
    assert (work.kind, work.performer, work.session, work.pass_previous_response) == (
        "agent",
        "default",
        "continue",
        True,
    )
    assert (work.edit, work.allowed_tools, work.instruction, work.reports) == (None, None, None, ())


@pytest.mark.parametrize(
    ("section", "reference"),
    [
        ("personas", "persona"),
        ("policies", "policy"),
        ("knowledge", "knowledge"),
        ("instructions", "instruction"),
    ],
)
def test_section_map_keys_lead_to_files_relative_to_the_piece(
    load: Load, section: str, reference: str
) -> None:
    top = f"{section}:\n  key: ../facets/{section}/file.md\n"
    loaded = load(movement(f"{reference}: key", top), **{f"facets__{section}__file": "the words\n"})
    assert list(loaded.texts.values()) == ["the words\n"]
    assert loaded.warnings == ()


def test_a_section_map_value_that_is_no_file_is_inline_text(load: Load) -> None:
    loaded = load(movement("persona: coder", "personas:\n  coder: You write code.\n"))
    persona = persona_of(loaded)
    assert (persona.name, loaded.texts[persona.text], persona.origin) == (
        "coder",
        "You write code.",
        "inline",
    )


def test_bare_names_are_found_beside_the_piece_then_project_then_user(load: Load, tmp_path: Path) -> None:
    _put(tmp_path, "home/.takt/facets/policies/three.md", "user")
    _put(tmp_path, ".takt/facets/policies/three.md", "project")
    _put(tmp_path, ".takt/facets/policies/two.md", "project")
    _put(tmp_path, "facets/policies/two.md", "beside")
    _put(tmp_path, "home/.takt/facets/policies/four.md", "user")
    loaded = load(movement("policy: [two, three, four]"))
    found = [(facet.name, loaded.texts[facet.text], facet.origin) for facet in first(loaded).policies]
    assert found == [
        ("two", "beside", "../facets/policies/two.md"),
        ("three", "project", "project:.takt/policies/three.md"),
        ("four", "user", "user:.takt/policies/four.md"),
    ]


def test_bare_names_reach_the_packages_facets_last(load: Load) -> None:
    loaded = load(movement("persona: referee"))
    assert persona_of(loaded).origin == "package:en/personas/referee.md"


def test_the_same_piece_elsewhere_has_the_same_hash(tmp_path: Path) -> None:
    hashes = set()
    for place in ("a", "b/c"):
        _put(tmp_path, f"{place}/facets/personas/coder.md", "x")
        _put(tmp_path, f"{place}/pieces/p.yaml", movement("persona: coder"))
        hashes.add(load_piece(f"{place}/pieces/p.yaml", cwd=tmp_path).piece.hash)
    assert len(hashes) == 1


@pytest.mark.parametrize(
    ("persona", "file", "name", "performer"),
    [
        ("../agents/test-coder.md", "agents__test-coder", "test-coder", "agents/test-coder"),
        ("../facets/personas/coder.md", "facets__personas__coder", "coder", "coder"),
        ("coder", "facets__personas__coder", "coder", "coder"),
        ("./near.md", "pieces__near", "near", "near"),
        ("You are careful and brief.", None, "work", "work"),
    ],
)
def test_the_performers_name_comes_from_the_personas_file(
    load: Load, persona: str, file: str | None, name: str, performer: str
) -> None:
    loaded = load(movement(f"persona: {persona}"), **({file: "words"} if file else {}))
    assert (persona_of(loaded).name, first(loaded).performer) == (name, performer)


def test_persona_name_wins_over_the_file(load: Load) -> None:
    loaded = load(movement("persona: ../agents/coder.md\npersona_name: Ada"), agents__coder="x")
    assert first(loaded).performer == "Ada"


def test_instruction_template_wins_over_instruction(load: Load) -> None:
    loaded = load(movement("instruction: Do this now.\ninstruction_template: |\n  Do that.\n"))
    assert loaded.texts[first(loaded).instruction or ""] == "Do that.\n"


REPORT_FORMS = [
    ("report: {name: 01-plan.md, format: plan}", [("01-plan.md", None, "FORMAT", None)]),
    ('report: {name: 01-plan.md, format: "# Plan {x}"}', [("01-plan.md", None, "# Plan {x}", None)]),
    (
        "report: [{Summary: s.md}, {Scope: 01.md}]",
        [("s.md", "Summary", None, None), ("01.md", "Scope", None, None)],
    ),
    (
        'report: [{name: a.md, order: "Write it now.", format: plan}]',
        [("a.md", None, "FORMAT", "Write it now.")],
    ),
    ("report: plain.md", [("plain.md", None, None, None)]),
    ("output_contracts: {report: [{name: a.md, format: plan}]}", [("a.md", None, "FORMAT", None)]),
    ("output_contracts: {report: [{Summary: s.md}]}", [("s.md", "Summary", None, None)]),
    ("output_contracts: [{name: a.md, format: plan}]", [("a.md", None, "FORMAT", None)]),
]


@pytest.mark.parametrize("section", ["output_contracts", "report_formats"])
@pytest.mark.parametrize(("form", "expected"), REPORT_FORMS)
def test_every_report_form_is_read(load: Load, section: str, form: str, expected: list[Any]) -> None:
    loaded = load(movement(form, f"{section}: {{plan: ../formats/plan.md}}\n"), formats__plan="FORMAT")
    found = [
        (
            report.name,
            report.label,
            loaded.texts.get(report.format or ""),
            loaded.texts.get(report.order or ""),
        )
        for report in first(loaded).reports
    ]
    assert found == expected


def test_report_formats_are_found_by_bare_name_in_output_contracts(load: Load) -> None:
    text = movement("output_contracts: {report: [{name: a.md, format: plan, use_judge: false}]}")
    loaded = load(text, **{"facets__output-contracts__plan": "F"})
    report = first(loaded).reports[0]
    assert (loaded.texts[report.format or ""], report.use_judge) == ("F", False)


def test_the_later_spelling_is_read_too(load: Load) -> None:
    piece = load("""
        name: p
        max_steps: 4
        initial_step: b
        steps:
          - {name: a, rules: [{condition: x, next: COMPLETE}]}
          - {name: b, rules: [{condition: x, next: a}]}
    """).piece
    assert (piece.max_movements, piece.initial_movement, list(piece.by_name)) == (4, "b", ["a", "b"])


def test_provider_and_model_are_inherited_until_a_movement_names_its_own(load: Load) -> None:
    piece = load("""
        name: p
        piece_config: {provider: {type: claude, model: big}, runtime: {prepare: [node]}}
        movements:
          - name: a
            parallel:
              - {name: l1, rules: [{condition: ok}]}
              - {name: l2, provider: codex, rules: [{condition: ok}]}
              - {name: l3, model: small, rules: [{condition: ok}]}
            rules: [{condition: all("ok"), next: COMPLETE}]
    """).piece
    lanes = piece.movements[0].lanes
    assert [(lane.provider, lane.model) for lane in lanes] == [
        ("claude", "big"),
        ("codex", None),
        ("claude", "small"),
    ]


def test_monitors_rules_and_the_rest_are_kept(load: Load) -> None:
    piece = load("""
        name: p
        description: words
        movements:
          - name: a
            edit: true
            session: refresh
            allowed_tools: [Read, Bash]
            required_permission_mode: edit
            quality_gates: [tests pass]
            pass_previous_response: false
            rules:
              - {condition: Ask, next: a, requires_user_input: true, interactive_only: true, appendix: more}
              - {condition: 'ai("Good")', next: b}
          - {name: b, rules: [{condition: Again, next: a}, {condition: End, next: ABORT}]}
        loop_monitors:
          - cycle: [a, b]
            judge:
              persona: You judge fairly.
              instruction_template: Cycle {cycle_count} again.
              rules: [{condition: fine, next: a}, {condition: stuck, next: ABORT}]
    """).piece
    a, monitor = piece.movements[0], piece.loop_monitors[0]
    assert (a.edit, a.session, a.allowed_tools, a.quality_gates) == (
        True,
        "refresh",
        ("Read", "Bash"),
        ("tests pass",),
    )
    assert (a.required_permission_mode, a.pass_previous_response) == ("edit", False)
    ask = a.rules[0]
    assert (ask.requires_user_input, ask.interactive_only, ask.appendix) == (True, True, "more")
    assert (monitor.cycle, monitor.threshold, monitor.name) == (("a", "b"), 3, "_loop_judge_a_b")
    assert monitor.judge.persona is not None
    assert monitor.judge.persona.name == "judge"


# Mistakes

GOOD_RULE = "rules: [{condition: Done, next: COMPLETE}]"

ERRORS = [
    ("just words", "1:1: a piece must be a mapping, not text (just words)"),
    (
        "movements: [{name: a, rules: [{condition: x, next: COMPLETE}]}]",
        "1:1: a piece has no name; add name:",
    ),
    ("name: p", "1:1: a piece has no movements; add movements: with at least one"),
    ("name: p\nmovements: []", "2:12: a piece has no movements"),
    ("name: p\nmovements: {a: 1}", "2:12: movements must be a list, not a mapping"),
    ("name: p\nmovements: [plan]", "2:13: a movement must be a mapping, not text (plan)"),
    ("name: 7\nmovements: [{name: a, RULE}]", "1:7: name must be text, not a number (7); put it in quotes"),
    ("name: p\nmovements: [{RULE}]", "2:13: a movement has no name; add name:"),
    ("name: p\nmovements: [{name: '', RULE}]", "2:20: the name is empty"),
    ("name: p\nmax_movements: 0\nmovements: [{name: a, RULE}]", "2:16: max_movements must be a whole number"),
    ("name: p\nmax_movements: ten\nmovements: [{name: a, RULE}]", "from 1, not text (ten); write 10"),
    ("name: p\nmax_movements: true\nmovements: [{name: a, RULE}]", "2:16: max_movements must be"),
    ("name: p\ninitial_movement: plam\nmovements: [{name: plan, RULE}]", "(plam); did you mean plan?"),
    (
        "name: p\nmovements:\n- {name: a, RULE}\n- {name: a, RULE}",
        "4:10: the name was given already on line 3",
    ),
    ("name: p\nmovements: [{name: COMPLETE, RULE}]", "2:20: no movement may have this name (COMPLETE)"),
    ("name: p\nmovements: [{name: ASK, RULE}]", "no movement may have this name (ASK)"),
    (
        "name: p\nmovements: [{name: plan, rules: [{condition: x, next: plna}]}]",
        "2:55: no movement has this name (plna); did you mean plan?",
    ),
    (
        "name: p\nmovements: [{name: a, rules: [{condition: x, next: DONE}]}]",
        "(DONE); known are COMPLETE, ABORT, a",
    ),
    (
        "name: p\nmovements: [{name: a, rules: [{condition: x}]}]",
        "2:31: this rule leads nowhere (x); add next:",
    ),
    ("name: p\nmovements: [{name: a, rules: [{next: a}]}]", "2:31: a rule has no condition"),
    (
        "name: p\nmovements: [{name: a, rules: [{condition: true, next: a}]}]",
        "2:43: condition must be text, not true or false (true)",
    ),
    ("name: p\nmovements: [{name: a, rules: {condition: x}}]", "rules must be a list, not a mapping"),
    (
        "name: p\nmovements: [{name: a, rules: [{condition: 'all(\"x\")', next: a}]}]",
        "count sub-movements, and this movement has none",
    ),
    (
        "name: p\nmovements: [{name: a, rules: [{condition: all(x), next: a}]}]",
        "2:43: condition 'all(x)' names no sub-movement",
    ),
    (
        "name: p\nmovements: [{name: a, edit: maybe, RULE}]",
        "2:29: edit must be true or false, not text (maybe)",
    ),
    ("name: p\nmovements: [{name: a, edit: yes, RULE}]", "edit must be true or false, not text (yes)"),
    ("name: p\nmovements: [{name: a, session: new, RULE}]", "session must be one of continue, refresh (new)"),
    ("name: p\nmovements: [{name: a, required_permission_mode: ful, RULE}]", "(ful); did you mean full?"),
    (
        "name: p\nmovements: [{name: a, permission_mode: full, RULE}]",
        "2:23: permission_mode is not read (full); write required",
    ),
    ("name: p\nmovements: [{name: a, parallel: [], RULE}]", "2:33: parallel has no sub-movements"),
    (
        "name: p\nmovements: [{name: a, allowed_tools: Read, RULE}]",
        "allowed_tools must be a list, not text (Read)",
    ),
    ("name: p\nmovements: [{name: a, policy: [1], RULE}]", "2:32: policy must be text, not a number (1)"),
    (
        "name: p\nmovements: [{name: lead, team_leader: {max_parts: 2}, RULE}]",
        "2:26: this is a team leader's movement: this version does not play them yet (lead)",
    ),
    (
        "name: p\nmovements: [{name: data, arpeggio: {source: csv}, RULE}]",
        "this is an arpeggio movement: this version does not",
    ),
    ("name: p\npersonas: [a]\nmovements: [{name: a, RULE}]", "2:11: personas must be a mapping, not a list"),
    (
        "name: p\npersonas: {a: [x]}\nmovements: [{name: a, RULE}]",
        "2:15: personas maps names to paths or texts, and this is a list",
    ),
    ("name: p\nphases: three\nmovements: [{name: a, RULE}]", "phases must be one of single (three)"),
    ("name: p\nloop_monitors: [{cycle: [a]}]\nmovements: [{name: a, RULE}]", "a loop monitor has no judge"),
    (
        "name: p\nloop_monitors: [{cycle: [a], "
        "judge: {rules: [{condition: x, next: a}]}}]\nmovements: [{name: a, RULE}]",
        "a cycle names at least two movements",
    ),
    (
        "name: p\nloop_monitors: [{cycle: [a, c], "
        "judge: {rules: [{condition: x, next: d}]}}]\nmovements: [{name: a, RULE}]",
        "2:29: no movement has this name (c); known are a",
    ),
    (
        "name: p\nloop_monitors: [{cycle: [a, a], judge: {rules: []}}]\nmovements: [{name: a, RULE}]",
        "the judge has no rules",
    ),
]


@pytest.mark.parametrize(("text", "words"), ERRORS, ids=[words for _, words in ERRORS])
def test_a_mistake_names_its_place_the_value_and_the_fix(load: Load, text: str, words: str) -> None:
    with pytest.raises(PieceError) as caught:
        load(text.replace("RULE", GOOD_RULE))
    lines = caught.value.problems
    assert any(words in line for line in lines), lines
    assert all(line.startswith("pieces/p.yaml:") and "\n" not in line for line in lines)


@pytest.mark.parametrize(
    "name",
    ["../x.md", "/etc/x.md", "a/../../x.md", "a\\b.md", "C:x.md", "dir/", "..", '"a\\nb.md"', "n" * 201],
)
def test_a_report_stays_in_its_folder(load: Load, name: str) -> None:
    with pytest.raises(PieceError) as caught:
        load(movement(f"report: {{name: {name}, format: Some words.}}"))
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("name", ["plan.md", "sub/plan.md", "計画　一.md", "v1..2.md"])
def test_report_names_that_are_fine(load: Load, name: str) -> None:
    assert first(load(movement(f"report: {{name: {name}, format: Some words.}}"))).reports[0].name == name


def test_reports_of_one_visit_must_not_overwrite_each_other(load: Load) -> None:
    with pytest.raises(PieceError) as caught:
        load("""
            name: p
            movements:
              - name: a
                parallel:
                  - {name: l1, report: [{A: same.md}], rules: [{condition: ok}]}
                  - {name: l2, report: [{B: Same.md}], rules: [{condition: ok}]}
                rules: [{condition: all("ok"), next: COMPLETE}]
        """)
    assert "7:33: this report's name was given already on line 6 (Same.md)" in caught.value.problems[0]


def test_all_mistakes_are_told_at_once_in_order(load: Load) -> None:
    with pytest.raises(PieceError) as caught:
        load(
            "name: p\nmax_movements: no\nmovements:\n"
            "  - {name: a, edit: 3, rules: [{condition: x, next: z}]}\n"
        )
    assert [line.split(":")[1] for line in caught.value.problems] == ["2", "4", "4"]
    assert str(caught.value) == "\n".join(caught.value.problems)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            movement("instrction: Do it now."),
            "a movement has no such key: it is ignored (instrction); did you mean instruction?",
        ),
        (
            movement("instruction: implment"),
            "no instruction has this name: it is taken as the text itself (implment)",
        ),
        (
            movement("policy: ../nowhere.md"),
            "there is no such file: it is taken as the text itself (../nowhere.md)",
        ),
        (movement("persona: nobody"), "no persona has this name"),
        (movement("report: {name: a.md, format: nothing}"), "no report format has this name"),
        (movement("policy: k", "policies: {k: ../gone.md}\n"), "2:15: there is no such file"),
        ("name: p\nmovements: [{name: a}]", "no rule leads out of this movement (a)"),
        (
            "name: p\nmovements: [{name: a, parallel: [{name: l, rules: [{condition: ok}]}, "
            "{name: m, rules: [{condition: ok}]}],"
            ' rules: [{condition: \'all("ok", "ok", "ok")\', next: COMPLETE}]}]',
            "all() names 3 labels for 2 sub-movements: it never holds",
        ),
        (
            "name: p\nmovements: [{name: a, parallel: [{name: l, rules: [{condition: ok}]}],"
            " rules: [{condition: 'any(\"okay\")', next: COMPLETE}]}]",
            "no sub-movement can end with this label (okay); did you mean ok?",
        ),
    ],
)
def test_what_takt_lets_pass_is_a_warning(load: Load, text: str, words: str) -> None:
    loaded = load(text)
    assert any(words in line for line in loaded.warnings), loaded.warnings
    assert len(loaded.warnings) == 1


def test_a_facet_file_that_cannot_be_read_is_an_error(load: Load, tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_bytes(b"\xff")
    with pytest.raises(PieceError, match=r"the file cannot be used: .*not UTF-8"):
        load(movement("policy: ../bad.md"))


@pytest.mark.parametrize("text", ["word " * 100_000, "~/" + "x" * 5000, "a\nb.md", "実装する", "`x`/y z"])
def test_inline_text_is_never_mistaken_for_a_path(load: Load, text: str, tmp_path: Path) -> None:
    import json

    loaded = load(movement(f"instruction: {json.dumps(text, ensure_ascii=False)}"))
    assert loaded.texts[first(loaded).instruction or ""] == text
    assert loaded.warnings == ()


SEED_PATHS = [
    ("personas", "coder", "../facets/personas/coder.md", "facets/personas/coder.md"),
    ("policies", "coding", "../facets/policies/coding.md", "facets/policies/coding.md"),
    ("instructions", "plan", "../facets/instructions/plan.md", "facets/instructions/plan.md"),
]


@pytest.mark.parametrize(("section", "key", "value", "target"), SEED_PATHS)
def test_the_seeds_path_examples(tmp_path: Path, section: str, key: str, value: str, target: str) -> None:
    """TAKT engine, section maps: a piece in ~/.claude/skills/takt/pieces/default.yaml."""
    root = tmp_path / "home/.claude/skills/takt"
    _put(root, target, f"words of {key}")
    reference = {"personas": "persona", "policies": "policy", "instructions": "instruction"}[section]
    _put(root, "pieces/default.yaml", movement(f"{reference}: {key}", f"{section}:\n  {key}: {value}\n"))
    loaded = load_piece("~/.claude/skills/takt/pieces/default.yaml", cwd="/")
    assert list(loaded.texts.values()) == [f"words of {key}"]
