"""The live view, on a real pseudo-terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from fcntl import ioctl

import pytest

from tests.cli.conftest import Cli

SCRIPT = """\
cadenza-script: 1
entries:
  - movement: first
    chunks:
      - "a line that is done\\nand one "
      - {text: "that is not", delay: 0.8}
      - {text: " yet [STEP:0]", delay: 0.8}
  - {movement: second, text: "over [STEP:0]"}
"""


class Terminal:
    """A process on a terminal, and all that it has written there."""

    def __init__(self, cli: Cli, *words: str, columns: int = 80, **env: str) -> None:
        self.master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            cli.argv(*words),
            cwd=cli.folder,
            env={**cli.env, "TERM": "xterm-256color", "COLUMNS": str(columns), **env},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )
        os.close(slave)
        self.seen = ""

    def read_until(self, pattern: str, seconds: float = 30) -> None:
        end = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            assert time.monotonic() < end, self.seen
            self._read()

    def finish(self) -> int:
        end = time.monotonic() + 30
        while self.process.poll() is None or self._ready():
            assert time.monotonic() < end, self.seen
            if not self._read() and self.process.poll() is not None:
                break
        os.close(self.master)
        return self.process.wait()

    def _ready(self) -> bool:
        return bool(select.select([self.master], [], [], 0.1)[0])

    def _read(self) -> bool:
        if not self._ready():
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the other end is closed
            return False
        self.seen += data.decode("utf-8", "replace")
        return bool(data)


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_it_shows_who_is_at_work_and_what_is_being_written(cli: Cli) -> None:
    cli.write("live.yaml", SCRIPT)
    terminal = Terminal(cli, "run", "two.yaml", "x", "--script", "live.yaml")
    terminal.read_until(r"\[1/6\] first [\d.]+ s .*and one")
    terminal.read_until("tokens in, .*Ctrl-C saves and stops")
    assert terminal.finish() == 0
    seen = plain(terminal.seen)
    assert "  a line that is done" in seen
    assert "  and one that is not yet [STEP:0]" in seen
    assert "completed: done" in seen
    assert terminal.seen.count("\x1b[?25l") == terminal.seen.count("\x1b[?25h"), "the cursor is given back"


def test_no_color_is_kept(cli: Cli) -> None:
    cli.write("live.yaml", SCRIPT)
    terminal = Terminal(cli, "run", "two.yaml", "x", "--script", "live.yaml", NO_COLOR="1")
    assert terminal.finish() == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]m", terminal.seen)


def test_a_dumb_terminal_gets_plain_lines(cli: Cli) -> None:
    terminal = Terminal(cli, "run", "two.yaml", "x", "--script", "done.yaml", TERM="dumb")
    assert terminal.finish() == 0
    assert "\x1b" not in terminal.seen


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_gives_the_cursor_back_and_says_how_to_go_on(cli: Cli, times: int) -> None:
    terminal = Terminal(cli, "run", "two.yaml", "x", "--script", "slow.yaml")
    terminal.read_until(r"second [\d.]+ s .*begun")
    os.kill(terminal.process.pid, signal.SIGSTOP)
    for number in (signal.SIGINT, signal.SIGTERM)[:times]:
        terminal.process.send_signal(number)
    os.kill(terminal.process.pid, signal.SIGCONT)
    assert terminal.finish() == 130
    assert terminal.seen.rfind("\x1b[?25h") > terminal.seen.rfind("\x1b[?25l")
    assert "cadenza resume r" in plain(terminal.seen)
    assert "Traceback" not in terminal.seen


def test_the_task_is_asked_for_on_a_terminal(cli: Cli) -> None:
    terminal = Terminal(cli, "run", "two.yaml", "--script", "done.yaml", "-q")
    terminal.read_until("Task: ")
    os.write(terminal.master, b"typed in\n")
    assert terminal.finish() == 0
    assert "typed in" in cli("show", "last").stdout


def test_ctrl_d_at_the_question_ends_its_line(cli: Cli) -> None:
    terminal = Terminal(cli, "run", "two.yaml", "--script", "done.yaml", "-q")
    terminal.read_until("Task: ")
    os.write(terminal.master, b"\x04")
    assert terminal.finish() == 130
    assert re.search(r"Task: .*\n\Z", terminal.seen)


@pytest.mark.parametrize(
    ("columns", "heads"),
    [
        (80, ["RUN", "STATUS", "REASON", "PIECE", "MOVEMENT", "AGE", "TOKENS"]),
        (40, ["RUN", "STATUS", "AGE"]),
    ],
)
def test_listings_fit_a_narrow_terminal(cli: Cli, columns: int, heads: list[str]) -> None:
    cli("run", "two.yaml", "a long task, " * 20, "--script", "asks.yaml", "-q")
    listing = Terminal(cli, "runs", columns=columns)
    assert listing.finish() == 0
    first, row = plain(listing.seen).split("\r\n")[:2]
    assert first.split() == heads
    assert len(row) <= columns
    assert "\u2026" not in row
    shown = Terminal(cli, "show", "last", columns=columns)
    assert shown.finish() == 0
    lines = plain(shown.seen).split("\r\n")
    assert all(len(line) <= columns for line in lines if "/" not in line and "cadenza " not in line)
    at = next(i for i, line in enumerate(lines) if line.startswith("  task "))
    assert lines[at + 1].startswith(" " * 13 + "long") or lines[at + 1].startswith(" " * 13)
    assert any("MOVEMENT" in line and "HOW" in line for line in lines)


def test_ctrl_c_at_the_question_is_130(cli: Cli) -> None:
    terminal = Terminal(cli, "run", "two.yaml", "--script", "done.yaml", "-q")
    terminal.read_until("Task: ")
    for _ in range(20):  # one that comes just before the read begins is seen only after it
        terminal.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        if terminal.process.poll() is not None:
            break
    assert terminal.finish() == 130
    assert "Traceback" not in terminal.seen
