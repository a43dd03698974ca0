"""What a visit needs from outside, as data. Drivers meet demands; the core only issues them.

A demand refers to long texts by hash. It is stored when it is issued and sent from there, so what is
sent after a crash is what would have been sent before it.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from cadenza.ids import Hash

Effect = Literal["read", "idempotent", "write"]
"""What a repetition would do: ``read`` and ``idempotent`` demands are simply met again after a crash,
a ``write`` is preceded by a ``demand.started`` commit and becomes ``unknown`` instead."""

Role = Literal["system", "user", "assistant", "tool"]


class Message(msgspec.Struct, frozen=True, array_like=True):
    """One message of a conversation: its role, and its text by hash."""

    role: Role
    text: Hash


class Demand(msgspec.Struct, frozen=True, tag_field="do", omit_defaults=True):
    """Base of all demands."""


class CallModel(Demand, frozen=True, tag="model", kw_only=True, omit_defaults=True):
    """One model call: the conversation so far plus ``append``. The reply becomes its next message.

    A conversation is never written otherwise, so each request's messages are a prefix of the next one's.
    ``session`` names whose conversation it becomes: a later call of the same session goes on in it;
    ``continues``: there are messages before ``append``.
    ``timeout`` is in seconds; a call that takes longer has failed.
    """

    conversation: str
    append: tuple[Message, ...]
    movement: str
    persona: str = "default"
    purpose: str = "perform"
    provider: str | None = None
    model: str | None = None
    schema: Hash | None = None
    max_tokens: int | None = None
    session: str | None = None
    continues: bool = False
    timeout: float | None = None


class CallTool(Demand, frozen=True, tag="tool", kw_only=True, omit_defaults=True):
    """One tool call. ``effect`` is the tool's class, copied here so that the journal alone decides."""

    name: str
    arguments: dict[str, Any] = {}
    effect: Effect = "write"


class Host(Demand, frozen=True, tag="host", kw_only=True, omit_defaults=True):
    """A small, repeatable operation on the run's folder or the workspace.

    ``op`` is one of the names in :data:`HOST_OPS`; ``args`` holds JSON, texts in it by hash.
    """

    op: str
    args: dict[str, Any] = {}


class AskPerson(Demand, frozen=True, tag="ask", kw_only=True, omit_defaults=True):
    """A question to a person. It opens a request; the run parks when nothing else is to be done."""

    question: Hash
    reason: str = "user_input"
    schema: Hash | None = None


class WaitUntil(Demand, frozen=True, tag="wait", kw_only=True, omit_defaults=True):
    """Nothing before ``until`` (epoch seconds). A movement gives ``seconds``; the conductor adds the time."""

    seconds: float
    until: float = 0.0


AnyDemand = CallModel | CallTool | Host | AskPerson | WaitUntil

HOST_OPS = ("open_folder", "prepare", "save_reports", "read_file", "write_file")
"""``open_folder`` makes the run's folder and returns ``{"path": …}``; ``prepare`` writes context snapshots
and reads reports; ``save_reports`` writes report files; ``read_file`` and ``write_file`` are for the
files that a piece itself names."""


def is_repeatable(demand: Demand) -> bool:
    """Whether meeting the demand twice does no harm."""
    return not (isinstance(demand, CallTool) and demand.effect == "write")


def waits_for(demand: Demand) -> str | None:
    """Whom an open demand waits for when no worker can meet it; None for one that a worker meets."""
    return "waiting_human" if type(demand) is AskPerson else None  # isinstance of a Struct is slow
