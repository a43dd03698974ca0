"""``cadenza --help`` imports nothing heavy, and names the commands in their order."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.cli.conftest import Cli

COMMANDS = (
    *("run", "resume", "retry", "cancel", "runs", "show", "output", "events", "report", "inbox", "answer"),
    *("lint", "pieces", "prompt", "graph", "worker", "doctor", "init", "eject", "demo"),
)


def test_help_loads_nothing_heavy(cli: Cli) -> None:
    code = """\
import sys
sys.argv = ["cadenza", "--help"]
from cadenza.cli import main
try:
    main()
except SystemExit:
    print("loaded", *sorted(sys.modules))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=cli.env, capture_output=True, text=True, check=True
    )
    loaded = done.stdout.rpartition("loaded ")[2].split()
    heavy = {"pydantic", "msgspec", "asyncio", "rich", "yaml", "sqlite3", "json", "cadenza.engine"}
    assert not heavy & set(loaded)


def test_help_names_every_command_in_order(cli: Cli) -> None:
    listed = cli("--help").stdout.partition("Commands:")[2]
    names = re.findall(r"^  (\w+)  ", listed, re.MULTILINE)
    assert tuple(name for name in names if name in COMMANDS) == COMMANDS


def test_every_command_has_help(cli: Cli) -> None:
    for command in COMMANDS[:3]:
        done = cli(command, "--help")
        assert done.returncode == 0
        assert f"{command} [OPTIONS]" in done.stdout
