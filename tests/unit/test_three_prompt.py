"""Phase 1 of ``phases: three``: the whole message in both languages, its sections, its cuts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadenza.core.prompts.judging import monitor_instruction
from cadenza.core.prompts.texts_three import Language, ThreeTexts, texts_three
from cadenza.core.prompts.three import CUT, Listed, ThreePrompt, compose_three, cut, system_three

GOLDEN = Path(__file__).parents[1] / "golden" / "prompts"
LANGUAGES: tuple[Language, ...] = ("en", "ja")
CONTEXT = ".takt/runs/x/context"


def prompt(**given: Any) -> ThreePrompt:
    plain: dict[str, Any] = {
        "instruction": "Do it.",
        "task": "the task",
        "cwd": "/w",
        "piece": "p",
        "movement": "m",
        "iteration": 1,
        "max_movements": 10,
        "movement_iteration": 1,
        "report_dir": ".takt/runs/x/reports",
    }
    return ThreePrompt(**(plain | given))


def composed(**given: Any) -> str:
    return compose_three(prompt(**given))


def heads(text: str) -> list[str]:
    return [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]


COMMON: dict[str, Any] = {
    "iteration": 4,
    "max_movements": 12,
    "movement_iteration": 2,
    "report_names": ("02-review.md", "03-summary.md"),
    "edit": False,
}
FULL: dict[Language, ThreePrompt] = {
    "en": prompt(
        **COMMON,
        cwd="/home/ren/score",
        piece="symphony",
        description="Plan, play,\nand review.\n",
        movement="review",
        movements=(Listed("plan", "Read the score"), Listed("play"), Listed("review")),
        policies=("# First policy\n- Do not guess\n", "# Second policy\n- Change little\n\n"),
        policy_source=f"{CONTEXT}/policy/review.2.20260131T090500Z.md",
        knowledge=("# Design\nLayers import downwards.\n", "# Tuning\nA is 442 Hz."),
        knowledge_source=f"{CONTEXT}/knowledge/review.2.20260131T090500Z.md",
        previous="Mended. {task}",
        previous_source=f"{CONTEXT}/previous_responses/review.2.20260131T090500Z.md",
        inputs=("In D major, please.", "Yes, go on."),
        instruction=(
            "Read the plan and review it.\n\nPlan:\n{report:01-plan.md}\n\n"
            "Findings so far: {report:review.md}\n"
            "Folder: {report_dir} ({iteration}/{max_movements}, visit {movement_iteration})\n"
            "Unknown variable: {unknown}\n"
        ),
        task="Mend the score. {iteration} and {report:01-plan.md} are not expanded. Nor \\1 and $&.",
        reports={"01-plan.md": "# Plan\n{task} stays as it is.", "review.md": None},
        quality_gates=("Every bar has been read", "No parallel fifths\n(hidden ones too)\n"),
        retry_note="The strings were out of tune last time.\n",
        language="en",
    ),
    "ja": prompt(
        **COMMON,
        cwd="/home/ren/譜面",
        piece="交響曲",
        description="計画し、演奏し、見直す。",
        movement="見直し",
        movements=(Listed("計画", "譜面を読む"), Listed("演奏"), Listed("見直し")),
        policies=("# 第一のポリシー\n- 推測しない\n", "# 第二のポリシー\n- 小さく直す\n\n"),
        policy_source=f"{CONTEXT}/policy/見直し.2.20260131T090500Z.md",
        knowledge=("# 設計\n層は上から下へ。\n", "# 調律\nA は 442 Hz。"),
        knowledge_source=f"{CONTEXT}/knowledge/見直し.2.20260131T090500Z.md",
        previous="直しました。{task}",
        previous_source=f"{CONTEXT}/previous_responses/見直し.2.20260131T090500Z.md",
        inputs=("ニ長調で。", "はい、続けてください。"),
        instruction=(
            "計画を読み、見直してください。\n\n計画:\n{report:01-plan.md}\n\n以前の指摘: {report:review.md}\n"
            "置き場所: {report_dir}（{iteration}/{max_movements}、{movement_iteration} 回目）\n"
            "知らない変数: {unknown}\n"
        ),
        task="譜面を直す。{iteration} と {report:01-plan.md} は展開しない。\\1 $& も。",
        reports={"01-plan.md": "# 計画\n{task} はそのまま。", "review.md": None},
        quality_gates=("全小節を読んだ", "平行五度がない\n（隠れたものも）\n"),
        retry_note="前回は弦の調律が狂っていました。\n",
        language="ja",
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_sections_stand_in_their_order(language: Language) -> None:
    expected = (GOLDEN / f"three.{language}.txt").read_bytes().decode("utf-8").removesuffix("\n")
    assert compose_three(FULL[language]) == expected


def test_the_order_of_the_sections() -> None:
    assert heads(compose_three(FULL["en"])) == [
        "Execution Context",
        "Execution Rules",
        "Knowledge",
        "Piece Context",
        "Retry Note",
        "User Request",
        "Previous Response",
        "Additional User Inputs",
        "Instructions",
        "Quality Gates",
        "Policy",
    ]


def test_a_section_without_content_is_left_out() -> None:
    plain = ["Execution Context", "Execution Rules", "Piece Context", "User Request", "Instructions"]
    assert heads(composed()) == plain
    assert heads(composed(policies=("\n",), knowledge=("  ", ""), retry_note="\n", previous="")) == plain


def test_the_languages_have_the_same_texts_with_the_same_variables() -> None:
    def variables(text: str) -> set[str]:
        return {part.partition("}")[0] for part in text.split("{")[1:] if part[0].isalpha()}

    for name in msgspec.structs.fields(ThreeTexts):
        en, ja = (getattr(texts_three(language), name.name) for language in LANGUAGES)
        assert en.strip()
        assert variables(en) == variables(ja), name.name
        assert en.count("\n- ") == ja.count("\n- "), name.name


@pytest.mark.parametrize(
    ("edit", "says"), [(True, "You may edit files"), (False, "Do not edit any file"), (None, None)]
)
def test_the_edit_sentence(edit: bool | None, says: str | None) -> None:
    sentences = [s for s in ("You may edit files", "Do not edit any file") if s in composed(edit=edit)]
    assert sentences == ([says] if says else [])


@pytest.mark.parametrize("language", LANGUAGES)
def test_git_and_cd_are_forbidden(language: Language) -> None:
    rules = composed(language=language).split("\n\n")[1]
    assert [word for word in ("git commit", "git add", "cd") if word in rules] == [
        "git commit",
        "git add",
        "cd",
    ]


def test_a_lane_marks_its_parent_as_current() -> None:
    text = composed(movement="arch", movements=(Listed("plan"), Listed("review")), position="review")
    assert "  1. plan\n  2. review ← current\n" in text
    assert "- Movement: arch" in text


@pytest.mark.parametrize("movement", ["gone", ""])
def test_a_movement_outside_the_list_marks_nothing(movement: str) -> None:
    assert "←" not in composed(movement=movement, movements=(Listed("plan"),))


def test_one_report_is_named_on_its_line() -> None:
    text = composed(report_names=("a.md",))
    assert (
        "- Report Directory: .takt/runs/x/reports/\n- Report File: .takt/runs/x/reports/a.md\n\n**Note:**"
        in text
    )


def test_without_reports_to_write_the_directory_is_still_named() -> None:
    assert "- Report Directory: .takt/runs/x/reports/" in composed()
    assert "Report File" not in composed()
    assert "Phase 1" not in composed()


def test_without_a_run_folder_nothing_is_said_of_reports() -> None:
    text = composed(report_dir="", report_names=("a.md",))
    assert "Report" not in text
    assert "Phase 1" not in text


@pytest.mark.parametrize(
    ("instruction", "section"), [("Go.", True), ("Do {task}.", False), ("Do { task }.", True)]
)
def test_the_user_request_is_added_only_where_the_template_lacks_it(instruction: str, section: bool) -> None:
    text = composed(instruction=instruction)
    assert ("## User Request\nthe task" in text) == section
    assert ("Do the task." in text) == (not section)


@pytest.mark.parametrize(
    ("instruction", "previous", "passed", "section", "shown"),
    [
        ("Go.", "aria", True, True, "Go."),
        ("Go.", "aria", False, False, "Go."),
        ("Go.", None, True, False, "Go."),
        ("After {previous_response}!", "aria", True, False, "After aria!"),
        ("After {previous_response}!", "aria", False, False, "After {previous_response}!"),
        ("After {previous_response}!", None, True, False, "After !"),
    ],
)
def test_the_previous_response(
    instruction: str, previous: str | None, passed: bool, section: bool, shown: str
) -> None:
    text = composed(instruction=instruction, previous=previous, pass_previous=passed)
    assert ("## Previous Response\naria" in text) == section
    assert text.endswith(f"## Instructions\n{shown}")


def test_inputs_have_a_section_unless_the_instruction_holds_them() -> None:
    assert "## Additional User Inputs\nA\nB" in composed(inputs=("A", "B"))
    inline = composed(instruction="They said {user_inputs}.", inputs=("A", "B"))
    assert "They said A\nB." in inline
    assert "Additional User Inputs" not in inline


def test_the_last_hundred_inputs_are_kept_and_each_is_cut() -> None:
    text = composed(inputs=("first", *(f"<{n}>" for n in range(99)), "x" * 10_001))
    assert "first" not in text
    assert "## Additional User Inputs\n<0>\n<1>" in text
    assert text.count("x" * 10_000) == 1
    assert "x" * 10_001 not in text


@pytest.mark.parametrize("kind", ["knowledge", "policies", "previous"])
@pytest.mark.parametrize("length", [CUT, CUT + 1])
def test_a_long_text_is_cut_and_its_source_named(kind: str, length: int) -> None:
    value: Any = "x" * length if kind == "previous" else ("x" * length,)
    source = {"knowledge": "knowledge_source", "policies": "policy_source", "previous": "previous_source"}[
        kind
    ]
    text = composed(**{kind: value, source: "context/k.md"})
    is_cut = length > CUT
    assert ("x" * CUT + "\n...TRUNCATED...\n\n" in text) == is_cut
    assert ("Read the source file" in text) == is_cut
    assert "x" * (CUT + 1) not in text
    assert "Source: context/k.md\n" in text
    assert "the source files take precedence" in text


def test_what_is_cut_is_the_joined_text() -> None:
    text = composed(knowledge=("a" * 1500, "b" * 1500))
    assert "a" * 1500 + "\n\n---\n\n" + "b" * (CUT - 1507) + "\n...TRUNCATED..." in text
    assert "b" * (CUT - 1506) not in text


def test_without_a_snapshot_no_source_is_named() -> None:
    text = composed(knowledge=("x" * 3000,))
    assert "...TRUNCATED..." in text
    assert "Source" not in text
    assert "precedence" not in text


def test_the_previous_response_is_cut_inside_the_instruction_too() -> None:
    text = composed(instruction="<{previous_response}>", previous="x" * 3000, previous_source="p.md")
    assert "<" + "x" * CUT + "\n...TRUNCATED..." in text
    assert "Previous Response Source: p.md" in text


def test_reports_are_neither_cut_nor_expanded() -> None:
    report = "{task}" * 1000
    assert report in composed(instruction="{report: a.md }", reports={"a.md": report})


def test_a_missing_report_is_named() -> None:
    text = composed(instruction="{report:a.md} {report:b.md}", reports={"a.md": None})
    assert "(report a.md has not been written yet) (report b.md has not been written yet)" in text


def test_the_same_report_may_be_mentioned_twice() -> None:
    assert "R R" in composed(instruction="{report:a.md} {report:a.md}", reports={"a.md": "R"})


def test_braces_of_a_task_stay_as_they_are() -> None:
    assert "<{report_dir} {x}>" in composed(instruction="<{task}>", task="{report_dir} {x}")


def test_the_monitors_own_instruction_serves_here_too() -> None:
    template = monitor_instruction(["review", "fix"], ["healthy"], "en")
    assert "repeated 3 times" in composed(instruction=template, cycle_count=3)
    assert "repeated {cycle_count} times" in composed(instruction=template)


@given(st.text(), st.text(max_size=CUT), st.text(max_size=60), st.sampled_from(LANGUAGES))
def test_values_arrive_as_they_are(task: str, previous: str, report: str, language: Language) -> None:
    text = composed(
        instruction="<{task}|{previous_response}|{report:a.md}>",
        task=task,
        previous=previous,
        reports={"a.md": report},
        language=language,
    )
    assert f"<{task}|{previous}|{report}>" in text


@given(st.text(alphabet="{}task report:.md_\\$&1", max_size=60), st.text(alphabet="{task}", max_size=20))
def test_braces_are_never_read_again(task: str, gate: str) -> None:
    text = composed(task=task, previous=task, knowledge=(f"k{task}k",), quality_gates=(f"g{gate}g",))
    assert f"k{task}k" in text
    assert f"- g{gate}g" in text
    if task:
        assert f"## User Request\n{task}\n\n## Previous Response\n{task}\n" in text


@given(st.text())
def test_a_cut_keeps_the_beginning(text: str) -> None:
    assert cut(text) == text
    assert cut("x" * CUT + text) == "x" * CUT + ("\n...TRUNCATED..." if text else "")


def test_the_system_text_wraps_the_persona_with_the_piece() -> None:
    assert system_three("# Planner\n\nYou plan.\n", "symphony", "Three movements.\n", ["plan", "play"]) == (
        "# Piece: symphony\n\nThree movements.\n\n"
        "The work is divided into the movements below. Each message says which of them is yours this time.\n"
        "1. plan\n2. play\n\n---\n\n# Planner\n\nYou plan."
    )


def test_the_system_text_of_a_movement_without_persona_is_the_pieces_part() -> None:
    assert system_three(None, "p", None, [], "ja") == "# ピース: p"
    assert system_three("\n", "p", None, []) == "# Piece: p"


def test_the_system_text_keeps_braces() -> None:
    assert system_three("{piece} {task}", "{persona}", "{piece}", ["{movements}"]).count("{") == 5
