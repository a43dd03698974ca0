"""Reading YAML: words stay words, every value knows its place, every mistake has one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from cadenza.errors import CadenzaError, NotFound, PieceError
from cadenza.piece.source import MAX_BYTES, parse, read_source


def plain(text: str) -> Any:
    return parse(text, file="p.yaml").plain()


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("on", "on"),
        ("Off", "Off"),
        ("yes", "yes"),
        ("no", "no"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("0x1f", 31),
        ("0o17", 15),
        ("017", 17),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2026-01-02", "2026-01-02"),
        ("9" * 40, 1e40),
        ("'true'", "true"),
        ('"12"', "12"),
        ("!!str 12", "12"),
        ("=", "="),
    ],
)
def test_plain_scalars_follow_yaml_1_2(written: str, value: object) -> None:
    assert plain(f"key: {written}") == {"key": value}


def test_keys_are_the_words_as_written() -> None:
    assert plain("on: 1\n2: two\nno: 3\n") == {"on": 1, "2": "two", "no": 3}


def test_json_is_yaml() -> None:
    assert plain('{"name": "x", "movements": [{"edit": false}]}') == {
        "name": "x",
        "movements": [{"edit": False}],
    }


def test_every_value_and_key_knows_its_line_and_column() -> None:
    root = parse("name: x\nmovements:\n  - name: plan\n    edit: true\n", file="p.yaml")
    assert isinstance(root.value, dict)
    movements = next(node for key, node in root.value.items() if key == "movements")
    assert isinstance(movements.value, list)
    movement = movements.value[0]
    assert isinstance(movement.value, dict)
    places = {
        str(key): (key.line, key.column, node.line, node.column) for key, node in movement.value.items()
    }
    assert places == {"name": (3, 5, 3, 11), "edit": (4, 5, 4, 11)}


def test_anchors_and_merge_keys_are_allowed_and_own_keys_win() -> None:
    text = "base: &b {edit: true, model: m}\none:\n  <<: *b\n  edit: false\n"
    text += "two:\n  <<: [*b, {session: refresh}]\n"
    assert plain(text) == {
        "base": {"edit": True, "model": "m"},
        "one": {"edit": False, "model": "m"},
        "two": {"edit": True, "model": "m", "session": "refresh"},
    }


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_bytes(b"\xef\xbb\xbfname: x\r\nok: on\r\n")
    assert read_source(file).root.plain() == {"name": "x", "ok": "on"}


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(8)
)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\na: 2\n", "p.yaml:2:1: this key was given already on line 1 (a); keep one of the two"),
        ("a: [1, 2\n", "p.yaml:2:1: this is not valid YAML"),
        ("a: 1\n b: 2\n", "p.yaml:2:3: this is not valid YAML"),
        ("\ta: 1\n", "p.yaml:1:1: this is not valid YAML"),
        ("a: *x\n", "this alias names nothing above it (*x)"),
        ("a: &a [*a]\n", "p.yaml:1:8: this alias contains itself (*a)"),
        ("a: !!python/object:os.system x\n", "p.yaml:1:4: this YAML tag means nothing here"),
        ("a: !thing [1]\n", "this YAML tag means nothing here (!thing)"),
        ("[a]: 1\n", "a key must be a word"),
        ("a: 1\n---\nb: 2\n", "there is a second document"),
        ("", "p.yaml:1:1: this file is empty; write a piece into it"),
        ("# only a comment\n", "this file is empty"),
        ("<<: 3\n", "<< merges mappings, and this is a number"),
        ('a: "x\\0y"\n', "no text may hold (U+0000)"),
        ("[" * 70 + "]" * 70, "values are nested more than 60 deep"),
        ("[" * 100_000, "p.yaml:1:"),
        ("- " * 100_000, "p.yaml:1:"),
        (BOMB, "this holds more than 20000 values"),
        ("a: x\x07y\n", "p.yaml:1:5: there is a control character (U+0007); remove it"),
    ],
)
def test_bad_yaml_is_one_clear_error(text: str, line: str) -> None:
    with pytest.raises(PieceError) as caught:
        parse(text, file="p.yaml")
    assert line in str(caught.value)
    assert "\n" not in caught.value.problems[0]


def test_all_duplicate_keys_are_named_at_once() -> None:
    with pytest.raises(PieceError) as caught:
        parse("a: 1\na: 2\nb: {c: 1, c: 2}\n", file="p.yaml")
    assert [problem.partition(" ")[0] for problem in caught.value.problems] == ["p.yaml:2:1:", "p.yaml:3:11:"]


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no such file"):
        read_source(tmp_path / "none.yaml")
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotFound):
        read_source(tmp_path / "file" / "below.yaml")


def _write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda tmp: tmp, "1:1: this is a folder, not a file"),
        (lambda tmp: _write(tmp / "p", b"a: 1\nb: \xff\n"), "2:4: this file is not UTF-8 (byte 0xff)"),
        (lambda tmp: _write(tmp / "p", "a: 1\n".encode("utf-16")), "this file is not UTF-8"),
        (lambda tmp: _write(tmp / "p", b"a: 1\nbb\0: 2\n"), "2:3: there is a NUL character"),
        (lambda tmp: _write(tmp / "p", b"#" * (MAX_BYTES + 1)), "this file is larger than 1048576 bytes"),
        (lambda tmp: tmp / ("n" * 300), "this file cannot be read: File name too long"),
        (lambda tmp: str(tmp) + "/a\0b", "this file cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, make: Any, words: str) -> None:
    path = make(tmp_path)
    with pytest.raises(PieceError) as caught:
        read_source(path)
    assert words in str(caught.value)
    assert len(caught.value.problems) == 1


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(CadenzaError, match="not a regular file"):
        read_source(tmp_path / "pipe.yaml")
