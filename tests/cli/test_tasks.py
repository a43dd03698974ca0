"""Where the task comes from, and what cannot be a task."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

RUN = ("run", "two.yaml")
SCRIPT = ("--script", "done.yaml", "-q")


def task_of(cli: Cli) -> str:
    return str(json.loads(cli("show", "last", "--json").stdout)["task"])


def test_from_stdin_a_file_and_the_command_line(cli: Cli) -> None:
    assert cli(*RUN, "-", *SCRIPT, stdin="日本語 {task}\n".encode()).returncode == 0
    assert task_of(cli) == "日本語 {task}\n"
    file = cli.write("task.md", "\ufefffrom a file\n")
    assert cli(*RUN, "--task-file", file, *SCRIPT).returncode == 0
    assert task_of(cli) == "from a file\n"
    assert cli(*RUN, "typed", *SCRIPT).returncode == 0
    assert task_of(cli) == "typed"


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("", "the task is empty"),
        (" \n", "the task is empty"),
        (b"caf\xe9", "byte 0xE9 after 3 characters"),
    ],
)
def test_refused_on_the_command_line(cli: Cli, task: str | bytes, message: str) -> None:
    done = cli(*RUN, task, *SCRIPT)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert cli.rows() == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the task is empty"),
        (b"a\0b", "U+0000 at character 1"),
        (b"fine\n\xff\xfe", "task.md:2: the task is not UTF-8: byte 0xFF at 5"),
        (b"x" * (1024 * 1024 + 1), "the task is longer than the limit of 1,048,576 bytes"),
    ],
)
def test_refused_in_a_file(cli: Cli, data: bytes, message: str) -> None:
    file = cli.folder / "task.md"
    file.write_bytes(data)
    done = cli(*RUN, "--task-file", file, *SCRIPT)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.startswith("error: ")
    assert cli.rows() == []


def test_the_limit_itself_is_taken(cli: Cli) -> None:
    file = cli.folder / "task.md"
    file.write_bytes(b"x" * (1024 * 1024))
    assert cli(*RUN, "--task-file", file, *SCRIPT).returncode == 0


def test_a_file_that_is_not_there_or_no_file(cli: Cli) -> None:
    gone = cli(*RUN, "--task-file", "gone.md", *SCRIPT)
    assert (gone.returncode, "gone.md: there is no such file" in gone.stderr) == (2, True)
    folder = cli(*RUN, "--task-file", ".", *SCRIPT)
    assert (folder.returncode, "cannot be read" in folder.stderr) == (2, True)


def test_a_task_given_twice(cli: Cli) -> None:
    file = cli.write("task.md", "x")
    done = cli(*RUN, "y", "--task-file", file, *SCRIPT)
    assert (done.returncode, "given twice" in done.stderr) == (2, True)


def test_an_answer_is_checked_like_a_task(cli: Cli) -> None:
    cli("run", "two.yaml", "x", "--script", "asks.yaml", "-q")
    request = json.loads(cli("inbox", "--json").stdout)[0]["id"]
    assert cli("answer", request, b"\xe9").returncode == 2
    assert cli("answer", request, "").returncode == 2
    assert cli("answer", request, "-", stdin=b"from stdin").returncode == 0


def test_a_piece_path_is_meant_from_here_whatever_cwd_says(cli: Cli) -> None:
    elsewhere = cli.folder / "elsewhere"
    elsewhere.mkdir()
    done = cli("run", "./two.yaml", "x", "--cwd", "elsewhere", *SCRIPT)
    assert done.returncode == 0
    shown = json.loads(cli("show", "last", "--json").stdout)
    assert Path(shown["started"]["cwd"]) == elsewhere
    assert shown["started"]["provider"] == f"scripted:{cli.folder / 'done.yaml'}"
