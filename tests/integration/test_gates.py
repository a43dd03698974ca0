"""Command gates, run for real."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from cadenza.core.demands import CallTool
from cadenza.core.outcomes import Failed, Returned
from cadenza.tools.commands import OUTPUT_BYTES, CommandGate


async def gate(command: str, cwd: Path, timeout: float = 20) -> Returned | Failed:
    call = CallTool(name="command_gate", arguments={"command": command, "cwd": str(cwd), "timeout": timeout})
    outcome = await CommandGate()(call, demand="d", run="r")
    assert isinstance(outcome, Returned | Failed)
    return outcome


async def test_a_command_s_exit_code_and_output_come_back(tmp_path: Path) -> None:
    outcome = await gate("echo out; echo err >&2; pwd; exit 3", tmp_path)
    assert isinstance(outcome, Returned)
    assert outcome.value == {"exit_code": 3, "output": f"out\nerr\n{tmp_path}\n"}


async def test_only_the_end_of_a_long_output_is_kept(tmp_path: Path) -> None:
    outcome = await gate("head -c 3000000 /dev/zero | tr '\\0' x; echo END", tmp_path)
    assert isinstance(outcome, Returned)
    assert len(outcome.value["output"]) == OUTPUT_BYTES
    assert outcome.value["output"].endswith("xEND\n")


async def test_a_command_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    outcome = await gate("sleep 300 & echo $! > child; wait", tmp_path, timeout=1)
    assert isinstance(outcome, Failed)
    assert "longer than 1 seconds" in outcome.message
    child = int((tmp_path / "child").read_text())
    await asyncio.sleep(0.2)
    assert not os.path.exists(f"/proc/{child}") or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2]


async def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    outcome = await gate("true", tmp_path / "gone")
    assert isinstance(outcome, Failed)
    assert "gone" in outcome.message
