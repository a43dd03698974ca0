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

CALLS = "calls"
"""The role under which the tool calls of an assistant's message stand, right after its text."""


class Message(msgspec.Struct, frozen=True, array_like=True):
    """One message of a conversation: its role, and its text by hash.

    Roles are ``system``, ``user``, ``assistant``, :data:`CALLS` (a JSON list of ``{id, name, arguments}``,
    which belongs to the assistant's text before it) and ``tool:ID`` (the result of the call ``ID``).
    """

    role: str
    text: Hash


class Demand(msgspec.Struct, frozen=True, tag_field="do", omit_defaults=True):
    """Base of all demands."""


class CallModel(Demand, frozen=True, tag="model", kw_only=True, omit_defaults=True):
    """One model call: the conversation so far plus ``append``. The reply becomes its next message.

    A conversation is never written otherwise, so each request's messages are a prefix of the next one's.
    ``session`` names whose conversation it becomes: a later call of the same session goes on in it;
    ``continues``: there are messages before ``append``.
    ``timeout`` is in seconds; a call that takes longer has failed. ``tools`` is the tools array as canonical
    JSON, by hash. ``forks`` names the conversation that this one begins with: its first ``upto`` messages.
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
    tools: Hash | None = None
    forks: str | None = None
    upto: int = 0


class CallTool(Demand, frozen=True, tag="tool", kw_only=True, omit_defaults=True):
    """One tool call. ``effect`` is the tool's class, copied here so that the journal alone decides.

    Arguments stand here, or in the model's own message: ``calls`` is its list of calls by hash, ``index``
    the place in it. ``wrapped``: the call is ``use_tool``'s, whose ``arguments`` are the tool's.
    ``rights`` is what its movement may do. ``every`` makes it a wait: the executor is asked again after so
    many seconds, and the run shows ``status`` and ``reason`` until it says something. ``decision`` is the
    answer to the request that let the call happen.
    """

    name: str
    arguments: dict[str, Any] = {}
    effect: Effect = "write"
    calls: Hash | None = None
    index: int = 0
    wrapped: bool = False
    rights: dict[str, Any] = {}
    every: float = 0.0
    status: str | None = None
    reason: str = ""
    decision: Any = None


class Host(Demand, frozen=True, tag="host", kw_only=True, omit_defaults=True):
    """A small, repeatable operation on the run's folder or the workspace.

    ``op`` is one of the names in :data:`HOST_OPS`; ``args`` holds JSON, texts in it by hash.
    """

    op: str
    args: dict[str, Any] = {}


class AskPerson(Demand, frozen=True, tag="ask", kw_only=True, omit_defaults=True):
    """A question to a person. It opens a request; the run parks when nothing else is to be done.

    ``sentinel`` is the row of the catalogue that parks. ``schema`` is what an answer must fit (none: a text).
    ``key`` names the request in the run's ledger: one that was decided already answers at once, one that is
    open is not opened twice (Maestro B.8). ``screen`` is the screen that a person must solve, in
    ``generation``. ``deadline`` and ``remind`` are in seconds from now; ``on_deadline`` says what a request
    that nobody answered in time does to the run.
    """

    question: Hash
    reason: str = "user_input"
    schema: Hash | None = None
    sentinel: str = ""
    key: str | None = None
    screen: str | None = None
    generation: int = 0
    deadline: float | None = None
    on_deadline: Literal["resume", "abort"] = "resume"
    remind: float | None = None


class StartRun(Demand, frozen=True, tag="run", kw_only=True, omit_defaults=True):
    """Another run is to begin: a child (which the parent can wait for), or one that stands alone
    (``detached``). ``id`` is the new run's, so that asking twice begins it once; ``key`` makes it the same
    for the same thing asked for again.

    ``piece`` names what is played (None: this run's own piece); ``workspace`` where (None: here).
    """

    task: Hash
    id: str = ""
    key: str | None = None
    piece: str | None = None
    workspace: str | None = None
    detached: bool = False


class WaitForRuns(Demand, frozen=True, tag="children", kw_only=True, omit_defaults=True):
    """Nothing before every child of the run has ended."""


class WaitUntil(Demand, frozen=True, tag="wait", kw_only=True, omit_defaults=True):
    """Nothing before ``until`` (epoch seconds). A movement gives ``seconds``; the conductor adds the time."""

    seconds: float
    until: float = 0.0


AnyDemand = CallModel | CallTool | Host | AskPerson | StartRun | WaitForRuns | WaitUntil

HOST_OPS = ("open_folder", "prepare", "save_reports", "read_file", "write_file")
"""``open_folder`` makes the run's folder and returns ``{"path": …}``; ``prepare`` writes context snapshots
and reads reports; ``save_reports`` writes report files; ``read_file`` and ``write_file`` are for the
files that a piece itself names."""


def is_repeatable(demand: Demand) -> bool:
    """Whether meeting the demand twice does no harm."""
    return not (isinstance(demand, CallTool) and demand.effect == "write")


def waits_for(demand: Demand) -> str | None:
    """Whom an open demand waits for when no worker can meet it; None for one that a worker meets."""
    kind = type(demand)  # isinstance of a Struct is slow
    if kind is AskPerson:
        return "waiting_human"
    return "waiting_subtasks" if kind is WaitForRuns else None
