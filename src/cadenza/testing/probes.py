"""A movement kind with one effect that must not be repeated, to see what a crash makes of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType

from cadenza.core.demands import CallTool, Effect
from cadenza.core.movements import KINDS, MovementKind
from cadenza.core.outcomes import AnyOutcome, Failed, Returned
from cadenza.core.performance import Need, Performance
from cadenza.core.signals import Signal
from cadenza.core.visit import Visit
from cadenza.piece.model import LoadedPiece, Piece

WRITE_PROBE = "write_probe"
"""The kind's name, and its tool's."""


def perform_write_probe(visit: Visit) -> Performance[Signal]:
    """Call the tool ``write_probe``, of effect class ``write``; then follow the first rule when it came
    back, and the last rule when it failed or its outcome is unknown. The output says which."""
    arguments = {"movement": visit.movement.name, "visit": visit.started.visit}
    outcome: AnyOutcome = yield Need("write", CallTool(name=WRITE_PROBE, arguments=arguments, effect="write"))
    returned = isinstance(outcome, Returned)
    words = f"wrote {outcome.value}" if isinstance(outcome, Returned) else _lost(outcome)
    number = 0 if returned else len(visit.movement.rules) - 1
    rule = visit.movement.rules[number]
    return Signal(
        kind="rule",
        next=rule.next,
        rule=number,
        label=rule.condition,
        method="tag",
        output=visit.put(words),
    )


def _lost(outcome: AnyOutcome) -> str:
    words = getattr(outcome, "message", "")
    return (
        f"failed: {words}" if isinstance(outcome, Failed) else f"whether it was written is unknown: {words}"
    )


PROBE_KINDS: Mapping[str, MovementKind] = MappingProxyType(
    {**KINDS, WRITE_PROBE: MovementKind(perform_write_probe)}
)
"""The package's movement kinds and ``write_probe``; pass it as ``kinds``."""


class WriteProbe:
    """The tool: appends a line to a file. Two lines with one id would be a write that was repeated.

    Args:
        path: the file; it is made when it is not there.
    """

    effect: Effect = "write"

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    async def __call__(self, call: CallTool, *, demand: str, run: str) -> AnyOutcome:
        """Append the demand's id; returns ``{"line": …}``."""
        line = f"{demand} {call.arguments['movement']} {call.arguments['visit']}"
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        return Returned({"line": line})


def with_probes(loaded: LoadedPiece, movements: Collection[str]) -> LoadedPiece:
    """The piece with the named movements performed as ``write_probe``, whatever they were."""
    piece = loaded.piece.model_dump()
    for movement in piece["movements"]:
        if movement["name"] in movements:
            movement["kind"] = WRITE_PROBE
    return loaded.model_copy(update={"piece": Piece.model_validate(piece)})
