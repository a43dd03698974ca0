"""Model calls: what a provider raises, what the journal cannot give, and who is asked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from cadenza.core import events as ev
from cadenza.core.demands import CallModel
from cadenza.core.outcomes import Usage
from cadenza.core.retrying import RetryPolicy
from cadenza.engine import Engine
from cadenza.errors import JournalBusy
from cadenza.ids import Hash
from cadenza.journal.memory import MemoryJournal
from cadenza.journal.sqlite import SqliteJournal
from cadenza.providers.base import ModelReply
from cadenza.settings import Settings
from tests.worker.helpers import ONE, Behaving, engine_on, of, piece_in


def calls_of(journal: Any, run: str) -> dict[str, CallModel]:
    """The model calls of a run, by key."""
    issued = of(ev.DemandIssued, journal, run)
    return {e.key: e.demand for e in issued if isinstance(e.demand, CallModel)}


async def test_a_provider_that_raises_timeout_error_is_tried_again(tmp_path: Path) -> None:
    journal = MemoryJournal()

    def answer(request: Any) -> str:
        if request.attempt == 1:
            raise TimeoutError("the socket timed out")
        return "ok [STEP:0]"

    async with engine_on(journal, Behaving(answer), retry=RetryPolicy(first=0.01)) as engine:
        run = await engine.start(piece_in(tmp_path), "x", cwd=tmp_path)
        assert (await run.result()).status == "completed"
    (retried,) = of(ev.DemandRetried, journal, run.id)
    assert (retried.code, retried.message) == ("timeout", "no answer in time")


class Flaky(MemoryJournal):
    """Cannot read one text, once."""

    def __init__(self) -> None:
        super().__init__()
        self.unread: set[Hash] = set()

    def texts(self, hashes: Iterable[Hash]) -> dict[Hash, str]:
        wanted = list(hashes)
        if found := self.unread.intersection(wanted):
            self.unread -= found
            raise JournalBusy("another process held the journal for too long")
        return super().texts(wanted)


async def test_a_journal_that_is_busy_while_a_prompt_is_read_does_not_end_the_run(tmp_path: Path) -> None:
    journal = Flaky()
    async with engine_on(journal) as engine:
        run = await engine.start(piece_in(tmp_path), "x", cwd=tmp_path, play=False)
        (call,) = calls_of(journal, run.id).values()
        journal.unread = {call.append[-1].text}
        with pytest.raises(JournalBusy):
            await engine.play(run.id).result()
        assert run.row.status == "queued"
        assert of(ev.DemandResolved, journal, run.id) == []
        assert (await engine.play(run.id).result()).status == "completed"
    assert journal.verify() == []


JUDGED = """
cadenza: 1
control: tags
name: judged
max_movements: 9
loop_monitors:
  - cycle: [plan, fix]
    threshold: 1
    judge:
      provider: openai
      model: judge-model
      instruction: "stop? {cycle_count}"
      rules: [{condition: healthy, next: plan}, {condition: stop, next: ABORT}]
movements:
  - name: plan
    provider: anthropic
    model: plan-model
    instruction: plan {task}
    rules: [{condition: again, next: fix}]
  - name: fix
    provider: anthropic
    instruction: fix {task}
    rules: [{condition: again, next: plan}]
"""


@pytest.mark.parametrize("phases", ["single", "three"])
async def test_a_loop_judge_is_asked_at_its_own_provider_for_its_own_model(
    phases: str, tmp_path: Path
) -> None:
    journal = MemoryJournal()

    def answer(request: Any) -> str:
        if request.purpose == "rules":
            return '{"step": 2, "rule": 1}'
        return "[STEP:1]" if request.purpose == "loop-judge" else "[STEP:0]"

    async with engine_on(journal, Behaving(answer)) as engine:
        run = await engine.start(piece_in(tmp_path, JUDGED), "x", cwd=tmp_path, phases=phases)
        assert (await run.result()).status == "aborted"
    issued = [e.demand for e in of(ev.DemandIssued, journal, run.id) if isinstance(e.demand, CallModel)]
    asked = {(c.movement, c.purpose): (c.provider, c.model) for c in issued}
    assert asked["plan", "perform"] == ("anthropic", "plan-model")
    judge = {place: whom for place, whom in asked.items() if place[0].startswith("_loop_judge")}
    assert set(judge.values()) == {("openai", "judge-model")}


async def test_a_judge_that_names_no_provider_is_asked_at_the_default_one(tmp_path: Path) -> None:
    journal = MemoryJournal()
    text = JUDGED.replace("      provider: openai\n      model: judge-model\n", "")
    model = Behaving(lambda r: "[STEP:1]" if r.purpose == "loop-judge" else "[STEP:0]")
    async with engine_on(journal, model) as engine:
        run = await engine.start(piece_in(tmp_path, text), "x", cwd=tmp_path)
        assert (await run.result()).status == "aborted"
    issued = [e.demand for e in of(ev.DemandIssued, journal, run.id) if isinstance(e.demand, CallModel)]
    (judge,) = [call for call in issued if call.purpose == "loop-judge"]
    assert (judge.provider, judge.model) == (None, None)


async def test_the_environment_does_not_win_over_what_the_piece_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "not-a-key")
    text = ONE.replace("- name: plan\n", "- name: plan\n    provider: anthropic\n    model: of-the-piece\n")
    settings = Settings(journal=tmp_path / "unused", provider="openai", model="of-the-environment")
    journal = MemoryJournal()
    async with Engine(journal, settings=settings) as engine:
        run = await engine.start(piece_in(tmp_path, text), "x", cwd=tmp_path, play=False)
        (call,) = calls_of(journal, run.id).values()
        assert (call.provider, call.model) == ("anthropic", "of-the-piece")
        assert engine.service.state(run.id).run.provider is None
    async with Engine(journal, provider="openai", model="said", settings=settings) as engine:
        run = await engine.start(piece_in(tmp_path, text), "x", cwd=tmp_path, play=False)
        (call,) = calls_of(journal, run.id).values()
        assert (call.provider, call.model) == ("openai", "said")  # who is asked for by name wins over all


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_server_that_counts_nonsense_fails_nobody_s_commit(kind: str, tmp_path: Path) -> None:
    """Commits of several runs are written in one transaction."""
    journal = MemoryJournal() if kind == "memory" else SqliteJournal(tmp_path / "journal.sqlite")

    def answer(request: Any) -> ModelReply:
        wild = "wild" in request.messages[0].content
        return ModelReply(
            text="ok [STEP:0]", usage=Usage(input=2**63 if wild else 1, output=-1 if wild else 1)
        )

    async with engine_on(journal, Behaving(answer)) as engine:
        piece = piece_in(tmp_path)
        runs = [await engine.start(piece, task, cwd=tmp_path) for task in ("wild", "tame", "tame")]
        assert [(await run.result()).status for run in runs] == ["completed"] * 3
        assert runs[0].row.input_tokens <= 10**12
        assert runs[0].row.output_tokens == 0
    assert journal.verify() == []
    journal.close()
