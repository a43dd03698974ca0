"""Cadenza runs agent workflows that software keeps in order.

The model proposes, software decides; every wait is a park; every fact is in one append-only journal.
Names are imported when they are first used, so that ``import cadenza`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cadenza.engine import Engine as Engine
    from cadenza.engine import Run as Run
    from cadenza.engine import RunResult as RunResult
    from cadenza.errors import CadenzaError as CadenzaError
    from cadenza.journal import open_journal as open_journal
    from cadenza.piece.find import load_piece as load_piece
    from cadenza.service import Options as Options
    from cadenza.service import Service as Service
    from cadenza.settings import Settings as Settings

__version__ = "0.1.0"

_HOMES = {
    "Engine": "cadenza.engine",
    "Run": "cadenza.engine",
    "RunResult": "cadenza.engine",
    "CadenzaError": "cadenza.errors",
    "open_journal": "cadenza.journal",
    "load_piece": "cadenza.piece.find",
    "Options": "cadenza.service",
    "Service": "cadenza.service",
    "Settings": "cadenza.settings",
}

__all__ = [
    "CadenzaError",
    "Engine",
    "Options",
    "Run",
    "RunResult",
    "Service",
    "Settings",
    "__version__",
    "load_piece",
    "open_journal",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'cadenza' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
