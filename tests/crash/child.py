"""Processes to be killed: ``python -m tests.crash.child`` reads one order a line and forks for each.

The parent imports everything once and does nothing else, so a life costs milliseconds; each is a process of
its own and dies by a real SIGKILL. It answers with the exit code (negative: the signal).
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

from cadenza.core.retrying import RetryPolicy
from cadenza.engine import Engine
from cadenza.providers.models.scripted import ScriptedProvider
from cadenza.settings import Settings
from cadenza.testing import Driver, Point, Scenario, sqlite_journals
from tests.crash.scenarios import SCENARIOS, forty

CALL_SECONDS = 0.03
FORTY = forty(CALL_SECONDS)
MADE = {name: make() for name, make in SCENARIOS.items()}


def drive(scenario: Scenario, folder: Path, until: int | None) -> None:
    """Play with the deterministic driver; die at the point of that number."""
    reached = 0

    def at_point(point: Point) -> None:
        nonlocal reached
        if reached == until:
            os.kill(os.getpid(), signal.SIGKILL)
        reached += 1

    Driver(scenario, sqlite_journals(folder), folder, at_point=at_point).play()


async def play(folder: Path) -> None:
    """Play the one run of the journal to its end with the engine, beginning it where there is none."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    async with Engine(
        folder / "journal.sqlite",
        provider=ScriptedProvider(FORTY.script),
        settings=Settings(journal=folder / "journal.sqlite"),
        kinds=FORTY.kinds,
        tools=FORTY.tools(folder),
        retry=RetryPolicy(first=0.01),
    ) as engine:
        runs = list(engine.journal.runs())
        if runs and runs[0].status == "completed":
            return
        run = await engine.resume(runs[0].id) if runs else await engine.start(FORTY.piece, "Go.", cwd=work)
        result = await run.result()
        while result.status == "held" and result.reason == "poison":
            run = await engine.resume(run.id)
            result = await run.result()


def live(order: dict[str, Any]) -> None:
    """Do as told, in a process of its own."""
    folder = Path(order["folder"])
    if order["what"] == "drive":
        drive(MADE[order["scenario"]], folder, order["until"])
    else:
        asyncio.run(play(folder))


def bear(order: dict[str, Any]) -> int:
    """One life; its exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            live(order)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if (seconds := order.get("kill_after")) is not None:
        watch = os.pidfd_open(pid)
        ended, _, _ = select.select([watch], [], [], seconds)
        if not ended:
            os.kill(pid, signal.SIGKILL)
        os.close(watch)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def main() -> None:
    for line in sys.stdin:
        print(bear(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
