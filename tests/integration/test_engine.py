"""The engine as a whole: real journal files, real worker, providers that behave as providers do."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cadenza import Engine
from cadenza.core import events as ev
from cadenza.core.retrying import RetryPolicy
from cadenza.errors import Conflict, InputRefused, NotFound, ProviderError, UsageError
from cadenza.providers.base import ModelReply, ModelRequest, OnText
from cadenza.providers.models.script import Script
from cadenza.providers.models.scripted import ScriptedProvider
from cadenza.testing.fake_openai import FakeOpenAI, Say
from cadenza.worker.folders import project_folder, remake_if_gone

PARALLEL = """
cadenza: 1
control: tags
name: par
max_movements: 3
movements:
  - name: review
    parallel:
      - {name: a, instruction: look at it, rules: [{condition: approved}, {condition: needs_fix}]}
      - {name: b, instruction: look at it, rules: [{condition: approved}, {condition: needs_fix}]}
    rules:
      - {condition: 'all("approved")', next: COMPLETE}
      - {condition: 'any("needs_fix")', next: ABORT}
"""
TWO = """
cadenza: 1
control: tags
name: two
max_movements: 4
movements:
  - name: plan
    instruction: plan {task}
    rules: [{condition: done, next: build}, {condition: ask, next: plan, requires_user_input: true}]
  - name: build
    instruction: build {previous_response}
    rules: [{condition: built, next: COMPLETE}, {condition: stuck, next: ABORT}]
"""


class Behaving:
    """A provider that does what a function says."""

    name = "behaving"

    def __init__(self, answer: Callable[[ModelRequest, OnText], object]) -> None:
        self.answer = answer
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        self.requests.append(request)
        said = self.answer(request, on_text)
        if asyncio.iscoroutine(said):
            said = await said
        assert isinstance(said, str)
        return ModelReply(text=said)

    async def close(self) -> None:
        return None


def write(tmp: Path, text: str) -> str:
    path = tmp / "piece.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


async def test_the_lanes_of_a_parallel_movement_run_at_the_same_time(tmp_path: Path) -> None:
    barrier = asyncio.Barrier(2)

    async def answer(request: ModelRequest, on_text: OnText) -> str:
        async with asyncio.timeout(20):  # alone, a lane would wait here for ever
            await barrier.wait()
        return f"{request.movement} [STEP:0]"

    async with Engine(tmp_path / "j.sqlite", provider=Behaving(answer)) as engine:
        run = await engine.start(write(tmp_path, PARALLEL), "both", cwd=tmp_path)
        result = await run.result()
    assert result.status == "completed"


async def test_events_come_in_order_and_end_with_the_run(tmp_path: Path) -> None:
    provider = Behaving(lambda request, on_text: "[STEP:0]")
    async with Engine(tmp_path / "j.sqlite", provider=provider) as engine:
        run = await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path)
        seen = [item async for item in run.events()]
    assert [item.seq for item in seen] == list(range(1, len(seen) + 1))
    assert isinstance(seen[0].event, ev.RunStarted)
    assert isinstance(seen[-1].event, ev.RunEnded)
    assert {item.actor for item in seen} == {engine.settings.actor, "engine"}


async def test_a_failing_call_is_retried_by_the_journaled_policy(tmp_path: Path) -> None:
    def answer(request: ModelRequest, on_text: OnText) -> str:
        if request.attempt < 3:
            raise ProviderError("too busy", code="rate_limited", retriable=True, retry_after=0.01)
        return "[STEP:0]"

    async with Engine(tmp_path / "j.sqlite", provider=Behaving(answer)) as engine:
        run = await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path)
        result = await run.result()
        retried = [e.event for e in engine.journal.events(run.id) if isinstance(e.event, ev.DemandRetried)]
    assert result.status == "completed"
    assert [event.attempt for event in retried] == [1, 2, 1, 2]
    assert {event.wait for event in retried} == {0.01}


async def test_a_server_that_stays_down_ends_the_run_and_retry_goes_on_from_there(tmp_path: Path) -> None:
    down = True

    def answer(request: ModelRequest, on_text: OnText) -> str:
        if down and request.movement == "build":
            raise ProviderError("no server at http://127.0.0.1:1", code="unavailable", retriable=True)
        return "[STEP:0]"

    provider = Behaving(answer)
    policy = RetryPolicy(tries=3, first=0.01)
    async with Engine(tmp_path / "j.sqlite", provider=provider, retry=policy) as engine:
        run = await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path)
        result = await run.result()
        assert (result.status, result.reason) == ("aborted", "movement_failed")
        assert result.message is not None
        assert 'Movement "build" failed: no server at http://127.0.0.1:1' in result.message
        down = False
        again = await engine.retry(run.id)
        result = await again.result()
        assert result.status == "completed"
        visits = [e.event for e in engine.journal.events(run.id) if isinstance(e.event, ev.VisitStarted)]
    assert [visit.movement for visit in visits] == ["plan", "build", "build"]
    assert [visit.iteration for visit in visits] == [1, 2, 3]
    assert [request.movement for request in provider.requests].count("plan") == 1


async def test_an_answer_is_consumed_once(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        Script.from_entries(
            [
                {"movement": "plan", "text": "which? [STEP:1]"},
                {"movement": "plan", "text": "[STEP:0]"},
                {"movement": "build", "text": "[STEP:0]"},
            ]
        )
    )
    async with Engine(tmp_path / "j.sqlite", provider=provider) as engine:
        run = await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path)
        parked = await run.result()
        assert (parked.status, parked.reason) == ("waiting_human", "user_input")
        (request,) = parked.requests
        first = await engine.answer(request.id, "blue")
        assert first.result == "accepted"
        await run.result()
        assert (await engine.answer(request.id, "blue")).result == "equal"
        assert (await engine.answer(request.id, "red")).result == "conflict"
        assert (await run.result()).status == "completed"


async def test_an_answer_after_the_end_is_late(tmp_path: Path) -> None:
    provider = Behaving(lambda request, on_text: "which? [STEP:1]")
    async with Engine(tmp_path / "j.sqlite", provider=provider) as engine:
        run = await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path)
        (request,) = (await run.result()).requests
        await engine.cancel(run.id)
        result = await run.result()
        assert (result.status, result.reason) == ("cancelled", "cancelled")
        late = await engine.answer(request.id, "blue")
    assert late.result == "late"
    assert late.request.closed_reason == "cancelled"


async def test_a_run_is_cancelled_while_its_model_is_thinking(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def answer(request: ModelRequest, on_text: OnText) -> str:
        asked.set()
        await asyncio.sleep(60)
        return "never"

    async with Engine(tmp_path / "j.sqlite", provider=Behaving(answer)) as engine:
        run = await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path)
        await asked.wait()
        await engine.cancel(run.id, "changed my mind")
        result = await asyncio.wait_for(run.result(), 20)
    assert (result.status, result.reason) == ("cancelled", "cancelled")
    assert "changed my mind" in (result.message or "")


async def test_an_interrupted_run_is_held_until_it_is_resumed(tmp_path: Path) -> None:
    asked, slow = asyncio.Event(), True

    async def answer(request: ModelRequest, on_text: OnText) -> str:
        asked.set()
        if slow:
            await asyncio.sleep(60)
        return "[STEP:0]"

    path = tmp_path / "j.sqlite"
    async with Engine(path, provider=Behaving(answer)) as engine:
        run = await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path)
        await asked.wait()
        assert run.interrupt()
        result = await asyncio.wait_for(run.result(), 20)
        assert (result.status, result.reason) == ("held", "interrupted")
    slow = False
    async with Engine(path, provider=Behaving(answer)) as engine:
        assert await engine.worker.serve(until_idle=True) == 0  # only resume lifts it
        resumed = await engine.resume(run.id)
        assert (await resumed.result()).status == "completed"


async def test_two_engines_on_one_file_never_play_the_same_run(tmp_path: Path) -> None:
    counts: dict[str, int] = {}

    async def answer(request: ModelRequest, on_text: OnText) -> str:
        counts[request.demand] = counts.get(request.demand, 0) + 1
        await asyncio.sleep(0.01)
        return "[STEP:0]"

    path, piece = tmp_path / "j.sqlite", write(tmp_path, TWO)
    async with Engine(path, provider=Behaving(answer)) as one, Engine(path, provider=Behaving(answer)) as two:
        runs = [await one.start(piece, f"task {i}", cwd=tmp_path, play=False) for i in range(12)]
        played = await asyncio.gather(one.worker.serve(until_idle=True), two.worker.serve(until_idle=True))
        assert sum(played) >= 12
        assert {(await run.result()).status for run in runs} == {"completed"}
    assert set(counts.values()) == {1}


async def test_streamed_text_reaches_the_listener(tmp_path: Path) -> None:
    def answer(request: ModelRequest, on_text: OnText) -> str:
        on_text("[STE")
        on_text("P:0]")
        return "[STEP:0]"

    heard: list[tuple[str, str]] = []
    engine = Engine(
        ":memory:",
        provider=Behaving(answer),
        on_text=lambda run, demand, text: heard.append((demand.key, text)),
    )
    async with engine:
        run = await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path)
        await run.result()
    assert heard[:2] == [("perform", "[STE"), ("perform", "P:0]")]


async def test_a_provider_with_a_bug_fails_its_movement_and_nothing_else(tmp_path: Path) -> None:
    def answer(request: ModelRequest, on_text: OnText) -> str:
        raise ZeroDivisionError("oops")

    async with Engine(":memory:", provider=Behaving(answer)) as engine:
        run = await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path)
        result = await run.result()
    assert (result.status, result.reason) == ("aborted", "movement_failed")
    assert "ZeroDivisionError: oops" in (result.message or "")


async def test_what_a_model_says_is_stored_whatever_it_is(tmp_path: Path) -> None:
    provider = Behaving(lambda request, on_text: "\ud800 NUL \0 [STEP:0]")
    async with Engine(tmp_path / "j.sqlite", provider=provider) as engine:
        run = await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path)
        result = await run.result()
    assert result.status == "completed"
    assert result.output == "\ufffd NUL \ufffd [STEP:0]"


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("a\0b", r"U\+0000 at character 1"),
        ("a\ud800", r"U\+D800 at character 1"),
        ("x" * (1024 * 1024 + 1), "1,048,577 bytes"),
        ("あ" * 400_000, "1,200,000 bytes"),
    ],
)
async def test_a_task_that_cannot_be_taken_begins_nothing(tmp_path: Path, task: str, words: str) -> None:
    async with Engine(":memory:", provider=Behaving(lambda r, t: "")) as engine:
        with pytest.raises(InputRefused, match=words):
            await engine.start(write(tmp_path, TWO), task, cwd=tmp_path)
        assert engine.service.runs() == []


async def test_a_task_of_just_the_limit_is_taken(tmp_path: Path) -> None:
    async with Engine(":memory:", provider=Behaving(lambda r, t: "[STEP:0]")) as engine:
        run = await engine.start(write(tmp_path, TWO), "x" * (1024 * 1024), cwd=tmp_path)
        assert (await run.result()).status == "completed"


async def test_what_cannot_be_done_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CADENZA_PROVIDER", raising=False)
    async with Engine(":memory:", provider=Behaving(lambda r, t: "[STEP:0]")) as engine:
        with pytest.raises(NotFound, match="no-such-piece"):
            await engine.start("no-such-piece", "t", cwd=tmp_path)
        with pytest.raises(NotFound, match="is not there"):
            await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path / "gone")
        with pytest.raises(NotFound, match="no run"):
            engine.run("r0")
        run = await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path)
        await run.result()
        with pytest.raises(Conflict, match="completed"):
            await engine.retry(run.id)
        with pytest.raises(NotFound, match="no movement 'x'"):
            await engine.retry(run.id, movement="x")
        with pytest.raises(Conflict, match="ended"):
            await engine.cancel(run.id)
        with pytest.raises(Conflict, match="ended"):
            await engine.resume(run.id)
    async with Engine(":memory:") as engine:
        with pytest.raises(UsageError, match="no provider is chosen"):
            await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path)


async def test_a_completed_run_is_retried_from_a_movement(tmp_path: Path) -> None:
    async with Engine(":memory:", provider=Behaving(lambda r, t: "[STEP:0]")) as engine:
        run = await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path)
        await run.result()
        again = await engine.retry(run.id, movement="build")
        assert (await again.result()).status == "completed"
        visits = [e.event for e in engine.journal.events(run.id) if isinstance(e.event, ev.VisitStarted)]
    assert [(v.movement, v.cause) for v in visits] == [
        ("plan", "start"),
        ("build", "rule"),
        ("build", "retry"),
    ]


async def test_a_run_that_used_up_its_movements_is_retried_with_as_many_again(tmp_path: Path) -> None:
    text = TWO.replace("max_movements: 4", "max_movements: 2").replace("next: COMPLETE", "next: plan")
    said = {"plan": "[STEP:0]", "build": "[STEP:0]"}
    async with Engine(":memory:", provider=Behaving(lambda r, t: said[r.movement])) as engine:
        run = await engine.start(write(tmp_path, text), "t", cwd=tmp_path)
        result = await run.result()
        assert (result.reason, engine.service.state(run.id).iteration) == ("max_movements", 2)
        said["build"] = "[STEP:1]"
        await engine.retry(run.id)
        result = await run.result()
        state = engine.service.state(run.id)
    assert (result.status, result.reason) == ("aborted", "rule")
    assert (state.iteration, state.limit) == (4, 4)


async def test_a_run_folder_that_was_removed_is_made_again_from_the_journal(tmp_path: Path) -> None:
    text = TWO.replace(
        "    instruction: plan {task}\n",
        "    instruction: plan {task}\n    report: {name: p.md, format: '# P'}\n",
    )
    said = {"plan": "```markdown\n# The plan\n```\n[STEP:0]", "build": "[STEP:0]"}
    async with Engine(tmp_path / "j.sqlite", provider=Behaving(lambda r, t: said[r.movement])) as engine:
        run = await engine.start(write(tmp_path, text), "t", cwd=tmp_path)
        await run.result()
        state = engine.service.state(run.id)
        assert state.folder is not None
        folder = tmp_path / state.folder
        before = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        shutil.rmtree(folder)
        assert remake_if_gone(engine.journal, run.id, state)
        assert project_folder(engine.journal, run.id, state)
        assert not remake_if_gone(engine.journal, run.id, state)
    assert (folder / "reports" / "p.md").read_text(encoding="utf-8") == "# The plan\n"
    after = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    assert {**after, "startTime": ""} == {**before, "startTime": ""}


async def test_a_provider_that_cannot_be_made_holds_the_run(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("cadenza-script: 1\nentries:\n  - {movement: plan, text: 'which? [STEP:1]'}\n", "utf-8")
    path = tmp_path / "j.sqlite"
    async with Engine(path, provider=f"scripted:{script}") as engine:
        run = await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path)
        (request,) = (await run.result()).requests
    script.rename(tmp_path / "gone.yaml")
    async with Engine(path) as engine:
        await engine.answer(request.id, "blue")
        held = await engine.run(run.id).result()
        assert (held.status, held.reason) == ("held", "provider")
        assert "script.yaml" in (held.message or "")
    mended = (
        "cadenza-script: 1\nentries:\n  - {text: 'which? [STEP:1]'}\n  - {text: '[STEP:0]', times: forever}\n"
    )
    script.write_text(mended, "utf-8")
    async with Engine(path) as engine:
        again = await engine.resume(run.id)
        assert (await again.result()).status == "completed"


async def test_a_run_goes_on_with_the_server_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j.sqlite"
    one, two, three = Say("which? [STEP:1]"), Say("[STEP:0]"), Say("[STEP:0]")
    with FakeOpenAI(one, two, three) as first, FakeOpenAI() as second:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("OPENAI_BASE_URL", first.url)
        async with Engine(path, provider="openai", model="m") as engine:
            run = await engine.start(write(tmp_path, TWO), "secret", cwd=tmp_path)
            (request,) = (await run.result()).requests
        monkeypatch.setenv("OPENAI_BASE_URL", second.url)
        async with Engine(path) as engine:
            await engine.answer(request.id, "blue")
            result = await engine.run(run.id).result()
        assert result.status == "completed", result
        assert second.bodies == []
        assert len(first.bodies) == 3


async def test_a_provider_that_answers_nonsense_fails_its_movement(tmp_path: Path) -> None:
    class Nonsense(Behaving):
        async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
            return "just text"  # type: ignore[return-value]

    async with Engine(":memory:", provider=Nonsense(lambda r, t: "")) as engine:
        run = await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path)
        result = await run.result()
    assert (result.status, result.reason) == ("aborted", "movement_failed")
    assert "answered a str, not a ModelReply" in (result.message or "")


async def test_a_cut_answer_is_told(tmp_path: Path) -> None:
    class Cut(Behaving):
        async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
            return ModelReply(text="[STEP:0]", finish="length")

    async with Engine(":memory:", provider=Cut(lambda r, t: "")) as engine:
        run = await engine.start(write(tmp_path, TWO), "t", cwd=tmp_path)
        await run.result()
        warned = [e.event for e in engine.journal.events(run.id) if isinstance(e.event, ev.Warned)]
    assert [w.code for w in warned] == ["cut_short", "cut_short"]
    assert "CADENZA_MAX_TOKENS" in warned[0].message
