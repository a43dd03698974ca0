"""The package's own pieces, played to an end by a real model with a schema-constrained judge.

The model is tiny: what it says is babble, so each run may end in COMPLETE or in ABORT. What must hold is
that it ends, that every status was found by a rule or honestly by none, and that the journal is whole.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cadenza import Engine, RunResult, Settings
from cadenza.core import events as ev
from cadenza.core.demands import CallModel
from cadenza.core.outcomes import Replied
from cadenza.piece.vocabulary import Language
from cadenza.providers.models.openai_compatible import OpenAIProvider

pytestmark = [pytest.mark.llama, pytest.mark.timeout(900)]
ENDS = {"complete", "rule", "rule_no_match", "max_movements"}


async def play(llama: str, piece: str, language: Language, cwd: Path) -> tuple[RunResult, Engine]:
    """Play a piece to its end, answering whatever it asks."""
    settings = msgspec.structs.replace(Settings.from_environment(), max_tokens=64)
    provider = OpenAIProvider(model="local", base_url=f"{llama}/v1", api_key="none")
    engine = Engine(":memory:", provider=provider, settings=settings)
    options: dict[str, Any] = {"cwd": cwd, "language": language, "max_movements": 5}
    run = await engine.start(piece, "Write a haiku about a river.", **options)
    result = await run.result()
    for _ in range(20):
        if result.status != "waiting_human":
            break
        await engine.answer(result.requests[0].id, "Choose yourself.")
        result = await run.result()
    return result, engine


def verdicts(engine: Engine, run: str) -> list[str]:
    """What the rule judge answered, in order."""
    calls: set[str] = set()
    found: list[str] = []
    for item in engine.journal.events(run):
        event = item.event
        if isinstance(event, ev.DemandIssued) and isinstance(event.demand, CallModel):
            if event.demand.purpose == "rules":
                calls.add(event.id)
        elif isinstance(event, ev.DemandResolved) and event.id in calls:
            assert isinstance(event.outcome, Replied)
            found.append(engine.service.text(event.outcome.text))
    return found


@pytest.mark.parametrize("language", ["en", "ja"])
@pytest.mark.parametrize("piece", ["hello", "plan-build-review"])
async def test_a_real_model_plays_our_piece_to_an_end(
    llama: str, piece: str, language: Language, tmp_path: Path
) -> None:
    result, engine = await play(llama, piece, language, tmp_path)
    async with engine:
        assert result.status in ("completed", "aborted"), result
        assert result.reason in ENDS, result
        assert result.usage.input > 0
        assert result.usage.output > 0
        for verdict in verdicts(engine, result.run):
            assert set(json.loads(verdict)) == {"rule", "reason"}
        assert engine.journal.verify() == []
