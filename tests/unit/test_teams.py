"""The team leader: its prompts and schemas, what counts as a plan or a refill, the merged output."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadenza.core.prompts.texts_three import Language
from cadenza.core.teams import (
    TIMEOUT_LIMIT,
    TOTAL_PARTS,
    Part,
    PartResult,
    PlanError,
    all_failed,
    decomposition_prompt,
    decomposition_schema,
    merged,
    part_prompt,
    read_plan,
    read_refill,
    refill_prompt,
    refill_schema,
    room_for,
)

LANGUAGES: tuple[Language, ...] = ("en", "ja")
DEFAULT = 600_000


def raw(id: str = "a", **given: Any) -> dict[str, Any]:
    return {"id": id, "title": f"Part {id}", "instruction": f"Do {id}.", "timeout_ms": None} | given


def part(id: str = "a") -> Part:
    return Part(id, f"Part {id}", f"Do {id}.", DEFAULT)


def plan(*parts: object, **more: Any) -> str:
    return json.dumps({"parts": list(parts)} | more)


def read(text: str) -> list[str]:
    return [part.id for part in read_plan(text, 3, DEFAULT)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_leader_is_asked_for_a_plan(language: Language) -> None:
    prompt = decomposition_prompt("Do {everything}, {max_parts}.", 2, language)
    assert "<task>\nDo {everything}, {max_parts}.\n</task>" in prompt
    assert "2" in prompt
    assert '{"parts": [{"id": ' in prompt


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_leader_is_asked_for_more(language: Language) -> None:
    results = [PartResult(part=part(), output="y" * 3000), PartResult(part=part("b"), error="timeout")]
    prompt = refill_prompt("The {work}.", results, ["a", "b", "c"], 2, language)
    assert "<task>\nThe {work}.\n</task>" in prompt
    assert "a, b, c" in prompt
    assert "### a: Part a\n" + "y" * 2000 + "\n...TRUNCATED..." in prompt
    assert "### b: Part b\n[ERROR] timeout\n</results>" in prompt
    assert '{"done": false' in prompt


def test_a_refill_without_results_says_so() -> None:
    assert "<results>\n(none yet)\n</results>" in refill_prompt("T", [], ["a"], 1, "en")


@pytest.mark.parametrize("schema", [decomposition_schema(3), refill_schema(2)])
def test_the_schemas_are_strict_and_bounded(schema: dict[str, Any]) -> None:
    items = schema["properties"]["parts"]["items"]
    for level in (schema, items):
        assert level["required"] == list(level["properties"])
        assert level["additionalProperties"] is False
    assert list(items["properties"]) == ["id", "title", "instruction", "timeout_ms"]
    strings = [p for p in items["properties"].values() if p["type"] == "string"]
    assert all(0 < p["maxLength"] <= 2000 for p in strings)
    assert json.loads(json.dumps(schema)) == schema


def test_the_schemas_say_how_many_parts() -> None:
    assert decomposition_schema(3)["properties"]["parts"]["minItems"] == 1
    assert decomposition_schema(3)["properties"]["parts"]["maxItems"] == 3
    assert refill_schema(2)["properties"]["parts"]["maxItems"] == 2
    assert "minItems" not in refill_schema(2)["properties"]["parts"]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (plan(raw()), ["a"]),
        (json.dumps([raw(), raw("b")]), ["a", "b"]),
        (f"```json\n{plan(raw())}\n```", ["a"]),
        (f"Here is my plan:\n```json\n{json.dumps([raw()], indent=2)}\n```\nDone.", ["a"]),
        (f"```json\n{json.dumps([raw('x')])}\n```\nBetter:\n```json\n{json.dumps([raw('b')])}\n```", ["b"]),
        (f'```json\n{json.dumps([raw()])}\n```\n```json\n{{"note": 1}}\n```', ["a"]),
        (f"```json\n{json.dumps([raw()])}\n```\n```json\nnot json\n```", ["a"]),
        (f"```python\n[1]\n```\n```JSON\n{json.dumps([raw()])}\n```\n```\n[2]\n```", ["a"]),
        (plan(raw(instruction="Write\n```json\n[]\n```")), ["a"]),
        (plan(raw(extra=1), more=True), ["a"]),
        (f"Use ```json``` or ```x```.\n```json\r\n{json.dumps([raw()])}\r\n```\r\n", ["a"]),
        ("```json\n" * 20_000 + f"```\n```json\n{json.dumps([raw()])}\n```", ["a"]),
        (json.dumps([raw(title="a\u2028b")], ensure_ascii=False).join(["```json\n", "\n```"]), ["a"]),
    ],
)
def test_where_a_plan_is_found(text: str, ids: list[str]) -> None:
    assert read(text) == ids


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no list of parts"),
        ("I will do it myself.", "no list of parts"),
        ('{"parts": "a"}', "no list of parts"),
        ("{}", "no list of parts"),
        ("[" * 100_000, "no list of parts"),
        (f"```\n{json.dumps([raw()])}\n```\n```\nx\n```", "no list of parts"),
        (plan(), "planned 0 parts; 1 to 3 are allowed"),
        (plan(*map(raw, "abcd")), "planned 4 parts; 1 to 3 are allowed"),
        (plan(raw(), "b"), "part 2 of the plan is no object"),
        (plan(raw(), raw("")), "part 2 of the plan has no id"),
        (plan(raw(" ")), "part 1 of the plan has no id"),
        (plan(raw() | {"id": 3}), "part 1 of the plan has no id"),
        (plan(raw(title="")), "part 1 of the plan has no title"),
        (plan({"id": "a", "title": "A"}), "part 1 of the plan has no instruction"),
        (plan(raw(), raw("b"), raw("a")), "an id to two parts: a"),
        (plan(raw(), raw(" a ")), "an id to two parts: a"),
        (plan(raw(timeout_ms=0)), "part a: timeout_ms must be null or a positive integer, not 0"),
        (plan(raw(timeout_ms=-5)), "not -5"),
        (plan(raw(timeout_ms=1.5)), "not 1.5"),
        (plan(raw(timeout_ms="1000")), "not '1000'"),
        (plan(raw(timeout_ms=True)), "not True"),
    ],
)
def test_what_is_no_plan(text: str, problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        read(text)


@pytest.mark.parametrize(
    ("timeout", "read_as"), [(None, DEFAULT), (1, 1), (5000, 5000), (10**300, TIMEOUT_LIMIT)]
)
def test_a_time_limit_has_a_default_and_a_ceiling(timeout: int | None, read_as: int) -> None:
    assert read_plan(plan(raw(timeout_ms=timeout)), 3, DEFAULT)[0].timeout_ms == read_as


def test_a_time_limit_that_is_left_out_is_the_default() -> None:
    text = json.dumps([{"id": "a", "title": "A", "instruction": "I"}])
    assert read_plan(text, 3, DEFAULT) == (Part("a", "A", "I", DEFAULT),)


def test_what_the_journal_cannot_keep_is_replaced() -> None:
    text = '{"parts": [{"id": "a\\nb", "title": "\\ud800", "instruction": "x\\u0000y\\ud83d\\ude00"}]}'
    found = read_plan(text, 3, DEFAULT)[0]
    assert found == Part("a b", "\ufffd", "x\ufffdy\U0001f600", DEFAULT)
    json.dumps(found.instruction, ensure_ascii=False).encode("utf-8")


def test_a_refill_adds_what_is_new() -> None:
    text = plan(raw("a"), raw("d"), raw("e"), done=False, reasoning="two are missing")
    refill = read_refill(text, {"a", "b", "c"}, 3, DEFAULT)
    assert refill.parts == (part("d"), part("e"))
    assert refill.reason == "two are missing"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (plan(done=True, reasoning="all there"), "all there"),
        (plan(raw("z"), done=True), "done"),
        (plan(raw("a"), raw("b"), done=False, reasoning="again"), "no new part was planned"),
        (plan(done=False), "no new part was planned"),
        ("nothing to add", "no list of parts"),
        (plan(raw("z", title=""), done=False), "no title"),
        (plan(7, done=False), "no object"),
        ("", "no list of parts"),
    ],
)
def test_what_ends_the_planning(text: str, reason: str) -> None:
    refill = read_refill(text, ["a", "b"], 3, DEFAULT)
    assert refill.parts == ()
    assert reason in refill.reason


def test_a_refill_keeps_to_its_room_and_the_first_of_two_with_one_id() -> None:
    text = plan(raw("d"), raw("d", title="again"), raw("e"), raw("f"), done=False)
    assert read_refill(text, [], 2, DEFAULT).parts == (part("d"), part("e"))


def test_a_refill_may_be_an_array_in_a_block() -> None:
    text = f"More:\n```json\n{json.dumps([raw('d')])}\n```"
    assert read_refill(text, ["a"], 3, DEFAULT).parts == (part("d"),)


@pytest.mark.parametrize(("planned", "room"), [(1, 3), (17, 3), (18, 2), (19, 1), (20, 0), (25, 0)])
def test_there_is_room_up_to_the_total(planned: int, room: int) -> None:
    assert room_for(3, planned) == room


@given(st.lists(st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), max_size=4), max_size=20))
def test_no_leader_plans_more_than_the_total_or_a_part_twice(refills: list[list[str]]) -> None:
    known: list[str] = []
    for ids in refills:
        room = room_for(3, len(known))
        added = read_refill(plan(*map(raw, ids), done=False), known, room, DEFAULT).parts
        assert len(added) <= room
        known += [part.id for part in added]
    assert len(known) == len(set(known)) <= TOTAL_PARTS


@given(st.text(alphabet='{}[]"parts:id,title1 \n`json', max_size=80))
def test_any_answer_is_read_or_refused(text: str) -> None:
    read_refill(text, [], 3, DEFAULT)
    with suppress(PlanError):
        assert 1 <= len(read_plan(text, 3, DEFAULT)) <= 3


@pytest.mark.parametrize("language", LANGUAGES)
def test_whoever_does_a_part_reads_the_task_and_the_part(language: Language) -> None:
    prompt = part_prompt(Part("a", "Strings", "Tune {task}.", 1), "Mend {title}.", language)
    assert "\nMend {title}.\n" in prompt
    assert ": Strings\nTune {task}.\n\n" in prompt


def test_the_merged_output() -> None:
    results = [PartResult(part=part(), output="done"), PartResult(part=part("b"), error="timeout")]
    head, *rest = merged(results).split("\n\n---\n\n")
    title, _, text = head.partition("\n")
    assert title == "## decomposition"
    ids = [p["id"] for p in json.loads(text)["parts"]]
    assert ids == ["a", "b"]
    assert rest == ["## a: Part a\ndone", "## b: Part b\n[ERROR] timeout"]


def test_a_part_that_never_ended_is_an_error_too() -> None:
    assert merged([PartResult(part=part())]).endswith("## a: Part a\n[ERROR] no output")


def test_the_movement_fails_when_all_parts_do() -> None:
    failed = [PartResult(part=part(), error="timeout"), PartResult(part=part("b"))]
    assert all_failed(failed) == "all parts of the team leader failed: a: timeout; b: no output"
    assert all_failed([*failed, PartResult(part=part("c"), output="")]) is None
