"""What ``import cadenza`` and ``cadenza --help`` cost a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.table import Table, machine, milli

ROUNDS = 21
IMPORT_BAR = 0.045
HELP_BAR = 1.3

_HEAD = """
import typer
app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
@app.callback()
def main(journal: str = typer.Option(None)) -> None:
    "A bare application."
"""
_COMMAND = """
@app.command({name!r})
def _{number}({parameters}) -> None:
    {help!r}
"""
_LIST = """
import json, typer.main
from cadenza.cli.app import app
group = typer.main.get_command(app)
found = [[name, command.help or "", len(command.params)] for name, command in group.commands.items()]
print(json.dumps(found))
"""


def measure(rounds: int = ROUNDS) -> Table:
    """Fresh processes in turn; medians."""
    table = Table("Fresh processes (CPU, interpreter included)")
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder, "bare.py")
        bare.write_text(_bare_application(), encoding="utf-8")
        commands = {
            "nothing": ["-c", "pass"],
            "import": ["-c", "import cadenza"],
            "bare": [str(bare), "--help"],
            "help": ["-m", "cadenza", "--help"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for turn in range(rounds + 1):
            for name, arguments in commands.items():
                spent = _cpu(arguments)
                if turn:  # the first turn writes the compiled files
                    times[name].append(spent)
    nothing, imported, bare_help, ours = (median(times[name]) for name in commands)
    table.add("python -c pass", milli(nothing))
    table.add("python -c 'import cadenza'", milli(imported))
    above = imported - nothing
    table.add(
        "import above bare python", milli(above), bar=f"<= {milli(IMPORT_BAR)}", met=above <= IMPORT_BAR
    )
    table.add("--help of a bare typer application, same commands, no rich", milli(bare_help))
    table.add("cadenza --help", milli(ours))
    ratio = ours / bare_help
    table.add("cadenza / bare", f"{ratio:.2f} x", bar=f"<= {HELP_BAR} x", met=ratio <= HELP_BAR)
    return table


def _bare_application() -> str:
    """The source of an application with Cadenza's commands, each with as many options, that does nothing."""
    import json

    done = subprocess.run([sys.executable, "-c", _LIST], capture_output=True, check=True, text=True)
    parts = [_HEAD]
    for number, (name, help, count) in enumerate(json.loads(done.stdout)):
        parameters = ", ".join(f"option_{index}: str = typer.Option(None)" for index in range(count))
        parts.append(_COMMAND.format(name=name, number=number, parameters=parameters, help=help))
    return "".join([*parts, "\napp()\n"])


def _cpu(arguments: Sequence[str]) -> float:
    """CPU seconds of one Python process."""
    null = os.open(os.devnull, os.O_WRONLY)
    process = os.posix_spawn(
        sys.executable,
        [sys.executable, *arguments],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)],
    )
    _, status, used = os.wait4(process, 0)
    os.close(null)
    assert status == 0, arguments
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print(machine())
    measure().show()
