"""Finding pieces: by name near to far, by path, and inside an installed wheel."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cadenza.errors import NotFound, PieceError
from cadenza.piece.find import find_piece, list_pieces, load_piece, looks_like_path, package_root
from cadenza.piece.model import Piece
from cadenza.piece.vocabulary import Language

PIECE = """name: {name}
description: {name} here
movements: [{{name: a, rules: [{{condition: x, next: COMPLETE}}]}}]
"""
OWN = ("chat", "hello", "plan-build-review", "release-notes", "research")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project and a home; ``put`` writes a piece below one of them."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    return tmp_path


def put(root: Path, place: str, words: str | None = None) -> Path:
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PIECE.format(name=place.partition("/")[0]) if words is None else words, encoding="utf-8")
    return path


PLACES = [
    "project/.cadenza/pieces/hello.yaml",
    "project/.takt/pieces/hello.yaml",
    "home/.cadenza/pieces/hello.yaml",
    "home/.takt/pieces/hello.yml",
]


@pytest.mark.parametrize("nearest", range(len(PLACES)))
def test_the_nearest_piece_of_a_name_is_found(world: Path, nearest: int) -> None:
    for place in PLACES[nearest:]:
        put(world, place)
    found = find_piece("hello", cwd=world / "project")
    assert (found.path, found.origin) == (
        world / PLACES[nearest],
        PLACES[nearest].replace("home", "user").partition("/")[0],
    )


def test_the_package_comes_last_in_the_language_asked_for(world: Path) -> None:
    for language in ("en", "ja"):
        found = find_piece("hello", cwd=world / "project", language=language)
        assert (found.origin, found.language) == ("package", language)
        assert found.path == package_root() / language / "pieces" / "hello.yaml"


@pytest.mark.parametrize(
    ("reference", "path"),
    [
        ("coding", False),
        ("a.b", False),
        ("x.yaml", True),
        ("x.yml", True),
        ("x.json", True),
        ("./x", True),
        ("a/b", True),
        ("/x", True),
    ],
)
def test_what_is_a_path_and_what_is_a_name(reference: str, path: bool) -> None:
    assert looks_like_path(reference) is path


@pytest.mark.parametrize(
    "reference", ["mine.yaml", "./mine.yaml", "../project/mine.yaml", "~/../project/mine.yaml"]
)
def test_paths_are_relative_to_the_working_directory(world: Path, reference: str) -> None:
    (world / "home").mkdir()
    put(world, "project/mine.yaml")
    loaded = load_piece(reference, cwd=world / "project")
    assert (loaded.piece.name, os.path.samefile(loaded.path, world / "project/mine.yaml")) == (
        "project",
        True,
    )


def test_a_piece_in_json(world: Path) -> None:
    text = json.dumps(
        {
            "cadenza": 1,
            "name": "j",
            "control": "tags",
            "movements": [{"name": "a", "rules": [{"condition": "x", "next": "COMPLETE"}]}],
        }
    )
    put(world, "project/j.json", text)
    assert load_piece("j.json", cwd=world / "project").piece.dialect == "native"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("helo", ["there is no piece 'helo'", ".cadenza/pieces", ".takt/pieces", "did you mean hello?"]),
        ("zzz", ["known pieces: chat, hello, mine, plan-build-review, release-notes, research"]),
        ("", ["there is no piece ''"]),
        ("..", ["there is no piece '..'"]),
        ("x" * 5000, ["there is no piece"]),
        ("a\0b", ["there is no piece"]),
        ("gone/hello", ["gone/hello: there is no such piece file"]),
        ("gone.yaml", ["gone.yaml: there is no such piece file"]),
    ],
)
def test_a_piece_that_is_not_there(world: Path, name: str, words: list[str]) -> None:
    put(world, "project/.takt/pieces/mine.yaml")
    with pytest.raises(NotFound) as caught:
        load_piece(name, cwd=world / "project")
    assert all(word in str(caught.value) for word in words)


def test_a_folder_is_not_a_piece(world: Path) -> None:
    with pytest.raises(PieceError, match="this is a folder"):
        load_piece("./", cwd=world / "project")


def test_the_listing_shows_each_name_once_and_broken_pieces_with_their_reason(world: Path) -> None:
    put(world, "project/.takt/pieces/hello.yaml")
    put(world, "home/.takt/pieces/hello.yaml")
    put(world, "home/.takt/pieces/bad.yaml", "name: [")
    put(world, "home/.takt/pieces/list.yaml", "[1]")
    put(world, "home/.takt/pieces/notes.txt", "no piece")
    listed = {info.name: info for info in list_pieces(world / "project")}
    assert list(listed) == ["hello", "bad", "list", "chat", "plan-build-review", "release-notes", "research"]
    assert (listed["hello"].origin, listed["hello"].description, listed["hello"].dialect) == (
        "project",
        "project here",
        "takt",
    )
    assert (listed["plan-build-review"].origin, listed["plan-build-review"].dialect) == ("package", "native")
    assert "not valid YAML" in (listed["bad"].problem or "")
    assert (listed["bad"].dialect, listed["list"].description) == (None, None)


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("name", OWN)
def test_our_own_pieces_load_without_a_warning(world: Path, name: str, language: Language) -> None:
    loaded = load_piece(name, cwd=world / "project", language=language)
    assert (loaded.piece.name, loaded.piece.language, loaded.piece.dialect) == (name, language, "native")
    assert loaded.warnings == ()
    movements = [
        *loaded.piece.movements,
        *(lane for movement in loaded.piece.movements for lane in movement.lanes),
    ]
    for movement in movements:
        assert movement.lanes or (movement.persona and movement.instruction), movement.name
        assert not movement.persona or movement.persona.origin.startswith("../facets/")
    assert all(len(text) > 20 for text in loaded.texts.values())


@pytest.mark.parametrize("name", OWN)
def test_our_own_pieces_are_the_same_in_both_languages(world: Path, name: str) -> None:
    en, ja = (load_piece(name, cwd=world / "project", language=code).piece for code in ("en", "ja"))
    assert _shape(en) == _shape(ja)


def _shape(piece: Piece) -> list[Any]:
    return [
        (
            movement.name,
            [lane.name for lane in movement.lanes],
            [rule.next for rule in movement.rules],
            [report.name for report in movement.reports],
        )
        for movement in piece.movements
    ]


def test_a_path_into_the_package_knows_its_language(world: Path) -> None:
    path = package_root() / "ja" / "pieces" / "hello.yaml"
    assert find_piece(str(path), cwd=world).language == "ja"


# The seed's three path examples, inside an installed wheel (TAKT engine, section maps)

PROBE = """
import json, sys
from pathlib import Path
import cadenza
from cadenza.piece.find import load_piece, list_pieces, package_root
root = package_root() / "en"
(root / "pieces" / "default.yaml").write_text('''
name: default
personas: {coder: ../facets/personas/coder.md}
policies: {coding: ../facets/policies/coding.md}
instructions: {plan: ../facets/instructions/plan.md}
movements:
  - {name: plan, persona: coder, policy: coding, instruction: plan, rules: [{condition: x, next: COMPLETE}]}
''')
(root / "facets/personas/coder.md").write_text("coder words")
(root / "facets/policies/coding.md").write_text("coding words")
seed = load_piece("default", cwd=sys.argv[1])
hello = [load_piece("hello", cwd=sys.argv[1], language=code).piece.description for code in ("en", "ja")]
print(json.dumps({
    "package": cadenza.__file__,
    "hello": hello,
    "listed": [info.name for info in list_pieces(sys.argv[1])],
    "texts": sorted(seed.texts.values()),
    "plan": (root / "facets/instructions/plan.md").read_text(encoding="utf-8"),
}))
"""


@pytest.mark.slow
def test_pieces_are_found_inside_an_installed_wheel(world: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    pip = [sys.executable, "-m", "pip"]
    build = [
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        world / "dist",
        _checkout(world / "checkout"),
    ]
    _run([*pip, *build], environment)
    (wheel,) = (world / "dist").glob("cadenza-*.whl")
    _run([*pip, "install", "--no-deps", "--target", world / "site", wheel], environment)
    environment["PYTHONPATH"] = str(world / "site")
    said = json.loads(_run([sys.executable, "-c", PROBE, world / "project"], environment))
    assert said["package"].startswith(str(world / "site"))
    assert len(set(said["hello"])) == 2
    assert said["listed"] == sorted(["default", *OWN])
    assert said["texts"] == sorted(["coder words", "coding words", said["plan"]])


def _checkout(folder: Path) -> Path:
    """A copy to build from, so that the test leaves nothing in the real one."""
    project = Path(__file__).parents[2]
    shutil.copytree(project / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(project / "pyproject.toml", folder)
    for name in ("README.md", "LICENSE"):
        (folder / name).write_text("stands in for the real one")
    return folder


def _run(command: list[Any], environment: dict[str, str]) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_piece_with_a_key_twice_is_listed_with_its_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = tmp_path / ".cadenza" / "pieces"
    folder.mkdir(parents=True)
    (folder / "twice.yaml").write_text(
        "cadenza: 1\nname: p\nname: q\ndescription: what for\n", encoding="utf-8"
    )
    (info,) = [piece for piece in list_pieces(tmp_path) if piece.name == "twice"]
    assert (info.dialect, info.description) == ("native", "what for")
    assert "given already on line 2" in (info.problem or "")
