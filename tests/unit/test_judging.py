"""The judges' prompts, the schema of a verdict, and what counts as one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadenza.core.prompts.judging import judge_prompt, monitor_instruction, read_verdict, verdict_schema
from cadenza.core.prompts.templates import expand
from cadenza.core.prompts.texts import Language

LANGUAGES: tuple[Language, ...] = ("en", "ja")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_judge_gets_the_output_and_the_conditions_from_0(language: Language) -> None:
    prompt = judge_prompt("I fixed {conditions}.\n", ["approved", 'ai("needs work")'], language)
    assert "<output>\nI fixed {conditions}.\n\n</output>" in prompt
    assert "\n0: approved\n1: needs work\n" in prompt
    assert '{"rule": ' in prompt
    assert "[STEP:" not in prompt


@given(st.text(max_size=50), st.sampled_from(LANGUAGES))
def test_an_output_reaches_the_judge_as_it_is(output: str, language: Language) -> None:
    assert f"<output>\n{output}\n</output>" in judge_prompt(output, ["a"], language)


def test_the_schema_admits_the_indexes_and_null() -> None:
    schema = verdict_schema(3)
    assert schema["properties"]["rule"]["enum"] == [0, 1, 2, None]
    assert schema["required"] == ["rule", "reason"]
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('{"rule": 0, "reason": "fits"}', 0),
        ('{"rule": 2}', 2),
        (' \n{"reason": "x", "rule": 1}\n', 1),
        ('{"rule": 1, "more": [1]}', 1),
        ('```json\n{"rule": 1}\n```', 1),
        ('```\n{"rule": 1}\n```', 1),
        ('```JSON\r\n{"rule": 1}\r\n```\r\n', 1),
        ('Here it is:\n```json\n{"rule": 1}\n```\nDone.', 1),
        ("2", 2),
        (" 0\n", 0),
        ("```\n1\n```", 1),
        ('{"rule": null, "reason": "none fits"}', None),
        ("none", None),
        ("null", None),
        ("", None),
        ('{"rule": 3}', None),
        ('{"rule": -1}', None),
        ("3", None),
        ("-1", None),
        ("9" * 5000, None),
        (f'{{"rule": {"9" * 5000}}}', None),
        ('{"rule": true}', None),
        ('{"rule": false}', None),
        ('{"rule": 1.0}', None),
        ('{"rule": "1"}', None),
        ('{"rule": [1]}', None),
        ('{"Rule": 1}', None),
        ("{}", None),
        ("[1]", None),
        ('"1"', None),
        ("true", None),
        ("1.0", None),
        ("１", None),
        ("rule 1", None),
        ('I think {"rule": 1}', None),
        ('{"rule": 1', None),
        ('{"rule": 1} {"rule": 2}', None),
        ('```json\n{"rule": 1}\n```\nor\n```json\n{"rule": 2}\n```', None),
        ('```json\n{"rule": 1}', None),
        ("[" * 100_000, None),
    ],
)
def test_read_verdict(text: str, rule: int | None) -> None:
    assert read_verdict(text, 3) == rule


@given(st.text(alphabet='{}[]"rule: 01truenl`json\n', max_size=80), st.integers(0, 4))
def test_any_answer_is_read_and_stays_in_range(text: str, count: int) -> None:
    rule = read_verdict(text, count)
    assert rule is None or (type(rule) is int and 0 <= rule < count)


@given(st.integers(0, 5), st.text())
def test_what_the_schema_asks_for_is_read(rule: int, reason: str) -> None:
    assert read_verdict(json.dumps({"rule": rule, "reason": reason}), 6) == rule


@pytest.mark.parametrize(("language", "count"), [("en", "repeated 3 times"), ("ja", "3 回")])
def test_a_monitor_without_instruction_has_one(language: Language, count: str) -> None:
    template = monitor_instruction(["review", "fix"], ["healthy", 'ai("stuck")'], language)
    assert "review → fix" in template
    assert "\n- healthy\n- stuck" in template
    assert "{cycle_count}" in template
    assert count in expand(template, {"cycle_count": "3"}, {}, missing_report="")
