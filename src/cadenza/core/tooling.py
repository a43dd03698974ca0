"""Tools as data: what a model is shown, what a call does, and how a tool can end or park a movement.

A run pins its tools when it begins (:class:`Toolbox`, stored by hash): the same names, descriptions and
schemas in the same order for ever, so that the beginning of every prompt stays what it was (Maestro, KV
cache laws). Executors are found by name where a demand is met; a tool whose executor is gone stays listed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

import msgspec

from cadenza.core.demands import Effect
from cadenza.piece.vocabulary import COMPLETE

Permission = Literal["readonly", "edit", "full"]
PERMISSIONS: tuple[Permission, ...] = ("readonly", "edit", "full")

JsonSchema = dict[str, Any]


class Park(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a call of a park tool waits for.

    ``sentinel`` names the row of the catalogue, ``status`` is how the run shows meanwhile: ``waiting_human``
    opens a request; any other ``waiting_…`` status has the tool's executor asked again every ``every``
    seconds until it says something. ``question`` is the card's text (``{name}`` stands for an argument),
    ``schema`` what an answer must fit. ``decides`` is what follows a yes: ``text`` tells the model the
    answer, ``run`` runs the tool's executor, ``grant``, ``install`` and ``spawn`` are the engine's own.
    ``needed`` is false for a work tool that parks only where its executor asks for it. ``deadline`` and
    ``remind`` are in seconds, None for never.
    """

    sentinel: str
    status: str = "waiting_human"
    reason: str = ""
    question: str = ""
    schema: JsonSchema | None = None
    decides: Literal["text", "run", "grant", "install", "spawn"] = "text"
    needed: bool = True
    every: float = 5.0
    deadline: float | None = None
    on_deadline: Literal["resume", "abort"] = "resume"
    remind: float | None = None


class Ends(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a call of a terminal tool does to its run; ``result`` names the argument whose text is the run's
    outcome."""

    sentinel: str = COMPLETE
    status: Literal["completed", "aborted", "error"] = "completed"
    reason: str = ""
    result: str = "result"


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tool. ``description`` is static: no time, counter or name of a movement stands in it.

    ``parameters`` is a JSON Schema whose root is an object. ``permission`` is the least mode in which it may
    be used. ``kind``: ``work`` tools are run by an executor, ``control`` tools by the engine, ``park`` and
    ``terminal`` ones as ``park`` and ``ends`` say. ``origin`` is ``cadenza``, ``mcp:SERVER`` or the package
    that brings it.
    """

    name: str
    description: str
    parameters: JsonSchema
    effect: Effect = "write"
    permission: Permission = "readonly"
    kind: Literal["work", "control", "park", "terminal"] = "work"
    park: Park | None = None
    ends: Ends | None = None
    origin: str = "cadenza"

    def shown(self) -> dict[str, Any]:
        """What a model is shown."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}


class Toolbox(msgspec.Struct, frozen=True, dict=True):
    """The tools of a run, in their one order. ``offered`` are in the tools array; ``granted`` ones can be
    approved during the run and are called through ``use_tool``."""

    offered: tuple[ToolSpec, ...] = ()
    granted: tuple[ToolSpec, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, ToolSpec]:
        """All tools by name."""
        return {spec.name: spec for spec in (*self.offered, *self.granted)}

    @cached_property
    def array(self) -> str:
        """The tools array as canonical JSON: what every request of the run carries, byte for byte."""
        shown = [spec.shown() for spec in self.offered]
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def write_toolbox(toolbox: Toolbox) -> str:
    """A toolbox as JSON, to be stored by hash."""
    return msgspec.json.encode(toolbox).decode("utf-8")


def read_toolbox(text: str) -> Toolbox:
    """A toolbox from its JSON."""
    return msgspec.json.decode(text, type=Toolbox)


class Rights(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a movement may do: copied into each tool call, so that the journal alone says what was allowed.

    ``commands`` are the programs that ``run_command`` may start (None: any, in mode ``full`` only);
    ``network`` lets commands reach the network and ``fetch_url`` work. ``seconds`` and ``bytes`` limit one
    call's time and the output that is kept.
    """

    permission: Permission = "readonly"
    commands: tuple[str, ...] | None = ()
    network: bool = False
    seconds: float = 120.0
    bytes: int = 64 * 1024


def allows(have: Permission, need: Permission) -> bool:
    """Whether mode ``have`` is enough for ``need``."""
    return PERMISSIONS.index(have) >= PERMISSIONS.index(need)
