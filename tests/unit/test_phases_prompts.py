"""Phases 2 and 3: what is asked for a report and of the judge, and what counts as an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadenza.core.prompts.phases import (
    REASON_LENGTH,
    Choice,
    blocked_question,
    conductor,
    evaluation_prompt,
    evaluation_schema,
    judge_input,
    last_movement_tag,
    movement_tag,
    read_evaluation,
    read_report,
    read_step,
    report_message,
    report_retry,
    step_prompt,
    step_schema,
    tag_prompt,
)
from cadenza.core.prompts.report_order import ReportItem
from cadenza.core.prompts.texts_three import Language

LANGUAGES: tuple[Language, ...] = ("en", "ja")
VALUES = {"report_dir": "runs/x/reports", "movement_iteration": "2", "task": "{iteration}"}
CHOICES = (
    Choice(1, "approved"),
    Choice(3, 'ai("needs work")', appendix="Findings:\n- {finding}\n"),
)

# Phase 2


def test_a_report_message_holds_order_and_contract() -> None:
    item = ReportItem(
        name="a.md", order="Write {report:a.md}, visit {movement_iteration}.\n", format="# A\n{task}\n"
    )
    message = report_message(item, VALUES, "en")
    assert "as the report a.md." in message
    assert "Answer with the report's whole content only" in message
    assert message.endswith("\n\nWrite runs/x/reports/a.md, visit 2.\n\n## Output Contract\n# A\n{task}")


def test_a_report_without_order_or_format_is_just_asked_for() -> None:
    message = report_message(ReportItem(name="s.md", label="Summary"), VALUES, "en")
    assert "as the report s.md (Summary)." in message
    assert "Contract" not in message


def test_what_an_order_is_given_is_not_read_again() -> None:
    message = report_message(ReportItem(name="a.md", order="For {task}"), VALUES, "en")
    assert message.endswith("For {iteration}")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_retry_tells_what_was_done(language: Language) -> None:
    item = ReportItem(name="a.md", format="# A")
    work = "I did {name}. " * 1000
    retry = report_retry(item, work, VALUES, language)
    head, _, rest = retry.partition("\n")
    assert "Previous Work Context" in head
    assert rest == f"{work}\n\n{report_message(item, VALUES, language)}"


@pytest.mark.parametrize(("text", "report"), [(" # A\n\n", "# A"), ("", None), (" \n\t", None), ("x", "x")])
def test_a_report_is_the_whole_trimmed_answer(text: str, report: str | None) -> None:
    assert read_report(text) == report


# Phase 3: what the judge is asked


def test_the_judge_reads_the_text_and_the_reports() -> None:
    assert judge_input("All done.", [("a.md", "# A"), ("b.md", "B {x}")], "en") == (
        "## Agent Response\n\nAll done.\n\n---\n\n# a.md\n\n# A\n\n---\n\n# b.md\n\nB {x}"
    )
    assert judge_input("All done.", [], "en") == "## Agent Response\n\nAll done."


@pytest.mark.parametrize("language", LANGUAGES)
def test_stage_1_shows_the_rules_by_their_own_numbers(language: Language) -> None:
    prompt = step_prompt("W {conditions}", CHOICES, language)
    assert "<work>\nW {conditions}\n</work>" in prompt
    assert "\n1. approved\n3. needs work\n" in prompt
    assert '{"step": ' in prompt
    assert "[" not in prompt


@pytest.mark.parametrize("language", LANGUAGES)
def test_stage_2_shows_tags_and_what_to_append(language: Language) -> None:
    prompt = tag_prompt("W", "arch-review", CHOICES, language)
    assert "<work>\nW\n</work>" in prompt
    assert "\n[ARCH-REVIEW:1] = approved\n[ARCH-REVIEW:3] = needs work\n" in prompt
    assert prompt.endswith(":\nFindings:\n- {finding}")
    assert prompt.count("[ARCH-REVIEW:3]") == 2
    assert prompt.count("[ARCH-REVIEW:1]") == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_stage_3_numbers_what_it_is_given_from_1(language: Language) -> None:
    prompt = evaluation_prompt("W", ['ai("p")', "two\n lines"], language)
    assert "<work>\nW\n</work>" in prompt
    assert "\n1. p\n2. two lines\n" in prompt
    assert '{"matched_index": ' in prompt
    assert "[JUDGE:1]" in prompt


@given(st.text(max_size=50), st.sampled_from(LANGUAGES))
def test_the_record_reaches_every_stage_as_it_is(work: str, language: Language) -> None:
    record = f"<work>\n{judge_input(work, [('r.md', work)], language)}\n</work>"
    assert record in step_prompt(judge_input(work, [("r.md", work)], language), CHOICES, language)
    assert record in tag_prompt(judge_input(work, [("r.md", work)], language), "m", CHOICES, language)
    assert record in evaluation_prompt(judge_input(work, [("r.md", work)], language), ["a"], language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_conductor_is_told_to_judge_and_no_more(language: Language) -> None:
    assert len(conductor(language).splitlines()) == 3


@pytest.mark.parametrize(
    ("schema", "name", "numbers"),
    [(step_schema(CHOICES), "step", [0, 1, 3]), (evaluation_schema(2), "matched_index", [0, 1, 2])],
)
def test_a_judges_schema_is_small_and_bounded(schema: dict[str, Any], name: str, numbers: list[int]) -> None:
    assert schema["properties"][name] == {"type": "integer", "enum": numbers}
    assert schema["properties"]["reason"]["maxLength"] == REASON_LENGTH
    assert schema["required"] == list(schema["properties"]) == [name, "reason"]
    assert schema["additionalProperties"] is False
    assert json.loads(json.dumps(schema)) == schema


# Phase 3: what is read from the answers

NUMBERS = [
    ('{"%s": 1, "reason": "fits"}', 1),
    (' \n{"reason": "x", "%s": 3}\n', 3),
    ('```json\n{"%s": 2}\n```', 2),
    ('So:\n```\r\n{"%s": 2}\r\n```\r\nDone.', 2),
    ('{"%s": 0, "reason": "none"}', None),
    ('{"%s": 4}', None),
    ('{"%s": 9}', None),
    ('{"%s": -1}', None),
    ('{"%s": true}', None),
    ('{"%s": 1.0}', None),
    ('{"%s": "1"}', None),
    ('{"%s": null}', None),
    ('{"%s": [1]}', None),
    ('{"other %s": 1}', None),
    ('{"%s": 1', None),
    ('I think {"%s": 1}', None),
    ('```json\n{"%s": 1}\n```\nor\n```json\n{"%s": 2}\n```', None),
]
BARE = [("2", 2), (" 3\n", 3), ("0", None), ("4", None), ("９", None), ("", None), ("none", None)]
BARE += [("true", None), ("[1]", None), ("[" * 100_000, None), ("9" * 5000, None)]


def both(text: str, name: str) -> str:
    return text.replace("%s", name)


@pytest.mark.parametrize(("text", "step"), NUMBERS + BARE)
def test_read_step(text: str, step: int | None) -> None:
    assert read_step(both(text, "step"), 3) == step


@pytest.mark.parametrize(("text", "index"), NUMBERS + BARE)
def test_read_evaluation(text: str, index: int | None) -> None:
    assert read_evaluation(both(text, "matched_index"), 3) == index


@pytest.mark.parametrize("text", ["[PLAN:1]", "[JUDGE:1]", "[STEP:1]", "It is [ARCH-REVIEW:1]."])
def test_stage_1_reads_no_tag(text: str) -> None:
    assert read_step(text, 3) is None


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("[JUDGE:2]", 2),
        ("it is [judge: 3].", 3),
        ("[JUDGE:1] rather than [JUDGE:2]", 1),
        ("[JUDGE:9] [JUDGE:2]", None),
        ("[JUDGE:0]", None),
        ("[JUDGE:-1]", None),
        ("[JUDGE:x]", None),
        ("[PLAN:1]", None),
        ('{"matched_index": 9} but [JUDGE:2]', 2),
        (f"[JUDGE:{'0' * 50}2]", 2),
        (f"[JUDGE:{'9' * 5000}]", None),
    ],
)
def test_an_evaluation_may_be_a_tag_and_the_first_one_counts(text: str, index: int | None) -> None:
    assert read_evaluation(text, 3) == index


@pytest.mark.parametrize(
    ("text", "name", "number"),
    [
        ("[PLAN:1] ... [PLAN:2]", "plan", 2),
        ("[plan:1]", "plan", 1),
        ("[Plan:1]", "PLAN", 1),
        ("[ PLAN : 3 ]", "plan", 3),
        ("[PLAN:0]", "plan", None),
        ("[PLAN:4]", "plan", None),
        ("[PLAN:1] then [PLAN:4]", "plan", None),
        ("[PLAN:1] then [PLAN:0]", "plan", None),
        ("[PLAN:1] then [PLAN:-1]", "plan", 1),
        ("[PLAN:1] then [FIX:2]", "plan", 1),
        ("[ARCH-REVIEW:1] [SECURITY-REVIEW:2]", "arch-review", 1),
        ("[ARCH-REVIEW:1] [SECURITY-REVIEW:2]", "security-review", 2),
        ("[REVIEW:1]", "arch-review", None),
        ("[ARCH-REVIEW:1]", "review", None),
        ("[_LOOP_JUDGE_REVIEW_FIX:2]", "_loop_judge_review_fix", 2),
        ("[AXB:1]", "a.b", None),
        ("[A.B:1]", "a.b", 1),
        ("[見直し:2]", "見直し", 2),
        ("[STRASSE:2]", "straße", 2),
        ("[Straße:2]", "straße", 2),
        ("[PLAN:１]", "plan", None),
        ("[PLAN:1.5]", "plan", None),
        (f"[PLAN:{'9' * 5000}]", "plan", None),
        ("", "plan", None),
    ],
)
def test_the_last_tag_of_the_movement_decides(text: str, name: str, number: int | None) -> None:
    assert last_movement_tag(text, name, 3) == number


@given(st.text(min_size=1, max_size=20), st.integers(1, 9))
def test_a_tag_that_is_asked_for_is_found(name: str, number: int) -> None:
    assert last_movement_tag(f"So: {movement_tag(name, number)}.", name, 9) == number


@given(st.text(alphabet='{}[]"step:matched_indexJUDGE 0123`json\n', max_size=80), st.integers(0, 4))
def test_any_answer_is_read_and_stays_in_range(text: str, count: int) -> None:
    for number in (read_step(text, count), read_evaluation(text, count), last_movement_tag(text, "s", count)):
        assert number is None or (type(number) is int and 1 <= number <= count)


@given(st.integers(1, 5), st.text())
def test_what_the_schemas_ask_for_is_read(number: int, reason: str) -> None:
    assert read_step(json.dumps({"step": number, "reason": reason}), 5) == number
    assert read_evaluation(json.dumps({"matched_index": number, "reason": reason}), 5) == number


# blocked


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("質問: どれ?", "どれ?"),
        ("質問：どれ?\nほかの行", "どれ?"),
        ("止まりました。\n- 必要な情報:  鍵の場所 \r\n以上", "鍵の場所"),
        ("理由: 不明\n質問: どれ?", "どれ?"),
        ("確認: よいか\n理由: 危険", "危険"),
        ("質問: 一つ目\n質問: 二つ目", "一つ目"),
        ("質問:\nどれ?", "質問:\nどれ?"),
        ("質問:   \n理由: 不明", "不明"),
        ("Which one?", "Which one?"),
        ("質問 どれ", "質問 どれ"),
        ("", ""),
    ],
)
def test_what_a_blocked_movement_asks(text: str, question: str) -> None:
    assert blocked_question(text) == question


@given(st.text())
def test_a_blocked_movement_always_asks_something_it_wrote(text: str) -> None:
    assert blocked_question(text) in text
