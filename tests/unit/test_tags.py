"""Status tags: which tag counts, and what is no tag."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadenza.core.tags import BEYOND, is_tag_line, last_tag


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", None),
        ("done", None),
        ("done\n[STEP:0]", 0),
        ("[STEP:0] no, wait: [STEP:2]", 2),
        ("[STEP:1]\n[STEP:1]\nbye", 1),
        ("**[STEP:3]**", 3),
        ("`[STEP:3]`", 3),
        ("[step:1] [Step:2]", 2),
        ("[STEP: 1]", 1),
        ("[ STEP : 4 ]", 4),
        ("[STEP:007]", 7),
        ("[STEP:000]", 0),
        ("[STEP:99]", 99),
        ("[STEP:0] [STEP:99]", 99),
        ("[STEP:999999999]", 999_999_999),
        ("[STEP:1000000000]", BEYOND),
        (f"[STEP:{'9' * 10_000}]", BEYOND),
        (f"[STEP:{'0' * 10_000}1]", 1),
        ("[STEP:N]", None),
        ("[STEP:]", None),
        ("[STEP:-1]", None),
        ("[STEP:1.5]", None),
        ("[STEP:１]", None),
        ("[STEP\n:1]", None),
        ("STEP:1", None),
        ("[PLAN:1]", None),
        ("[MY STEP:1]", None),
        ("[STEP:1", None),
        ("[STEP:2] then [STEP:x]", 2),
    ],
)
def test_last_tag(text: str, number: int | None) -> None:
    assert last_tag(text) == number


@given(st.text(), st.integers(0, 999_999_999), st.text(alphabet="abc[]: \n"))
def test_the_last_tag_wins_whatever_is_around_it(before: str, number: int, after: str) -> None:
    assert last_tag(f"{before}[STEP:{number}]{after}") == number


@given(st.text(alphabet="[]STEPstep:0123456789 \t", max_size=60))
def test_any_text_is_read(text: str) -> None:
    number = last_tag(text)
    assert number is None or 0 <= number <= BEYOND


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("[STEP:1]", True),
        ("  **[STEP:1]** \r", True),
        ("`[step: 2]`", True),
        ("so [STEP:1]", False),
        ("", False),
    ],
)
def test_a_line_that_is_a_tag(line: str, answer: bool) -> None:
    assert is_tag_line(line) is answer
