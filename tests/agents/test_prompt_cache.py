"""What a model server is sent, byte for byte: it can only reuse a prompt whose beginning never changes.

Real requests of the real providers, as they arrived over HTTP. The tools are the same bytes in every request
of a run, and the messages of a conversation are those of the request before and more
(``docs/prompt-cache.md``).
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cadenza.engine import Engine
from cadenza.piece.find import load_piece
from cadenza.providers.models.anthropic_messages import AnthropicProvider
from cadenza.providers.models.openai_compatible import OpenAIProvider
from cadenza.settings import Settings
from cadenza.testing.fake_anthropic import FakeAnthropic
from cadenza.testing.fake_openai import Fail, FakeOpenAI, Recorded, Say, ToolCall
from cadenza.testing.fake_server import Answer, FakeServer
from tests.cli.conftest import Cli

FORMATS: dict[str, tuple[type[FakeServer], type[Any]]] = {
    "openai": (FakeOpenAI, OpenAIProvider),
    "anthropic": (FakeAnthropic, AnthropicProvider),
}

THREE = """
    cadenza: 1
    name: three
    movements:
      - name: plan
        persona: You plan.
        instruction: Plan it.
        rules: [{condition: planned, next: build}, {condition: unclear, next: plan}]
      - name: build
        persona: You build.
        instruction: Build it.
        edit: true
        allowed_tools: [read_file, write_file, request_tool]
        default_next: check
        rules: [{condition: built, next: check}]
      - name: check
        persona: You check.
        instruction: Check it.
        rules: [{condition: broken, next: build}]
"""

LANES = """
    cadenza: 1
    name: lanes
    movements:
      - {name: plan, instruction: Plan it., rules: [{condition: planned, next: review}]}
      - name: review
        parallel:
          - {name: left, instruction: LOOK-LEFT now., rules: [{condition: fine}, {condition: bad}]}
          - {name: right, instruction: LOOK-RIGHT now., rules: [{condition: fine}, {condition: bad}]}
        rules: [{condition: all("fine"), next: report}, {condition: any("bad"), next: review}]
      - {name: report, instruction: Report it.}
"""


class Body(msgspec.Struct):
    """The parts of a request that a prompt begins with, as the bytes that they were sent in."""

    messages: msgspec.Raw
    tools: msgspec.Raw
    system: msgspec.Raw = msgspec.Raw(b"")


class Sent:
    """The bytes of one request, less the cache marks, which stand at another message each time."""

    def __init__(self, request: Recorded) -> None:
        body = msgspec.json.decode(MARKS.sub(b"", request.raw), type=Body)
        self.tools, self.system, self.messages = bytes(body.tools), bytes(body.system), bytes(body.messages)
        assert (self.messages[:2], self.messages[-2:]) == (b"[{", b"}]")

    def extends(self, other: Sent) -> bool:
        """Whether this request's messages are ``other``'s and at least one more."""
        return self.messages.startswith(other.messages[:-1] + b",")


MARKS = re.compile(rb',\s*"cache_control":\s*\{"type":\s*"ephemeral"\}')


def taken(replies: list[Any]) -> Answer:
    """The next of ``replies``."""
    return replies.pop(0) if replies else Fail(400, "no reply is left")


class Room:
    """A fake server, a journal, and engines on both that are closed and opened again."""

    def __init__(self, name: str, folder: Path) -> None:
        fake, self.provider = FORMATS[name]
        self.folder = folder
        self.language: Any = "en"
        self.replies: list[Answer] = []
        self.choose: Callable[[Any], Answer] = lambda body: taken(self.replies)
        self.server = fake(answering=lambda request: self.choose(request.body))

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Engine]:
        provider = self.provider(model="m", base_url=self.server.url, api_key="none")  # type: ignore[attr-defined]
        settings = Settings(journal=self.folder / "journal.sqlite", language=self.language)
        async with Engine(settings.journal, provider=provider, settings=settings) as engine:
            yield engine
        await provider.close()

    async def start(self, engine: Engine, text: str, **options: Any) -> Any:
        (self.folder / "piece.yaml").write_text(textwrap.dedent(text), encoding="utf-8")
        piece = load_piece(str(self.folder / "piece.yaml"), cwd=self.folder)
        options = {"cwd": self.folder, "permission": "acceptEdits", **options}
        return await engine.start(piece, "Make a crème brûlée 🍮", **options)

    @property
    def sent(self) -> list[Sent]:
        return [Sent(request) for request in self.server.requests]


@pytest.fixture(params=list(FORMATS))
def room(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Room]:
    room = Room(request.param, tmp_path)
    with room.server:
        yield room


def said(name: str, /, *, text: str = "", **arguments: Any) -> Say:
    """An answer that calls one tool. Its arguments are spaced as no encoder here would space them."""
    written = json.dumps(arguments, separators=(" ,", " :"), ensure_ascii=False)
    return Say(text, calls=(ToolCall(f"toolu_{len(written)}_{name}", name, written),))


def go(target: str) -> Say:
    return said("transition", next=target, reason="so it is")


def end(result: str = "ok", status: str = "success", **more: Any) -> Say:
    return said("complete", status=status, result=result, **more)


def one_prompt(sent: list[Sent], count: int) -> None:
    """All requests carry the same tools and system text, and each begins with the one before."""
    assert len(sent) == count
    assert {request.tools for request in sent} == {sent[0].tools}
    assert {request.system for request in sent} == {sent[0].system}
    grown = [after.extends(before) for before, after in pairwise(sent)]
    assert grown == [True] * (count - 1)


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_over_transitions_and_refused_ones_the_beginning_stays_the_same_bytes(
    room: Room, language: str
) -> None:
    room.language = language
    room.replies = [
        said("list_dir", text="Let me see. 見る"),
        go("check"),  # plan cannot lead there
        go("nowhere"),
        go("plan"),
        said("write_file", path="x", content="y"),  # plan may not use it
        go("build"),
        said("write_file", path="crème.md", content="é\n\u2028"),
        go("check"),
        go("build"),
        go("check"),
        end(),
    ]
    async with room.engine() as engine:
        result = await (await room.start(engine, THREE)).result()
    assert (result.status, result.output) == ("completed", "ok"), result
    one_prompt(room.sent, 11)


async def test_what_a_model_wrote_wrongly_and_calls_that_were_not_made_stay_as_they_were_sent(
    room: Room,
) -> None:
    many = tuple(ToolCall(f"call_{n}", name, "{}") for n, name in enumerate(["list_dir", "fly", "list_dir"]))
    room.replies = [
        Say("", calls=(ToolCall("call_a", "read_file", '{"path": "a'),)),
        Say("Hm.", calls=(*many, go("build").calls[0], ToolCall("call_z", "list_dir", "{}"))),
        Say("Only text, with \ud83c\udf6e and a tab\t."),
        said("read_file", path="gone"),
        go("check"),
        end(),
    ]
    async with room.engine() as engine:
        result = await (await room.start(engine, THREE)).result()
    assert result.status == "completed", result
    one_prompt(room.sent, 6)


async def test_over_a_park_and_a_new_engine_the_beginning_stays_the_same_bytes(room: Room) -> None:
    room.replies = [go("build"), said("list_dir"), end("Which colour?", "needs_user_input")]
    async with room.engine() as engine:
        run = await room.start(engine, THREE)
        parked = await run.result()
    assert parked.status == "waiting_human"
    room.replies = [said("list_dir"), end("Sure?", "needs_user_input")]
    async with room.engine() as engine:
        await engine.answer(parked.requests[0].id, "blé")
        parked = await engine.run(run.id).result()
    room.replies = [go("check"), end()]
    async with room.engine() as engine:
        await engine.answer(parked.requests[0].id, "yes")
        result = await engine.run(run.id).result()
    assert result.status == "completed", result
    one_prompt(room.sent, 7)


async def test_with_stable_tools_movement_each_movement_pays_with_other_tools(room: Room) -> None:
    """The other mode, as a control: what is held above is not held by itself."""
    room.replies = [go("build"), go("check"), end()]
    text = THREE.replace("name: three\n", "name: three\n    stable_tools: movement\n")
    async with room.engine() as engine:
        result = await (await room.start(engine, text)).result()
    assert result.status == "completed", result
    plan, build, check = (request.tools for request in room.sent)
    assert plan == check != build


@pytest.mark.parametrize("approved", [True, False])
async def test_a_tool_that_is_granted_changes_nothing_in_the_tools(room: Room, approved: bool) -> None:
    room.replies = [go("build"), said("request_tool", name="glob", reason="to find it")]
    piece = re.sub("((?:Plan|Check) it[.])", r"\1\n        allowed_tools: []", THREE)
    async with room.engine() as engine:
        run = await room.start(engine, piece)
        parked = await run.result()
    (request,) = parked.requests
    room.replies = [said("use_tool", name="glob", arguments={"pattern": "*"}), go("check"), end()]
    async with room.engine() as engine:
        await engine.answer(request.id, {"approved": approved})
        result = await engine.run(run.id).result()
    assert result.status == "completed", result
    one_prompt(room.sent, 5)
    told = room.server.requests[-1].raw.decode()
    assert ("piece.yaml" in told) == approved


async def test_a_call_that_is_tried_again_sends_the_same_bytes(room: Room) -> None:
    room.replies = [said("list_dir"), Fail(500, retry_after="0"), Fail(429, retry_after="0"), end()]
    async with room.engine() as engine:
        result = await (await room.start(engine, THREE)).result()
    assert result.status == "completed", result
    first, *again = [request.raw for request in room.server.requests[1:]]
    assert again == [first, first]
    one_prompt([room.sent[0], room.sent[-1]], 2)


async def test_each_lane_begins_with_what_was_said_before_and_the_run_goes_on_from_there(room: Room) -> None:
    by_lane = {"LOOK-LEFT": [said("list_dir"), end("l", label="fine")]}
    by_lane["LOOK-RIGHT"] = [end("Right?", "needs_user_input"), end("r", label="fine")]
    first, last = [said("list_dir"), go("review")], [end()]

    def choose(body: Any) -> Answer:
        written = json.dumps(body["messages"])
        waiting = next((w for word, w in by_lane.items() if word in written), None)
        return taken(waiting or first or last)

    room.choose = choose
    async with room.engine() as engine:
        run = await room.start(engine, LANES)
        parked = await run.result()
    (request,) = parked.requests
    async with room.engine() as engine:
        await engine.answer(request.id, "right so")
        result = await engine.run(run.id).result()
    assert result.status == "completed", result

    sent = room.sent
    assert len({request.tools for request in sent}) == len({request.system for request in sent}) == 1
    left, right = ([s for s in sent if word in s.messages] for word in (b"LOOK-LEFT", b"LOOK-RIGHT"))
    plan = sent[:2]
    assert (len(left), len(right)) == (2, 2)
    assert not {id(one) for one in left} & {id(one) for one in right}
    for lane in (left, right):
        one_prompt([*plan, *lane], 4)
    one_prompt([*plan, sent[-1]], 3)


async def test_a_handover_begins_a_conversation_with_the_same_system_text_and_tools(room: Room) -> None:
    text = THREE.replace("instruction: Build it.", "instruction: Build it.\n        session: handover")
    room.replies = [said("list_dir"), go("build"), Say("All that was found."), go("check"), end()]
    async with room.engine() as engine:
        result = await (await room.start(engine, text)).result()
    assert result.status == "completed", result
    sent = room.sent
    one_prompt(sent[:3], 3)
    one_prompt(sent[3:], 2)
    assert {(one.tools, one.system) for one in sent} == {(sent[0].tools, sent[0].system)}
    opening = [request.body["messages"][0] for request in room.server.requests]
    if not sent[0].system:
        assert opening[0]["role"] == "system"
        assert all(message == opening[0] for message in opening)


def test_other_processes_send_the_same_bytes(tmp_path: Path) -> None:
    """The command line, a process for each part, with another order of sets in each."""
    cli = Cli(tmp_path)
    cli.write("piece.yaml", textwrap.dedent(THREE))
    parts: list[list[Answer]] = [
        [go("build"), end("Which?", "needs_user_input")],
        [said("list_dir"), end("Sure?", "needs_user_input")],
        [go("check"), end("done")],
    ]
    replies: list[Answer] = []
    with FakeOpenAI(answering=lambda request: taken(replies)) as server:
        cli.env |= {"OPENAI_BASE_URL": server.url, "CADENZA_MODEL": "m", "OPENAI_API_KEY": "none"}
        words = ["run", str(tmp_path / "piece.yaml"), "Do it", "--provider", "openai", "--cwd", str(tmp_path)]
        for number, part in enumerate(parts):
            cli.env["PYTHONHASHSEED"] = str(number + 1)
            replies += part
            done = cli(*words)
            assert done.returncode == (4 if number < 2 else 0), done.stderr
            if number < 2:
                (request,) = json.loads(cli("inbox", "--json").stdout)
                words = ["answer", request["id"], "blue"]
        one_prompt([Sent(request) for request in server.requests], 6)
