"""How a visit ends, and the one catalogue of what each ending means.

A movement returns a :class:`Signal`. A rule's ``next`` names a movement or one of the sentinels below;
the table says what a sentinel does to the run (Maestro, sentinel catalogue; TAKT, rules).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from cadenza.core.demands import Message
from cadenza.ids import Hash
from cadenza.piece import vocabulary as words

EndStatus = Literal["completed", "aborted", "cancelled", "error"]
WaitStatus = str
"""``waiting_human``, ``waiting_subtasks``, ``waiting_agent``, ``waiting_until``, or one that a park tool of
another package brings: it begins with ``waiting_``."""

Status = str
"""``queued``, ``running``, ``held``, an :data:`EndStatus` or a :data:`WaitStatus`."""


class Sentinel(msgspec.Struct, frozen=True):
    """One row: the status, where a parked run goes on (``current`` or ``default_next``; None ends the
    run), and the reasons that may stand beside the status."""

    status: str
    resume: Literal["current", "default_next"] | None = None
    reasons: tuple[str, ...] = ()

    @property
    def parks(self) -> bool:
        """A park can be resumed, an end cannot."""
        return self.resume is not None


CATALOGUE: Mapping[str, Sentinel] = MappingProxyType(
    {
        words.COMPLETE: Sentinel("completed"),
        words.ABORT: Sentinel("aborted"),
        words.ASK: Sentinel("waiting_human", "current"),
        words.WAIT_SUBTASKS: Sentinel("waiting_subtasks", "default_next"),
        words.WAITING_HUMAN_BROWSER: Sentinel("waiting_human", "current", ("browser_login", "captcha")),
        words.WAITING_HUMAN_TOOL_REQUEST: Sentinel("waiting_human", "current", ("tool_request",)),
        words.WAITING_HUMAN_SPAWN_REQUEST: Sentinel("waiting_human", "current", ("spawn_request",)),
    }
)

ENDED: frozenset[str] = frozenset({"completed", "aborted", "cancelled", "error"})


class LaneResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one lane of a visit came to: its label, how that was found, or why it failed;
    ``answers`` are what people told it."""

    name: str
    label: str | None = None
    method: str | None = None
    output: Hash | None = None
    error: str | None = None
    answers: tuple[Hash, ...] = ()


class Judged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A loop monitor's judge took part: ``label`` is the rule it chose, None when it chose none.

    A judge costs one iteration and clears the history of movements, whatever it said."""

    name: str
    count: int
    label: str | None = None


class Signal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of a visit.

    ``kind``: ``rule`` (a rule matched: ``next`` says where to), ``again`` (a person answered, or a gate
    was not passed: the same movement is visited anew with ``answer``), ``no_match``, ``failed``
    (``code`` and ``message``), ``broken`` (the movement kind itself raised).
    With ``control: tools`` also ``moved`` (the movement ``next`` comes, by ``method``: ``tool``,
    ``children``, ``context``; ``note`` is told to it) and ``sentinel`` (``next`` is a row of the catalogue,
    None where a tool left the movement unsettled; ``status`` and ``code`` are the end's).
    ``carry`` are messages that the conversation still owes: its next call begins with them. ``fresh``: the
    next movement begins a conversation of its own.
    ``method`` says how the rule was found: ``tag``, ``judge``, ``aggregate``, ``monitor``, ``gate``,
    ``tool``, or a stage of ``phases: three``.
    """

    kind: Literal["rule", "again", "no_match", "failed", "broken", "moved", "sentinel"]
    next: str | None = None
    rule: int | None = None
    label: str | None = None
    method: str | None = None
    output: Hash | None = None
    answer: Hash | None = None
    tried: tuple[str, ...] = ()
    code: str | None = None
    message: str | None = None
    lanes: tuple[LaneResult, ...] = ()
    judged: Judged | None = None
    note: Hash | None = None
    status: str | None = None
    carry: tuple[Message, ...] = ()
    fresh: bool = False
