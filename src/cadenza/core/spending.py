"""What a tree of runs spends and may spend: tokens, money, tool calls, time."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cadenza.core.outcomes import Usage


class Spend(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits; None is no limit. ``tokens`` counts prompt and answer, ``cost`` is in the currency of the price
    table, ``wall_time`` in seconds since the first run of the tree began."""

    tokens: int | None = None
    cost: float | None = None
    tool_calls: int | None = None
    wall_time: float | None = None

    def __bool__(self) -> bool:
        return any(limit is not None for limit in (self.tokens, self.cost, self.tool_calls, self.wall_time))


class Price(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a million tokens of a model cost. ``cached`` is for prompt tokens that the server had already;
    None: as much as the others."""

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None


class Spent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was spent, or is reserved for what is being done."""

    tokens: int = 0
    cost: float = 0.0
    tool_calls: int = 0

    @classmethod
    def of(cls, sums: tuple[int, float, int]) -> Spent:
        """From tokens, cost and tool calls."""
        tokens, cost, tool_calls = sums
        return cls(tokens=tokens, cost=cost, tool_calls=tool_calls)

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            tokens=self.tokens + other.tokens,
            cost=self.cost + other.cost,
            tool_calls=self.tool_calls + other.tool_calls,
        )


def price_of(prices: Mapping[str, Price], model: str | None) -> Price:
    """The price of a model: its own row, else the longest row ``BEGINNING*`` that fits, else nothing."""
    name = model or ""
    if name in prices:
        return prices[name]
    stems = [row for row in prices if row.endswith("*") and name.startswith(row[:-1])]
    return prices[max(stems, key=len)] if stems else Price()


def cost_of(price: Price, usage: Usage) -> float:
    """What one call cost."""
    cached = price.input if price.cached is None else price.cached
    fresh = max(usage.input - usage.cached, 0)
    return (fresh * price.input + usage.cached * cached + usage.output * price.output) / 1_000_000


def exceeded(limits: Spend, spent: Spent, elapsed: float) -> str | None:
    """Which limit is passed, in words; None when none is."""
    if limits.tokens is not None and spent.tokens > limits.tokens:
        return f"tokens: {spent.tokens:,} of {limits.tokens:,}"
    if limits.cost is not None and spent.cost > limits.cost + 1e-9:
        return f"cost: {spent.cost:.4f} of {limits.cost:.4f}"
    if limits.tool_calls is not None and spent.tool_calls > limits.tool_calls:
        return f"tool calls: {spent.tool_calls:,} of {limits.tool_calls:,}"
    if limits.wall_time is not None and elapsed > limits.wall_time:
        return f"wall time: {elapsed:.0f} of {limits.wall_time:.0f} seconds"
    return None
