"""Our own piece format: strict where TAKT's is lenient."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from cadenza.errors import PieceError
from cadenza.piece.find import load_piece
from cadenza.piece.model import LoadedPiece

Load = Callable[..., LoadedPiece]

RULES = "    rules: [{condition: x, next: COMPLETE}]\n"


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def loaded(text: str) -> LoadedPiece:
        text = textwrap.dedent(text).rstrip("\n") + "\n"
        if "control:" not in text:
            text += "control: tags\n"
        (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
        return load_piece("./p.yaml", cwd=tmp_path)

    return loaded


def test_a_whole_piece(load: Load) -> None:
    loaded = load("""
        cadenza: 1
        name: p
        language: ja
        phases: single
        control: tags
        model: big
        facets:
          personas: {coder: You write code.}
          policies: {short: Be brief.}
          output-contracts: {plan: "# Plan"}
        movements:
          - name: plan
            persona: coder
            policy: short
            instruction: Plan the task.
            report: {name: plan.md, format: plan}
            rules: [{condition: ready, next: check}]
          - name: check
            parallel:
              - {name: one, instruction: Look once., rules: [{condition: ok}, {condition: bad}]}
              - {name: two, instruction: Look twice., rules: [{condition: ok}, {condition: bad}]}
            rules: [{condition: all("ok"), next: COMPLETE}, {condition: any("bad"), next: plan}]
        loop_monitors:
          - cycle: [plan, check]
            judge:
              instruction: Is it going anywhere?
              rules: [{condition: yes, next: plan}, {condition: no, next: ABORT}]
    """)
    piece = loaded.piece
    assert (piece.dialect, piece.language, piece.phases, piece.control) == ("native", "ja", "single", "tags")
    assert [rule.condition for rule in piece.loop_monitors[0].judge.rules] == ["yes", "no"]
    plan = piece.movements[0]
    assert (plan.performer, plan.model, loaded.texts[plan.reports[0].format or ""]) == (
        "coder",
        "big",
        "# Plan",
    )
    assert loaded.warnings == ()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cadenza: 2", "1:10: this version of the piece format is not known (2); write cadenza: 1"),
        ("cadenza: true", "this version of the piece format is not known (true)"),
        ("cadenza:", "this version of the piece format is not known (nothing)"),
        (
            "cadenza: 1\nmax_movement: 3",
            "2:1: a piece has no such key (max_movement); did you mean max_movements?",
        ),
        ("cadenza: 1\nsteps: []", "2:1: a piece has no such key (steps)"),
        ("cadenza: 1\npersonas: {}", "2:1: a piece has no such key (personas)"),
        ("cadenza: 1\nfacets: {person: {}}", "facets has no such key (person); did you mean personas?"),
        ("cadenza: 1\nlanguage: fr", "language must be one of en, ja (fr)"),
        ("cadenza: 1\nphases: three\ncontrol: tools", "phases: three asks for the status by tags (tools)"),
    ],
)
def test_top_level_mistakes(load: Load, line: str, words: str) -> None:
    with pytest.raises(PieceError) as caught:
        load(f"{line}\nname: p\nmovements:\n  - name: a\n{RULES}")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (
            "instruction_template: Do it now.",
            "a movement has no such key (instruction_template); did you mean instruction?",
        ),
        ("output_contracts: {report: []}", "a movement has no such key (output_contracts)"),
        ("team_leader: {max_part: 2}", "team_leader has no such key (max_part); did you mean max_parts?"),
        (
            "quality_gates: [{type: command, comand: x, command: x}]",
            "a quality gate has no such key (comand)",
        ),
        ("provider: {type: openai, sandbox: {}}", "a provider has no such key (sandbox)"),
        ("persona_name: 3", "persona_name must be text, not a number (3)"),
        ("persona: nobody", "no persona has this name (nobody)"),
        ("persona: helpr", "no persona has this name (helpr); did you mean helper?"),
        ("instruction: ../gone.md", "there is no such file (../gone.md)"),
        ("report: {name: a.md, fromat: x y}", "a report has no such key (fromat); did you mean format?"),
    ],
)
def test_nothing_is_guessed(load: Load, extra: str, words: str) -> None:
    with pytest.raises(PieceError) as caught:
        load(f"cadenza: 1\nname: p\nmovements:\n  - name: a\n    {extra}\n{RULES}")
    assert words in str(caught.value)
    assert len(caught.value.problems) == 1


def test_next_in_a_sub_movement_is_pointed_out(load: Load) -> None:
    loaded = load("""
        cadenza: 1
        name: p
        movements:
          - name: a
            parallel: [{name: l, rules: [{condition: ok, next: a}]}]
            rules: [{condition: all("ok"), next: COMPLETE}]
    """)
    assert "next is ignored in a parallel sub-movement (a)" in loaded.warnings[0]


def test_team_leaders_gates_and_phases_are_ours_too(load: Load) -> None:
    loaded = load("""
        cadenza: 1
        name: p
        phases: three
        facets:
          personas: {lead: You lead., hand: You do.}
        movements:
          - name: split
            persona: lead
            provider: {type: openai, model: big}
            team_leader: {max_parts: 2, part_persona: hand}
            quality_gates: [fine, {type: command, command: make test}]
            rules: [{condition: done, next: COMPLETE}]
    """)
    split = loaded.piece.movements[0]
    assert (loaded.piece.phases, split.kind, split.performer) == ("three", "team_leader", "lead")
    assert (split.provider, split.model) == ("openai", "big")
    assert split.team_leader is not None
    assert split.team_leader.part_persona is not None
    assert split.team_leader.part_persona.name == "hand"
    assert (split.quality_gates, [gate.command for gate in split.command_gates]) == (("fine",), ["make test"])
    assert loaded.warnings == ()


@pytest.mark.parametrize("version", ['"1"', "'1'", "' 1 '"])
def test_a_version_in_quotes_is_text(load: Load, version: str) -> None:
    with pytest.raises(PieceError, match="must be the number 1, not text") as caught:
        load(f"cadenza: {version}\nname: p\nmovements:\n  - name: a\n{RULES}")
    assert "without quotes" in str(caught.value)


def test_a_word_that_is_no_name_is_told_how_to_become_a_text(load: Load) -> None:
    piece = f"cadenza: 1\nname: p\nmovements:\n  - name: a\n    instruction: WORDS\n{RULES}"
    with pytest.raises(PieceError) as caught:
        load(piece.replace("WORDS", "hi"))
    for way in ("write instructions/hi.md", "full stop", "more than one word", "a block"):
        assert way in str(caught.value)
    for words in ("hi.", "hi there", "|\n      hi"):
        assert load(piece.replace("WORDS", words)).piece.movements[0].instruction is not None


def test_known_names_are_told_once(load: Load) -> None:
    piece = (
        f"cadenza: 1\nname: p\ninitial_movement: zzz\nmovements:\n  - name: a\n{RULES}  - name: a\n{RULES}"
    )
    with pytest.raises(PieceError) as caught:
        load(piece)
    assert "(zzz); known are a" in str(caught.value)
    assert "a, a" not in str(caught.value)


def test_a_sentence_that_ends_in_a_file_name_is_a_text(load: Load, tmp_path: Path) -> None:
    piece = f"cadenza: 1\nname: p\nmovements:\n  - name: a\n    instruction: WORDS\n{RULES}"
    words = "Write the summary to summary.md"
    loaded = load(piece.replace("WORDS", words))
    assert (loaded.warnings, words in loaded.texts.values()) == ((), True)
    (tmp_path / "my words.md").write_text("Do what stands here.", encoding="utf-8")
    assert "Do what stands here." in load(piece.replace("WORDS", "my words.md")).texts.values()
    for path in ("./no such.md", "../no such words", "gone.md"):
        with pytest.raises(PieceError, match="there is no such file"):
            load(piece.replace("WORDS", path))


@pytest.mark.parametrize("written", ["\\t", "\\n", "\\x1f", "\\x85"])
@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("persona_name: ", "5:19: persona_name must be one line"),
        ("parallel: [{rules: [{condition: x}], name: ", "5:48: a sub-movement's name must be one line"),
    ],
)
def test_names_are_one_line(load: Load, key: str, what: str, written: str) -> None:
    end = "}]" if "[" in key else ""
    with pytest.raises(PieceError) as caught:
        load(f'cadenza: 1\nname: p\nmovements:\n  - name: a\n    {key}"a{written}b"{end}\n{RULES}')
    assert what in str(caught.value)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("section", ["personas", "policies", "output-contracts"])
def test_keys_of_sections_are_one_line(load: Load, section: str) -> None:
    with pytest.raises(PieceError) as caught:
        load(
            f'cadenza: 1\nname: p\nfacets:\n  {section}:\n    "a\\tb": Be brief.\n'
            f"movements:\n  - name: a\n{RULES}"
        )
    assert f"p.yaml:5:5: a key of {section} must be one line" in str(caught.value)
