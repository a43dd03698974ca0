"""Arpeggio: CSV, batches, templates, merge."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadenza.core.batches import (
    Batch,
    BatchError,
    Table,
    batch_failures,
    batch_prompts,
    batches,
    expand_batch,
    merge,
    read_csv,
)

CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\ufeff"), max_size=8)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_lines_may_end_in_any_way(end: str, last: bool) -> None:
    text = end.join(["a,b", "1,2", "3,4"]) + (end if last else "")
    assert read_csv(text) == Table(("a", "b"), (("1", "2"), ("3", "4")))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('a,b\n"1,5",2', (("1,5", "2"),)),
        ('a,b\n"say ""hi""",2', (('say "hi"', "2"),)),
        ('a,b\n"two\nlines",2', (("two\nlines", "2"),)),
        ('a,b\r\n"two\r\nlines",2\r\n', (("two\r\nlines", "2"),)),
        ("a,b\n1", (("1", ""),)),
        ("a,b\n,", (("", ""),)),
        ("a,b\n1,2,,", (("1", "2"),)),
        ("a,b\n\n1,2\n\n", (("1", "2"),)),
        ("\ufeffa,b\n1,2", (("1", "2"),)),
        ("a,b\n 1 , 2 ", ((" 1 ", " 2 "),)),
        ("a,b\n音符,{line:1}", (("音符", "{line:1}"),)),
    ],
)
def test_how_a_row_is_read(text: str, rows: tuple[tuple[str, ...], ...]) -> None:
    assert read_csv(text) == Table(("a", "b"), rows)


@pytest.mark.parametrize("text", ["", "\n", "a,b", "a,b\n", "a,b\r\n\r\n", "\ufeff"])
def test_a_table_has_a_header_and_a_row(text: str) -> None:
    with pytest.raises(BatchError, match=r"^CSV file has no data rows$"):
        read_csv(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('a,b\n"1,2', "line 2: unexpected end of data"),
        ('a,b\n1,2\n"x"y,2', "line 3: "),
        ("a,b\n1,2\n1,2,3", "line 3: 3 cells under 2 columns; quote"),
        ("a,b,a\n1,2,3", "two columns 'a'"),
        (f'a\n"{"x" * 200_000}"', "field larger than field limit"),
    ],
)
def test_what_is_no_table(text: str, problem: str) -> None:
    with pytest.raises(BatchError, match=problem):
        read_csv(text)


def test_columns_without_a_name_may_be_several() -> None:
    assert read_csv("a,,\n1,2,3").columns == ("a", "", "")


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=6), st.sampled_from(["\r\n", "\n"]))
def test_what_a_csv_writer_writes_is_read(rows: list[tuple[str, str]], end: str) -> None:
    sheet = io.StringIO(newline="")
    csv.writer(sheet, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([("a", "b"), *rows])
    assert read_csv(sheet.getvalue()) == Table(("a", "b"), tuple(rows))


TABLE = Table(("name", "note"), tuple((f"n{i}", f"v{i}") for i in range(5)))


def test_the_last_batch_may_be_shorter() -> None:
    found = batches(TABLE, 2)
    assert [(batch.index, len(batch.rows)) for batch in found] == [(0, 2), (1, 2), (2, 1)]


@pytest.mark.parametrize("size", [0, -1])
def test_a_batch_has_a_row(size: int) -> None:
    with pytest.raises(BatchError, match="batch_size must be at least 1"):
        batches(TABLE, size)


@given(st.integers(1, 30), st.integers(1, 12))
def test_batches_lose_nothing(rows: int, size: int) -> None:
    table = Table(("a",), tuple((str(i),) for i in range(rows)))
    found = batches(table, size)
    assert tuple(row for batch in found for row in batch.rows) == table.rows
    assert [batch.index for batch in found] == list(range(len(found)))


def test_a_prompt_for_every_batch() -> None:
    template = "{batch_index}/{total_batches}: {col:1:name}\n{line:1}"
    assert batch_prompts(template, TABLE, 2) == (
        "0/3: n0\nname: n0\nnote: v0",
        "1/3: n2\nname: n2\nnote: v2",
        "2/3: n4\nname: n4\nnote: v4",
    )


@pytest.mark.parametrize(
    "template", ["{line}", "{line:x}", "{line:-1}", "{col:1}", "{col:1:}", "{task}", "{}", "{line: 1}"]
)
def test_what_nobody_knows_stays(template: str) -> None:
    assert expand_batch(template, TABLE.columns, batches(TABLE, 2)[0], 3) == template


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{line:0}", r"\{line:0\}: batch 0 has rows 1 to 2"),
        ("{line:3}", r"\{line:3\}: batch 0 has rows 1 to 2"),
        ("{col:3:name}", r"\{col:3:name\}: batch 0 has rows 1 to 2"),
        ("{col:1:nope}", r"\{col:1:nope\}: there is no such column; there are name, note"),
        ("{col:1: name}", "there is no such column"),
    ],
)
def test_a_row_or_column_that_is_not_there(template: str, problem: str) -> None:
    with pytest.raises(BatchError, match=problem):
        expand_batch(template, TABLE.columns, batches(TABLE, 2)[0], 3)


def test_a_template_for_more_rows_than_the_last_batch_has_is_found_before_anything_is_sent() -> None:
    with pytest.raises(BatchError, match=r"\{line:2\}: batch 2 has rows 1 to 1"):
        batch_prompts("{line:1}\n{line:2}", TABLE, 2)


@given(st.text(alphabet="{}line:1col_batch\\$&", max_size=30), st.text(max_size=20))
def test_a_cell_is_never_read_again(cell: str, other: str) -> None:
    batch = Batch(0, ((cell, other),))
    assert expand_batch("<{col:1:name}|{line:1}>", TABLE.columns, batch, 1) == (
        f"<{cell}|name: {cell}\nnote: {other}>"
    )


def test_outputs_are_merged_in_the_order_of_the_batches() -> None:
    assert merge({2: "c", 0: "a", 1: "b"}) == "a\nb\nc"
    assert merge({1: "b", 0: "a"}, "\n---\n") == "a\n---\nb"


def test_every_failed_batch_is_named() -> None:
    assert batch_failures({3: "timeout", 1: "refused"}) == "batch 1 failed: refused; batch 3 failed: timeout"
    assert batch_failures({}) is None
