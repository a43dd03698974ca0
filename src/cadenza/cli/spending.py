"""Budgets as people write and read them."""

from __future__ import annotations

from collections.abc import Sequence

from cadenza.core.spending import Spend
from cadenza.errors import UsageError
from cadenza.journal.store import RunRow

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_WHOLE = ("tokens", "tool_calls")
NAMES = ("tokens", "cost", "tool_calls", "wall_time")


def read_limits(text: str) -> Spend:
    """``tokens=50000,cost=2.5,tool_calls=100,wall_time=2h``, in any order and any of them.

    Raises:
        UsageError: it is not of that form.
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        name, sign, value = part.strip().partition("=")
        if not sign or name not in NAMES:
            raise UsageError(
                f"{part.strip()!r} is no limit", hint=f"write {', '.join(f'{n}=…' for n in NAMES)}"
            )
        found[name] = _amount(name, value.strip())
    whole = {name: int(found.pop(name)) for name in _WHOLE if name in found}
    return Spend(**whole, **found)  # type: ignore[arg-type]


def _amount(name: str, value: str) -> float:
    unit = _UNITS.get(value[-1:]) if name == "wall_time" else None
    try:
        amount = float(value[:-1]) * unit if unit else float(value.replace("_", ""))
    except ValueError:
        amount = 0.0
    if not 0 < amount < 1e15 or (name in _WHOLE and amount != int(amount)):
        raise UsageError(
            f"{name}={value} is no amount", hint="write a number above 0; a time also as 30m, 2h, 3d"
        )
    return amount


def limits(budget: Spend) -> str:
    """The limits that there are, on one line."""
    found = {name: getattr(budget, name) for name in NAMES}
    return ", ".join(f"{name} {limit:,}" for name, limit in found.items() if limit is not None)


def lines_of(budget: Spend, rows: Sequence[RunRow]) -> list[str]:
    """What a tree has spent, beside its limits."""
    spent = {
        "tokens": float(sum(row.input_tokens + row.output_tokens for row in rows)),
        "cost": sum(row.cost for row in rows),
        "tool_calls": float(sum(row.tool_calls for row in rows)),
    }
    lines = [f"{len(rows)} run{'s' if len(rows) != 1 else ''} in the tree"]
    for name, amount in spent.items():
        limit = getattr(budget, name)
        shown = f"{amount:,.4f}" if name == "cost" else f"{amount:,.0f}"
        lines.append(f"  {name:<10} {shown} of {'no limit' if limit is None else f'{limit:,}'}")
    lines.append(f"  wall_time  {'no limit' if budget.wall_time is None else f'{budget.wall_time:,.0f} s'}")
    return lines
