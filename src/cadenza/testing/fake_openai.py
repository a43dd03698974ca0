"""A server that speaks OpenAI's chat-completions format over real HTTP, for tests of whatever calls one.

::

    with FakeOpenAI(Say("Hello", chunks=4), Fail(429, retry_after="2")) as server:
        client = OpenAI(base_url=server.url, api_key="any")
        ...
    assert server.requests[0].body["model"] == "m"

Answers are given in order, one per call; :meth:`FakeOpenAI.add` adds more while it runs. A call that finds
none left gets a 400 that says so, because that is a mistake in the test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cadenza.core.outcomes import Usage
from cadenza.testing.fake_server import (
    CREATED,
    Answer,
    Fail,
    FakeServer,
    Raw,
    Recorded,
    Reset,
    Say,
)

__all__ = ["Answer", "Fail", "FakeOpenAI", "Raw", "Recorded", "Reset", "Say"]


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
        return None

    def models(self) -> dict[str, Any]:
        """The one model."""
        model = {"id": self.model, "object": "model", "created": CREATED, "owned_by": "cadenza"}
        return {"object": "list", "data": [model]}

    def whole(self, answer: Say, asked: Mapping[str, Any]) -> dict[str, Any]:
        """One ``chat.completion``."""
        message = {"role": "assistant", "content": answer.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish}
        return self._object("chat.completion", [choice], _usage(answer.usage))

    def opening(self, answer: Say, asked: Mapping[str, Any]) -> Iterator[bytes]:
        """Nothing: the first piece names the role."""
        yield from ()

    def piece(self, text: str, number: int, asked: Mapping[str, Any]) -> bytes:
        """A ``chat.completion.chunk`` with some text."""
        role = {"role": "assistant"} if number == 0 else {}
        return self._event([_choice(role | {"content": text}, None)])

    def closing(self, answer: Say, asked: Mapping[str, Any]) -> Iterator[bytes]:
        """The finish reason, the usage where it is wanted, and the end mark."""
        yield self._event([_choice({}, answer.finish)])
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


def _choice(delta: Mapping[str, str], finish: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }
