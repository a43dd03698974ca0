"""Pieces with tools, played by a scripted model in a real engine."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cadenza.clock import Clock, system_clock
from cadenza.engine import Engine, RunResult
from cadenza.journal.store import Journal
from cadenza.piece.find import load_piece
from cadenza.piece.model import LoadedPiece
from cadenza.providers.models.script import Script
from cadenza.providers.models.scripted import ScriptedProvider
from cadenza.service import Options
from cadenza.settings import Settings
from cadenza.testing import MemoryJournal
from cadenza.tools.base import Tool

CHAT = """
    cadenza: 1
    name: chat
    movements:
      - name: talk
        instruction: Answer.
        rules: []
"""


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    """An entry of a script that calls one tool."""
    return {"calls": [{"name": name, "arguments": arguments}]}


def complete(result: str = "done", status: str = "success", **more: Any) -> dict[str, Any]:
    return call("complete", status=status, result=result, **more)


def ask(question: str = "Which one?", **more: Any) -> dict[str, Any]:
    return complete(question, "needs_user_input", **more)


def go(target: str, reason: str = "ready") -> dict[str, Any]:
    return call("transition", next=target, reason=reason)


class Stage:
    """One folder, one journal, and engines on it that can be closed and opened again."""

    def __init__(self, folder: Path, journal: Journal | Path | None = None) -> None:
        self.folder = folder
        self.journal: Journal | Path = MemoryJournal() if journal is None else journal
        self.requests: list[Any] = []
        self.clock: Clock = system_clock

    def piece(self, text: str) -> LoadedPiece:
        path = self.folder / "piece.yaml"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return load_piece(str(path), cwd=self.folder)

    def engine(self, script: Iterable[Mapping[str, Any]], tools: Iterable[Tool] = ()) -> Engine:
        """An engine whose model answers from ``script``; what it was asked is kept in ``requests``."""
        settings = Settings(journal=self.folder / "unused.sqlite", actor="tester")
        provider = Listening(Script.from_entries(script), self.requests)
        return Engine(
            self.journal,
            provider=provider,
            settings=settings,
            clock=self.clock,
            agent_tools={tool.spec.name: tool for tool in tools},
        )

    async def play(
        self, text: str, script: Iterable[Mapping[str, Any]], task: str = "Do it", **options: Any
    ) -> RunResult:
        """Play a piece until it stands or ends."""
        tools = options.pop("tools", ())
        async with self.engine(script, tools) as engine:
            run = await engine.start(self.piece(text), task, cwd=self.folder, **options)
            return await run.result()


class Listening(ScriptedProvider):
    """A scripted provider that remembers what it was asked."""

    def __init__(self, script: Script, heard: list[Any]) -> None:
        super().__init__(script)
        self._heard = heard

    async def complete(self, request: Any, on_text: Any) -> Any:
        self._heard.append(request)
        return await super().complete(request, on_text)


def give(folder: Path, name: str, text: str) -> None:
    """A piece of the project in ``folder``: what agents may start."""
    pieces = folder / ".cadenza" / "pieces"
    pieces.mkdir(parents=True, exist_ok=True)
    (pieces / f"{name}.yaml").write_text(textwrap.dedent(text).lstrip(), encoding="utf-8")


def results(stage: Stage) -> list[str]:
    """Every tool result that the model was told in the last request."""
    return [message.content for message in stage.requests[-1].messages if message.role == "tool"]


__all__ = ["CHAT", "Options", "Stage", "ask", "call", "complete", "give", "go", "results"]
