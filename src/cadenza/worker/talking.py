"""A conversation as the journal keeps it, and as a provider is given it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from cadenza.core.demands import CALLS, CallModel, Message
from cadenza.core.state import OpenDemand, RunState
from cadenza.ids import Hash
from cadenza.journal.store import Journal
from cadenza.providers.base import ChatMessage, Role, ToolCall
from cadenza.worker.agent_tools import storable

SILENT = "(no answer)"
"""What stands for an assistant's message that says nothing: servers take no empty one."""

LOST = "(the result of this call was lost)"
"""What stands for the result of a call that has none."""


def earlier_messages(
    journal: Journal, run: str, state: RunState, opened: OpenDemand, demand: CallModel
) -> list[Message]:
    """The messages of a call's conversation before its own."""
    if demand.forks is not None:
        return journal.messages(demand.forks, run=run, origins=state.origins)[: demand.upto]
    if not demand.continues:
        return []
    return journal.messages(demand.conversation, before_demand=opened.id, run=run, origins=state.origins)


def chat(messages: Iterable[Message], texts: Mapping[Hash, str]) -> tuple[ChatMessage, ...]:
    """Messages as a provider takes them: calls joined to their text, no result missing, nothing empty."""
    return tuple(_answered(list(_joined(messages, texts))))


def _joined(messages: Iterable[Message], texts: Mapping[Hash, str]) -> Iterator[ChatMessage]:
    waiting: ChatMessage | None = None
    for message in messages:
        text = texts[message.text]
        if message.role == CALLS:
            calls = tuple(msgspec.json.decode(text, type=list[ToolCall]))
            said = waiting.content if waiting is not None else ""
            yield ChatMessage("assistant", said, calls=calls)
            waiting = None
            continue
        if waiting is not None:
            yield _spoken(waiting)
            waiting = None
        role, _, call = message.role.partition(":")
        if role == "assistant":
            waiting = ChatMessage("assistant", text)
        else:
            yield ChatMessage(_role(role), text, call=call or None)
    if waiting is not None:
        yield _spoken(waiting)


def _role(role: str) -> Role:
    known: Role = msgspec.convert(role, Role)
    return known


def _spoken(message: ChatMessage) -> ChatMessage:
    return message if message.content.strip() else ChatMessage("assistant", SILENT)


def _answered(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    """Every call has a result right behind it, as servers demand."""
    owed: dict[str, None] = {}
    for message in messages:
        if message.role == "tool":
            owed.pop(message.call or "", None)
        else:
            yield from (ChatMessage("tool", LOST, call=call) for call in owed)
            owed = {}
        yield message
        owed.update((call.id, None) for call in message.calls)


def stored_calls(calls: Sequence[ToolCall], demand: str) -> str:
    """Calls as a JSON list. Each has an id of its own: the server's where it gave one that is."""
    kept, used = [], set[str]()
    for number, call in enumerate(calls):
        id = storable(call.id)
        if not id or id in used or len(id) > LONGEST_ID or not id.isprintable():
            id = f"call_{demand[1:13]}_{number}"
        used.add(id)
        kept.append(ToolCall(id, storable(call.name), storable(call.arguments)))
    return msgspec.json.encode(kept).decode("utf-8")


LONGEST_ID = 200
