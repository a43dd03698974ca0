"""The Anthropic provider against a real server's ``/v1/messages`` with a real, very small model.

This server takes structured output and cache marks without a word and ignores them: what it is asked for
as JSON comes as its model likes.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import pytest

from cadenza.errors import ProviderError
from cadenza.providers.base import ChatMessage, ModelReply, ModelRequest
from cadenza.providers.models.anthropic_messages import AnthropicProvider

pytestmark = [pytest.mark.llama, pytest.mark.timeout(300)]


def ask(llama: str, *messages: ChatMessage, heard: list[str] | None = None, **more: Any) -> ModelReply:
    request = ModelRequest(messages=messages, demand="d1", movement="review", model="gemma", **more)

    async def run() -> ModelReply:
        provider = AnthropicProvider(base_url=llama, api_key="none", timeout=200)
        try:
            return await provider.complete(request, (heard if heard is not None else []).append)
        finally:
            await provider.close()

    return asyncio.run(run())


def test_text_is_streamed_as_it_comes_and_cut_at_the_limit(llama: str) -> None:
    heard: list[str] = []
    reply = ask(
        llama,
        ChatMessage("system", "You count."),
        ChatMessage("user", "Count from one to fifty."),
        heard=heard,
        max_tokens=12,
    )
    assert "".join(heard) == reply.text
    assert len(heard) > 1
    assert 0 < reply.usage.output <= 12
    assert reply.finish in ("length", "stop")


def test_system_text_and_earlier_turns_reach_the_model(llama: str) -> None:
    alone = ask(llama, ChatMessage("user", "Sure?"), max_tokens=1)
    turns = (ChatMessage("user", "Is all well?"), ChatMessage("assistant", "Yes."))
    whole = ask(
        llama, ChatMessage("system", "Be kind. " * 20), *turns, ChatMessage("user", "Sure?"), max_tokens=1
    )
    assert whole.usage.input > alone.usage.input + 50


def test_a_repeated_beginning_is_counted_as_cached_and_as_read(llama: str) -> None:
    nonce = secrets.token_hex(8)
    words = " ".join(f"{nonce} fact {number}: all is well." for number in range(60))
    question = (ChatMessage("system", f"You know this. {words}"), ChatMessage("user", "Is all well?"))
    first = ask(llama, *question, max_tokens=4)
    more = (ChatMessage("assistant", first.text.strip() or "Yes"), ChatMessage("user", "Sure?"))
    second = ask(llama, *question, *more, max_tokens=4)
    assert first.usage.input > 500
    assert first.usage.cached < 0.2 * first.usage.input
    assert second.usage.cached >= 0.95 * first.usage.input
    assert first.usage.input < second.usage.input
    assert second.usage.cached <= second.usage.input


def test_a_schema_is_sent_and_an_answer_comes(llama: str) -> None:
    schema = {
        "type": "object",
        "properties": {"rule": {"type": "integer", "minimum": 0}},
        "required": ["rule"],
    }
    reply = ask(llama, ChatMessage("user", 'Answer with {"rule": 1}.'), schema=schema, max_tokens=24)
    assert reply.usage.output > 0
    assert reply.finish in ("length", "stop")


def test_a_prompt_that_does_not_fit_is_refused_clearly(llama: str) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(llama, ChatMessage("user", "word " * 40_000), max_tokens=4)
    assert (caught.value.code, caught.value.retriable) == ("context_full", False)
    assert llama in str(caught.value)
    assert "40" in str(caught.value), "the server's own message is told"
