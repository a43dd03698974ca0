"""The condition grammar, and aggregates over the results of sub-movements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadenza.core.aggregates import first_holding, holds
from cadenza.errors import PieceError
from cadenza.piece.conditions import Condition, parse_condition


@pytest.mark.parametrize(
    ("text", "kind", "args", "shown"),
    [
        ("approved", "label", (), "approved"),
        ("すべて問題なし", "label", (), "すべて問題なし"),
        ('ai("tests pass")', "ai", ("tests pass",), "tests pass"),
        ('ai("a", "b")', "ai", ('a", "b',), 'a", "b'),
        ('all("approved")', "all", ("approved",), 'all("approved")'),
        ('all("A", "B")', "all", ("A", "B"), 'all("A", "B")'),
        ('any("A","B" , "C")', "any", ("A", "B", "C"), 'any("A","B" , "C")'),
        ('any("a (b), c")', "any", ("a (b), c",), 'any("a (b), c")'),
        ('  all("a")\n', "all", ("a",), 'all("a")'),
        ("ai(unquoted)", "label", (), "ai(unquoted)"),
        ('ai("")', "label", (), 'ai("")'),
        ("all done", "label", (), "all done"),
        ("all()", "label", (), "all()"),
        ('not all("a")', "label", (), 'not all("a")'),
        ('all("a") and more', "label", (), 'all("a") and more'),
        ('ALL("a")', "label", (), 'ALL("a")'),
    ],
)
def test_parse_condition(text: str, kind: str, args: tuple[str, ...], shown: str) -> None:
    condition = parse_condition(text)
    assert (condition.kind, condition.args, condition.shown) == (kind, args, shown)
    assert condition.text == text.strip()
    assert condition.is_aggregate == (kind in ("all", "any"))


@pytest.mark.parametrize("text", ["all(approved)", "any(a, b)", 'all("")', "all('a')", 'any(")'])
def test_an_aggregate_without_a_quoted_argument_is_an_error(text: str) -> None:
    with pytest.raises(PieceError) as caught:
        parse_condition(text)
    assert repr(text) in caught.value.message
    assert f'{text[:3]}("approved")' in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("condition", "labels", "answer"),
    [
        # all, one argument: every sub-movement matched it
        ('all("ok")', ["ok"], True),
        ('all("ok")', ["ok", "ok", "ok"], True),
        ('all("ok")', ["ok", "bad"], False),
        ('all("ok")', ["ok", None], False),
        ('all("ok")', [None], False),
        ('all("ok")', [], False),
        # all, several arguments: by position, as many as there are sub-movements
        ('all("a", "b")', ["a", "b"], True),
        ('all("a", "b")', ["b", "a"], False),
        ('all("a", "b")', ["a"], False),
        ('all("a", "b")', ["a", "b", "b"], False),
        ('all("a", "b")', ["a", None], False),
        ('all("a", "b")', [], False),
        ('all("a", "a")', ["a", "a"], True),
        # any: some sub-movement matched one of them
        ('any("bad")', ["ok", "bad"], True),
        ('any("bad")', ["ok", "ok"], False),
        ('any("bad")', [None, "bad"], True),
        ('any("bad")', [None, None], False),
        ('any("bad")', [], False),
        ('any("x", "y")', ["ok", "y"], True),
        ('any("x", "y")', ["ok", "z"], False),
        # conditions are compared as they are written
        ('all("Ok")', ["ok"], False),
        ('all("ok")', ['ai("ok")'], False),
        ('all("None")', [None], False),
        # what is no aggregate never holds
        ("ok", ["ok"], False),
        ('ai("ok")', ["ok"], False),
    ],
)
def test_holds(condition: str, labels: list[str | None], answer: bool) -> None:
    assert holds(parse_condition(condition), labels) is answer


def test_aggregates_are_tried_from_the_top() -> None:
    rules = [parse_condition(text) for text in ("plain", 'all("ok")', 'any("ok")', 'any("bad")')]
    assert first_holding(rules, ["ok", "ok"]) == 1
    assert first_holding(rules, ["ok", "bad"]) == 2
    assert first_holding(rules, [None, "bad"]) == 3
    assert first_holding(rules, [None, None]) is None


LABELS = st.lists(st.sampled_from(["a", "b", None]), max_size=4)


@given(LABELS)
def test_all_of_one_is_any_of_none_other(labels: list[str | None]) -> None:
    every = holds(Condition("all", "", ("a",)), labels)
    assert every == (bool(labels) and set(labels) == {"a"})


@given(st.text())
def test_any_text_parses_or_is_refused_with_a_hint(text: str) -> None:
    hint: str | None = None
    try:
        parsed = parse_condition(text).text
    except PieceError as refused:
        parsed, hint = text.strip(), refused.hint or "no hint"
    assert parsed == text.strip()
    assert hint != "no hint"
