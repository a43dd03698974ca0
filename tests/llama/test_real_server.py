"""The OpenAI-compatible provider against a real server with a real, very small model."""

from __future__ import annotations

import asyncio
import json
import secrets
import urllib.request
from typing import Any

import pytest

from cadenza.errors import ProviderError
from cadenza.providers.base import ChatMessage, ModelReply, ModelRequest
from cadenza.providers.models.openai_compatible import OpenAIProvider

pytestmark = [pytest.mark.llama, pytest.mark.timeout(300)]

VERDICT = {
    "type": "object",
    "properties": {
        "rule": {"type": ["integer", "null"], "minimum": 0, "maximum": 3},
        "reason": {"type": "string", "maxLength": 60},
    },
    "required": ["rule", "reason"],
    "additionalProperties": False,
}
TOOL = {
    "type": "function",
    "function": {
        "name": "read_file",
        "description": "Read a file of the workspace.",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
    },
}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "read_file", "arguments": '{"path": "notes.md"}'},
        }
    ],
}


def post(url: str, path: str, body: dict[str, Any]) -> Any:
    data = json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=100) as answer:
        return json.load(answer)


def rendered(llama: str, messages: list[dict[str, Any]], **more: Any) -> str:
    return str(post(llama, "/apply-template", {"messages": messages, **more})["prompt"])


def ask(llama: str, *messages: ChatMessage, heard: list[str] | None = None, **more: Any) -> ModelReply:
    request = ModelRequest(messages=messages, demand="d1", movement="review", model="gemma", **more)

    async def run() -> ModelReply:
        provider = OpenAIProvider(base_url=f"{llama}/v1", api_key="none", timeout=100)
        try:
            return await provider.complete(request, (heard if heard is not None else []).append)
        finally:
            await provider.close()

    return asyncio.run(run())


def test_the_template_renders_system_then_tools_then_the_conversation(llama: str) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "SYSTEM-TEXT"},
        {"role": "user", "content": "FIRST-QUESTION"},
        CALL,
        {"role": "tool", "tool_call_id": "c1", "content": "TOOL-RESULT"},
        {"role": "assistant", "content": "AN-ANSWER"},
        {"role": "user", "content": "LAST-QUESTION"},
    ]
    prompt = rendered(llama, messages, tools=[TOOL])
    parts = ["SYSTEM-TEXT", '"read_file"', "FIRST-QUESTION", "notes.md", "TOOL-RESULT"]
    parts += ["AN-ANSWER", "LAST-QUESTION", "<start_of_turn>model"]
    positions = [
        prompt.rfind(part) if part == "<start_of_turn>model" else prompt.find(part) for part in parts
    ]
    assert -1 not in positions, prompt
    assert positions == sorted(positions), prompt
    assert "Read a file of the workspace." in prompt
    assert '{"path": "notes.md"}' in prompt
    assert '\\"path\\"' not in prompt, "arguments are an object, not a quoted string"


def test_a_longer_conversation_begins_with_the_shorter_one(llama: str) -> None:
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "one"}]
    longer = [*messages, {"role": "assistant", "content": "two"}, {"role": "user", "content": "three"}]
    short = rendered(llama, messages, tools=[TOOL]).removesuffix("<start_of_turn>model\n")
    assert rendered(llama, longer, tools=[TOOL]).startswith(short)


def test_without_tools_no_word_about_tools_is_rendered(llama: str) -> None:
    prompt = rendered(llama, [{"role": "user", "content": "hello"}])
    assert "hello" in prompt
    assert "tool" not in prompt


def test_the_server_recognises_a_tool_call_of_the_model(llama: str) -> None:
    turns: list[dict[str, Any]] = [{"role": "system", "content": "You read files."}]
    for number, name in enumerate(["a.md", "b.md", "c.md"]):
        arguments = json.dumps({"path": name})
        function = {"name": "read_file", "arguments": arguments}
        calls = [{"id": f"c{number}", "type": "function", "function": function}]
        turns += [
            {"role": "user", "content": f"Read the file {name}"},
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"The text of {name}."},
            {"role": "assistant", "content": f"I have read {name}."},
        ]
    turns.append({"role": "user", "content": "Read the file d.md"})
    body = {"messages": turns, "tools": [TOOL], "tool_choice": "required", "temperature": 0, "max_tokens": 80}
    message = post(llama, "/v1/chat/completions", body)["choices"][0]["message"]
    assert message["tool_calls"][0]["function"]["name"] == "read_file", message
    assert "path" in json.loads(message["tool_calls"][0]["function"]["arguments"])


@pytest.mark.parametrize("number", range(8))
def test_an_answer_under_a_schema_is_always_valid(llama: str, number: int) -> None:
    reply = ask(
        llama,
        ChatMessage("user", f"Review number {number}: the tests pass. Which rule matches, 0 to 3, and why?"),
        schema=VERDICT,
        max_tokens=512,  # the server's grammar allows some 20 spaces at each joint, and this model uses them
    )
    verdict = json.loads(reply.text)
    assert set(verdict) == {"rule", "reason"}
    assert verdict["rule"] in (None, 0, 1, 2, 3)
    assert isinstance(verdict["reason"], str)
    assert reply.finish == "stop"


def test_text_is_streamed_as_it_comes_and_cut_at_the_limit(llama: str) -> None:
    heard: list[str] = []
    reply = ask(llama, ChatMessage("user", "Count from one to fifty."), heard=heard, max_tokens=12)
    assert "".join(heard) == reply.text
    assert len(heard) > 1
    assert reply.usage.output <= 12
    assert reply.finish in ("length", "stop")


def test_a_repeated_beginning_is_counted_as_cached(llama: str) -> None:
    nonce = secrets.token_hex(8)
    words = " ".join(f"{nonce} fact {number}: all is well." for number in range(60))
    question = (ChatMessage("system", f"You know this. {words}"), ChatMessage("user", "Is all well?"))
    first = ask(llama, *question, max_tokens=4)
    more = (ChatMessage("assistant", first.text or "Yes"), ChatMessage("user", "Sure?"))
    second = ask(llama, *question, *more, max_tokens=4)
    assert first.usage.input > 500
    assert first.usage.cached < 0.2 * first.usage.input
    assert second.usage.cached >= 0.95 * first.usage.input
    assert second.usage.cached <= second.usage.input


def test_a_prompt_that_does_not_fit_is_refused_clearly(llama: str) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(llama, ChatMessage("user", "word " * 40_000), max_tokens=4)
    assert (caught.value.code, caught.value.retriable) == ("context_full", False)
    assert llama in str(caught.value)
