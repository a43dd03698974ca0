"""Arpeggio: a table in batches, a prompt for each, and their outputs as one text.

Source of behaviour: the TAKT command-line engine, arpeggio. The table is CSV (RFC 4180; lines may end in
CRLF, CR or LF) with a header row and at least one more. A template is the whole prompt of a batch::

    {line:N}        row N of the batch (from 1) as ``column: value`` lines
    {col:N:name}    one cell of it
    {batch_index}   the batch's number, from 0
    {total_batches}

It is expanded in one pass: what a cell holds is data and is never read again. A placeholder that nobody
knows stays as it is written. All prompts are made before the first is sent, so a template that asks for
a row or a column that is not there costs nothing.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping

import msgspec

_PLACEHOLDER = re.compile(
    r"\{(?:line:([0-9]{1,9})|col:([0-9]{1,9}):([^{}\r\n]+)|(batch_index)|(total_batches))\}", re.A
)


class BatchError(ValueError):
    """A table or a template cannot be used. The message names the row, the column or the placeholder."""


class Table(msgspec.Struct, frozen=True):
    """A CSV file: the header, and rows with a cell for each of its columns."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Batch(msgspec.Struct, frozen=True):
    """Some rows in a row. ``index`` counts from 0."""

    index: int
    rows: tuple[tuple[str, ...], ...]


def read_csv(text: str) -> Table:
    """The table in ``text``.

    A byte order mark and blank lines are passed over. Cells that a row lacks are empty, cells beyond the
    header must be.

    Raises:
        BatchError: no row besides the header, quotes that do not close, two columns of one name, a row
            with more cells than the header.
    """
    reader = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)
    try:
        lines = [(reader.line_num, line) for line in reader if line]
    except csv.Error as problem:
        raise BatchError(f"CSV file, line {reader.line_num}: {problem}") from problem
    if len(lines) < 2:
        raise BatchError("CSV file has no data rows")
    columns = tuple(lines[0][1])
    for name in columns:
        if name and columns.count(name) > 1:
            raise BatchError(f"CSV file has two columns {name!r}")
    return Table(columns, tuple(_row(line, cells, len(columns)) for line, cells in lines[1:]))


def _row(line: int, cells: list[str], width: int) -> tuple[str, ...]:
    if any(cells[width:]):
        count = f"{len(cells)} cells under {width} columns"
        raise BatchError(f"CSV file, line {line}: {count}; quote a cell that holds a comma")
    return (*cells[:width], *[""] * (width - len(cells)))


def batches(table: Table, size: int) -> tuple[Batch, ...]:
    """The rows of ``table`` in batches of ``size``; the last one may be shorter.

    Raises:
        BatchError: ``size`` is below 1.
    """
    if size < 1:
        raise BatchError(f"batch_size must be at least 1, not {size}")
    starts = range(0, len(table.rows), size)
    return tuple(Batch(index, table.rows[start : start + size]) for index, start in enumerate(starts))


def batch_prompts(template: str, table: Table, size: int) -> tuple[str, ...]:
    """The prompt of every batch.

    Raises:
        BatchError: see :func:`batches` and :func:`expand_batch`.
    """
    parts = batches(table, size)
    return tuple(expand_batch(template, table.columns, batch, len(parts)) for batch in parts)


def expand_batch(template: str, columns: tuple[str, ...], batch: Batch, total: int) -> str:
    """``template`` with the batch put in.

    Raises:
        BatchError: a row that the batch, or a column that the table does not have.
    """

    def replacement(placeholder: re.Match[str]) -> str:
        line, row, column, index, _ = placeholder.groups()
        if line is not None:
            cells = _cells(batch, int(line), placeholder[0])
            return "\n".join(f"{name}: {cell}" for name, cell in zip(columns, cells, strict=True))
        if row is not None:
            cells = _cells(batch, int(row), placeholder[0])
            return cells[_column(columns, column, placeholder[0])]
        return str(total if index is None else batch.index)

    return _PLACEHOLDER.sub(replacement, template)


def _cells(batch: Batch, number: int, placeholder: str) -> tuple[str, ...]:
    if not 1 <= number <= len(batch.rows):
        raise BatchError(f"{placeholder}: batch {batch.index} has rows 1 to {len(batch.rows)}")
    return batch.rows[number - 1]


def _column(columns: tuple[str, ...], name: str, placeholder: str) -> int:
    if name not in columns:
        raise BatchError(f"{placeholder}: there is no such column; there are {', '.join(columns)}")
    return columns.index(name)


def merge(outputs: Mapping[int, str], separator: str = "\n") -> str:
    """The outputs of the batches (by index) as one text, in the order of the batches."""
    return separator.join(outputs[index] for index in sorted(outputs))


def batch_failures(errors: Mapping[int, str]) -> str | None:
    """Why the movement failed: every batch that did (by index) with its error. ``None`` without any."""
    return "; ".join(_failures(errors)) or None


def _failures(errors: Mapping[int, str]) -> Iterator[str]:
    for index in sorted(errors):
        yield f"batch {index} failed: {errors[index]}"
