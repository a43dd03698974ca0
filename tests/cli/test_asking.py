"""A run in a terminal asks right there, and goes on with what is typed."""

from __future__ import annotations

import os

from tests.cli.conftest import Cli
from tests.cli.test_live import Terminal, plain

CHAT = """\
cadenza: 1
name: chat
movements:
  - name: talk
    instruction: Talk.
    allowed_tools: [request_tool, read_file]
"""

SCRIPT = """\
cadenza-script: 1
entries:
  - calls: [{name: complete, arguments: {status: needs_user_input, result: "Which colour?"}}]
  - calls:
      - name: complete
        arguments: {status: needs_user_input, result: "Left or right?", choices: [left, right]}
  - calls: [{name: request_tool, arguments: {name: list_dir, reason: to look}}]
  - calls: [{name: complete, arguments: {status: success, result: "Blue, on the right."}}]
"""


def terminal(cli: Cli) -> Terminal:
    cli.write("chat.yaml", CHAT)
    cli.write("chat-script.yaml", SCRIPT)
    return Terminal(cli, "run", "./chat.yaml", "Paint", "--script", "chat-script.yaml")


def test_each_question_is_asked_right_there_in_the_form_that_it_wants(cli: Cli) -> None:
    seen = terminal(cli)
    seen.read_until(r"Which colour\?[\s\S]*your answer \(a text; empty: later\)>")
    os.write(seen.master, b"blue\n")
    seen.read_until(r"your answer \(1 left / 2 right; empty: later\)>")
    os.write(seen.master, b"middle\n")
    seen.read_until(r"none of the choices[\s\S]*your answer")
    os.write(seen.master, b"2\n")
    seen.read_until(r"your answer \(yes or no; empty: later\)>")
    os.write(seen.master, b"no thanks\n")
    assert seen.finish() == 0
    assert "Blue, on the right." in cli("output", "last").stdout
    assert plain(seen.seen).count("Which colour?") >= 1


def test_an_empty_line_leaves_the_question_for_later(cli: Cli) -> None:
    seen = terminal(cli)
    seen.read_until(r"your answer \(a text; empty: later\)>")
    os.write(seen.master, b"\n")
    assert seen.finish() == 4
    assert "answer with:" in seen.seen


def test_without_a_terminal_nobody_is_asked_and_nothing_is_waited_for(cli: Cli) -> None:
    cli.write("chat.yaml", CHAT)
    cli.write("chat-script.yaml", SCRIPT)
    done = cli("run", "./chat.yaml", "Paint", "--script", "chat-script.yaml", stdin=b"blue\n")
    assert done.returncode == 4
    assert "your answer" not in done.stdout
