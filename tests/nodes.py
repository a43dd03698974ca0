"""Test ids of pytest, looked up in the syntax tree of their files: nothing is imported or collected."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent


def exists(node: str) -> bool:
    """Whether ``tests/a/test_b.py::test_c`` names a test; what stands in ``[…]`` is not looked at."""
    file, _, name = node.partition("::")
    path = ROOT / file
    return path.is_file() and name.partition("[")[0] in tests_of(path)


@cache
def tests_of(path: Path) -> frozenset[str]:
    """The names of the tests in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    found = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in found if node.name.startswith("test_"))
