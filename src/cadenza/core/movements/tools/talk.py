"""An agent's conversation during one visit: what was said is never changed, what is new is appended."""

from __future__ import annotations

from typing import Any

import msgspec

from cadenza.core.demands import CallModel, Message
from cadenza.core.outcomes import Replied
from cadenza.core.performance import Need
from cadenza.core.visit import Visit
from cadenza.ids import Hash

SESSION = "tools"
"""The session in which a run's movements go on one after another."""

HANDOVER_TOKENS = 1024


class Call(msgspec.Struct, frozen=True):
    """A tool call as the model made it: ``arguments`` is its text, unread."""

    id: str
    name: str
    arguments: str


class Talk:
    """One conversation. Messages that are owed go out with the next call.

    A lane's begins with what was said before its visit, and is its own from there on; so does that of a
    visit which is played again from its head.
    """

    def __init__(self, visit: Visit, tools: Hash | None) -> None:
        self._visit = visit
        self._tools = tools
        self._owed: list[Message] = []
        self._id: str | None = None
        self._forks: str | None = None
        self._upto = 0
        self._begun = False
        self.replied: Hash | None = None

    @property
    def is_new(self) -> bool:
        """Whether nothing has been said before."""
        return self._id is None and self._forks is None

    @property
    def session(self) -> str | None:
        """The session that the conversation belongs to; a lane's belongs to none."""
        return None if self._visit.lane else SESSION

    def resume(self) -> None:
        """Go on with what the run's movements have said to each other, where there is anything."""
        before = self._visit.sessions.get(SESSION)
        if before is None:
            return
        if self._visit.lane or self._visit.started.attempt > 1:
            self._forks, self._upto = before, self._visit.lengths[before]
        else:
            self._id, self._begun = before, True
        self._owed = list(self._visit.carry)

    def restart(self) -> None:
        """Say the next thing in a conversation of its own."""
        self._id = self._forks = None
        self._upto, self._begun = 0, False
        self._owed = []

    def say(self, text: str, role: str = "user") -> None:
        """Tell the agent something."""
        self._owed.append(Message(role, self._visit.put(text)))

    def result(self, call: Call, text: str) -> None:
        """Tell the agent what came of a call."""
        self.say(text, f"tool:{call.id}")

    def said(self, text: Hash, call: Call) -> None:
        """As :meth:`result`, for a text that is kept already."""
        self._owed.append(Message(f"tool:{call.id}", text))

    def ask(self, key: str, *, purpose: str = "perform", max_tokens: int | None = None) -> Need:
        """The model call that sends what is owed."""
        visit = self._visit
        if self._id is None:
            self._id = visit.conversation(key)
        demand = CallModel(
            conversation=self._id,
            append=tuple(self._owed),
            movement=visit.movement.name,
            persona=visit.movement.performer,
            purpose=purpose,
            provider=visit.provider,
            model=visit.model,
            session=self.session,
            continues=self._begun,
            tools=self._tools,
            forks=self._forks,
            upto=self._upto,
            max_tokens=max_tokens,
        )
        self._owed, self._begun = [], True
        self._forks, self._upto = None, 0
        return visit.need(key, demand)

    def heard(self, reply: Replied) -> list[Call]:
        """The tool calls of a reply."""
        self.replied = reply.text
        if reply.calls is None:
            return []
        found: list[dict[str, Any]] = msgspec.json.decode(self._visit.text(reply.calls))
        return [Call(item["id"], item["name"], item["arguments"]) for item in found]

    @property
    def owed(self) -> tuple[Message, ...]:
        """What the conversation still owes when the visit ends: its next call begins with it."""
        return tuple(self._owed)
