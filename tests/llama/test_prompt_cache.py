"""How much of its last prompt a real model server still has, over all that happens to a run.

The requests are our own: a run is played over a server that passes each of its requests on to the real one,
which reads it and says what it had of it; its babble is thrown away for a scripted call. ``-s`` prints the
figures that are in ``docs/prompt-cache.md``.
"""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import random
import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cadenza.core.outcomes import Usage
from cadenza.engine import Engine
from cadenza.providers.models.openai_compatible import OpenAIProvider
from cadenza.settings import Settings
from cadenza.testing.fake_openai import Answer, Fail, FakeOpenAI, Recorded, Say, ToolCall
from tests.cli.conftest import Cli
from tests.llama.own_server import model_server, post

pytestmark = [pytest.mark.llama, pytest.mark.timeout(900), pytest.mark.xdist_group("prompt cache")]

ENOUGH = 99.0
"""Percent of the request before that must be reused."""

PIECE = """
    cadenza: 1
    name: field-notes
    movements:
      - name: plan
        persona: You plan what is to be done with the notes.
        instruction: Read notes.md and say what is to be done.
        rules: [{condition: the plan stands, next: build}]
      - name: build
        persona: You carry a plan out, step by step.
        instruction: Do what the plan says.
        edit: true
        rules: [{condition: it is done, next: check}, {condition: the plan is wrong, next: plan}]
      - name: check
        persona: You trust nothing that you have not seen.
        instruction: Check what was done. Ask where you are not sure.
        allowed_tools: [read_file, list_dir, run_command]
        rules: [{condition: it holds, next: report}, {condition: it does not, next: build}]
      - name: report
        persona: You write for somebody in a hurry.
        instruction: Say what was done.
"""

WORDS = [
    "engine",
    "durable",
    "step",
    "resume",
    "graph",
    "tool",
    "state",
    "record",
    "prefix",
    "plan",
    "review",
    "edit",
    "file",
    "test",
    "merge",
    "wait",
    "answer",
]


def prose(seed: int, words: int) -> str:
    """Text that no other seed gives."""
    chance = random.Random(seed)
    return " ".join(chance.choice(WORDS) for _ in range(words)) + "."


def said(name: str, /, **arguments: Any) -> Say:
    return Say("", calls=(ToolCall(f"call_{name}_{len(arguments)}", name, json.dumps(arguments)),))


def go(target: str) -> Say:
    return said("transition", next=target, reason="it is time")


def end(result: str, status: str = "success") -> Say:
    return said("complete", status=status, result=result)


BEFORE_THE_PARK = [
    said("read_file", path="notes.md"),
    go("build"),
    said("list_dir"),
    go("report"),  # refused: build cannot lead there
    go("check"),
    end("May this be shown to others?", "needs_user_input"),
]
AFTER_THE_RESTART = [said("list_dir"), go("report"), end("All is done.")]


class Reads(FakeOpenAI):
    """Has the real server read each request, and answers with the next scripted call and the real usage."""

    def __init__(self, url: str) -> None:
        super().__init__(answering=self._read)
        self.real = url
        self.replies: list[Say] = []

    def _read(self, request: Recorded) -> Answer:
        if not self.replies:
            return Fail(400, "no reply is left")
        usage = measured(self.real, request.body)
        old = self.replies.pop(0)
        return Say(old.text, calls=old.calls, usage=usage)


def measured(url: str, body: dict[str, Any]) -> Usage:
    """What the server read of a request, and what it had already."""
    kept: dict[str, Any] = {name: body[name] for name in ("messages", "tools", "id_slot") if name in body}
    answer = post(url, "/v1/chat/completions", {**kept, "max_tokens": 1, "temperature": 0})["usage"]
    cached = answer["prompt_tokens_details"]["cached_tokens"]
    return Usage(answer["prompt_tokens"], answer["completion_tokens"], cached)


def rendered(url: str, body: dict[str, Any]) -> str:
    """The prompt that the server makes of a request."""
    return str(post(url, "/apply-template", {name: body[name] for name in ("messages", "tools")})["prompt"])


def dropped(prompt: str, body: dict[str, Any]) -> list[str]:
    """The tools of a request whose name or description the model is not shown."""
    found = []
    for tool in (tool["function"] for tool in body["tools"]):
        described = json.dumps(tool["description"], ensure_ascii=False)
        if f'"name": "{tool["name"]}"' not in prompt or described not in prompt:
            found.append(tool["name"])
    return found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server as our CI has it, with two slots."""
    with model_server(tmp_path_factory.mktemp("llama") / "server.log") as url:
        yield url


class Played:
    """A run that was played in two processes, and what was sent and said."""

    def __init__(self, bodies: list[Any], log: list[str], show: str) -> None:
        self.bodies, self.log, self.show = bodies, log, show


@pytest.fixture(scope="module")
def played(served: str, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Three transitions, one refused, a park; begun by one process, answered and ended by another."""
    folder = tmp_path_factory.mktemp("run")
    cli = Cli(folder)
    cli.write("notes.md", "# Notes\n\n" + "\n\n".join(prose(n, 90) for n in range(18)))
    cli.write("piece.yaml", textwrap.dedent(PIECE))
    with Reads(served) as server:
        cli.env |= {"OPENAI_BASE_URL": server.url, "CADENZA_MODEL": "gemma", "OPENAI_API_KEY": "none"}
        server.replies = [*BEFORE_THE_PARK]
        done = cli("run", str(folder / "piece.yaml"), "Bring the notes in order.", "--provider", "openai")
        assert done.returncode == 4, done.stdout + done.stderr
        assert not server.replies
        (request,) = json.loads(cli("inbox", "--json").stdout)
        server.replies = [*AFTER_THE_RESTART]
        log = _answered(server.url, cli.journal, request["id"])
        show = cli("show", request["run"]).stdout
        return Played(server.bodies, log, show)


def _answered(url: str, journal: Path, request: str) -> list[str]:
    """Answer in this process and play to the end; the lines that were logged."""
    lines: list[str] = []
    logger = logging.getLogger("cadenza.prompt_cache")
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]

    async def play() -> None:
        provider = OpenAIProvider(model="gemma", base_url=url, api_key="none")
        async with Engine(journal, provider=provider, settings=Settings(journal=journal)) as engine:
            decision = await engine.answer(request, "yes")
            result = await engine.run(decision.request.run).result()
        await provider.close()
        assert (result.status, result.output) == ("completed", "All is done."), result

    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        asyncio.run(play())
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    return lines


LINE = re.compile(r"prompt_cache reused=(\d+) pct=([\d.]+)")


def test_the_server_shows_the_model_every_tool_behind_the_system_text_and_before_the_conversation(
    served: str, played: Played
) -> None:
    first = played.bodies[0]
    names = [tool["function"]["name"] for tool in first["tools"]]
    assert {"transition", "complete", "read_file", "write_file", "run_command"} <= set(names)
    system, opening = first["messages"][0], first["messages"][1]
    assert (system["role"], opening["role"]) == ("system", "user")
    for body in played.bodies:
        prompt = rendered(served, body)
        assert dropped(prompt, body) == [], "the server's template does not show these tools"
        tools = [prompt.find(f'"name": "{name}"') for name in names]
        ways = [prompt.find(system["content"].strip()), *tools, prompt.find(opening["content"].strip())]
        assert -1 not in ways, prompt
        assert ways == sorted(ways)


def test_a_server_with_a_template_that_knows_no_tools_drops_them_without_a_word(
    played: Played, tmp_path: Path
) -> None:
    """So that the test above is known to fail where it should."""
    with model_server(tmp_path / "server.log", template=("--chat-template", "gemma")) as url:
        names = [tool["function"]["name"] for tool in played.bodies[0]["tools"]]
        assert dropped(rendered(url, played.bodies[0]), played.bodies[0]) == names


def test_every_prompt_begins_with_the_one_before(served: str, played: Played) -> None:
    prompts = [rendered(served, body).removesuffix("<start_of_turn>model\n") for body in played.bodies]
    assert [after.startswith(before) for before, after in pairwise(prompts)] == [True] * 8


def test_over_transitions_a_park_and_another_process_99_percent_of_the_request_before_is_reused(
    played: Played, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        print("\n" + played.show[played.show.index("prompt cache:") :].partition("\n\n")[0])
    shown = LINE.findall(played.show)
    prompts = [int(count) for count in re.findall(r"prompt=(\d+)", played.show)]
    assert len(prompts) == len(BEFORE_THE_PARK) + len(AFTER_THE_RESTART)
    assert all(count > 3000 for count in prompts[1:]), prompts
    assert len(shown) == len(prompts) - 1, "every request but the first has a share"
    assert [pct for _, pct in shown if float(pct) < ENOUGH] == []


def test_each_call_logs_what_was_reused(played: Played) -> None:
    logged = [LINE.search(line) for line in played.log]
    assert len(logged) == len(AFTER_THE_RESTART)
    figures = [match.groups() for match in logged if match]
    assert figures == LINE.findall(played.show)[-len(figures) :]
    assert all(float(pct) >= ENOUGH for _, pct in figures)


# -- one experiment for each law of the server ---------------------------------------------------------------


def reused(url: str, base: dict[str, Any], changed: dict[str, Any]) -> float:
    """Percent of the base's prompt that the server reuses for another request, where one of its two slots
    holds the base and the other nothing."""
    post(url, "/slots/1?action=erase", {})
    whole = measured(url, {**base, "id_slot": 0}).input
    return 100 * min(measured(url, changed).cached, whole) / whole


@pytest.fixture(scope="module")
def base(played: Played) -> dict[str, Any]:
    """The request behind the first transition and a result: the notes are a little more than its half."""
    return {name: played.bodies[3][name] for name in ("messages", "tools")}


def appended(base: dict[str, Any]) -> dict[str, Any]:
    more = [{"role": "assistant", "content": "Done."}, {"role": "user", "content": prose(50, 40)}]
    return {**base, "messages": [*base["messages"], *more]}


def end_changed(base: dict[str, Any]) -> dict[str, Any]:
    return {**base, "messages": [*base["messages"][:-1], {"role": "user", "content": prose(51, 40)}]}


def other_task(base: dict[str, Any]) -> dict[str, Any]:
    """The same system text and tools, less than half of it all; then another task."""
    system, opening, *rest = base["messages"]
    return {**base, "messages": [system, {**opening, "content": "Now: " + opening["content"]}, *rest]}


def tool_changed(number: int) -> Any:
    def change(base: dict[str, Any]) -> dict[str, Any]:
        changed = copy.deepcopy(base)
        changed["tools"][number]["function"]["description"] += "!"
        return changed

    return change


EXPERIMENTS = {
    "two messages appended": (appended, (ENOUGH, 100), (ENOUGH, 100)),
    "the last message replaced": (end_changed, (90, 99.99), (90, 99.99)),
    "another task: under half in common": (other_task, (20, 49.9), (0, 0)),
    "one character in the last tool": (tool_changed(-1), (0, 49.9), (0, 0)),
    "one character in the first tool": (tool_changed(0), (0, 15), (0, 0)),
}
"""What is changed; the percent that a server reuses with its default gate of 0.1, and with one of 0.5."""


def test_what_keeps_the_cache_and_what_loses_it(
    base: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
    served: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path_factory.mktemp("gated")
    with model_server(folder / "server.log", "--slot-prompt-similarity", "0.5") as gated:
        shares = {
            name: [reused(url, base, change(base)) for url in (served, gated)]
            for name, (change, *_) in EXPERIMENTS.items()
        }
    rows = [f"| {name} | {free:.1f} % | {half:.1f} % |" for name, (free, half) in shares.items()]
    with capsys.disabled():
        print("\n" + "\n".join(["| request | gate 0.1 | gate 0.5 |", "|---|---|---|", *rows]))
    for name, (_, *bounds) in EXPERIMENTS.items():
        for share, (low, high) in zip(shares[name], bounds, strict=True):
            assert low <= share <= high, f"{name}: {share:.1f} % is not within {low} and {high}"
