"""Arguments are held against schemas that strangers wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cadenza.core.arguments import problems_of


def test_a_reference_to_elsewhere_is_not_fetched(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"type": "integer"}', encoding="utf-8")
    (told,) = problems_of({"$ref": (tmp_path / "s.json").as_uri()}, 3)
    assert "the schema cannot be applied" in told


BROKEN: list[dict[str, Any]] = [{"type": "strng"}, {"pattern": "("}, {"properties": 3}, {"$ref": "#/gone"}]


@pytest.mark.parametrize("schema", BROKEN)
def test_a_broken_schema_is_told_and_breaks_nothing(schema: dict[str, Any]) -> None:
    (told,) = problems_of(schema, {} if "properties" in schema else "x")
    assert "the schema cannot be applied" in told


def test_local_references_hold() -> None:
    schema = {"$defs": {"n": {"type": "integer"}}, "$ref": "#/$defs/n"}
    assert problems_of(schema, 3) == []
    assert len(problems_of(schema, "x")) == 1
