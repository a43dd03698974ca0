"""A scenario: a piece, what the model answers, and what other people do meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from cadenza.core.events import CancelRequested, ResumeRequested, RetryRequested
from cadenza.core.movements import MovementKind
from cadenza.core.retrying import RetryPolicy
from cadenza.core.state import RunState
from cadenza.piece.model import LoadedPiece
from cadenza.piece.vocabulary import Language
from cadenza.providers.models.script import Script
from cadenza.testing.probes import PROBE_KINDS, WRITE_PROBE, WriteProbe
from cadenza.tools.base import Tool
from cadenza.worker.meeting import ToolExecutor


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """Something that somebody else does, once, when the run has come to sequence ``at`` (or later, as
    soon as it can be done).

    ``moment``: ``turn`` (between two demands), ``started`` (between a demand's ``started`` and its effect)
    or ``commit`` (after a step was decided and before it is committed, so that the commit is refused).
    """

    at: int = 0
    moment: Literal["turn", "started", "commit"] = "turn"

    def fits(self, state: RunState) -> bool:
        """Whether it can be done now."""
        return state.ended is None


class Answer(Input, frozen=True, kw_only=True):
    """Answer the oldest open request."""

    value: Any = "go on"

    def fits(self, state: RunState) -> bool:
        return any(not request.decided for request in state.requests.values())


class Cancel(Input, frozen=True, kw_only=True):
    """Ask for the run to be cancelled."""

    reason: str = ""

    @property
    def event(self) -> CancelRequested:
        """What is appended."""
        return CancelRequested(reason=self.reason)


class Resume(Input, frozen=True, kw_only=True):
    """Resume a run that is held."""

    restart_visit: bool = False

    def fits(self, state: RunState) -> bool:
        return state.held is not None

    @property
    def event(self) -> ResumeRequested:
        """What is appended."""
        return ResumeRequested(restart_visit=self.restart_visit)


class Retry(Input, frozen=True, kw_only=True):
    """Reopen a run that has ended, at ``movement`` or where it ended."""

    movement: str | None = None

    def fits(self, state: RunState) -> bool:
        return state.ended is not None

    @property
    def event(self) -> RetryRequested:
        """What is appended."""
        return RetryRequested(movement=self.movement)


class Interrupt(Input, frozen=True, kw_only=True):
    """The worker is told to save and stop: the run is held with reason ``interrupted``."""

    def fits(self, state: RunState) -> bool:
        return state.ended is None and state.held is None and bool(state.met_by_worker)


class Children(Input, frozen=True, kw_only=True):
    """Another worker plays the run's children now, as far as they go."""

    def fits(self, state: RunState) -> bool:
        return any(child.ended is None for child in state.children.values())


AnyInput = Answer | Cancel | Resume | Retry | Interrupt | Children

Tools = Callable[[Path], Mapping[str, ToolExecutor]]
"""The tools of a scenario, for the folder that it is played in."""


def probe_tools(folder: Path) -> Mapping[str, ToolExecutor]:
    """The tool ``write_probe``, which appends to the file ``writes`` in ``folder``."""
    return {WRITE_PROBE: WriteProbe(folder / "writes")}


AgentTools = Callable[[Path], Mapping[str, Tool]]
"""The tools that a scenario's agents have besides the package's, for the folder that it is played in."""


def no_tools(folder: Path) -> Mapping[str, Tool]:
    """None."""
    return {}


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides how a run goes: played twice, it gives the same canonical journal.

    ``name`` decides the run's seed, and so all its ids. ``tools`` makes the executors of the engine's own
    tool calls, ``agent_tools`` the tools of agents.
    ``files`` are there in the working directory when the run begins: texts by path.
    """

    name: str
    piece: LoadedPiece
    script: Script
    task: str = "Do the thing."
    inputs: tuple[AnyInput, ...] = ()
    kinds: Mapping[str, MovementKind] = PROBE_KINDS
    tools: Tools = probe_tools
    agent_tools: AgentTools = no_tools
    files: Mapping[str, str] = {}
    language: Language = "en"
    retry: RetryPolicy | None = None

    @property
    def run(self) -> str:
        """The id of its run."""
        return f"r{self.name}"

    def but(self, *inputs: AnyInput) -> Scenario:
        """The same scenario with ``inputs`` instead of its own."""
        return msgspec.structs.replace(self, inputs=inputs)
