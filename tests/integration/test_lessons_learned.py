"""What users of comparable engines hit, on the engine as a whole. ``docs/lessons.md`` says what each row is
about."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cadenza import Engine
from cadenza.core import events as ev
from cadenza.core.demands import CallModel
from cadenza.errors import NotFound
from cadenza.providers.base import ModelReply, ModelRequest, OnText
from cadenza.providers.models.openai_compatible import OpenAIProvider
from cadenza.providers.models.script import Script
from cadenza.providers.models.scripted import ScriptedProvider
from cadenza.testing.fake_openai import FakeOpenAI, Say

ASKING = """
name: asking
movements:
  - name: plan
    persona: planner
    instruction: plan
    rules: [{condition: ready, next: COMPLETE}, {condition: unclear, next: plan, requires_user_input: true}]
"""
SCRIPT = [
    {"movement": "plan", "text": "Which one? [STEP:1]"},
    {"movement": "plan", "text": "Planned. [STEP:0]"},
]


def project(folder: Path) -> Path:
    """A piece with a persona beside it."""
    (folder / "pieces").mkdir(parents=True)
    (folder / "facets" / "personas").mkdir(parents=True)
    (folder / "facets" / "personas" / "planner.md").write_text("You plan with care.", encoding="utf-8")
    (folder / "pieces" / "asking.yaml").write_text(ASKING, encoding="utf-8")
    return folder / "pieces" / "asking.yaml"


@pytest.mark.parametrize("change", ["removed", "rewritten"])
async def test_a_run_goes_on_with_the_piece_that_it_began_with(tmp_path: Path, change: str) -> None:
    home = tmp_path / "project"
    piece = project(home)
    work, journal = tmp_path / "work", tmp_path / "j.sqlite"
    work.mkdir()
    async with Engine(journal, provider=ScriptedProvider(Script.from_entries(SCRIPT))) as engine:
        run = await engine.start(piece, "t", cwd=work)
        (request,) = (await run.result()).requests
    if change == "removed":
        shutil.rmtree(home)
    else:
        piece.write_text(ASKING.replace("next: COMPLETE", "next: ABORT"), encoding="utf-8")
        (home / "facets" / "personas" / "planner.md").write_text("You are reckless.", encoding="utf-8")
    seen: list[str] = []

    class Listening(ScriptedProvider):
        async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
            seen.append(request.messages[-1].content)
            return await super().complete(request, on_text)

    async with Engine(journal, provider=Listening(Script.from_entries(SCRIPT))) as engine:
        await engine.answer(request.id, "the blue one")
        result = await engine.run(run.id).result()
    assert (result.status, result.reason) == ("completed", "complete")
    assert seen[0].startswith("You plan with care.")


async def test_with_several_questions_open_an_answer_must_say_which(tmp_path: Path) -> None:
    script = Script.from_entries([{**entry, "times": 2} for entry in SCRIPT])
    async with Engine(":memory:", provider=ScriptedProvider(script)) as engine:
        piece = project(tmp_path / "project")
        runs = [await engine.start(piece, f"task {n}", cwd=tmp_path) for n in (1, 2)]
        for run in runs:
            assert (await run.result()).status == "waiting_human"
        for unclear in ("", "q"):
            with pytest.raises(NotFound):
                await engine.answer(unclear, "yes")
        assert len(engine.service.inbox()) == 2


async def test_runs_side_by_side_share_no_conversation_and_no_count(tmp_path: Path) -> None:
    script = Script.from_entries([{"text": "fine [STEP:0]", "times": "forever"}])
    async with Engine(":memory:", provider=ScriptedProvider(script)) as engine:
        piece = project(tmp_path / "project")
        runs = [await engine.start(piece, "t", cwd=tmp_path, phases="three") for _ in range(3)]
        results = [await run.result() for run in runs]
        events = [engine.journal.events(run.id) for run in runs]
    assert {result.status for result in results} == {"aborted"}  # nobody says which rule: no match
    conversations = [
        {e.event.demand.conversation for e in of if _calls(e.event)}  # type: ignore[union-attr]
        for of in events
    ]
    assert len(set.union(*conversations)) == sum(len(own) for own in conversations)
    starts = [[e.event.iteration for e in of if isinstance(e.event, ev.VisitStarted)] for of in events]
    assert starts == [[1], [1], [1]]


def _calls(event: ev.AnyEvent) -> bool:
    return isinstance(event, ev.DemandIssued) and isinstance(event.demand, CallModel)


async def test_words_about_rate_limits_are_words(tmp_path: Path) -> None:
    text = "429 Too Many Requests: rate limit exceeded. Reconnecting... 1/5 [STEP:0]"
    with FakeOpenAI(Say(text)) as server:
        provider = OpenAIProvider(base_url=server.url, api_key="k", model="m")
        async with Engine(":memory:", provider=provider, model="m") as engine:
            run = await engine.start(project(tmp_path / "project"), "t", cwd=tmp_path)
            result = await run.result()
            retried = [e for e in engine.journal.events(run.id) if isinstance(e.event, ev.DemandRetried)]
        await provider.close()
    assert (result.status, result.output, retried) == ("completed", text, [])
