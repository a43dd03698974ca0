"""A server that speaks OpenAI's chat-completions format over real HTTP, for tests of whatever calls one.

::

    with FakeOpenAI(Say("Hello", chunks=4), Fail(429, retry_after="2")) as server:
        client = OpenAI(base_url=server.url, api_key="any")
        ...
    assert server.requests[0].body["model"] == "m"

Answers are given in order, one per call; :meth:`FakeOpenAI.add` adds more while it runs. A call that finds
none left gets a 400 that says so, because that is a mistake in the test; so does, as with OpenAI, a call of
a tool that has no result right behind its turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from cadenza.core.outcomes import Usage
from cadenza.providers.base import ToolCall
from cadenza.testing.fake_server import (
    CREATED,
    Answer,
    Fail,
    FakeServer,
    Raw,
    Recorded,
    Reset,
    Say,
    halves,
    unanswered,
)

__all__ = ["Answer", "Fail", "FakeOpenAI", "Raw", "Recorded", "Reset", "Say", "ToolCall"]


class FakeOpenAI(FakeServer):
    """The server. Its streams end with ``[DONE]``, and tell the usage only where it was asked for."""

    path = "/v1/chat/completions"

    @property
    def url(self) -> str:
        """The base URL for a client: it ends in ``/v1``."""
        return f"{self.root}/v1"

    def problem(self, request: Recorded) -> Fail | None:
        """A missing or a rejected parameter."""
        for field in ("model", "messages"):
            if not request.body.get(field):
                return Fail(400, f"you must provide a {field} parameter")
        for field in self.rejects:
            if field in request.body:
                return Fail(400, f"Unrecognized request argument supplied: {field}")
        return _open_call(request.body["messages"])

    def models(self) -> dict[str, Any]:
        """The one model."""
        model = {"id": self.model, "object": "model", "created": CREATED, "owned_by": "cadenza"}
        return {"object": "list", "data": [model]}

    def whole(self, answer: Say, asked: Mapping[str, Any]) -> dict[str, Any]:
        """One ``chat.completion``."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
        if answer.calls:
            message["content"] = answer.text or None
            message["tool_calls"] = [_call(call, call.arguments) for call in answer.calls]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(answer)}
        return self._object("chat.completion", [choice], _usage(answer.usage))

    def opening(self, answer: Say, asked: Mapping[str, Any]) -> Iterator[bytes]:
        """Nothing: the first piece names the role."""
        yield from ()

    def piece(self, text: str, number: int, asked: Mapping[str, Any]) -> bytes:
        """A ``chat.completion.chunk`` with some text."""
        role = {"role": "assistant"} if number == 0 else {}
        return self._event([_choice(role | {"content": text}, None)])

    def closing(self, answer: Say, asked: Mapping[str, Any]) -> Iterator[bytes]:
        """The calls, the finish reason, the usage where it is wanted, and the end mark."""
        for delta in _deltas(answer):
            yield self._event([_choice(delta, None)])
        yield self._event([_choice({}, _finish(answer))])
        if (asked.get("stream_options") or {}).get("include_usage"):
            yield self._event([], _usage(answer.usage))
        yield b"data: [DONE]\n\n"

    def envelope(self, failure: Fail) -> dict[str, Any]:
        """``{"error": {...}}``."""
        kind = "invalid_request_error" if failure.status < 500 else "server_error"
        return {"error": {"message": failure.message, "type": kind, "param": None, "code": failure.code}}

    def _event(self, choices: list[Any], usage: Any = None) -> bytes:
        event = self._object("chat.completion.chunk", choices, usage)
        return b"data: " + json.dumps(event).encode() + b"\n\n"

    def _object(self, kind: str, choices: list[Any], usage: Any) -> dict[str, Any]:
        head = {"id": "chatcmpl-fake", "object": kind, "created": CREATED, "model": self.model}
        return {**head, "choices": choices, "usage": usage}


def _choice(delta: Mapping[str, Any], finish: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def _finish(answer: Say) -> str:
    return "tool_calls" if answer.calls and answer.finish == "stop" else answer.finish


def _call(call: ToolCall, arguments: str) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _deltas(answer: Say) -> Iterator[dict[str, Any]]:
    """The calls in pieces: first the name without arguments, then these in two parts."""
    if answer.calls and not answer.text:
        yield {"role": "assistant", "content": None}
    for index, call in enumerate(answer.calls):
        yield {"tool_calls": [{"index": index, **_call(call, "")}]}
        for part in halves(call.arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}


def _open_call(messages: Sequence[Any]) -> Fail | None:
    for at, message in enumerate(messages):
        calls = [call["id"] for call in message.get("tool_calls") or ()]
        behind = takewhile(lambda one: one.get("role") == "tool", messages[at + 1 :])
        lacking = unanswered(calls, [one.get("tool_call_id") for one in behind])
        if lacking is not None:
            told = (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
            )
            return Fail(400, f"{told} 'tool_call_id'. No response for: {lacking}")
    return None
