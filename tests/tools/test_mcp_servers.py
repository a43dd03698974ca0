"""Tools of real MCP servers, as processes: found, called, and gone."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cadenza.core.tooling import ToolSpec
from cadenza.errors import UsageError
from cadenza.piece.model import McpServer
from cadenza.tools import mcp_client
from cadenza.tools.base import ToolContext, ToolResult
from cadenza.tools.mcp_client import McpClients
from tests.agents.stage import Stage, call, complete, results

SERVER = Path(__file__).parent / "mcp_server_for_tests.py"


def server(*words: str, **more: Any) -> McpServer:
    return McpServer(name="tests", command=(sys.executable, str(SERVER), *words), **more)


class Talk:
    """One server and what it is asked."""

    def __init__(self, config: McpServer, folder: Path) -> None:
        self.clients = McpClients()
        self.config = config
        self.context = ToolContext(run="r", demand="d", workspace=folder)
        self.specs: dict[str, ToolSpec] = {}

    async def __aenter__(self) -> Talk:
        found = await self.clients.discover([self.config], self.context.workspace)
        self.specs = {spec.name: spec for spec in found}
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.clients.close()

    async def call(self, name: str, /, **arguments: Any) -> ToolResult:
        return await self.clients.call(
            self.config, self.specs[f"mcp__tests__{name}"], arguments, self.context
        )


async def test_tools_are_found_by_name_twice_the_same_bytes(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        async with Talk(server("--many"), tmp_path) as talk:
            found.append(msgspec.json.encode(list(talk.specs.values())))
            names = list(talk.specs)
    assert found[0] == found[1]
    assert names == sorted(names)
    assert len(names) == 308
    assert "mcp__tests__tool_042" in names
    assert talk.specs["mcp__tests__add"].origin == "mcp:tests"
    assert talk.specs["mcp__tests__add"].parameters["required"] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "arguments", "error", "told"),
    [
        ("add", {"a": 2, "b": 3}, False, "5"),
        ("fail", {}, True, "Error executing tool fail"),
        ("add", {"a": "x", "b": 3}, True, "valid"),
        ("ask", {}, True, "elicitation"),
        ("environment", {"name": "HANDED_ON"}, False, "yes"),
        ("environment", {"name": "KEPT_BACK"}, False, "(not there)"),
    ],
)
async def test_a_call_s_result_or_error_reaches_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, arguments: Any, error: bool, told: str
) -> None:
    monkeypatch.setenv("HANDED_ON", "yes")
    monkeypatch.setenv("KEPT_BACK", "no")
    async with Talk(server(env=("HANDED_ON",)), tmp_path) as talk:
        result = await talk.call(name, **arguments)
    assert (result.error, told in result.text) == (error, True), result.text


async def test_a_server_that_dies_answers_with_an_error_and_is_started_again_at_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_client, "BACK_OFF", 0.2)
    async with Talk(server(), tmp_path) as talk:
        first = (await talk.call("pid")).text
        dead = await talk.call("die")
        assert (dead.error, dead.code) == (True, "mcp_unavailable")
        assert "the next call tries again" in dead.text
        await asyncio.sleep(0.3)
        second = await talk.call("pid")
    assert not second.error
    assert second.text != first


async def test_a_server_that_hangs_is_given_up_within_its_time(tmp_path: Path) -> None:
    async with Talk(server(timeout=1.0), tmp_path) as talk:
        result = await asyncio.wait_for(talk.call("hang"), 10)
    assert (result.error, result.code) == (True, "timeout")


async def test_noise_on_the_wire_does_not_harm(tmp_path: Path) -> None:
    async with Talk(server("--noise"), tmp_path) as talk:
        assert (await talk.call("add", a=1, b=1)).text == "2"


async def test_closing_leaves_no_process_behind(tmp_path: Path) -> None:
    async with Talk(server(), tmp_path) as talk:
        process = int((await talk.call("pid")).text)
    for _ in range(100):
        if not Path(f"/proc/{process}").exists():
            return
        await asyncio.sleep(0.05)
    state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").split()[2]
    assert state == "Z", f"the server {process} still runs"


async def test_a_call_that_is_cancelled_ends_at_once_and_the_server_can_be_asked_again(
    tmp_path: Path,
) -> None:
    async with Talk(server(timeout=20.0), tmp_path) as talk:
        hanging = asyncio.create_task(talk.call("hang"))
        await asyncio.sleep(0.5)
        hanging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await hanging
        assert (await asyncio.wait_for(talk.call("add", a=1, b=2), 30)).text == "3"


async def test_a_server_that_cannot_be_started_is_named_with_what_it_wrote(tmp_path: Path) -> None:
    broken = McpServer(name="broken", command=(sys.executable, "-c", "import sys; sys.exit('no such luck')"))
    clients = McpClients()
    with pytest.raises(UsageError) as refused:
        await clients.discover([broken], tmp_path)
    await clients.close()
    assert "the server 'broken'" in str(refused.value)
    assert "no such luck" in str(refused.value)


PIECE = f"""
    cadenza: 1
    name: served
    mcp_servers:
      tests: {{command: [{sys.executable}, {SERVER}]}}
    movements:
      - name: talk
        instruction: Talk.
        allowed_tools: [mcp__tests__*]
"""


async def test_an_agent_calls_a_server_s_tool_and_a_dead_server_s_tools_stay_listed(tmp_path: Path) -> None:
    stage = Stage(tmp_path, tmp_path / "journal.sqlite")
    script = [
        call("mcp__tests__add", a=20, b=22),
        complete("Go on?", "needs_user_input"),
        call("mcp__tests__add", a=1, b=1),
        complete("ok"),
    ]
    alive = tmp_path / "server.py"
    alive.write_text(SERVER.read_text(encoding="utf-8"), encoding="utf-8")
    text = PIECE.replace(str(SERVER), str(alive))
    result = await stage.play(text, script, permission="acceptEdits")
    assert result.status == "waiting_human"
    assert results(stage) == ["42"]
    alive.unlink()
    async with stage.engine(script) as engine:
        await engine.answer(result.requests[0].id, "yes")
        done = await engine.run(result.run).result()
    assert done.status == "completed"
    assert "cannot be reached" in results(stage)[-1]
    assert len({repr(request.tools) for request in stage.requests}) == 1
    assert "mcp__tests__add" in repr(stage.requests[-1].tools)
