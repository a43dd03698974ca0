"""``docs/lessons.md``: every row has a test that exists, or says why it has none."""

from __future__ import annotations

import re

import pytest

from tests.nodes import ROOT, exists

ROWS = re.findall(
    r"^\| ([PDK]\d+) \| (.+?) \| (.+?) \| (.+) \|$",
    (ROOT / "docs" / "lessons.md").read_text(encoding="utf-8"),
    re.MULTILINE,
)
REASONS = ("Not yet: ", "Does not apply")


def test_every_lesson_has_a_row() -> None:
    assert [id for id, *_ in ROWS] == [
        *(f"P{n}" for n in range(1, 35)),
        *(f"D{n}" for n in range(1, 28)),
        *(f"K{n}" for n in range(1, 22)),
    ]


@pytest.mark.parametrize(("id", "shown"), [(row[0], row[3]) for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_lesson_is_shown_by_tests_that_exist_or_says_why_not(id: str, shown: str) -> None:
    nodes = re.findall(r"`(tests/[^`]+)`", shown)
    assert [node for node in nodes if not exists(node)] == []
    assert nodes or shown.startswith(REASONS)
