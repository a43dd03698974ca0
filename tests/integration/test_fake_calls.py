"""The fake model servers call tools: proven against the official clients and our providers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic
import openai
import pytest

from cadenza.providers.base import ChatMessage, ModelReply, ModelRequest, ToolCall
from cadenza.providers.models.anthropic_messages import AnthropicProvider
from cadenza.providers.models.openai_compatible import OpenAIProvider
from cadenza.testing.fake_anthropic import FakeAnthropic
from cadenza.testing.fake_openai import Fail, FakeOpenAI, Recorded, Say

CALLS = (ToolCall("toolu_1", "read_file", '{"path": "é.md"}'), ToolCall("toolu_2", "list_dir", "{}"))
TOOLS = ({"name": "read_file", "description": "Read.", "parameters": {"type": "object", "properties": {}}},)
SERVERS: list[Any] = [(FakeOpenAI, OpenAIProvider), (FakeAnthropic, AnthropicProvider)]
BOTH = pytest.mark.parametrize(("fake", "provider"), SERVERS, ids=["openai", "anthropic"])


def ask(provider: Any, url: str, *messages: ChatMessage) -> ModelReply:
    request = ModelRequest(messages=messages, demand="d", movement="m", model="m", tools=TOOLS)

    async def run() -> ModelReply:
        made = provider(base_url=url, api_key="none")
        try:
            reply: ModelReply = await made.complete(request, lambda text: None)
            return reply
        finally:
            await made.close()

    return asyncio.run(run())


HELLO = ChatMessage("user", "Hello?")


@BOTH
@pytest.mark.parametrize("text", ["", "Let me look."])
def test_streamed_calls_come_as_they_were_given_and_what_was_sent_is_kept_as_bytes(
    fake: Any, provider: Any, text: str
) -> None:
    with fake(Say(text, chunks=2, calls=CALLS)) as server:
        reply = ask(provider, server.url, HELLO)
    assert (reply.text, reply.calls) == (text, CALLS)
    (sent,) = server.requests
    assert json.loads(sent.raw) == sent.body
    assert b'"Hello?"' in sent.raw


@BOTH
def test_a_call_without_its_result_is_refused_as_by_the_service(fake: Any, provider: Any) -> None:
    called = ChatMessage("assistant", "", calls=CALLS)
    results = [ChatMessage("tool", "text", call=call.id) for call in CALLS]
    with fake(Say("ok"), Say("never")) as server:
        assert ask(provider, server.url, HELLO, called, *results).text == "ok"
        with pytest.raises(Exception, match="toolu_2"):
            ask(provider, server.url, HELLO, called, results[0], HELLO)


@BOTH
def test_an_answer_may_be_made_of_the_request(fake: Any, provider: Any) -> None:
    def answering(request: Recorded) -> Say | Fail:
        return Say(request.body["model"].upper())

    with fake(Say("first"), answering=answering) as server:
        assert [ask(provider, server.url, HELLO).text for _ in range(3)] == ["first", "M", "M"]


def test_openais_client_reads_calls_in_one_piece() -> None:
    tools: Any = [{"type": "function", "function": tool} for tool in TOOLS]
    with FakeOpenAI(Say("", calls=CALLS)) as server:
        client = openai.OpenAI(base_url=server.url, api_key="none", max_retries=0)
        told = [{"role": "user", "content": "Hello?"}]
        answer = client.chat.completions.create(model="m", messages=told, tools=tools)  # type: ignore[arg-type]
    (choice,) = answer.choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", None)
    made: Any = choice.message.tool_calls
    assert [(call.id, call.function.name, call.function.arguments) for call in made] == [
        (call.id, call.name, call.arguments) for call in CALLS
    ]


def test_anthropics_client_reads_calls_in_one_piece() -> None:
    with FakeAnthropic(Say("Well.", calls=CALLS)) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)
        told: Any = [{"role": "user", "content": "Hello?"}]
        answer = client.messages.create(model="m", max_tokens=9, messages=told)
    assert answer.stop_reason == "tool_use"
    assert [block.type for block in answer.content] == ["text", "tool_use", "tool_use"]
    assert [block.input for block in answer.content if block.type == "tool_use"] == [{"path": "é.md"}, {}]
