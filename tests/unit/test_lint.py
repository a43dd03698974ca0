"""Lint: everything at once, with places, values and fixes as data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cadenza.core.prompts import templates
from cadenza.errors import NotFound
from cadenza.piece.lint import Problem, dialect_of, has_errors, lint, not_there
from cadenza.piece.vocabulary import VARIABLES, Language

Write = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def written(text: str) -> str:
        if text.startswith("cadenza: 1\n") and "movements:" in text and "control:" not in text:
            text += "control: tags\n"
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
        ({"a": ["b"], "b": ["a"]}, ["a → b → a"]),
        ({"a": ["b"], "b": ["COMPLETE", "a"]}, []),
        ({"a": ["b", "ABORT"], "b": ["b"]}, ["b → b"]),
        ({"a": ["b"], "b": ["c"], "c": ["b"]}, ["b → c → b"]),
        ({"a": ["c", "b"], "b": ["a"], "c": ["a"]}, ["a → b → a"]),
        ({"a": ["a"], "b": ["c"], "c": ["b", "a"]}, ["a → a", "b", "b → c → b", "c"]),
        ({"a": ["b"], "b": ["a", "c"], "c": ["d"], "d": ["c"]}, ["c → d → c"]),
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
            {"plan": ["build"], "build": ["check"], "check": ["plan", "ABORT"]},
            [],
            ["plan → build → check → plan"],
        ),
        ({"ask": ["ask", "COMPLETE"]}, [], []),
        ({"a": ["b"], "b": ["a", "ABORT"], "c": ["a"]}, [], ["a → b → a"]),
    ],
    ids=["to-and-fro", "watched", "turned", "another", "exception", "long", "itself", "not-closed"],
)
def test_going_round_as_the_usual_thing_wants_a_monitor(
    write: Write, rules: dict[str, list[str]], cycles: list[list[str]], warned: list[str]
) -> None:
    turned = {name: targets[::-1] for name, targets in rules.items()}
    messages = [[p.message for p in lint(write(piece(way, *cycles)))] for way in (rules, turned)]
    assert messages[0] == messages[1], "the order of rules makes no difference"
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
        (
            "name: p\nname: q\n" + piece({"a": ["COMPLETE"]})[8:],
            "error",
            "this key was given already on line 1",
        ),
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


# -- words that look mistyped -----------------------------------------------------------------------------


def one(instruction: str = "Do it all", condition: str = "done", rest: str = "") -> str:
    """A piece with one movement."""
    return (
        f"cadenza: 1\nname: p\nmovements:\n  - name: a\n    instruction: {instruction}\n{rest}"
        f"    rules:\n      - condition: {condition}\n        next: COMPLETE\n"
    )


def test_the_variables_are_those_that_are_replaced() -> None:
    assert VARIABLES == templates.VARIABLES


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{tsak}", "task"),
        ("{Task}", "task"),
        ("{ task }", "task"),
        ("{previousResponse}", "previous_response"),
        ("{previous-response}", "previous_response"),
        ("{user_input}", "user_inputs"),
        ("{max_steps}", "max_movements"),
        ("{step_iteration}", "movement_iteration"),
    ],
)
def test_a_placeholder_that_is_almost_a_variable_is_pointed_out(
    write: Write, written: str, meant: str
) -> None:
    (problem,) = lint(write(one(f"'Do {written}, then {written} and {{task}}'")))
    assert (problem.severity, problem.line, problem.value) == ("warning", 5, written)
    assert problem.fix == f"did you mean {{{meant}}}?"


@pytest.mark.parametrize(
    "words", ["{task} {{iteration}} {report_dir}", "{title} {version} {name} {x}", '{"task": 1} {}', "{0}"]
)
def test_other_braces_are_left_alone(write: Write, words: str) -> None:
    assert lint(write(one(f"|\n      Do {words}"))) == []


def test_every_text_with_variables_is_looked_at(write: Write, tmp_path: Path) -> None:
    (tmp_path / "how.md").write_text("Judge {tsk} now", encoding="utf-8")
    text = """name: p
instructions: {how: how.md}
movements:
  - name: a
    parallel:
      - {name: x, instruction: "Do {tsk} now", rules: [{condition: ok}]}
      - {name: y, instruction_template: how, rules: [{condition: ok}]}
    rules: [{condition: 'all("ok")', next: b}]
  - name: b
    instruction: Do it now
    report: {name: b.md, order: "See {tsk} now", format: "# About {tsk}"}
    rules: [{condition: again, next: a}, {condition: over, next: COMPLETE}]
loop_monitors:
  - cycle: [a, b]
    judge: {instruction: how, rules: [{condition: fine, next: a}]}
"""
    problems = lint(write(text))
    assert [(problem.line, problem.value) for problem in problems] == [
        (line, "{tsk}") for line in (6, 7, 11, 15)
    ]


def test_a_report_that_nobody_writes_is_pointed_out(write: Write, tmp_path: Path) -> None:
    plan = "    report: {name: plan.md}\n"
    assert lint(write(one("'See {report: plan.md } and {report:./Plan.md}'", rest=plan))) == []
    (problem,) = lint(write(one("'See {report:plna.md}'", rest=plan)))
    assert (problem.severity, problem.value, problem.fix) == (
        "warning",
        "{report:plna.md}",
        "did you mean plan.md?",
    )
    (problem,) = lint(write(one("'See {report:spec.txt}'", rest=plan)))
    assert problem.fix == "reports are plan.md"
    (problem,) = lint(write(one("'See {report:spec.txt}'")))
    assert problem.fix == "the piece writes no reports"


def test_a_report_that_a_person_may_bring_is_not(write: Write) -> None:
    """A run that asks a person on its way can be given the file; a slip is one all the same."""
    asks = "    report: {name: plan.md}\n"
    text = one("'See {report:spec.txt}'", rest=asks) + "        requires_user_input: true\n"
    assert lint(write(text)) == []
    (problem,) = lint(write(text.replace("spec.txt", "plna.md")))
    assert problem.value == "{report:plna.md}"


def test_a_text_that_many_pieces_use_may_name_reports_of_the_others(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / ".cadenza" / "facets" / "instructions"
    folder.mkdir(parents=True)
    (folder / "arbitrate.md").write_text("See {report:other.md} of {tsak}", encoding="utf-8")
    assert [problem.value for problem in lint(write(one("arbitrate")))] == ["{tsak}"]
    named = one("./.cadenza/facets/instructions/arbitrate.md")
    assert len(lint(write(named))) == 2


@pytest.mark.parametrize(
    ("condition", "call"),
    [
        ('all("fine"', "all"),
        ('ai("bad"', "ai"),
        ('All("x")', "all"),
        ('ANY("x")', "any"),
        ("ai('x')", "ai"),
        ("ai(x)", "ai"),
        ('ai ("x")', "ai"),
        ('al("x")', "all"),
        ('anny("x")', "any"),
        ('any "x"', "any"),
        ('all["x"]', "all"),
    ],
)
def test_a_condition_that_was_meant_to_be_a_call_is_pointed_out(
    write: Write, condition: str, call: str
) -> None:
    quoted = condition.replace("'", "''")
    (problem,) = lint(write(one(condition=f"'{quoted}'")))
    assert (problem.severity, problem.value) == ("warning", condition)
    assert f"begins like {call}()" in problem.message


@pytest.mark.parametrize(
    "condition",
    ["all good", "any issue is left", 'see "x"', 'All (reviewers) agree on "x"', "AI slop found", 'ai("x")',
     'done ("x")', "anything", "ai"],
)  # fmt: skip
def test_a_label_in_plain_words_is_left_alone(write: Write, condition: str) -> None:
    assert lint(write(one(condition=f"'{condition}'"))) == []


@pytest.mark.parametrize(
    "condition", ['all("ok", ok)', 'all("ok" && "ok")', 'all("ok") and any("ok")', 'any("ok" or "ok")']
)
def test_what_an_aggregate_does_not_read_is_pointed_out(write: Write, condition: str) -> None:
    text = f"""name: p
movements:
  - name: a
    parallel: [{{name: x, instruction: Do it, rules: [{{condition: ok}}]}},
      {{name: y, instruction: Do it, rules: [{{condition: ok}}]}}]
    rules: [{{condition: '{condition}', next: COMPLETE}}]
"""
    (problem,) = lint(write(text))
    assert (problem.severity, problem.value) == ("warning", condition)
    assert "only what stands in quotes counts" in problem.message
    assert lint(write(text.replace(condition, 'all("ok", "ok")'))) == []


@pytest.mark.parametrize("key", ["instruction", "instruction_template", "persona"])
def test_what_a_parallel_parent_is_never_asked_is_pointed_out(write: Write, key: str) -> None:
    text = f"""name: p
movements:
  - name: a
    {key}: Do all of it
    parallel: [{{name: x, instruction: Do it, persona: A reader, rules: [{{condition: ok}}]}}]
    rules: [{{condition: 'all("ok")', next: COMPLETE}}]
"""
    (problem,) = lint(write(text))
    assert (problem.severity, problem.line) == ("warning", 4)
    assert f"its {key} is never used" in problem.message


def test_a_component_is_pointed_out_once(write: Write) -> None:
    rules = {"check": ["COMPLETE", "this", "that"], "this": ["check"], "that": ["check", "ABORT"]}
    (problem,) = lint(write(piece(rules)))
    assert (problem.line, problem.value) == (3, "check → this → check")
    assert "one of several among 3 movements" in problem.message
    assert lint(write(piece(rules, ["that", "check"]))) == []


def test_thousands_of_movements_in_a_row_are_one_component(write: Write) -> None:
    rules = {f"m{at}": [f"m{(at + 1) % 1500}"] for at in range(1500)}
    (problem,) = lint(write(piece(rules)))
    assert "only max_movements stops it" in problem.message


def test_a_monitor_that_leads_back_ends_nothing(write: Write) -> None:
    text = piece({"a": ["b"], "b": ["a"]}, ["a", "b"])
    assert lint(write(text)) == []
    (problem,) = lint(write(text.replace("COMPLETE", "a")))
    assert "only max_movements stops it" in problem.message


# -- what is dropped --------------------------------------------------------------------------------------

PARALLEL = """name: p
movements:
  - name: a
    parallel: [{name: x, instruction: Do it, rules: [{condition: ok}]}]
    rules: [{condition: 'all("ok")', next: COMPLETE}]
"""


@pytest.mark.parametrize(
    ("extra", "ignored", "line"),
    [
        ("steps:\n- {name: s, rules: [{condition: x, next: COMPLETE}]}", "steps", 2),
        ("max_movements: 3\nmax_steps: 4", "max_steps", 3),
        ("max_steps: 4\nmax_movements: 3", "max_steps", 2),
        ("initial_movement: a\ninitial_step: a", "initial_step", 3),
        ("piece_config: {model: m}\nworkflow_config: {model: n}", "workflow_config", 3),
    ],
)
def test_the_second_of_two_spellings_is_pointed_out(
    write: Write, extra: str, ignored: str, line: int
) -> None:
    (problem,) = lint(write(PARALLEL.replace("name: p", f"name: p\n{extra}", 1)))
    assert (problem.severity, problem.line, problem.value) == ("warning", line, ignored)
    assert f"{ignored} is ignored, because" in problem.message
    assert problem.fix


def test_one_spelling_with_nothing_behind_it_is_no_second_one(write: Write) -> None:
    assert lint(write(PARALLEL.replace("name: p", "name: p\nmax_movements:\nmax_steps: 4", 1))) == []


def test_two_instructions_are_pointed_out(write: Write) -> None:
    text = PARALLEL.replace("instruction: Do it", "instruction: Do it, instruction_template: Do that")
    (problem,) = lint(write(text))
    assert (problem.severity, problem.value) == ("warning", "instruction")


def test_a_report_of_a_parallel_parent_is_pointed_out(write: Write) -> None:
    (problem,) = lint(write(PARALLEL.replace("    rules", "    report: {name: r.md}\n    rules", 1)))
    assert (problem.severity, problem.line, problem.value) == ("warning", 5, "r.md")
    assert "writes no reports itself" in problem.message
    assert problem.fix


@pytest.mark.parametrize(
    ("flags", "phases", "words"),
    [
        (
            "requires_user_input: true",
            "single",
            ["requires_user_input is ignored in a rule of a sub-movement"],
        ),
        (
            "requires_user_input: true",
            "three",
            ["requires_user_input is ignored in a rule of a sub-movement"],
        ),
        ("requires_user_input: false", "single", []),
        ("interactive_only: true", "single", ["interactive_only is ignored in a rule of a", "all rules are"]),
        ("interactive_only: true", "three", ["all rules are interactive_only"]),
    ],
)
def test_flags_of_lanes_that_nobody_reads_are_pointed_out(
    write: Write, flags: str, phases: str, words: list[str]
) -> None:
    text = PARALLEL.replace("condition: ok", f"condition: ok, {flags}")
    problems = lint(write(text.replace("name: p", f"name: p\nphases: {phases}", 1)))
    messages = " | ".join(sorted(problem.message for problem in problems))
    assert len(problems) == len(words)
    assert all(word in messages for word in words)
    assert all((problem.severity, problem.line) == ("warning", 5) and problem.fix for problem in problems)


def test_a_judge_that_would_ask_a_person_is_pointed_out(write: Write) -> None:
    text = piece({"a": ["b"], "b": ["a", "COMPLETE"]}, ["a", "b"])
    (problem,) = lint(write(text.replace("condition: on", "condition: on, requires_user_input: true")))
    assert (problem.severity, problem.value) == ("warning", "on")
    assert "a loop monitor's judge" in problem.message


def test_a_movement_for_nobody_but_a_person_is_pointed_out(write: Write) -> None:
    text = one() + "        interactive_only: true\n"
    (problem,) = lint(write(text))
    assert (problem.severity, problem.line, problem.value) == ("warning", 4, "a")
    assert "all rules are interactive_only" in problem.message
    assert lint(write(text + "      - {condition: else, next: ABORT}\n")) == []


# -- one mistake does not hide the others -----------------------------------------------------------------


def test_a_key_given_twice_does_not_hide_the_rest(write: Write) -> None:
    text = one("'Do {tsak}'").replace("    rules:", "    name: b\n    edti: true\n    rules:")
    problems = lint(write(text.replace("name: p\n", "name: p\nname: q\n")))
    assert [(problem.line, problem.severity, problem.value) for problem in problems] == [
        (3, "error", "name"),
        (6, "warning", "{tsak}"),
        (7, "error", "name"),
        (8, "error", "edti"),
    ]
    assert dialect_of("p.yaml") == "native"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("name: p\nmovements:\n  - name: a\n\tedit: true\n", (4, 1)),
        ("name: p\nmovements:\n  \t- name: a\n", (3, 3)),
        ("name: p\nx:\n  - \t- y\n", None),
        ("name: p\nmovements:\n  - name: a\n    instruction: |\n      x\n\t  y\n", (6, 1)),
    ],
)
def test_a_tab_is_called_a_tab(write: Write, text: str, place: tuple[int, int] | None) -> None:
    problems = [problem for problem in lint(write(text)) if "YAML" in problem.message]
    for problem in problems:
        assert "a tab stands where only spaces may" in problem.message
        assert place is None or (problem.line, problem.column) == place
    assert problems or place is None


def test_one_of_several_that_is_not_there_is_a_problem(write: Write) -> None:
    with pytest.raises(NotFound) as caught:
        lint("gone.yaml")
    problem = not_there("gone.yaml", caught.value)
    assert str(problem).startswith("gone.yaml:1:1: there is no such piece file; check the path")
    assert has_errors([problem])
