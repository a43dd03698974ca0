"""A model that answers from a script: for tests, demonstrations and pieces tried out without cost.

Which entry answers a call is a pure function of the script and of the calls counted in
``request.earlier``: see :mod:`cadenza.providers.models.script` for the rule, and
:mod:`cadenza.providers.models.script_file` for the two file formats.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from cadenza.core.outcomes import Usage
from cadenza.errors import ProviderError
from cadenza.providers.base import CallKey, ModelReply, ModelRequest, OnText, ToolCall
from cadenza.providers.models.script import Entry, Failure, Script
from cadenza.providers.models.script_file import load_script

__all__ = ["Script", "ScriptedProvider", "estimate_usage", "load_script"]


class ScriptedProvider:
    """Answers from ``script``. Holds no cursor and no connection; safe for any number of runs at once.

    An answer whose entry gives no usage is counted by :func:`estimate_usage`.
    """

    name = "scripted"

    def __init__(self, script: Script) -> None:
        self.script = script

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """The script's answer to this call.

        Raises:
            ProviderError: the entry says so; or ``code="script"``, not retriable: the script ran dry.
        """
        key = (request.movement, request.persona, request.purpose)
        entry = self.script.pick(key, request.earlier)
        if entry is None:
            entry = self._when_dry(key, request)
        await _wait(entry)
        if entry.failure and request.attempt <= entry.failure.times:
            raise _raised(entry.failure)
        text = _text(entry, request)
        await _stream(entry, text, on_text)
        return ModelReply(
            text=text,
            usage=entry.usage or estimate_usage(request, text, entry.calls),
            model=request.model,
            calls=entry.calls,
            status=entry.status,
            structured=entry.structured,
        )

    async def close(self) -> None:
        """Nothing is held."""

    def _when_dry(self, key: CallKey, request: ModelRequest) -> Entry:
        if self.script.dialect == "takt":
            return Entry(text=_takt_default(self.script.known_as(key)[1], request))
        raise _dry(self.script, key, request.earlier.get(key, 0))


def estimate_usage(request: ModelRequest, text: str, calls: Sequence[ToolCall] = ()) -> Usage:
    """Tokens at four characters each, rounded up, per message: made up, but the same every time. Tools and
    tool calls count by their JSON."""
    tools = sum(_tokens(compact_json(tool)) for tool in request.tools)
    said = sum(_tokens(m.content) + _called(m.calls) for m in request.messages)
    return Usage(input=tools + said, output=_tokens(text) + _called(calls))


def _called(calls: Sequence[ToolCall]) -> int:
    return sum(_tokens(call.name + call.arguments) for call in calls)


def _tokens(text: str) -> int:
    return (len(text) + 3) // 4


async def _wait(entry: Entry) -> None:
    if entry.hangs:
        await asyncio.Event().wait()
    if entry.delay:
        await asyncio.sleep(entry.delay)


async def _stream(entry: Entry, text: str, on_text: OnText) -> None:
    for chunk in entry.chunks:
        if chunk.delay:
            await asyncio.sleep(chunk.delay)
        on_text(chunk.text)
    if text and not entry.chunks:
        on_text(text)


def _text(entry: Entry, request: ModelRequest) -> str:
    """A call that asks for JSON gets a scenario's structured output, where it has one, as its text."""
    if request.schema is not None and entry.structured is not None:
        return compact_json(entry.structured)
    return entry.text


def compact_json(value: Any) -> str:
    """JSON on one line, without spaces, letters of every script as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _raised(failure: Failure) -> ProviderError:
    return ProviderError(
        failure.message,
        code=failure.code,
        retriable=failure.retriable,
        retry_after=failure.retry_after,
        status=failure.status,
    )


def _takt_default(persona: str, request: ModelRequest) -> str:
    prompt = next((m.content for m in reversed(request.messages) if m.role == "user"), "")
    return f'[MOCK:DONE]\n\nMock response for persona "{persona}".\nPrompt: {prompt[:100]}...'


def _dry(script: Script, key: CallKey, made: int) -> ProviderError:
    movement, persona, purpose = key
    call = f'movement "{movement}", persona "{persona}", purpose "{purpose}"'
    matching = script.candidates(key)
    if not matching:
        message = f"{script.name}: no entry of this script matches a call of {call}"
        hint = f"add an entry with `movement: {movement}` and `purpose: {purpose}`, or one that names neither"
    else:
        message = f"{script.name}: the script ran dry at a call of {call}; {_calls(made)} made before it"
        lines = ", ".join(entry.where for entry in matching)
        hint = (
            f"add an entry for it, or raise `times` (or write `times: forever`) in one that matches: {lines}"
        )
    return ProviderError(message, code="script", retriable=False, hint=hint)


def _calls(made: int) -> str:
    return "no such call was" if made == 0 else "1 such call was" if made == 1 else f"{made} such calls were"
