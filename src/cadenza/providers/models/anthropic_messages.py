"""Anthropic's models, and any server that speaks their messages format, through the official package.

The ``anthropic`` package is imported at the first call, and its own retries are off: whether and when a
call is tried again is decided, and journaled, by the core. What a server refuses by name (structured
output, tools, cache marks) is left out or replaced, once, and remembered for that model.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cadenza.clock import Clock, system_clock
from cadenza.core.outcomes import Usage
from cadenza.errors import ProviderError, UsageError
from cadenza.providers.base import ModelReply, ModelRequest, OnText
from cadenza.providers.models.addresses import check_address, secrets_of, shown_address
from cadenza.providers.models.anthropic_errors import MESSAGES, explained, largest_answer, refused_field
from cadenza.providers.models.anthropic_format import has_marks, parameters
from cadenza.providers.models.call_errors import Caller, bad_request, cut, foreign
from cadenza.providers.models.streamed import StreamedCalls, StreamedText

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic, AsyncStream

DEFAULT_URL = "https://api.anthropic.com"
DEFAULT_TIMEOUT = 600.0
"""Seconds without a byte from the server after which a call is given up."""
CONNECT_TIMEOUT = 10.0
DEFAULT_MAX_TOKENS = 16_384
"""The format demands a limit. Where a model may write less, its server says so and that is used."""
NO_KEY = "none"
"""Sent where no key is known: local servers ask for none."""

_FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}


class AnthropicProvider:
    """A model behind Anthropic's API, or behind a server that speaks its format.

    ``base_url``, ``api_key`` and ``model`` default to the environment variables ``ANTHROPIC_BASE_URL``,
    ``ANTHROPIC_API_KEY`` (else ``ANTHROPIC_AUTH_TOKEN``) and ``CADENZA_MODEL``; a request's own model
    comes first. ``timeout`` is in seconds and counts silence, not the length of an answer that keeps
    coming.

    Raises:
        UsageError: the ``anthropic`` package is missing, the URL is none, or Anthropic itself is meant
            without a key.
    """

    name = "anthropic"

    def __init__(
        self,
        *,
        model: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float | None = None,
        clock: Clock = system_clock,
    ) -> None:
        if find_spec("anthropic") is None:
            raise UsageError(
                "the provider 'anthropic' needs the package anthropic, which is not installed",
                hint="pip install 'cadenza[anthropic]'",
            )
        self.model = model or os.environ.get("CADENZA_MODEL") or None
        address = base_url or os.environ.get("ANTHROPIC_BASE_URL") or DEFAULT_URL
        self.base_url = address.rstrip("/").removesuffix("/v1").rstrip("/")
        self._key = api_key or os.environ.get("ANTHROPIC_API_KEY") or ""
        self._token = "" if self._key else os.environ.get("ANTHROPIC_AUTH_TOKEN") or ""
        self._timeout = timeout or DEFAULT_TIMEOUT
        self._clock = clock
        self._made: AsyncAnthropic | None = None
        self._refused: dict[str, set[str]] = {}
        self._limits: dict[str, int] = {}
        _check_address(self.base_url, self._key or self._token)

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """Answer one request, streaming.

        Raises:
            ProviderError: see :mod:`cadenza.providers.models.call_errors` for which code when.
        """
        caller = self._caller(request)
        try:
            stream, by_tool = await self._open(request, caller)
        except ProviderError:
            raise
        except Exception as error:
            raise explained(error, caller, streaming=False) from error
        try:
            return await _collect(stream, caller, on_text, by_tool=by_tool)
        except ProviderError:
            raise
        except Exception as error:
            raise explained(error, caller, streaming=True) from error
        finally:
            await stream.close()

    async def close(self) -> None:
        """Close the connections that are kept open."""
        if self._made is not None:
            await self._made.close()
            self._made = None

    def _caller(self, request: ModelRequest) -> Caller:
        model = request.model or self.model
        if not model:
            raise bad_request(
                "the provider 'anthropic' was asked for no model in particular",
                "name one with --model, with the environment variable CADENZA_MODEL, or in the piece",
            )
        return Caller(
            model=model,
            url=shown_address(self.base_url),
            secrets=secrets_of(self.base_url, self._key, self._token),
            clock=self._clock,
            format=MESSAGES,
        )

    async def _open(self, request: ModelRequest, caller: Caller) -> tuple[Any, bool]:
        """The stream, and whether the answer is asked for as a tool's input."""
        from anthropic import APIStatusError

        refused = self._refused.setdefault(caller.model, set())
        while True:
            limit = request.max_tokens or self._limits.get(caller.model, DEFAULT_MAX_TOKENS)
            wanted = parameters(request, caller.model, limit, refused)
            try:
                return await self._client().messages.create(**wanted), "tool_choice" in wanted
            except APIStatusError as error:
                largest = largest_answer(error)
                if request.max_tokens is None and largest and largest < limit:
                    self._limits[caller.model] = largest
                    continue
                field = refused_field(error, wanted, has_marks(refused))
                if field is None:
                    raise
                refused.add(field)

    def _client(self) -> AsyncAnthropic:
        if self._made is None:
            from anthropic import AsyncAnthropic, Timeout

            self._made = AsyncAnthropic(
                api_key=None if self._token else self._key or NO_KEY,
                auth_token=self._token or None,
                base_url=self.base_url,
                max_retries=0,
                timeout=Timeout(self._timeout, connect=min(CONNECT_TIMEOUT, self._timeout)),
            )
        return self._made


async def _collect(stream: AsyncStream[Any], caller: Caller, on_text: OnText, *, by_tool: bool) -> ModelReply:
    """The reply that the events add up to.

    A model that was to call a tool may still talk: its words count only where it called none.
    """
    text, spoken, usage, calls = StreamedText(on_text), list[str](), _Counted(), StreamedCalls()
    finish, model, block = None, caller.model, None
    async for event in stream:
        match event.type:
            case "message_start":
                model = event.message.model or model
                usage.add(event.message.usage)
            case "content_block_start" if event.content_block.type == "tool_use" and not by_tool:
                calls.add(event.index, event.content_block.id, event.content_block.name, None)
            case "content_block_delta" if event.delta.type == "input_json_delta" and not by_tool:
                calls.add(event.index, None, None, event.delta.partial_json)
            case "content_block_start" if event.content_block.type == "tool_use" and block is None:
                block = event.index
            case "content_block_delta" if event.delta.type == "text_delta":
                spoken.append(event.delta.text) if by_tool else text.add(event.delta.text)
            case "content_block_delta" if event.delta.type == "input_json_delta" and event.index == block:
                text.add(event.delta.partial_json)
            case "message_delta":
                finish = event.delta.stop_reason or finish
                usage.add(event.usage)
    if by_tool and block is None:
        text.add("".join(spoken))
    if finish is None:
        kind = stream.response.headers.get("content-type", "")
        raise cut(caller, len(text.finished())) if "event-stream" in kind else foreign(caller, kind)
    return ModelReply(
        text=text.finished(),
        usage=usage.total(),
        model=model,
        finish=_FINISHES.get(finish, finish),
        calls=calls.finished(),
    )


class _Counted:
    """Usage as it comes: some counters with the first event, all of them or only some with the last."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, given: Any) -> None:
        """Take what ``given`` has; each counter is a running total."""
        for name in _COUNTERS:
            count = getattr(given, name, None)
            if count is not None:
                self._counts[name] = count

    def total(self) -> Usage:
        """Our own usage: here ``input`` is all that the model read, and ``cached`` is a part of it."""
        fresh, written, cached, output = (self._counts.get(name, 0) for name in _COUNTERS)
        return Usage(input=fresh + written + cached, output=output, cached=cached)


_COUNTERS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


def _check_address(base_url: str, key: str) -> None:
    check_address(base_url, "ANTHROPIC_BASE_URL looks like http://127.0.0.1:8080")
    if base_url == DEFAULT_URL and not key:
        raise UsageError(
            f"no key for {DEFAULT_URL}",
            hint="set ANTHROPIC_API_KEY; or set ANTHROPIC_BASE_URL to a server of your own",
        )
