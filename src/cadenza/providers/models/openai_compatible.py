"""Any server that speaks OpenAI's chat-completions format, through the official ``openai`` package.

The package is imported at the first call, and its own retries are off: whether and when a call is tried
again is decided, and journaled, by the core. What a server refuses by name (``stream_options``,
``response_format``, ``max_tokens``) is left out or renamed, once, and remembered.
"""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cadenza.clock import Clock, system_clock
from cadenza.core.outcomes import Usage
from cadenza.errors import ProviderError, UsageError
from cadenza.providers.base import ChatMessage, ModelReply, ModelRequest, OnText
from cadenza.providers.models.addresses import check_address, secrets_of, shown_address
from cadenza.providers.models.openai_errors import (
    CHAT_COMPLETIONS,
    Caller,
    bad_request,
    cut,
    explained,
    foreign,
    refused_field,
)
from cadenza.providers.models.streamed import StreamedCalls, StreamedText

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream

DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_TIMEOUT = 600.0
"""Seconds without a byte from the server after which a call is given up."""
CONNECT_TIMEOUT = 10.0
NO_KEY = "none"
"""Sent where no key is known: local servers ask for none, but the format has a place for one."""


class OpenAIProvider:
    """A model behind an OpenAI-compatible server.

    ``base_url``, ``api_key`` and ``model`` default to the environment variables ``OPENAI_BASE_URL``,
    ``OPENAI_API_KEY`` and ``CADENZA_MODEL``; a request's own model comes first. ``timeout`` is in seconds
    and counts silence, not the length of an answer that keeps coming.

    Raises:
        UsageError: the ``openai`` package is missing, the URL is none, or OpenAI itself is meant without
            a key.
    """

    name = "openai"

    def __init__(
        self,
        *,
        model: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float | None = None,
        clock: Clock = system_clock,
    ) -> None:
        if find_spec("openai") is None:
            raise UsageError(
                "the provider 'openai' needs the package openai, which is not installed",
                hint="pip install 'cadenza[openai]'",
            )
        self.model = model or os.environ.get("CADENZA_MODEL") or None
        self.base_url = (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL).rstrip("/")
        self._key = api_key or os.environ.get("OPENAI_API_KEY") or ""
        self._timeout = timeout or DEFAULT_TIMEOUT
        self._clock = clock
        self._made: AsyncOpenAI | None = None
        self._refused: set[str] = set()
        _check_address(self.base_url, self._key)

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """Answer one request, streaming.

        Raises:
            ProviderError: see :mod:`cadenza.providers.models.call_errors` for which code when.
        """
        caller = self._caller(request)
        try:
            stream = await self._open(request, caller)
        except ProviderError:
            raise
        except Exception as error:
            raise explained(error, caller, streaming=False) from error
        try:
            return await _collect(stream, caller, on_text)
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
                "the provider 'openai' was asked for no model in particular",
                "name one with --model, with the environment variable CADENZA_MODEL, or in the piece",
            )
        return Caller(
            model=model,
            url=shown_address(self.base_url),
            secrets=secrets_of(self.base_url, self._key),
            clock=self._clock,
            format=CHAT_COMPLETIONS,
        )

    async def _open(self, request: ModelRequest, caller: Caller) -> Any:
        from openai import APIStatusError

        while True:
            wanted = _parameters(request, caller.model, self._refused)
            try:
                return await self._client().chat.completions.create(**wanted)
            except APIStatusError as error:
                field = refused_field(error, wanted)
                if field is None:
                    raise
                self._refused.add(field)

    def _client(self) -> AsyncOpenAI:
        if self._made is None:
            from openai import AsyncOpenAI, Timeout

            self._made = AsyncOpenAI(
                api_key=self._key or NO_KEY,
                base_url=self.base_url,
                max_retries=0,
                timeout=Timeout(self._timeout, connect=min(CONNECT_TIMEOUT, self._timeout)),
            )
        return self._made


def _parameters(request: ModelRequest, model: str, refused: set[str]) -> dict[str, Any]:
    wanted: dict[str, Any] = {
        "model": model,
        "messages": [_message(message) for message in request.messages],
        "stream": True,
    }
    if request.tools:
        wanted["tools"] = [{"type": "function", "function": dict(tool)} for tool in request.tools]
    if "stream_options" not in refused:
        wanted["stream_options"] = {"include_usage": True}
    if request.schema is not None and "response_format" not in refused:
        schema = {"name": request.schema_name, "schema": dict(request.schema), "strict": True}
        wanted["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.max_tokens is not None:
        limit = "max_completion_tokens" if "max_tokens" in refused else "max_tokens"
        wanted[limit] = request.max_tokens
    return wanted


def _message(message: ChatMessage) -> dict[str, Any]:
    """One message. Its keys, and what they hold, are the same in every request: servers keep what they
    know."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call or "", "content": message.content}
    if not message.calls:
        return {"role": message.role, "content": message.content}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": _object(call.arguments)},
        }
        for call in message.calls
    ]
    return {"role": message.role, "content": message.content, "tool_calls": calls}


def _object(arguments: str) -> str:
    """Arguments as they are where they are a JSON object. Servers parse them, and refuse a request for
    ever whose
    history holds broken ones: these are sent as the text of one key."""
    try:
        read = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return json.dumps({"broken": arguments}, ensure_ascii=False)
    return (
        (arguments or "{}")
        if isinstance(read, dict)
        else json.dumps({"broken": arguments}, ensure_ascii=False)
    )


async def _collect(stream: AsyncStream[Any], caller: Caller, on_text: OnText) -> ModelReply:
    """The reply that the chunks add up to. Some servers send usage in a last chunk without choices."""
    text, finish, usage, model = StreamedText(on_text), None, Usage(), caller.model
    calls = StreamedCalls()
    async for chunk in stream:
        model = chunk.model or model
        if chunk.usage is not None:
            usage = _usage(chunk.usage)
        for choice in (chunk.choices or [])[:1]:
            delta = choice.delta
            text.add((delta.content or delta.refusal or "") if delta is not None else "")
            for part in (delta.tool_calls or []) if delta is not None else []:
                said = part.function
                calls.add(part.index, part.id, said.name if said else None, said.arguments if said else None)
            finish = choice.finish_reason or finish
    if finish is None:
        kind = stream.response.headers.get("content-type", "")
        if "event-stream" not in kind:
            raise foreign(caller, kind)
        raise cut(caller, len(text.finished()))
    return ModelReply(text=text.finished(), usage=usage, model=model, finish=finish, calls=calls.finished())


def _usage(given: Any) -> Usage:
    details = getattr(given, "prompt_tokens_details", None)
    cached = getattr(details, "cached_tokens", None) or 0
    return Usage(input=given.prompt_tokens or 0, output=given.completion_tokens or 0, cached=cached)


def _check_address(base_url: str, key: str) -> None:
    check_address(base_url, "OPENAI_BASE_URL looks like http://127.0.0.1:8080/v1")
    if base_url == DEFAULT_URL and not key:
        raise UsageError(
            f"no key for {DEFAULT_URL}",
            hint="set OPENAI_API_KEY; or set OPENAI_BASE_URL to a server of your own, which may need none",
        )
