"""The house: who may import whom, and what every file of it owes its reader.

Imports are read from the syntax tree, so those inside functions and under ``TYPE_CHECKING`` count too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "cadenza"

FLOORS: tuple[frozenset[str], ...] = (
    frozenset({"errors", "ids", "clock"}),
    frozenset({"settings"}),
    frozenset({"piece"}),
    frozenset({"core"}),
    frozenset({"providers", "tools", "host", "journal"}),
    frozenset({"worker", "config"}),
    frozenset({"service", "preview"}),
    frozenset({"cli", "mcp", "web", "engine"}),
    frozenset({"__init__", "__main__"}),
)
"""From the ground up. A room may import the floors below its own, and itself."""

APART = frozenset({"testing"})
"""May import anything; nothing of the house imports it."""

NEIGHBOURS = frozenset(
    {
        ("service", "preview"),
        ("cli", "engine"),
        ("cli", "web"),
        ("mcp", "engine"),
        ("web", "engine"),
    }
)
"""The few rooms that may look at another one on their own floor: (who, whom)."""

FURNITURE = frozenset({("settings", "piece")})
"""What may look up, because it is words alone: the settings know the languages (``piece.vocabulary``)."""

LONGEST_FILE = 500

_SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+TABLE)\b"
)


def files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def room_of(path: Path) -> str:
    """The top-level package or module that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def rooms_imported(path: Path) -> Iterator[tuple[int, str, str]]:
    """(line, room, module) of every import from the house in a file."""
    for node in ast.walk(tree_of(path)):
        for module in _modules(node, path):
            head, _, rest = module.partition(".")
            if head == "cadenza":
                yield node.lineno, rest.partition(".")[0] or "__init__", module  # type: ignore[attr-defined]


def _modules(node: ast.AST, path: Path) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        module = node.module or ""
        if node.level:
            package = ("cadenza", *path.relative_to(SOURCE).parts[: -node.level])
            module = ".".join((*package, module)).rstrip(".")
        if module == "cadenza":
            names = [alias.name for alias in node.names if alias.name != "__version__"]
            return [f"cadenza.{name}" if _is_room(name) else module for name in names]
        return [module]
    return []


def _is_room(name: str) -> bool:
    return (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file()


def floor_of(room: str) -> int | None:
    return next((height for height, rooms in enumerate(FLOORS) if room in rooms), None)


def may_import(who: str, whom: str) -> bool:
    if who == whom or who in APART or (who, whom) in NEIGHBOURS | FURNITURE:
        return True
    if whom in APART:
        return False
    mine, theirs = floor_of(who), floor_of(whom)
    return mine is not None and theirs is not None and theirs < mine


@pytest.mark.parametrize("path", files(), ids=name_of)
def test_imports_point_downwards(path: Path) -> None:
    wrong = [
        f"{name_of(path)}:{line} imports {module}"
        for line, room, module in rooms_imported(path)
        if not may_import(room_of(path), room)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("who", "whom", "allowed"),
    [
        ("cli", "service", True),
        ("cli", "engine", True),
        ("service", "cli", False),
        ("service", "journal", True),
        ("worker", "journal", True),
        ("worker", "service", False),
        ("journal", "core", True),
        ("journal", "providers", False),
        ("providers", "host", False),
        ("core", "piece", True),
        ("core", "journal", False),
        ("piece", "core", False),
        ("piece", "errors", True),
        ("ids", "errors", False),
        ("testing", "cli", True),
        ("worker", "testing", False),
        ("engine", "cli", False),
    ],
)
def test_the_order_of_the_floors(who: str, whom: str, allowed: bool) -> None:
    assert may_import(who, whom) is allowed


def test_every_room_has_its_floor() -> None:
    rooms = {room_of(path) for path in files()} - APART
    assert {room for room in rooms if floor_of(room) is None} == set()


def test_settings_take_words_from_the_piece_and_nothing_else() -> None:
    modules = {module for _, room, module in rooms_imported(SOURCE / "settings.py") if room == "piece"}
    assert modules <= {"cadenza.piece.vocabulary"}


@pytest.mark.parametrize("path", files(), ids=name_of)
def test_no_file_is_long(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", files(), ids=name_of)
def test_sql_lives_in_sql_files(path: Path) -> None:
    found = [
        f"{name_of(path)}:{node.lineno}: {node.value[:60]!r}"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _SQL.search(node.value)
    ]
    if name_of(path) != "journal/database.py":
        assert not found, "\n".join(found)
    else:  # asking whether a file is a journal at all comes before there is any schema
        assert len(found) <= 1, "\n".join(found)


@pytest.mark.parametrize("path", files(), ids=name_of)
def test_only_the_journal_speaks_to_a_database(path: Path) -> None:
    imports = {module for node in ast.walk(tree_of(path)) for module in _modules(node, path)}
    if "sqlite3" in imports:
        assert room_of(path) in {"journal", "testing"}


@pytest.mark.parametrize("path", files(), ids=name_of)
def test_every_public_module_says_what_it_is(path: Path) -> None:
    if any(part.startswith("_") and part != "__init__.py" for part in path.relative_to(SOURCE).parts):
        return
    if path.name == "__init__.py" and not path.read_text(encoding="utf-8").strip():
        return
    assert ast.get_docstring(tree_of(path)), f"{name_of(path)} has no docstring"


def test_events_are_frozen_structs_with_dotted_names_of_their_own() -> None:
    import msgspec

    from cadenza.core import events

    tags = set()
    for kind in events.AnyEvent.__args__:
        config = kind.__struct_config__
        assert issubclass(kind, msgspec.Struct)
        assert config.frozen, kind
        assert config.tag_field == "type", kind
        assert "." in str(config.tag), kind
        tags.add(config.tag)
    assert len(tags) == len(events.AnyEvent.__args__)


@pytest.mark.parametrize("name", ["cadenza.core.demands.AnyDemand", "cadenza.core.outcomes.AnyOutcome"])
def test_demands_and_outcomes_are_frozen_structs_too(name: str) -> None:
    import importlib

    module, _, union = name.rpartition(".")
    for kind in getattr(importlib.import_module(module), union).__args__:
        assert kind.__struct_config__.frozen, kind


@pytest.mark.parametrize(
    "path", [path for path in files() if room_of(path) in {"core", "piece"}], ids=name_of
)
def test_core_and_piece_read_no_clock_and_draw_nothing(path: Path) -> None:
    imports = {module for node in ast.walk(tree_of(path)) for module in _modules(node, path)}
    assert not imports & {"time", "random", "secrets", "asyncio", "socket", "subprocess", "threading"}
