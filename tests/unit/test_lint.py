"""Lint: everything at once, with places, values and fixes as data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cadenza.errors import NotFound
from cadenza.piece.lint import Problem, dialect_of, has_errors, lint
from cadenza.piece.vocabulary import Language

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def written(text: str) -> str:
        (tmp_path / "p.yaml").write_text(text, encoding="utf-8")
        return "p.yaml"

    return written


def test_errors_and_warnings_come_together_in_the_order_of_the_file(write: Write) -> None:
    problems = lint(
        write("""name: p
max_movement: 3
movements:
  - name: a
    edit: sometimes
    rules:
      - {condition: x, next: b}
  - name: island
    rules:
      - {condition: x, next: COMPLETE}
""")
    )
    assert [(problem.line, problem.column, problem.severity, problem.value) for problem in problems] == [
        (2, 1, "warning", "max_movement"),
        (4, 11, "warning", "a"),
        (5, 11, "error", "sometimes"),
        (7, 30, "error", "b"),
        (8, 11, "warning", "island"),
    ]
    assert all(problem.file == "p.yaml" and problem.message and problem.fix for problem in problems)
    assert has_errors(problems)


def test_a_problem_reads_as_one_line() -> None:
    problem = Problem("p.yaml", 2, 3, "error", "what is wrong", "a\nvalue " + "x" * 100, "what to do")
    assert str(problem) == f"p.yaml:2:3: what is wrong (a value {'x' * 51}…); what to do"


def test_broken_yaml_is_a_problem_like_others(write: Write) -> None:
    (problem,) = lint(write("name: x\n  bad: y\n"))
    assert (problem.file, problem.line, problem.severity) == ("p.yaml", 2, "error")


def test_a_file_that_is_not_there_is_not_found(write: Write) -> None:
    with pytest.raises(NotFound):
        lint("gone.yaml")


@pytest.mark.parametrize(
    ("rules", "warned"),
    [
        ({"a": ["b"], "b": ["a"]}, ["a", "b"]),
        ({"a": ["b"], "b": ["COMPLETE", "a"]}, []),
        ({"a": ["b", "ABORT"], "b": ["b"]}, ["b"]),
        ({"a": ["COMPLETE"]}, []),
    ],
)
def test_a_cycle_that_nothing_ends_is_a_warning(
    write: Write, rules: dict[str, list[str]], warned: list[str]
) -> None:
    lines = ["name: p", "movements:"]
    for name, targets in rules.items():
        lines.append(f"- name: {name}\n  rules:")
        lines += [f"  - {{condition: to {target}, next: {target}}}" for target in targets]
    problems = lint(write("\n".join(lines)))
    assert [problem.value for problem in problems] == warned
    assert not has_errors(problems)


def test_a_loop_monitor_can_be_the_way_out(write: Write) -> None:
    text = """name: p
movements:
- {name: a, rules: [{condition: x, next: b}]}
- {name: b, rules: [{condition: x, next: a}]}
loop_monitors:
- {cycle: [a, b], judge: {rules: [{condition: on, next: a}, {condition: off, next: rescue}]}}
"""
    rescue = "- {name: rescue, rules: [{condition: x, next: ABORT}]}\n"
    assert lint(write(text.replace("loop_monitors", rescue + "loop_monitors"))) == []


def piece(rules: dict[str, list[str]], *cycles: list[str]) -> str:
    """A piece of movements with the targets of their rules, and loop monitors."""
    lines = ["name: p", "movements:"]
    for name, targets in rules.items():
        lines.append(f"- name: {name}\n  rules:")
        lines += [f"  - {{condition: {at} to {target}, next: {target}}}" for at, target in enumerate(targets)]
    lines += ["loop_monitors:"] if cycles else []
    for cycle in cycles:
        judge = "judge: {rules: [{condition: on, next: COMPLETE}]}"
        lines.append(f"- {{cycle: [{', '.join(cycle)}], {judge}}}")
    return "\n".join(lines)


REVIEW = {"build": ["review"], "review": ["COMPLETE", "fix"], "fix": ["review", "build"]}


@pytest.mark.parametrize(
    ("rules", "cycles", "warned"),
    [
        (REVIEW, [], ["review → fix → review"]),
        (REVIEW, [["review", "fix"]], []),
        (REVIEW, [["fix", "review"]], []),
        (REVIEW, [["build", "review"]], ["review → fix → review"]),
        ({"plan": ["build"], "build": ["COMPLETE", "plan"]}, [], []),
        (
            {"plan": ["build"], "build": ["check"], "check": ["plan", "COMPLETE"]},
            [],
            ["plan → build → check → plan"],
        ),
        ({"ask": ["ask", "COMPLETE"]}, [], []),
        ({"a": ["b"], "b": ["a", "COMPLETE"], "c": ["a"]}, [], ["a → b → a"]),
    ],
    ids=["to-and-fro", "watched", "turned", "another", "exception", "long", "itself", "not-closed"],
)
def test_going_round_as_the_usual_thing_wants_a_monitor(
    write: Write, rules: dict[str, list[str]], cycles: list[list[str]], warned: list[str]
) -> None:
    found = [
        problem for problem in lint(write(piece(rules, *cycles))) if "monitor watches" in problem.message
    ]
    assert [problem.value for problem in found] == warned
    for problem in found:
        assert problem.severity == "warning"
        assert problem.fix is not None
        assert problem.fix.endswith(f"cycle: [{', '.join(str(problem.value).split(' → ')[:-1])}]")


@pytest.mark.parametrize(
    ("cycles", "step"),
    [
        ([["a", "b"], ["b", "a"]], "b → a"),
        ([["a", "b"], ["a", "b", "c"]], "a → b"),
        ([["a", "b"], ["b", "c"]], None),
        ([["a", "b"]], None),
    ],
)
def test_monitors_in_each_others_way_are_a_warning(
    write: Write, cycles: list[list[str]], step: str | None
) -> None:
    text = piece({"a": ["b", "COMPLETE"], "b": ["c", "a"], "c": ["COMPLETE", "a", "b"]}, *cycles)
    problems = lint(write(text))
    assert [problem.value for problem in problems] == ([step] if step else [])
    assert all("the monitor on line" in problem.message for problem in problems)


def test_things_written_twice_are_pointed_out(write: Write) -> None:
    problems = lint(
        write("""name: p
movements:
  - name: a
    parallel:
      - {name: b, rules: [{condition: ok}, {condition: ok}]}
    rules:
      - {condition: all("ok"), next: b}
      - {condition: all("ok"), next: COMPLETE}
  - name: b
    rules:
      - {condition: x, next: COMPLETE}
""")
    )
    assert [(problem.line, problem.severity, problem.value) for problem in problems] == [
        (5, "warning", "b"),
        (5, "warning", "ok"),
        (8, "warning", 'all("ok")'),
    ]


def test_an_arpeggio_without_its_table_and_with_a_report(write: Write, tmp_path: Path) -> None:
    (tmp_path / "t.md").write_text("Do {line:1}", encoding="utf-8")
    text = """name: p
movements:
  - name: a
    arpeggio: {source: csv, source_path: rows.csv, template: t.md}
    report: [{All: all.md}]
    rules: [{condition: x, next: COMPLETE}]
"""
    problems = lint(write(text))
    assert [(problem.line, problem.value, problem.severity) for problem in problems] == [
        (4, "rows.csv", "warning"),
        (5, "all.md", "warning"),
    ]
    (tmp_path / "rows.csv").write_text("a\n1\n", encoding="utf-8")
    assert [problem.value for problem in lint("p.yaml")] == ["all.md"]


@pytest.mark.parametrize(
    ("text", "severity", "words"),
    [
        ("name: p\nname: q\nmovements: []\n", "error", "this key was given already on line 1"),
        (piece({"on": ["off"], "off": ["COMPLETE"]}), None, ""),
        (piece({"yes": ["no"], "no": ["COMPLETE"]}), None, ""),
        (piece({"a": ["COMPLETE"]}) + "\n  edit: on", "error", "edit must be true or false, not text"),
    ],
)
def test_the_traps_of_yaml(write: Write, text: str, severity: str | None, words: str) -> None:
    problems = lint(write(text))
    assert [problem.severity for problem in problems] == ([severity] if severity else [])
    assert all(words in problem.message for problem in problems)


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("cadenza: 1\nname: p\n", "native"),
        ("name: p\ncadenza: 1\n", "native"),
        ("name: p\n", "takt"),
        ("- x\n", "takt"),
    ],
)
def test_the_key_cadenza_says_whose_format_it_is(write: Write, text: str, dialect: str) -> None:
    assert dialect_of(write(text)) == dialect


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("name", ["hello", "plan-build-review", "research"])
def test_our_own_pieces_are_clean(write: Write, name: str, language: Language) -> None:
    assert lint(name, language=language) == []
