"""The Anthropic provider and the fake server, each proven against the other and the official SDK."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from email.utils import formatdate
from typing import Any

import anthropic
import pytest

from cadenza.core.outcomes import Usage
from cadenza.core.prompts.judging import verdict_schema
from cadenza.errors import ProviderError, UsageError
from cadenza.providers.base import ChatMessage, ModelReply, ModelRequest
from cadenza.providers.models.anthropic_format import portable
from cadenza.providers.models.anthropic_messages import DEFAULT_MAX_TOKENS, AnthropicProvider
from cadenza.providers.registry import ProviderOptions, make_provider, provider_names
from cadenza.testing.fake_anthropic import Answer, Fail, FakeAnthropic, Raw, Reset, Say, sse

KEY = "sk-ant-very-secret-0123456789"
NOW = 1_800_000_000.0
SCHEMA = {"type": "object", "properties": {"rule": {"type": "integer"}}, "required": ["rule"]}
MARK = {"type": "ephemeral"}
HELLO: list[Any] = [{"role": "user", "content": "Hello?"}]


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CADENZA_MODEL"):
        monkeypatch.delenv(name, raising=False)


def made(**more: Any) -> ModelRequest:
    messages = (ChatMessage("system", "Be brief."), ChatMessage("user", "Hello?"))
    return ModelRequest(**({"messages": messages, "demand": "d1", "movement": "plan", "model": "m"} | more))


def ask(url: str, heard: list[str] | None = None, timeout: float | None = None, **more: Any) -> ModelReply:
    return ask_all(url, [made(**more)], heard, timeout)[0]


def ask_all(
    url: str, requests: list[ModelRequest], heard: list[str] | None = None, timeout: float | None = None
) -> list[ModelReply]:
    """The replies of one provider to several requests."""

    async def run() -> list[ModelReply]:
        provider = AnthropicProvider(base_url=url, api_key=KEY, timeout=timeout, clock=lambda: NOW)
        try:
            listen = (heard if heard is not None else []).append
            return [await provider.complete(request, listen) for request in requests]
        finally:
            await provider.close()

    return asyncio.run(run())


def failure(url: str, **more: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        ask(url, **more)
    told = str(caught.value)
    assert KEY not in told
    assert url in told
    assert "'m'" in told
    assert caught.value.hint
    return caught.value


def sdk(server: FakeAnthropic, **more: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key=KEY, max_retries=0, **more)


def key_of(server: FakeAnthropic) -> str:
    """The key of the first request: releases of the SDK differ in the header that they send it in."""
    headers = server.requests[0].headers
    return headers.get("x-api-key") or headers["authorization"].removeprefix("Bearer ")


# The fake, through the official SDK


def test_the_sdk_reads_a_plain_answer() -> None:
    with FakeAnthropic(Say("Hello there", usage=Usage(12, 3, 4), cache_written=5)) as server:
        answer = sdk(server).messages.create(model="m", max_tokens=9, messages=HELLO)
    assert [block.text for block in answer.content if block.type == "text"] == ["Hello there"]
    assert answer.stop_reason == "end_turn"
    usage = answer.usage
    counted = (usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens)
    assert (*counted, usage.output_tokens) == (3, 5, 4, 3)
    assert key_of(server) == KEY


def test_the_sdk_adds_up_a_stream() -> None:
    with (
        FakeAnthropic(Say("Hello there", chunks=3, finish="length")) as server,
        sdk(server).messages.stream(model="m", max_tokens=9, messages=HELLO) as stream,
    ):
        texts = list(stream.text_stream)
        final = stream.get_final_message()
    assert (len(texts), "".join(texts)) == (3, "Hello there")
    assert (final.stop_reason, final.usage.output_tokens) == ("max_tokens", 3)


def test_the_sdk_gets_a_forced_tools_input() -> None:
    tool: Any = {"name": "verdict", "input_schema": SCHEMA}
    with FakeAnthropic(Say('{"rule": 1}', chunks=4), Say('{"rule": 2}')) as server:
        more: Any = {"tools": [tool], "tool_choice": {"type": "tool", "name": "verdict"}}
        with sdk(server).messages.stream(model="m", max_tokens=9, messages=HELLO, **more) as stream:
            streamed = stream.get_final_message()
        whole: Any = sdk(server).messages.create(model="m", max_tokens=9, messages=HELLO, **more)
    blocks: list[Any] = [*streamed.content, *whole.content]
    inputs = [block.input for block in blocks if block.type == "tool_use"]
    assert inputs == [{"rule": 1}, {"rule": 2}]
    assert whole.stop_reason == "tool_use"


def test_the_sdk_meets_errors_of_the_right_kind() -> None:
    kinds: list[tuple[Any, type[Exception]]] = [
        (Fail(429, retry_after="2"), anthropic.RateLimitError),
        (Fail(529), anthropic.OverloadedError),
        (Fail(401), anthropic.AuthenticationError),
        (Fail(404), anthropic.NotFoundError),
        (Reset(), anthropic.APIConnectionError),
    ]
    with FakeAnthropic(*(answer for answer, _ in kinds)) as server:
        for _, kind in kinds:
            with pytest.raises(kind) as caught:
                sdk(server).messages.create(model="m", max_tokens=9, messages=HELLO)
            if kind is anthropic.RateLimitError:
                assert caught.value.response.headers["retry-after"] == "2"  # type: ignore[attr-defined]
            if kind is anthropic.OverloadedError:
                assert caught.value.type == "overloaded_error"  # type: ignore[attr-defined]


def test_the_sdk_meets_a_cut_a_slow_chunk_and_a_refused_connection() -> None:
    answers = (Say("abcd", chunks=4, cut_at=2), Say("abcd", chunks=2, slow=5, slow_at=1))
    with FakeAnthropic(*answers) as server:
        client = sdk(server, timeout=0.3)
        for _ in answers:
            with pytest.raises(Exception, match=r"(?i)peer|read|timed out|connection"):
                list(client.messages.create(model="m", max_tokens=9, messages=HELLO, stream=True))
        server.refuse()
        with pytest.raises(anthropic.APIConnectionError):
            client.messages.create(model="m", max_tokens=9, messages=HELLO)
        server.listen()
        server.add(Say("back"))
        assert client.messages.create(model="m", max_tokens=9, messages=HELLO).stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"messages": [{"role": "tool", "content": "x"}]}, "role"),
        ({"messages": [{"role": "user", "content": " "}]}, "non-whitespace"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"system": [{"type": "text", "text": "a", "cache_control": MARK}] * 5}, "maximum of 4"),
        ({}, "no answer left"),
    ],
)
def test_the_fake_is_as_strict_as_the_service(body: dict[str, Any], words: str) -> None:
    wanted: Any = {"model": "m", "max_tokens": 9, "messages": HELLO} | body
    with FakeAnthropic() as server, pytest.raises(anthropic.BadRequestError, match=words):
        sdk(server).messages.create(**wanted)


def test_the_sdk_lists_the_models() -> None:
    with FakeAnthropic(model="tiny") as server:
        assert [model.id for model in sdk(server).models.list()] == ["tiny"]


# The provider


def test_an_answer_is_streamed_and_its_usage_counts_cached_tokens_as_read() -> None:
    heard: list[str] = []
    said = Say("Hello there", chunks=4, usage=Usage(100, 5, 80), cache_written=15)
    with FakeAnthropic(said, model="m-2") as server:
        reply = ask(server.url, heard)
    assert reply == ModelReply(text="Hello there", usage=Usage(100, 5, 80), model="m-2", finish="stop")
    assert (len(heard), "".join(heard)) == (4, "Hello there")


def test_usage_that_comes_with_the_last_event_counts_once() -> None:
    with FakeAnthropic(
        Raw(stream(usage={"input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 2}))
    ) as s:
        assert ask(s.url).usage == Usage(10, 2, 3)


def test_the_call_carries_system_messages_limit_and_cache_marks() -> None:
    with FakeAnthropic(Say("Hi")) as server:
        ask(server.url, max_tokens=7)
    assert server.bodies[0] == {
        "model": "m",
        "max_tokens": 7,
        "stream": True,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": MARK}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hello?", "cache_control": MARK}]}
        ],
    }


def test_a_conversation_is_lifted_into_the_format() -> None:
    messages = [
        ChatMessage("system", "One."),
        ChatMessage("user", "Go."),
        ChatMessage("assistant", ""),
        ChatMessage("system", "Two."),
        ChatMessage("tool", "Done."),
        ChatMessage("assistant", "So."),
        ChatMessage("user", "Well?"),
    ]
    with FakeAnthropic(Say("Hi")) as server:
        ask(server.url, messages=tuple(messages))
    body = server.bodies[0]
    assert [(block["text"], "cache_control" in block) for block in body["system"]] == [
        ("One.", False),
        ("Two.", True),
    ]
    told = [
        (turn["role"], turn["content"][0]["text"], "cache_control" in turn["content"][0])
        for turn in body["messages"]
    ]
    assert told == [
        ("user", "Go.", False),
        ("user", "Done.", False),
        ("assistant", "So.", False),
        ("user", "Well?", True),
    ]


def test_without_a_system_message_and_a_limit_the_defaults_hold() -> None:
    with FakeAnthropic(Say("Hi")) as server:
        ask(server.url, messages=(ChatMessage("user", "?"),))
    assert "system" not in server.bodies[0]
    assert server.bodies[0]["max_tokens"] == DEFAULT_MAX_TOKENS


@pytest.mark.parametrize(
    ("stopped", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_why_an_answer_ended_is_said_in_our_words(stopped: str, finish: str) -> None:
    with FakeAnthropic(Say("Hel", finish=stopped)) as server:
        assert ask(server.url).finish == finish


def test_an_empty_answer_is_an_answer() -> None:
    heard: list[str] = []
    with FakeAnthropic(Say("")) as server:
        assert (ask(server.url, heard).text, heard) == ("", [])


def stream(*deltas: dict[str, Any], usage: dict[str, int] | None = None, start: int = 0) -> bytes:
    """A stream of the format with these deltas in block ``start``."""
    message = {"id": "msg", "type": "message", "role": "assistant", "model": "m-3", "content": []}
    begin = message | {"usage": {"input_tokens": 1, "output_tokens": 1}}
    parts = [sse("message_start", message=begin)]
    parts += [sse("content_block_delta", index=start, delta=delta) for delta in deltas]
    ending = {"stop_reason": "end_turn", "stop_sequence": None}
    parts += [sse("message_delta", delta=ending, usage=usage or {"output_tokens": 2}), sse("message_stop")]
    return b"".join(parts)


def test_thinking_is_no_part_of_the_answer_and_half_characters_are_mended() -> None:
    deltas = [
        {"type": "thinking_delta", "thinking": "hm"},
        {"type": "text_delta", "text": "日本"},
        {"type": "text_delta", "text": "\ud83d"},
        {"type": "text_delta", "text": "\ude00!"},
    ]
    heard: list[str] = []
    with FakeAnthropic(Raw(stream(*deltas))) as server:
        reply = ask(server.url, heard)
    assert (reply.text, reply.model, heard) == ("日本😀!", "m-3", ["日本", "😀!"])


OVERLOADED = sse("error", error={"type": "overloaded_error", "message": "Overloaded"})
LIMITED = sse("error", error={"type": "rate_limit_error", "message": "Slow down"})


@pytest.mark.parametrize(
    ("answer", "code", "retriable", "wait", "words"),
    [
        (Fail(429, retry_after="2"), "rate_limited", True, 2.0, "429"),
        (Fail(429, retry_after=formatdate(NOW + 30, usegmt=True)), "rate_limited", True, 30.0, "429"),
        (Fail(529, message="Overloaded"), "server", True, None, "529: Overloaded"),
        (Fail(529, retry_after="9"), "server", True, 9.0, "529"),
        (Fail(500), "server", True, None, "500"),
        (Fail(504), "server", True, None, "504"),
        (Fail(408), "timeout", True, None, "408"),
        (Fail(409), "unavailable", True, None, "409"),
        (Fail(401, message=f"invalid x-api-key {KEY}"), "auth", False, None, "ANTHROPIC_API_KEY"),
        (Fail(403), "auth", False, None, "403"),
        (Fail(404, message="model: m"), "not_found", False, None, "model: m"),
        (Fail(400, message="prompt is too long"), "context_full", False, None, "too long"),
        (Fail(400, message="Your credit balance is too low"), "bad_request", False, None, "add some"),
        (Fail(402), "bad_request", False, None, "no credit left"),
        (Fail(413), "bad_request", False, None, "413"),
        (Reset(), "unavailable", True, None, "ANTHROPIC_BASE_URL"),
        (Say("abcd", chunks=4, cut_at=2), "cut", True, None, "in the middle"),
        (Say("abcd", chunks=4, cut_at=2, clean_cut=True), "cut", True, None, "after 2 characters"),
        (Say("abcd", slow=5), "timeout", True, None, "silent"),
        (Raw(OVERLOADED), "server", True, None, "broke off its answer: Overloaded"),
        (Raw(LIMITED), "rate_limited", True, None, "Slow down"),
        (Raw(b"event: message_start\ndata: {broken\n\n"), "server", True, None, "not the messages format"),
        (Raw(b"<html>welcome</html>", "text/html"), "failed", False, None, "text/html instead"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value and len(value) < 15 else None,
)
def test_a_failed_call_says_what_where_and_whether_to_try_again(
    answer: Any, code: str, retriable: bool, wait: float | None, words: str
) -> None:
    with FakeAnthropic(answer) as server:
        error = failure(server.url, timeout=0.3)
        assert len(server.requests) == 1, "the client's own retries are off"
    assert (error.code, error.retriable, error.retry_after) == (code, retriable, wait)
    assert words in str(error)
    assert error.status == (answer.status if isinstance(answer, Fail) else None)


def test_a_server_that_is_down_is_unavailable_until_it_is_back() -> None:
    with FakeAnthropic(Say("back")) as server:
        server.refuse()
        assert failure(server.url).code == "unavailable"
        server.listen()
        assert ask(server.url).text == "back"


def test_a_cancelled_call_lets_go_of_its_connection_at_once() -> None:
    async def run(url: str) -> float:
        provider = AnthropicProvider(base_url=url)
        first = asyncio.Event()
        task = asyncio.create_task(provider.complete(made(), lambda _: first.set()))
        await first.wait()
        task.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        await provider.close()
        return time.monotonic() - began

    with FakeAnthropic(Say("abcd", chunks=2, slow=30, slow_at=1)) as server:
        assert asyncio.run(run(server.url)) < 2


# Structured answers, and what a server will not take


def test_a_schema_becomes_a_structured_output_in_the_language_of_the_service() -> None:
    with FakeAnthropic(Say('{"rule": 1}')) as server:
        assert ask(server.url, schema=verdict_schema(2)).text == '{"rule": 1}'
    assert server.bodies[0]["output_config"] == {
        "format": {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "properties": {
                    "rule": {"enum": [0, 1, None]},
                    "reason": {"type": "string", "description": "(maxLength: 200)"},
                },
                "required": ["rule", "reason"],
                "additionalProperties": False,
            },
        }
    }


def test_a_schema_is_kept_as_far_as_the_service_takes_it() -> None:
    schema = {
        "$defs": {"name": {"type": "string", "format": "email", "pattern": "x"}},
        "type": "array",
        "minItems": 1,
        "maxItems": 3,
        "description": "Names.",
        "items": {"oneOf": [{"$ref": "#/$defs/name"}, {"type": "integer", "minimum": 1}]},
    }
    assert portable(schema) == {
        "$defs": {"name": {"type": "string", "format": "email", "description": '(pattern: "x")'}},
        "type": "array",
        "minItems": 1,
        "description": "Names. (maxItems: 3)",
        "items": {"anyOf": [{"$ref": "#/$defs/name"}, {"type": "integer", "description": "(minimum: 1)"}]},
    }


def test_without_structured_output_a_tool_must_be_called_and_without_tools_words_must_do() -> None:
    request = made(schema=SCHEMA, schema_name="verdict")
    answers: list[Answer] = [
        Fail(400, "output_config: this model does not support structured outputs"),
        Say('{"rule": 1}', chunks=3),
        Fail(400, "tool_choice: this model does not support tools"),
        Say('{"rule": 2}'),
        Say('{"rule": 3}'),
    ]
    heard: list[str] = []
    with FakeAnthropic(*answers) as server:
        replies = ask_all(server.url, [request] * 3, heard)
    assert [reply.text for reply in replies] == ['{"rule": 1}', '{"rule": 2}', '{"rule": 3}']
    assert [reply.finish for reply in replies] == ["stop"] * 3
    assert "".join(heard) == "".join(reply.text for reply in replies)
    first, second, third, fourth, fifth = server.bodies
    assert "output_config" in first
    assert second["tools"][0] | {"description": ""} == {
        "name": "verdict",
        "description": "",
        "input_schema": SCHEMA,
    }
    assert second["tool_choice"] == third["tool_choice"] == {"type": "tool", "name": "verdict"}
    assert not {"tools", "output_config"} & (set(fourth) | set(fifth)), "what was refused is remembered"
    assert '"rule"' in fourth["messages"][-1]["content"][0]["text"]


def test_a_model_that_talks_instead_of_calling_its_tool_is_heard_all_the_same() -> None:
    talk = stream({"type": "text_delta", "text": '{"rule":'}, {"type": "text_delta", "text": " 1}"})
    with FakeAnthropic(Fail(400, "output_config: Extra inputs are not permitted"), Raw(talk)) as server:
        assert ask(server.url, schema=SCHEMA).text == '{"rule": 1}'


def test_a_server_without_prompt_cache_marks_is_asked_again_without_them() -> None:
    with FakeAnthropic(Say("1"), Say("2"), rejects=("cache_control",)) as server:
        ask_all(server.url, [made(), made()])
    assert ["cache_control" in str(body) for body in server.bodies] == [True, False, False]


def test_a_limit_that_the_model_does_not_reach_is_lowered_where_we_chose_it() -> None:
    told = f"max_tokens: {DEFAULT_MAX_TOKENS} > 4096, which is the maximum allowed number of output tokens"
    with FakeAnthropic(Fail(400, told), Say("1"), Say("2"), Fail(400, told)) as server:
        ask_all(server.url, [made(), made()])
        assert failure(server.url, max_tokens=DEFAULT_MAX_TOKENS).code == "bad_request"
    assert [body["max_tokens"] for body in server.bodies[:3]] == [DEFAULT_MAX_TOKENS, 4096, 4096]


def test_a_schema_that_the_server_finds_wrong_is_not_dropped_silently() -> None:
    with FakeAnthropic(Fail(400, "output_config.format.schema: Invalid schema"), Say("{}")) as server:
        assert failure(server.url, schema=SCHEMA).code == "bad_request"


# Settings


def test_address_key_and_model_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeAnthropic(Say("a")) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url + "/v1/")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-env")
        monkeypatch.setenv("CADENZA_MODEL", "env-model")
        provider = make_provider("anthropic")
        assert asyncio.run(provider.complete(made(model=None), lambda _: None)).text == "a"
    assert server.bodies[0]["model"] == "env-model"
    assert key_of(server) == "sk-env"


def test_a_token_stands_in_for_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token")
    with FakeAnthropic(Say("a")) as server:
        provider = make_provider("anthropic", ProviderOptions(base_url=server.url))
        asyncio.run(provider.complete(made(), lambda _: None))
    assert key_of(server) == "token"


def test_no_model_no_key_and_no_address_are_said_before_anything_is_sent() -> None:
    with FakeAnthropic() as server, pytest.raises(ProviderError, match="CADENZA_MODEL"):
        ask(server.url, model=None)
    assert server.requests == []
    with pytest.raises(UsageError, match="ANTHROPIC_API_KEY"):
        make_provider("anthropic")
    for url in ("localhost:8080", "ftp://x", "http://", "http://x:port"):
        with pytest.raises(UsageError, match="not an address"):
            make_provider("anthropic", ProviderOptions(base_url=url))


def test_a_password_in_the_address_is_not_shown() -> None:
    with pytest.raises(ProviderError) as error:
        ask("http://user:hunter2@127.0.0.1:9")
    assert "hunter2" not in str(error.value)
    assert "http://127.0.0.1:9" in str(error.value)


def test_the_registry_knows_it() -> None:
    assert "anthropic" in provider_names()


def test_without_the_anthropic_package_the_error_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['anthropic'] = None\n"
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'anthropic' else real(name, *a)\n"
        "from cadenza.errors import UsageError\n"
        "from cadenza.providers.registry import make_provider\n"
        "try: make_provider('anthropic')\n"
        "except UsageError as e: print(e)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'cadenza[anthropic]'" in done.stdout


def test_the_client_library_is_not_imported_before_the_first_call() -> None:
    program = (
        "import sys\nfrom cadenza.providers.registry import *\n"
        "make_provider('anthropic', ProviderOptions(base_url='http://127.0.0.1:9'))\n"
        "print('anthropic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
