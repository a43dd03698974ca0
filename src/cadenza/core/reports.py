"""Which report is which in an output.

Source of behaviour: TAKT engine, "extraction and storage of reports": take the markdown blocks, tell
from clues to the file name (a heading, a comment) which report each one is, and where that cannot be
told keep the whole output as the report.

A clue is a text near a block together with how it names a report. From strong to weak it can

* hold the report's file name (``01-plan.md``, also at the end of a path),
* be the report's label (``Summary``), a number before it and marks around it aside,
* be the words of the file name (``ai-review.md``: "AI Review"),
* mention the file name in prose above the block,
* hold the label or those words among others ("Scope of the change").

The texts looked at are the opening fence, comments, the headings above the block, the line right above
it, and the first heading in it. A text that names two reports equally well is no clue.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import takewhile
from typing import NamedTuple

from cadenza.core.fences import MarkdownBlock, MarkdownScan, scan_markdown
from cadenza.core.report_names import Named, Names, Naming, ReportWanted, report_name_problem

__all__ = ["ReportWanted", "extract", "report_name_problem"]

_COMMENT = re.compile(r"<!--(.*?)-->", re.DOTALL)
_HEADING = re.compile(r"#{1,6}[ \t]+(.+)")
_BOLD = re.compile(r"(\*\*|__)(.+)\1[:：]?")
_UNDERLINE = re.compile(r"=+")
_REACH = 40
"""How many lines above a block, and in it, are looked at."""
_EDGE = 200
"""How many characters at either end of a long line are looked at."""


class Place(IntEnum):
    """Where a clue stands; of two that name a report equally well the higher place wins."""

    PROSE = 0
    ABOVE = 1
    """a heading with other lines between it and the block"""
    INSIDE = 2
    """the first heading in the block"""
    ADJACENT = 3
    """the line right above the block"""
    COMMENT = 4
    FENCE = 5


class _Clue(NamedTuple):
    strength: tuple[Naming, Place]
    report: int


def extract(output: str, wanted: Sequence[ReportWanted]) -> dict[str, str]:
    """The text of each wanted report, by file name.

    Each block is at most one report. Of several blocks that name the same report the one that names it
    best counts, and of equals the last. One block without a clue and one report without a block belong
    together; so a single report is in a single block whatever that says. A report that is in no block is
    the whole output. Blocks of nothing but blanks do not count. Never raises.
    """
    scan = scan_markdown(output)
    names = Names(wanted)
    blocks = [at for at, block in enumerate(scan.blocks) if block.text.strip()]
    clues = {at: clue for at in blocks if (clue := _best_clue(scan, at, names))}
    chosen: dict[int, int] = {}
    for at, clue in clues.items():
        rival = chosen.get(clue.report)
        if rival is None or clue.strength >= clues[rival].strength:
            chosen[clue.report] = at
    unknown = [at for at in blocks if at not in clues]
    missing = [report for report in range(len(wanted)) if report not in chosen]
    if len(unknown) == len(missing) == 1:
        chosen[missing[0]] = unknown[0]
    texts = {report: scan.blocks[at].text for report, at in chosen.items()}
    return {report.name: texts.get(at, output) for at, report in enumerate(wanted)}


def _best_clue(scan: MarkdownScan, at: int, names: Names) -> _Clue | None:
    return max(_clues(scan, at, names), key=lambda clue: clue.strength, default=None)


def _clues(scan: MarkdownScan, at: int, names: Names) -> Iterator[_Clue]:
    block = scan.blocks[at]
    above = _above(scan, block, scan.blocks[at - 1].end if at else 0)
    for place, named in _named(block, above, names):
        if named is not None:
            yield _Clue((named.naming, place), named.report)


def _named(block: MarkdownBlock, above: list[str], names: Names) -> Iterator[tuple[Place, Named | None]]:
    yield Place.FENCE, names.exact(block.info.partition(" ")[2] or block.info.partition(":")[2])
    for comment in _comments(block, above):
        yield Place.COMMENT, names.best(comment)
    yield Place.ADJACENT, _adjacent(above, names)
    for heading in reversed(list(_headings(above))):
        yield Place.ABOVE, names.best(heading)
    for heading in _headings(_before_code(block)):
        yield Place.INSIDE, names.best(heading)
        break
    yield Place.PROSE, _mentioned(above, names)


def _above(scan: MarkdownScan, block: MarkdownBlock, start: int) -> list[str]:
    """The lines between the block before (which ends at ``start``) and this one, code blanked out."""
    lines = range(max(start, block.line - _REACH), block.line)
    return [_short(scan.lines[line].strip()) if scan.prose[line] else "" for line in lines]


def _before_code(block: MarkdownBlock) -> list[str]:
    lines = (_short(line.strip()) for line in block.text.split("\n", _REACH)[:_REACH])
    return list(takewhile(lambda line: line[:3] not in ("```", "~~~"), lines))


def _short(line: str) -> str:
    return line if len(line) <= 2 * _EDGE else f"{line[:_EDGE]} {line[-_EDGE:]}"


def _comments(block: MarkdownBlock, above: list[str]) -> Iterator[str]:
    """The comments that the block begins with, then those above it, the nearest first."""
    rest = "\n".join(_before_code(block)).lstrip()
    while comment := _COMMENT.match(rest):
        yield comment[1]
        rest = rest[comment.end() :].lstrip()
    yield from reversed(_COMMENT.findall("\n".join(above)))


def _headings(lines: Iterable[str]) -> Iterator[str]:
    previous = ""
    for line in lines:
        if title := _heading(line, previous):
            yield title
        previous = line


def _heading(line: str, previous: str) -> str | None:
    """The title, where ``line`` is a heading: ``# T``, ``**T**``, or ``===`` below T."""
    if _UNDERLINE.fullmatch(line):
        return previous
    if heading := _HEADING.fullmatch(line):
        return heading[1]
    bold = _BOLD.fullmatch(line)
    return bold[2] if bold else None


def _adjacent(above: list[str], names: Names) -> Named | None:
    """The report that the line right above the block names.

    A heading may name it in any way. A line that is a paragraph by itself may hold the file name. A
    line below others (it may be the last of a list of all reports) must be the label or the words.
    """
    paragraph = next(_paragraphs(above), [])
    if not paragraph:
        return None
    last, before = paragraph[-1], paragraph[-2] if len(paragraph) > 1 else ""
    if title := _heading(last, before):
        return names.best(title)
    return names.equal(last) if before else names.exact(last)


def _mentioned(above: list[str], names: Names) -> Named | None:
    """The report whose file the nearest paragraph with a file name mentions, if it mentions one."""
    for paragraph in _paragraphs(above):
        if files := names.files("\n".join(paragraph)):
            return Named(Naming.MENTION, files.pop()) if len(files) == 1 else None
    return None


def _paragraphs(above: list[str]) -> Iterator[list[str]]:
    """The paragraphs above a block, the nearest first."""
    paragraph: list[str] = []
    for line in reversed(["", *above]):
        if line:
            paragraph.insert(0, line)
        elif paragraph:
            yield paragraph
            paragraph = []
