"""Answers as people type them, for every form that a request may have."""

from __future__ import annotations

from typing import Any

import pytest

from cadenza.cli.forms import read_answer, wanted
from cadenza.core.control import APPROVAL
from cadenza.errors import InputRefused

CHOICE = {"type": "string", "enum": ["red", "blue"]}
OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("typed", "schema", "value"),
    [
        ("as it is ", None, "as it is "),
        ("yes", None, "yes"),
        ("any text", {"type": "string"}, "any text"),
        ("yes", APPROVAL, {"approved": True}),
        ("Y", APPROVAL, {"approved": True}),
        ("no, not now", APPROVAL, {"approved": False, "note": "not now"}),
        ("はい", APPROVAL, {"approved": True}),
        ('{"approved": false}', APPROVAL, {"approved": False}),
        ("2", CHOICE, "blue"),
        ("BLUE", CHOICE, "blue"),
        ("yes", {"type": "boolean"}, True),
        ("n", {"type": "boolean"}, False),
        ('{"n": 3}', OBJECT, {"n": 3}),
        ("3", {"type": "integer"}, 3),
        ("[1, 2]", {"type": "array"}, [1, 2]),
    ],
)
def test_what_is_typed_becomes_what_is_asked_for(typed: str, schema: Any, value: Any) -> None:
    assert read_answer(typed, schema) == value


@pytest.mark.parametrize(
    ("typed", "schema", "told"),
    [
        ("perhaps", APPROVAL, "neither yes nor no"),
        ("3", CHOICE, "none of the choices"),
        ("n: 3", OBJECT, "is no JSON"),
    ],
)
def test_what_is_none_of_it_is_said(typed: str, schema: Any, told: str) -> None:
    with pytest.raises(InputRefused, match=told):
        read_answer(typed, schema)


@pytest.mark.parametrize(
    ("schema", "words"),
    [(None, "a text"), (APPROVAL, "yes or no"), (CHOICE, "1 red / 2 blue"), (OBJECT, '"required": ["n"]')],
)
def test_what_is_wanted_is_told_in_few_words(schema: Any, words: str) -> None:
    assert words in wanted(schema)
