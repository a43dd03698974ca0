"""What every model provider is given, and what it gives back.

A provider turns one :class:`ModelRequest` into one :class:`ModelReply`. It keeps no state between
calls, never retries by itself (the journaled retry policy of the core does), and says what went
wrong with a :class:`~cadenza.errors.ProviderError` whose ``code`` the retry policy understands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from cadenza.core.outcomes import Usage

Role = Literal["system", "user", "assistant", "tool"]
CallKey = tuple[str, str, str]
"""(movement, persona, purpose): what a scripted provider may tell calls apart by."""


class ToolCall(msgspec.Struct, frozen=True):
    """A call that a model made. ``arguments`` is the JSON text as the model wrote it, valid or not; ``id``
    is the server's (empty where it gave none) until the engine has stored it, then unique in its message."""

    id: str
    name: str
    arguments: str


class ChatMessage(msgspec.Struct, frozen=True):
    """One message of a conversation, as stored. ``calls`` stand in an assistant's message only; ``call`` is
    the id of the call whose result a ``tool`` message is."""

    role: Role
    content: str
    calls: tuple[ToolCall, ...] = ()
    call: str | None = None


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a model.

    ``schema`` is a JSON Schema that the answer must follow (the provider constrains the answer where
    the server can). ``earlier`` counts the calls that this run issued before this one, by
    :data:`CallKey`; with it a scripted provider is a pure function and needs no cursor.
    ``attempt`` is 1 for the first try of this demand. ``tools`` are ``{name, description, parameters}`` in
    the order in which they must be sent; the model may call any number of them.
    """

    messages: tuple[ChatMessage, ...]
    demand: str
    movement: str
    persona: str = "default"
    purpose: str = "perform"
    model: str | None = None
    schema: Mapping[str, Any] | None = None
    schema_name: str = "answer"
    max_tokens: int | None = None
    attempt: int = 1
    earlier: Mapping[CallKey, int] = {}
    tools: tuple[Mapping[str, Any], ...] = ()


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. ``finish`` is ``stop``, ``length`` or the server's own word.

    ``status`` is ``done`` but where a script says that the agent was ``blocked`` or failed (``error``).
    ``calls`` are the tool calls in the model's order.
    """

    text: str
    usage: Usage = Usage()
    model: str | None = None
    finish: str = "stop"
    status: Literal["done", "blocked", "error"] = "done"
    structured: Any = None
    calls: tuple[ToolCall, ...] = ()


OnText = Callable[[str], None]
"""Called with each piece of streamed text as it arrives."""


@runtime_checkable
class ModelProvider(Protocol):
    """A model behind some door. ``name`` is what a person writes after ``--provider``."""

    name: str

    async def complete(self, request: ModelRequest, on_text: OnText) -> ModelReply:
        """Answer one request, streaming its text to ``on_text``.

        Raises:
            ProviderError: the call failed; ``retriable`` says whether another try may help.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
