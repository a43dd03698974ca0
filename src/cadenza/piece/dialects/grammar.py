"""What differs between the file formats that are read by the same machinery: their keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cadenza.piece.vocabulary import Dialect, FacetKind

Keys = Mapping[str, str]
"""Known keys, each with a line that says what it is for."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The keys of one format. ``*_names`` list spellings of one thing, the preferred one first.

    ``strict``: an unknown key or a facet that leads nowhere is an error, not a warning.
    ``refused`` maps keys to what to do instead.
    """

    dialect: Dialect
    strict: bool
    piece: Keys
    movement: Keys
    lane: Keys
    rule: Keys
    report: Keys
    monitor: Keys
    judge: Keys
    team_leader: Keys
    arpeggio: Keys
    merge: Keys
    gate: Keys
    provider: Keys
    sections: Mapping[str, FacetKind]
    sections_under: str | None = None
    config: Keys = field(default_factory=dict)
    config_names: tuple[str, ...] = ()
    movements_names: tuple[str, ...] = ("movements",)
    initial_names: tuple[str, ...] = ("initial_movement",)
    limit_names: tuple[str, ...] = ("max_movements",)
    instruction_names: tuple[str, ...] = ("instruction",)
    refused: Keys = field(default_factory=dict)
