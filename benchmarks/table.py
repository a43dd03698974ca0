"""The table that every benchmark prints, and the words for the machine that it ran on."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. ``bar`` says what it is held against and ``met`` whether it stays within; None: no bar."""

    what: str
    figure: str
    bar: str = ""
    met: bool | None = None

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The row as text."""
        verdict = "" if self.met is None else "PASS" if self.met else "MISS"
        return self.what, self.figure, self.bar, verdict


@dataclass(slots=True)
class Table:
    """A benchmark's result."""

    title: str
    rows: list[Row] = field(default_factory=list)

    def add(self, what: str, figure: str, *, bar: str = "", met: bool | None = None) -> None:
        """Append a row."""
        self.rows.append(Row(what, figure, bar, met))

    @property
    def met(self) -> bool:
        """Whether every row that has a bar stays within it."""
        return all(row.met is not False for row in self.rows)

    def show(self) -> None:
        """Print it."""
        lines = [("", "figure", "bar", ""), *(row.cells for row in self.rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(4)]
        print(f"\n{self.title}")
        for line in lines:
            print("  " + _aligned(line, widths).rstrip(), flush=True)


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    what, figure, bar, verdict = cells
    return f"{what:<{widths[0]}}  {figure:>{widths[1]}}  {bar:<{widths[2]}}  {verdict}"


def machine() -> str:
    """CPU model, core count and Python version: all that a figure's reader needs."""
    return f"{_cpu_model()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "CPU")


def micro(seconds: float) -> str:
    """Seconds as microseconds."""
    return f"{seconds * 1e6:,.0f} us"


def milli(seconds: float) -> str:
    """Seconds as milliseconds."""
    return f"{seconds * 1e3:,.1f} ms"


def mega(size: float) -> str:
    """Bytes as megabytes of 10^6."""
    return f"{size / 1e6:,.2f} MB"
