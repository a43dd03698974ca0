"""A server that speaks Anthropic's messages format over real HTTP, for tests of whatever calls one.

::

    with FakeAnthropic(Say("Hello", chunks=4), Fail(529)) as server:
        client = Anthropic(base_url=server.url, api_key="any")
        ...
    assert server.requests[0].body["system"] == "Be brief."

Answers are given in order, one per call. It is as strict as the service where that has hurt: a key, a
version and ``max_tokens`` must be there, roles are ``user`` and ``assistant``, no text is empty, and every
``tool_use`` has its result in the next message. Where a call forces a tool, the answer's text is that tool's
input.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cadenza.providers.base import ToolCall
from cadenza.testing.fake_server import (
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

__all__ = ["Answer", "Fail", "FakeAnthropic", "Raw", "Recorded", "Reset", "Say", "ToolCall", "sse"]

MOST_MARKS = 4
"""Cache marks that the service takes in one call."""

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens"}


def sse(kind: str, **fields: Any) -> bytes:
    """One event of a stream."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


class FakeAnthropic(FakeServer):
    """The server. ``Say.finish`` may be ``stop``, ``length`` or one of the format's own stop reasons."""

    path = "/v1/messages"

    @property
    def url(self) -> str:
        """The base URL for a client: without ``/v1``, which the official client adds."""
        return self.root

    def problem(self, request: Recorded) -> Fail | None:
        """A missing key, version or field; a rejected field anywhere in the body; an unfit message."""
        if not {"x-api-key", "authorization"} & set(request.headers):
            return Fail(401, "x-api-key header is required")
        if "anthropic-version" not in request.headers:
            return Fail(400, "anthropic-version: header is required")
        for field in ("model", "messages", "max_tokens"):
            if not request.body.get(field):
                return Fail(400, f"{field}: Field required")
        written = json.dumps(request.body)
        for field in self.rejects:
            if f'"{field}":' in written:
                return Fail(400, f"{field}: Extra inputs are not permitted")
        if written.count('"cache_control":') > MOST_MARKS:
            return Fail(400, f"A maximum of {MOST_MARKS} blocks with cache_control may be provided.")
        return _unfit(request.body)

    def models(self) -> dict[str, Any]:
        """The one model."""
        model = {"id": self.model, "type": "model", "display_name": self.model}
        dated = {**model, "created_at": "2023-11-14T22:13:20Z"}
        return {"data": [dated], "has_more": False, "first_id": self.model, "last_id": self.model}

    def whole(self, answer: Say, asked: Mapping[str, Any]) -> dict[str, Any]:
        """One ``message``."""
        tool = _forced(asked)
        block = _block(tool) | ({"input": json.loads(answer.text)} if tool else {"text": answer.text})
        said = [block] if _speaks(answer) else []
        used = [_use(call) | {"input": json.loads(call.arguments)} for call in answer.calls]
        usage = _input_usage(answer) | {"output_tokens": answer.usage.output}
        return self._message(usage, said + used, _stop_reason(answer, asked))

    def opening(self, answer: Say, asked: Mapping[str, Any]) -> Iterator[bytes]:
        """The message without content, a sign of life, and the beginning of its first block."""
        yield sse(
            "message_start", message=self._message(_input_usage(answer) | {"output_tokens": 1}, [], None)
        )
        yield sse("ping")
        if _speaks(answer):
            yield sse("content_block_start", index=0, content_block=_block(_forced(asked)))

    def piece(self, text: str, number: int, asked: Mapping[str, Any]) -> bytes:
        """A delta of the block: text, or a part of a tool's input."""
        delta = {"type": "text_delta", "text": text}
        if _forced(asked):
            delta = {"type": "input_json_delta", "partial_json": text}
        return sse("content_block_delta", index=0, delta=delta)

    def closing(self, answer: Say, asked: Mapping[str, Any]) -> Iterator[bytes]:
        """The block's end, the calls, the stop reason with what was written, and the message's end."""
        if _speaks(answer):
            yield sse("content_block_stop", index=0)
        for index, call in enumerate(answer.calls, start=int(_speaks(answer))):
            yield sse("content_block_start", index=index, content_block=_use(call))
            for part in halves(call.arguments):
                delta = {"type": "input_json_delta", "partial_json": part}
                yield sse("content_block_delta", index=index, delta=delta)
            yield sse("content_block_stop", index=index)
        ending = {"stop_reason": _stop_reason(answer, asked), "stop_sequence": None}
        yield sse("message_delta", delta=ending, usage={"output_tokens": answer.usage.output})
        yield sse("message_stop")

    def envelope(self, failure: Fail) -> dict[str, Any]:
        """``{"type": "error", "error": {...}}``."""
        kind = failure.code or _ERROR_TYPES.get(failure.status, "api_error")
        return {
            "type": "error",
            "error": {"type": kind, "message": failure.message},
            "request_id": "req_fake",
        }

    def _message(self, usage: Mapping[str, int], content: list[Any], stopped: str | None) -> dict[str, Any]:
        return {
            "id": "msg_fake",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": stopped,
            "stop_sequence": None,
            "usage": usage,
        }


def _unfit(body: Mapping[str, Any]) -> Fail | None:
    for number, message in enumerate(body["messages"]):
        if message.get("role") not in ("user", "assistant"):
            return Fail(400, f"messages.{number}.role: Input should be 'user' or 'assistant'")
        content = message.get("content")
        texts = (
            [content] if isinstance(content, str) else [block.get("text", "x") for block in content or [{}]]
        )
        if not all(text.strip() for text in texts):
            return Fail(400, "messages: text content blocks must contain non-whitespace text")
        used = [block["id"] for block in _blocks(message, "tool_use")]
        behind = _blocks(next(iter(body["messages"][number + 1 :]), {}), "tool_result")
        lacking = unanswered(used, [block.get("tool_use_id") for block in behind])
        if lacking is not None:
            told = "`tool_use` ids were found without `tool_result` blocks immediately after"
            return Fail(400, f"messages.{number}: {told}: {lacking}")
    return None


def _blocks(message: Mapping[str, Any], kind: str) -> list[Any]:
    content = message.get("content")
    return [block for block in content if block.get("type") == kind] if isinstance(content, list) else []


def _speaks(answer: Say) -> bool:
    """Whether the answer has a block of its own besides the calls."""
    return bool(answer.text) or not answer.calls


def _use(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}


def _forced(asked: Mapping[str, Any]) -> str | None:
    """The tool that the call insists on."""
    choice = asked.get("tool_choice") or {}
    return choice.get("name") if choice.get("type") == "tool" else None


def _block(tool: str | None) -> dict[str, Any]:
    if tool is None:
        return {"type": "text", "text": ""}
    return {"type": "tool_use", "id": "toolu_fake", "name": tool, "input": {}}


def _stop_reason(answer: Say, asked: Mapping[str, Any]) -> str:
    if (_forced(asked) or answer.calls) and answer.finish == "stop":
        return "tool_use"
    return _STOP_REASONS.get(answer.finish, answer.finish)


def _input_usage(answer: Say) -> dict[str, int]:
    """The format's three counters, which add up to what the model read."""
    fresh = answer.usage.input - answer.usage.cached - answer.cache_written
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": answer.cache_written,
        "cache_read_input_tokens": answer.usage.cached,
    }
