"""The OpenAI-compatible provider and the fake server, each proven against the other and the official SDK."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from email.utils import formatdate
from typing import Any

import openai
import pytest

from cadenza.core.outcomes import Usage
from cadenza.errors import PieceError, ProviderError, UsageError
from cadenza.providers.base import ChatMessage, ModelProvider, ModelReply, ModelRequest
from cadenza.providers.models.openai_compatible import OpenAIProvider
from cadenza.providers.models.openai_errors import retry_after
from cadenza.providers.registry import ProviderOptions, make_provider, provider_names
from cadenza.testing.fake_openai import Fail, FakeOpenAI, Raw, Reset, Say

KEY = "sk-very-secret-0123456789"
NOW = 1_800_000_000.0
SCHEMA = {"type": "object", "properties": {"rule": {"type": "integer"}}, "required": ["rule"]}


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "CADENZA_MODEL"):
        monkeypatch.delenv(name, raising=False)


def ask(url: str, heard: list[str] | None = None, timeout: float | None = None, **more: Any) -> ModelReply:
    messages = (ChatMessage("system", "Be brief."), ChatMessage("user", "Hello?"))
    request = ModelRequest(
        **({"messages": messages, "demand": "d1", "movement": "plan", "model": "m"} | more)
    )

    async def run() -> ModelReply:
        provider = OpenAIProvider(base_url=url, api_key=KEY, timeout=timeout, clock=lambda: NOW)
        try:
            return await provider.complete(request, (heard if heard is not None else []).append)
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
    assert caught.value.hint or caught.value.code == "server"
    return caught.value


def sdk(server: FakeOpenAI, **more: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.url, api_key=KEY, max_retries=0, **more)


HELLO: list[Any] = [{"role": "user", "content": "Hello?"}]


# The fake, through the official SDK


def test_the_sdk_reads_a_plain_answer() -> None:
    with FakeOpenAI(Say("Hello there")) as server:
        answer = sdk(server).chat.completions.create(model="m", messages=HELLO)
    assert answer.choices[0].message.content == "Hello there"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (12, 3)
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == 4
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("include_usage", [True, False])
def test_the_sdk_reads_a_stream_with_usage_only_where_it_asked(include_usage: bool) -> None:
    with FakeOpenAI(Say("Hello there", chunks=3)) as server:
        chunks = list(
            sdk(server).chat.completions.create(
                model="m", messages=HELLO, stream=True, stream_options={"include_usage": include_usage}
            )
        )
    texts = [c.choices[0].delta.content for c in chunks if c.choices and c.choices[0].delta.content]
    assert (len(texts), "".join(texts)) == (3, "Hello there")
    assert [c.usage is not None for c in chunks][-1] is include_usage


def test_the_sdk_meets_errors_of_the_right_kind() -> None:
    answers = (Fail(429, retry_after="2"), Fail(500), Fail(401), Reset())
    kinds = (
        openai.RateLimitError,
        openai.InternalServerError,
        openai.AuthenticationError,
        openai.APIConnectionError,
    )
    with FakeOpenAI(*answers) as server:
        for kind in kinds:
            with pytest.raises(kind) as caught:
                sdk(server).chat.completions.create(model="m", messages=HELLO)
            if kind is openai.RateLimitError:
                assert caught.value.response.headers["retry-after"] == "2"  # type: ignore[attr-defined]


def test_the_sdk_meets_a_cut_a_slow_chunk_and_a_refused_connection() -> None:
    with FakeOpenAI(Say("abcd", chunks=4, cut_at=2), Say("abcd", chunks=2, slow=5, slow_at=1)) as server:
        client = sdk(server, timeout=0.2)
        with pytest.raises(openai.APIConnectionError):
            list(client.chat.completions.create(model="m", messages=HELLO, stream=True))
        with pytest.raises(openai.APITimeoutError):
            list(client.chat.completions.create(model="m", messages=HELLO, stream=True))
        server.refuse()
        with pytest.raises(openai.APIConnectionError):
            client.chat.completions.create(model="m", messages=HELLO)
        server.listen()
        server.add(Say("back"))
        answer = client.chat.completions.create(model="m", messages=HELLO)
        assert answer.choices[0].message.content == "back"


def test_the_sdk_lists_the_models_and_is_told_when_no_answer_is_left() -> None:
    with FakeOpenAI(model="tiny") as server:
        assert [model.id for model in sdk(server).models.list()] == ["tiny"]
        with pytest.raises(openai.BadRequestError, match="no answer left"):
            sdk(server).chat.completions.create(model="m", messages=HELLO)


# The provider


def test_an_answer_is_streamed_and_its_usage_is_normalised() -> None:
    heard: list[str] = []
    with FakeOpenAI(Say("Hello there", chunks=4, usage=Usage(100, 5, 90)), model="m-2") as server:
        reply = ask(server.url, heard)
    assert reply == ModelReply(text="Hello there", usage=Usage(100, 5, 90), model="m-2", finish="stop")
    assert (len(heard), "".join(heard)) == (4, "Hello there")


def test_the_call_carries_messages_limit_schema_and_asks_for_usage() -> None:
    with FakeOpenAI(Say("{}")) as server:
        ask(server.url, schema=SCHEMA, schema_name="verdict", max_tokens=7)
    assert server.bodies[0] == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 7,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "schema": SCHEMA, "strict": True},
        },
    }


def test_an_answer_that_reached_its_limit_says_so() -> None:
    with FakeOpenAI(Say("Hel", finish="length")) as server:
        assert ask(server.url).finish == "length"


def test_an_empty_answer_is_an_answer() -> None:
    heard: list[str] = []
    with FakeOpenAI(Say("")) as server:
        assert (ask(server.url, heard).text, heard) == ("", [])


def test_text_of_every_script_survives_and_half_characters_are_mended() -> None:
    stream = b"".join(
        b'data: {"choices":[{"index":0,"delta":{"content":"%s"}%s}]}\n\n' % (text, finish)
        for text, finish in [
            ("日本".encode(), b""),
            (b"\\ud83d", b""),
            (b"\\ude00!", b""),
            (b"\\ud83d", b',"finish_reason":"stop"'),
        ]
    )
    heard: list[str] = []
    with FakeOpenAI(Raw(stream + b"data: [DONE]\n\n")) as server:
        assert ask(server.url, heard).text == "日本😀!\ufffd"
    assert heard == ["日本", "😀!"]


@pytest.mark.parametrize(
    ("answer", "code", "retriable", "wait", "words"),
    [
        (Fail(429, retry_after="2"), "rate_limited", True, 2.0, "429"),
        (Fail(429, retry_after="0.5"), "rate_limited", True, 0.5, "429"),
        (Fail(429, retry_after=formatdate(NOW + 30, usegmt=True)), "rate_limited", True, 30.0, "429"),
        (Fail(429, retry_after="soon"), "rate_limited", True, None, "429"),
        (Fail(429, code="insufficient_quota"), "rate_limited", False, None, "no credit"),
        (Fail(408), "timeout", True, None, "408"),
        (Fail(409), "unavailable", True, None, "409"),
        (Fail(500), "server", True, None, "500"),
        (Fail(503, retry_after="7"), "server", True, 7.0, "503"),
        (Fail(401, message=f"Incorrect API key: {KEY}"), "auth", False, None, "OPENAI_API_KEY"),
        (Fail(403), "auth", False, None, "403"),
        (Fail(404, message="no such model"), "not_found", False, None, "no such model"),
        (Fail(400, message="too long"), "bad_request", False, None, "too long"),
        (Fail(413), "bad_request", False, None, "413"),
        (Reset(), "unavailable", True, None, "is the server running"),
        (Say("abcd", chunks=4, cut_at=2), "cut", True, None, "in the middle"),
        (Say("abcd", chunks=4, cut_at=2, clean_cut=True), "cut", True, None, "after 2 characters"),
        (Say("abcd", slow=5), "timeout", True, None, "silent"),
        (Raw(b"data: {broken\n\n"), "server", True, None, "not the chat-completions format"),
        (Raw(b'data: {"error": {"message": "out of memory"}}\n\n'), "server", True, None, "out of memory"),
        (Raw(b"<html>welcome</html>", "text/html"), "failed", False, None, "text/html instead"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value and len(value) < 15 else None,
)
def test_a_failed_call_says_what_where_and_whether_to_try_again(
    answer: Any, code: str, retriable: bool, wait: float | None, words: str
) -> None:
    with FakeOpenAI(answer) as server:
        error = failure(server.url, timeout=0.3)
        assert len(server.requests) == 1, "the client's own retries are off"
    assert (error.code, error.retriable, error.retry_after) == (code, retriable, wait)
    assert words in str(error)
    if isinstance(answer, Fail):
        assert error.status == answer.status


def test_a_server_that_is_down_is_unavailable_until_it_is_back() -> None:
    with FakeOpenAI(Say("back")) as server:
        server.refuse()
        error = failure(server.url)
        assert (error.code, error.retriable) == ("unavailable", True)
        server.listen()
        assert ask(server.url).text == "back"


def test_a_host_that_does_not_exist_is_unavailable() -> None:
    assert failure("http://nowhere.invalid/v1").code == "unavailable"


def test_a_slow_chunk_within_the_timeout_is_waited_for() -> None:
    with FakeOpenAI(Say("abcd", chunks=2, slow=0.2, slow_at=1)) as server:
        assert ask(server.url, timeout=5).text == "abcd"


def test_a_cancelled_call_lets_go_of_its_connection_at_once() -> None:
    async def run(url: str) -> float:
        provider = OpenAIProvider(base_url=url, model="m")
        request = ModelRequest(messages=(ChatMessage("user", "?"),), demand="d", movement="m")
        first = asyncio.Event()
        task = asyncio.create_task(provider.complete(request, lambda _: first.set()))
        await first.wait()
        task.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        await provider.close()
        return time.monotonic() - began

    with FakeOpenAI(Say("abcd", chunks=2, slow=30, slow_at=1)) as server:
        assert asyncio.run(run(server.url)) < 2


@pytest.mark.parametrize("field", ["stream_options", "response_format", "max_tokens"])
def test_a_server_that_does_not_know_a_field_is_asked_again_without_it(field: str) -> None:
    message = f"Unsupported parameter: {field}; use max_completion_tokens"
    with FakeOpenAI(Fail(400, message), Say("{}")) as server:
        assert ask(server.url, schema=SCHEMA, max_tokens=5).text == "{}"
    first, second = server.bodies
    assert field in first
    assert field not in second
    assert ("max_completion_tokens" in second) is (field == "max_tokens")


def test_what_a_server_refused_is_remembered() -> None:
    async def run(url: str) -> None:
        provider = OpenAIProvider(base_url=url, model="m")
        request = ModelRequest(messages=(ChatMessage("user", "?"),), demand="d", movement="m", schema=SCHEMA)
        for _ in range(2):
            await provider.complete(request, lambda _: None)
        await provider.close()

    with FakeOpenAI(Say("1"), Say("2"), rejects=("stream_options", "response_format")) as server:
        asyncio.run(run(server.url))
    assert [sorted({"stream_options", "response_format"} & set(body)) for body in server.bodies] == [
        ["response_format", "stream_options"],
        ["response_format"],
        [],
        [],
    ]


def test_a_schema_that_the_server_finds_wrong_is_not_dropped_silently() -> None:
    with FakeOpenAI(Fail(400, "Invalid schema for response_format 'answer'"), Say("{}")) as server:
        assert failure(server.url, schema=SCHEMA).code == "bad_request"


# Settings


def test_address_key_and_model_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeOpenAI(Say("a")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
        monkeypatch.setenv("CADENZA_MODEL", "env-model")
        provider = make_provider("openai")
        request = ModelRequest(messages=(ChatMessage("user", "?"),), demand="d", movement="m")
        assert asyncio.run(provider.complete(request, lambda _: None)).text == "a"
    assert server.bodies[0]["model"] == "env-model"
    assert server.requests[0].headers["authorization"] == "Bearer sk-env"


def test_no_model_no_key_and_no_address_are_said_before_anything_is_sent() -> None:
    with FakeOpenAI() as server, pytest.raises(ProviderError, match="CADENZA_MODEL"):
        ask(server.url, model=None)
    assert server.requests == []
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        make_provider("openai")
    for url in ("localhost:8080", "ftp://x/v1", "http://", "http://x:port/v1"):
        with pytest.raises(UsageError, match="not an address"):
            make_provider("openai", ProviderOptions(base_url=url))


def test_a_password_in_the_address_is_not_shown() -> None:
    with pytest.raises(ProviderError) as error:
        ask("http://user:hunter2@127.0.0.1:9/v1")
    assert "hunter2" not in str(error.value)
    assert "http://127.0.0.1:9/v1" in str(error.value)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after": formatdate(NOW - 5, usegmt=True)}, 0.0),
        ({"retry-after": ""}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


# The registry


def test_an_unknown_provider_is_refused_with_the_known_names() -> None:
    assert provider_names() == ["anthropic", "openai", "scripted"]
    with pytest.raises(UsageError, match="did you mean 'openai'") as caught:
        make_provider("opneai")
    assert "known: anthropic, openai, scripted" in str(caught.value)


def test_the_scripted_provider_needs_a_script_that_can_be_read(tmp_path: Any) -> None:
    with pytest.raises(UsageError, match="--script"):
        make_provider("scripted")
    (tmp_path / "s.yaml").write_text("cadenza-script: 1\nentries: 5\n", encoding="utf-8")
    with pytest.raises(PieceError, match=r"s\.yaml:2:1"):
        make_provider("scripted", ProviderOptions(script=str(tmp_path / "s.yaml")))


def test_providers_of_other_packages_are_found_by_their_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    point = importlib.metadata.EntryPoint("echo", f"{__name__}:echo_provider", "cadenza.providers")

    def entry_points(*, group: str, name: str = "echo") -> list[importlib.metadata.EntryPoint]:
        return [point] if (group, name) == ("cadenza.providers", "echo") else []

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    assert "echo" in provider_names()
    assert make_provider("echo", ProviderOptions(model="m")).name == "echo m"


def echo_provider(options: ProviderOptions) -> ModelProvider:
    from cadenza.providers.models.scripted import Script, ScriptedProvider

    provider = ScriptedProvider(Script([]))
    provider.name = f"echo {options.model}"
    return provider


def test_without_the_openai_package_the_error_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['openai'] = None\n"
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'openai' else real(name, *a)\n"
        "from cadenza.errors import UsageError\n"
        "from cadenza.providers.registry import make_provider\n"
        "try: make_provider('openai')\n"
        "except UsageError as e: print(e)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'cadenza[openai]'" in done.stdout


def test_the_client_library_is_not_imported_before_the_first_call() -> None:
    program = (
        "import sys\nfrom cadenza.providers.registry import *\n"
        "make_provider('openai', ProviderOptions(base_url='http://127.0.0.1:9/v1'))\n"
        "print('openai' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
