"""Movement kinds: one generator per kind, one file per generator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import msgspec

from cadenza.core.movements.agent import perform_agent
from cadenza.core.movements.arpeggio import perform_arpeggio
from cadenza.core.movements.parallel import perform_parallel
from cadenza.core.movements.team_leader import perform_team_leader
from cadenza.core.outcomes import Returned
from cadenza.core.performance import Performance
from cadenza.core.signals import Signal
from cadenza.core.slug import slugify
from cadenza.core.visit import Visit


class MovementKind(msgspec.Struct, frozen=True):
    """How movements of one kind are performed.

    ``version`` grows whenever the keys that ``perform`` asks for, or their order, change: a visit that was
    begun by another version is not continued, but held with reason ``code_changed``.
    """

    perform: Callable[[Visit], Performance[Signal]]
    version: int = 1


KINDS: Mapping[str, MovementKind] = MappingProxyType(
    {
        "agent": MovementKind(perform_agent),
        "parallel": MovementKind(perform_parallel),
        "team_leader": MovementKind(perform_team_leader),
        "arpeggio": MovementKind(perform_arpeggio),
    }
)


def perform(visit: Visit, kind: MovementKind) -> Performance[Signal]:
    """A whole visit: the run's folder is made first, where the piece needs one and has none yet."""
    if visit.folder is None and needs_folder(visit):
        slug = slugify(visit.text(visit.run.task))
        args = {"slug": slug, "at": visit.started.at, "task": visit.run.task, "piece": visit.run.name}
        if visit.piece.dialect == "native":
            args["root"] = ".cadenza/runs"
        outcome = yield visit.host("folder", "open_folder", **args)
        assert isinstance(outcome, Returned)
        visit.folder = outcome.value["path"]
    return (yield from kind.perform(visit))


def needs_folder(visit: Visit) -> bool:
    """TAKT pieces always have a run folder; our own only where a movement owes a report."""
    movements = [m for top in visit.piece.movements for m in (top, *top.lanes)]
    return visit.piece.dialect == "takt" or any(m.reports for m in movements)
