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


@pytest.mark.parametrize("phases", ["single", "three"])
def test_a_piece_can_say_how_its_movements_are_asked(load: Load, phases: str) -> None:
    assert load(f"phases: {phases}\n{MINIMAL}").piece.phases == phases


def test_a_team_leader_with_everything(load: Load) -> None:
    loaded = load(
        movement("""
            persona: worker
            instruction: Split it.
            team_leader:
              persona: ../agents/lead.md
              max_parts: 2
              refill_threshold: 1
              timeout_ms: 90000
              part_persona: ../agents/hand.md
              part_edit: true
              part_allowed_tools: [Read, Edit]
              part_permission_mode: full
        """),
        agents__lead="You lead.",
        agents__hand="You do.",
        facets__personas__worker="You work.",
    )
    lead = first(loaded)
    team = lead.team_leader
    assert team is not None
    assert (lead.kind, lead.performer, persona_of(loaded).name) == ("team_leader", "agents/lead", "lead")
    assert (team.max_parts, team.refill_threshold, team.timeout) == (2, 1, 90.0)
    assert (team.part_persona_name, team.part_edit, team.part_allowed_tools, team.part_permission_mode) == (
        "agents/hand",
        True,
        ("Read", "Edit"),
        "full",
    )
    assert team.part_persona is not None
    assert loaded.texts[team.part_persona.text] == "You do."


def test_the_smallest_team_leader_has_takts_defaults(load: Load) -> None:
    lead = first(load(movement("team_leader: {}")))
    assert lead.team_leader is not None
    assert lead.team_leader.model_dump(exclude_defaults=True) == {}
    assert (lead.team_leader.max_parts, lead.team_leader.timeout) == (3, 600.0)


def test_an_arpeggio_names_its_files_beside_the_piece(load: Load, tmp_path: Path) -> None:
    loaded = load(
        movement("""
            arpeggio:
              source: csv
              source_path: ../data/rows.csv
              template: ../data/prompt.md
              batch_size: 2
              concurrency: 3
              merge: {strategy: concat, separator: "--"}
              max_retries: 0
              retry_delay_ms: 250
              output_path: out.txt
        """),
        data__prompt="Do {line:1}",
    )
    data = first(loaded).arpeggio
    assert data is not None
    assert (first(loaded).kind, loaded.texts[data.template]) == ("arpeggio", "Do {line:1}")
    assert data.source == str(tmp_path / "data" / "rows.csv")
    assert data.output == str(tmp_path / "pieces" / "out.txt")
    assert (data.batch_size, data.concurrency, data.separator) == (2, 3, "--")
    assert (data.max_retries, data.retry_delay) == (0, 0.25)


def test_quality_gates_are_words_or_commands(load: Load) -> None:
    work = first(
        load(
            movement("""
                quality_gates:
                  - tests pass
                  - {type: command, name: tests, command: make test, cwd: app, timeout_ms: 1500}
                  - {type: command, command: make lint}
            """)
        )
    )
    assert work.quality_gates == ("tests pass",)
    tests, lint = work.command_gates
    assert (tests.name, tests.command, tests.cwd, tests.timeout) == ("tests", "make test", "app", 1.5)
    assert (lint.name, lint.command, lint.cwd, lint.timeout) == (None, "make lint", None, 600.0)


def test_a_judge_inherits_the_pieces_provider_or_has_its_own(load: Load) -> None:
    text = """
        name: p
        piece_config: {provider: codex, model: m}
        movements:
          - {name: a, rules: [{condition: x, next: b}]}
          - {name: b, rules: [{condition: x, next: a}]}
        loop_monitors:
          - {cycle: [a, b], judge: {JUDGE rules: [{condition: x, next: ABORT}]}}
    """
    judge = load(text.replace("JUDGE", "")).piece.loop_monitors[0].judge
    assert (judge.provider, judge.model) == ("codex", "m")
    own = load(text.replace("JUDGE", "provider: {type: openai, model: big},")).piece.loop_monitors[0].judge
    assert (own.provider, own.model) == ("openai", "big")


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
        "name: p\nmovements: [{name: a, team_leader: {max_parts: 4}, RULE}]",
        "2:48: max_parts must be a whole number from 1 to 3, not this (4); write 3",
    ),
    (
        "name: p\nmovements: [{name: a, team_leader: {max_parts: 2, refill_threshold: 3}, RULE}]",
        "2:69: refill_threshold must be a whole number from 0 to 2, not this (3); write 0",
    ),
    (
        "name: p\nmovements: [{name: a, team_leader: {timeout_ms: 0}, RULE}]",
        "timeout_ms must be a whole number from 1, not this (0); write 600000",
    ),
    (
        "name: p\nmovements: [{name: a, team_leader: {part_permission_mode: all}, RULE}]",
        "part_permission_mode must be one of readonly, edit, full (all)",
    ),
    (
        "name: p\nmovements: [{name: a, team_leader: {}, parallel: [{name: l}], RULE}]",
        "2:40: a movement cannot have both team_leader and parallel; make two movements of it",
    ),
    (
        "name: p\nmovements: [{name: a, arpeggio: {source: csv, source_path: x.csv}, RULE}]",
        "2:33: arpeggio has no template; add template:",
    ),
    (
        "name: p\nmovements: [{name: a, arpeggio: {source: csv, source_path: x.csv, template: t.md}, RULE}]",
        "there is no such file (t.md); put the prompt there",
    ),
    (
        "name: p\nmovements: [{name: a, arpeggio: {source: ./rows.js, source_path: x, template: t}, RULE}]",
        "rows that come from a program of one's own: this version does not play it (./rows.js)",
    ),
    (
        "name: p\nmovements: [{name: a, arpeggio: {merge: {strategy: custom, file: m.js}}, RULE}]",
        "outputs that are merged by a program of one's own: this version does not play it (custom)",
    ),
    (
        "name: p\nmovements: [{name: a, arpeggio: {merge: {inline_js: x}}, RULE}]",
        "merge: concat takes no inline_js (x)",
    ),
    (
        "name: p\nmovements: [{name: a, quality_gates: [{command: make}], RULE}]",
        "2:39: a quality gate that is no text has no type; add type: command",
    ),
    (
        "name: p\nmovements: [{name: a, quality_gates: [{type: script, command: make}], RULE}]",
        "type must be one of command (script)",
    ),
    (
        "name: p\nmovements: [{name: a, quality_gates: [{type: command}], RULE}]",
        "a quality gate has no command; add command:",
    ),
    (
        "name: p\nmovements: [{name: a, quality_gates: [{type: command, command: make, cwd: ../x}], RULE}]",
        "a quality gate runs inside the working directory (../x)",
    ),
    ("name: p\nmovements: [{name: a, provider: {model: x}, RULE}]", "a provider has no type; add type:"),
    (
        "name: p\ncontrol: tools\nmovements: [{name: a, RULE}]",
        "control by tools belongs to Cadenza",
    ),
    ("name: p\npersonas: [a]\nmovements: [{name: a, RULE}]", "2:11: personas must be a mapping, not a list"),
    (
        "name: p\npersonas: {a: [x]}\nmovements: [{name: a, RULE}]",
        "2:15: personas maps names to paths or texts, and this is a list",
    ),
    ("name: p\nphases: two\nmovements: [{name: a, RULE}]", "phases must be one of single, three (two)"),
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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("plan.md", "./plan.md"),
        ("sub/plan.md", "Sub/PLAN.md"),
        ("caf\u00e9.md", "cafe\u0301.md"),
        ("notes", "notes/a.md"),
    ],
)
def test_names_that_some_file_systems_take_for_one(load: Load, one: str, other: str) -> None:
    with pytest.raises(PieceError) as caught:
        load(movement(f"report: [{{A: {one}}}, {{B: {other}}}]"))
    assert len(caught.value.problems) == 1


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
        (
            movement("team_leader: {max_part: 2}"),
            "team_leader has no such key: it is ignored (max_part); did you mean max_parts?",
        ),
        (
            movement("", "piece_config: {modle: x}\n"),
            "piece_config has no such key: it is ignored (modle); did you mean model?",
        ),
        (
            movement("provider: {type: openai, colour: x}"),
            "a provider has no such key: it is ignored (colour)",
        ),
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
