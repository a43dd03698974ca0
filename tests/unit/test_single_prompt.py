"""The twelve-part prompt: the prescribed blocks byte for byte, the whole in both languages, its parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadenza.core.prompts.single import ReportItem, ReportOrder, SinglePrompt, compose, display_condition
from cadenza.core.prompts.texts import Language, Texts, texts

GOLDEN = Path(__file__).parents[1] / "golden"
LANGUAGES: tuple[Language, ...] = ("en", "ja")


def golden(name: str) -> str:
    return (GOLDEN / name).read_bytes().decode("utf-8").removesuffix("\n")


def prompt(**given: Any) -> SinglePrompt:
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
    return SinglePrompt(**(plain | given))


FULL: dict[Language, SinglePrompt] = {
    "ja": prompt(
        persona="# 監督者\n\nあなたは監督者です。\n",
        policies=("# 第一のポリシー\n- 推測しない\n", "# 第二のポリシー\n- 小さく直す\n\n"),
        knowledge=("# 設計\n層は上から下へ。\n",),
        instruction=(
            "計画を読み、見直してください。\n\n計画:\n{report:01-plan.md}\n\n以前の指摘: {report:review.md}\n"
            "置き場所: {report_dir}（{iteration}/{max_movements}、{movement_iteration} 回目）\n"
            "知らない変数: {unknown}\n"
        ),
        task="譜面を直す。{iteration} と {report:01-plan.md} は展開しない。\\1 $& も。",
        previous="直しました。\n[STEP:0]",
        answer="はい、続けてください。",
        cwd="/home/ren/譜面",
        piece="交響曲",
        movement="見直し",
        iteration=4,
        max_movements=12,
        movement_iteration=2,
        report_dir=".takt/runs/20260131-090500-譜面を直す/reports",
        reports={"01-plan.md": "# 計画\n{task} はそのまま。", "review.md": None},
        report=ReportOrder(
            (ReportItem(name="02-review.md", format="# 見直し\n## 結果: {承認または差し戻し}\n"),)
        ),
        rules=("問題なし", 'ai("直すところがある")', "判断できない"),
        language="ja",
    ),
    "en": prompt(
        persona="# Supervisor\n\nYou are the supervisor.\n",
        policies=("# First policy\n- Do not guess\n", "# Second policy\n- Change little\n\n"),
        knowledge=("# Design\nLayers import downwards.\n",),
        instruction=(
            "Read the plan and review it.\n\nPlan:\n{report:01-plan.md}\n\n"
            "Findings so far: {report:review.md}\n"
            "Folder: {report_dir} ({iteration}/{max_movements}, visit {movement_iteration})\n"
            "Unknown variable: {unknown}\n"
        ),
        task="Mend the score. {iteration} and {report:01-plan.md} are not expanded. Nor \\1 and $&.",
        previous="Mended.\n[STEP:0]",
        answer="Yes, go on.",
        cwd="/home/ren/score",
        piece="symphony",
        movement="review",
        iteration=4,
        max_movements=12,
        movement_iteration=2,
        report_dir=".takt/runs/20260131-090500-mend-the-score/reports",
        reports={"01-plan.md": "# Plan\n{task} stays as it is.", "review.md": None},
        report=ReportOrder(
            (ReportItem(name="02-review.md", format="# Review\n## Result: {approve or reject}\n"),)
        ),
        rules=("no problems", 'ai("something to mend")', "cannot tell"),
        language="en",
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_twelve_parts_stand_in_the_prescribed_order(language: Language) -> None:
    assert compose(FULL[language]) == golden(f"prompts/full.{language}.txt")


def japanese(**given: Any) -> str:
    return compose(prompt(language="ja", **given))


def blocks_of_the_seed() -> dict[str, str]:
    """Each prescribed block as the engine writes it when it is given the seed's own placeholders."""
    contract = "{output_contracts の plan キーの .md ファイル内容}"
    form_1 = ReportOrder((ReportItem(name="01-plan.md", format=contract),))
    form_2 = ReportOrder(
        (ReportItem(name="summary.md", label="Summary"), ReportItem(name="01-scope.md", label="Scope"))
    )
    return {
        "policy": japanese(policies=("{ポリシーの内容}",)),
        "reminder": japanese(policies=("{ポリシーの内容（再掲）}",)),
        "knowledge": japanese(knowledge=("{ナレッジの内容}",)),
        "report-form-1": japanese(report=form_1),
        "report-form-2": japanese(report=form_2),
        "status-tags": japanese(rules=tuple(f"{{rules[{n}].condition}}" for n in range(3))),
        "ai-conditions": japanese(rules=('ai("条件テキスト")', 'ai("別の条件テキスト")')),
        "missing-report": japanese(instruction="{report:x.md}"),
    }


@pytest.mark.parametrize("block", blocks_of_the_seed())
def test_a_prescribed_block_is_written_byte_for_byte(block: str) -> None:
    assert golden(f"seed/{block}.ja.txt") in blocks_of_the_seed()[block]


def test_the_context_block_is_written_byte_for_byte() -> None:
    expected = golden("seed/context.ja.txt")
    values = {"cwd": "/w", "piece_name": "p", "movement_name": "m", "iteration": "3", "max_movements": "9"}
    for name, value in (values | {"movement_iteration": "2"}).items():
        expected = expected.replace(f"{{{name}}}", value)
    assert expected in japanese(iteration=3, max_movements=9, movement_iteration=2)


def test_the_languages_have_the_same_texts_with_the_same_variables() -> None:
    def variables(text: str) -> set[str]:
        return {part.partition("}")[0] for part in text.split("{")[1:] if part[0].isalpha()}

    for name in msgspec.structs.fields(Texts):
        en, ja = (getattr(texts(language), name.name) for language in LANGUAGES)
        assert en.strip()
        assert variables(en) == variables(ja), name.name
        assert en.startswith("---\n") == ja.startswith("---\n"), name.name


def parts(text: str) -> list[str]:
    return text.split("\n\n")


def test_without_a_persona_its_separator_goes_too() -> None:
    composed = parts(compose(prompt(policies=("be kind",))))
    assert composed[0].startswith("## Policy")
    assert composed[1] == "---"
    assert composed[2].startswith("## Execution context")


def test_without_a_policy_one_separator_stays_and_there_is_no_reminder() -> None:
    composed = compose(prompt(persona="You are a composer."))
    assert parts(composed)[:2] == ["You are a composer.", "---"]
    assert parts(composed)[2].startswith("## Execution context")
    assert composed.count("---") == 1
    assert "Reminder" not in composed


def test_with_nothing_optional_context_instruction_and_task_remain() -> None:
    heads = [part.split("\n")[0] for part in parts(compose(prompt()))]
    assert heads == ["## Execution context", "## Instruction", "## The user's task"]


@pytest.mark.parametrize("blank", ["", "\n", "  \n\n"])
def test_a_blank_facet_is_no_facet(blank: str) -> None:
    blank_prompt = prompt(persona=blank, policies=(blank,), knowledge=(blank, blank))
    assert compose(blank_prompt) == compose(prompt())


def test_the_task_is_added_only_where_the_instruction_does_not_hold_it() -> None:
    assert "## The user's task" not in compose(prompt(instruction="Do {task}!"))
    assert "Do the task!" in compose(prompt(instruction="Do {task}!"))


@pytest.mark.parametrize(
    ("instruction", "pass_previous", "section", "inline"),
    [
        ("Go.", True, True, False),
        ("Go.", False, False, False),
        ("After {previous_response}.", True, False, True),
        ("After {previous_response}.", False, False, True),
    ],
)
def test_the_previous_output(instruction: str, pass_previous: bool, section: bool, inline: bool) -> None:
    composed = compose(prompt(instruction=instruction, previous="the aria", pass_previous=pass_previous))
    assert ("## Output of the previous movement\nthe aria" in composed) == section
    assert ("After the aria." in composed) == inline


def test_no_previous_output_expands_to_nothing() -> None:
    assert "After ." in compose(prompt(instruction="After {previous_response}."))


def test_an_answer_follows_the_previous_output_and_precedes_the_report() -> None:
    order = ReportOrder((ReportItem(name="a.md", format="f"),))
    composed = compose(prompt(previous="aria", answer="yes", report=order))
    marks = ["## Output of the previous", "## The user's answer\nyes", "## Report (required)"]
    assert sorted(marks, key=composed.index) == marks


def test_every_answer_to_this_movement_is_given() -> None:
    assert "## The user's answer\nfirst\nsecond" in compose(
        prompt(earlier_answers=("first",), answer="second")
    )


def test_user_inputs_in_the_instruction_replace_the_section() -> None:
    composed = compose(prompt(instruction="They said: {user_inputs}", answer="yes"))
    assert "They said: yes" in composed
    assert "## The user's answer" not in composed


def test_an_empty_answer_is_an_answer() -> None:
    assert "## The user's answer\n" in compose(prompt(answer=""))


def test_nothing_is_cut() -> None:
    long = "x" * 50_000
    composed = compose(prompt(task=long, previous=long, knowledge=(long,), policies=(long,)))
    assert composed.count(long) == 5


def test_cycle_count_is_a_variable_of_monitors_only() -> None:
    assert "3 times" in compose(prompt(instruction="{cycle_count} times", cycle_count=3))
    assert "{cycle_count} times" in compose(prompt(instruction="{cycle_count} times"))


def order_block(*items: ReportItem, language: Language = "en") -> str:
    composed = compose(prompt(report=ReportOrder(items), language=language))
    return "---\n" + composed.partition("\n---\n")[2]


def test_several_contracts_are_each_named() -> None:
    assert order_block(ReportItem(name="a.md", format="# A\n"), ReportItem(name="b.md", format="# B")) == (
        "---\n## Report (required)\n"
        "When the work is done, write each of the reports below.\n"
        "Put each report in a ```markdown block of its own, with a heading.\n"
        "\nFile name: a.md\nOutput contract:\n# A\n"
        "\nFile name: b.md\nOutput contract:\n# B"
    )


def test_form_3_has_its_own_words_before_the_contract() -> None:
    item = ReportItem(
        name="a.md", order="Write to {report:a.md}, visit {movement_iteration}.\n", format="{task}"
    )
    assert order_block(item).endswith(
        "\n\nFile name: a.md\nWrite to .takt/runs/x/reports/a.md, visit 1.\nOutput contract:\n{task}"
    )


def test_an_order_without_a_format_is_the_contract() -> None:
    assert order_block(ReportItem(name="a.md", order="Three lines.")).endswith(
        "Output contract:\nThree lines."
    )


def test_mixed_reports_keep_their_numbers() -> None:
    block = order_block(
        ReportItem(name="s.md", label="Summary"),
        ReportItem(name="c.md", label="Scope"),
        ReportItem(name="plan.md", label="Plan", format="# Plan"),
        ReportItem(name="last.md"),
    )
    assert block.endswith(
        "\n\n1. Summary → File name: s.md\n2. Scope → File name: c.md"
        "\n\n3. Plan → File name: plan.md\nOutput contract:\n# Plan"
        "\n\n4. last.md → File name: last.md"
    )


def test_an_order_of_no_reports_is_none() -> None:
    assert compose(prompt(report=ReportOrder(()))) == compose(prompt())


def test_the_order_says_what_to_look_for() -> None:
    order = ReportOrder((ReportItem(name="a.md", format="f"), ReportItem(name="b.md", label="B")))
    assert order.wanted == (("a.md", None), ("b.md", "B"))


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("approved", "approved"),
        ('ai("tests pass")', "tests pass"),
        ('ai("say "hi"")', 'say "hi"'),
        ("ai(unquoted)", "ai(unquoted)"),
        ('all("a")', 'all("a")'),
        ("all()", "all()"),
        ("two\n  lines\n", "two lines"),
    ],
)
def test_how_a_condition_is_shown(condition: str, shown: str) -> None:
    assert display_condition(condition) == shown


@given(st.text(), st.text(), st.sampled_from(LANGUAGES))
def test_task_and_output_arrive_as_they_are(task: str, previous: str, language: Language) -> None:
    composed = compose(prompt(task=task, previous=previous, language=language))
    assert task in composed
    assert previous in composed


@given(st.text(alphabet="{}task report:.md_\\$&1", max_size=60))
def test_braces_in_a_task_survive_inside_the_instruction(task: str) -> None:
    reports = {"x.md": task}
    composed = compose(prompt(instruction="<{task}|{report:x.md}>", task=task, reports=reports))
    assert f"<{task}|{task}>" in composed
