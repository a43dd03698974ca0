"""Our own pieces whose agents have tools, played by a real model on a real server.

The model is tiny: whether it calls a tool, and which, is not held here. Held is that the tools reach it and
that every run ends as software says it may.
"""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from cadenza.core.demands import CallModel
from cadenza.core.events import DemandIssued
from cadenza.engine import Engine
from cadenza.piece.find import load_piece
from cadenza.providers.models.openai_compatible import OpenAIProvider
from cadenza.settings import Settings

pytestmark = [pytest.mark.llama, pytest.mark.timeout(600)]

LAWFUL = {
    ("completed", "complete"),
    ("aborted", "agent"),
    ("aborted", "text_only_limit"),
    ("aborted", "max_iterations"),
    ("aborted", "max_revisits"),
    ("aborted", "max_movements"),
    ("waiting_human", None),
}


def applied(llama: str, body: dict[str, Any]) -> str:
    """The prompt that the server makes of a request."""
    request = urllib.request.Request(
        f"{llama}/apply-template", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        prompt: str = json.load(reply)["prompt"]
    return prompt


@pytest.mark.parametrize("name", ["chat", "release-notes"])
async def test_a_piece_with_tools_ends_as_it_may(llama: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "CHANGELOG.md").write_text("* A --version flag.\n", encoding="utf-8")
    settings = Settings(journal=tmp_path / "journal.sqlite", max_tokens=64)
    provider = OpenAIProvider(model="gemma", base_url=f"{llama}/v1", api_key="none")
    loaded = load_piece(name, cwd=tmp_path)
    guards = loaded.piece.guards.changed(max_iterations=6)  # left alone it may call tools for ever
    loaded = loaded.changed(piece=loaded.piece.changed(guards=guards))
    async with Engine(provider=provider, settings=settings) as engine:
        task = "What changed? See CHANGELOG.md."
        run = await engine.start(loaded, task, cwd=tmp_path, max_movements=3)
        result = await run.result()
        assert (result.status, result.reason) in LAWFUL, (result.status, result.reason, result.message)
        issued = [r.event for r in engine.journal.events(run.id) if isinstance(r.event, DemandIssued)]
        call = next(event.demand for event in issued if isinstance(event.demand, CallModel))
        assert call.tools is not None
        tools = json.loads(engine.service.text(call.tools))
        said = [(m.role, engine.service.text(m.text)) for m in call.append]
    body = {
        "messages": [{"role": role, "content": text} for role, text in said],
        "tools": [{"type": "function", "function": tool} for tool in tools],
    }
    prompt = applied(llama, body)
    for tool in tools:
        assert tool["name"] in prompt, f"the server dropped the tool {tool['name']}"
    system, last = prompt.index(said[0][1][:40]), prompt.index(said[-1][1][:40])
    assert system < prompt.index('"complete"') < last
