"""Uses the public API as a program would. Never run: ``mypy --strict`` checks that it fits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import assert_type

import cadenza
from cadenza import CadenzaError, Engine, Options, Run, RunResult, Service, Settings, load_piece, open_journal
from cadenza.core.events import Recorded
from cadenza.errors import NotFound, ProviderError
from cadenza.journal.store import Decision, Journal, RequestRow, RunRow
from cadenza.piece.model import LoadedPiece
from cadenza.providers.base import ModelProvider, ModelReply, ModelRequest, OnText


class Parrot:
    """The smallest provider."""

    name = "parrot"

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        return ModelReply(text=request.messages[-1].content)

    async def close(self) -> None:
        return None


provider: ModelProvider = Parrot()


async def play(journal: Journal | str | Path | None) -> RunResult:
    """Start, watch, answer."""
    async with Engine(journal, provider=provider, model="m") as engine:
        assert_type(engine, Engine)
        run = await engine.start("hello", "Say it", cwd=Path.cwd(), language="ja")
        assert_type(run, Run)
        async for recorded in run.events(after=3):
            assert_type(recorded, Recorded)
        result = await run.result()
        assert_type(result.completed, bool)
        for request in result.requests:
            assert_type(request, RequestRow)
            assert_type(await engine.answer(request.id, {"yes": True}), Decision)
        await engine.retry(run.id, movement="answer")
        return result


def look(settings: Settings) -> Mapping[str, RunRow]:
    """The synchronous side."""
    journal = open_journal(settings.journal)
    assert_type(journal, Journal)
    service = Service(journal, actor="me")
    piece = load_piece("hello", cwd=".")
    assert_type(piece, LoadedPiece)
    assert_type(service.start(piece, "Say it", Options(provider="openai")), str)
    return {row.id: row for row in service.runs(status=("completed",))}


def explain(error: CadenzaError) -> str:
    """Errors tell what to do."""
    assert_type(error.hint, str | None)
    if isinstance(error, ProviderError):
        assert_type(error.retry_after, float | None)
    return f"{error.exit_code} {error.message} {isinstance(error, NotFound)}"


assert_type(cadenza.__version__, str)
