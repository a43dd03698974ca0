"""The ```` ```markdown ```` blocks of a model's output.

Markdown says that a code block ends at the first bare fence of its kind. A model that was asked for a
report in a markdown block writes code blocks *inside* it with fences of the same length, so this reader
lets fences nest: inside a markdown block a fence with a language opens an inner block and a bare fence
ends the innermost one. A bare fence that *opens* an inner block is told from the one that ends the
report by its surroundings (:func:`_opens_inner`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from cadenza.core.tags import is_tag_line

_LANGUAGE = re.compile(r"[A-Za-z0-9_+-]*")
_LOOK_AHEAD = 64


class MarkdownBlock(NamedTuple):
    """One markdown block: the line of its opening fence, what that fence says, and the content."""

    line: int
    end: int
    """The first line after the content: the closing fence, or where an unterminated block stops."""
    info: str
    text: str


class MarkdownScan(NamedTuple):
    """The lines of an output, its markdown blocks from the top, and which lines are plain prose."""

    lines: list[str]
    blocks: list[MarkdownBlock]
    prose: list[bool]


class _Fence(NamedTuple):
    line: int
    indent: int
    char: str
    length: int
    info: str

    @property
    def is_markdown(self) -> bool:
        language = _LANGUAGE.match(self.info)
        return language is not None and language[0].lower() in ("markdown", "md")

    def fits(self, opener: _Fence) -> bool:
        """Whether a block that ``opener`` opened takes notice of this fence."""
        return self.char == opener.char and self.length >= opener.length


class _Open:
    """A block that is being read. ``inner`` holds the markdown blocks inside it."""

    def __init__(self, fence: _Fence) -> None:
        self.fence = fence
        self.inner: list[_Open] = []
        self.end: int | None = None
        self.last_bare: int | None = None


def scan_markdown(output: str) -> MarkdownScan:
    """Find the markdown blocks of ``output``. Never raises; takes time linear in its length.

    A block that is never closed runs to the next markdown block or to the end, less status tags there.
    The indentation of the opening fence is taken off the content. Line endings stay as they are.
    """
    lines = output.split("\n")
    fences = list(_fences(lines))
    opened, code = _read(lines, fences)
    blocks = [_block(lines, start, end) for start, end in _settle(lines, opened)]
    blocks.sort(key=lambda block: block.line)
    prose = [True] * len(lines)
    for start, end in [*code, *((block.line, block.end) for block in blocks)]:
        prose[start : end + 1] = [False] * len(prose[start : end + 1])
    return MarkdownScan(lines, blocks, prose)


def _fences(lines: list[str]) -> Iterator[_Fence]:
    for at, line in enumerate(lines):
        body = line.strip()
        char = body[:1]
        if char not in ("`", "~") or body[:3] != char * 3:
            continue
        info = body.lstrip(char)
        if char == "`" and "`" in info:
            continue  # inline code
        indent = len(line) - len(line.lstrip())
        yield _Fence(at, indent, char, len(body) - len(info), info.strip())


def _read(lines: list[str], fences: list[_Fence]) -> tuple[list[_Open], list[tuple[int, int]]]:
    """One pass over the fences: the outermost markdown blocks, and the spans of other code blocks."""
    outermost: list[_Open] = []
    code: list[tuple[int, int]] = []
    stack: list[_Open] = []
    closable = _closable(fences)
    for at, fence in enumerate(fences):
        if not stack:
            if fence.is_markdown or closable[at]:
                stack.append(_Open(fence))
                if fence.is_markdown:
                    outermost.append(stack[-1])
            continue
        top = stack[-1]
        if not fence.fits(top.fence):
            continue
        if top.fence.is_markdown and (fence.info or _opens_inner(lines, fences, at, top.fence)):
            stack.append(_Open(fence))
            if fence.is_markdown:
                top.inner.append(stack[-1])
        elif not fence.info:
            top.end = fence.line
            stack.pop()
            if stack:
                stack[-1].last_bare = fence.line
            elif not top.fence.is_markdown:
                code.append((top.fence.line, fence.line))
        elif fence.is_markdown and len(stack) == 1:
            # Markdown opens inside another code block: somebody forgot to close that one.
            stack[-1] = _Open(fence)
            outermost.append(stack[-1])
    return outermost, code


def _closable(fences: list[_Fence]) -> list[bool]:
    """For each fence, whether a later bare fence could close it."""
    longest = {"`": 0, "~": 0}
    answers = []
    for fence in reversed(fences):
        answers.append(longest[fence.char] >= fence.length)
        if not fence.info:
            longest[fence.char] = max(longest[fence.char], fence.length)
    return answers[::-1]


def _opens_inner(lines: list[str], fences: list[_Fence], at: int, opener: _Fence) -> bool:
    """Whether a bare fence inside a markdown block opens a code block instead of ending the report.

    It can only do so where two more bare fences follow, one to end the code and one to end the report.
    It does where it is longer or deeper than the report's own fence, or stands as code blocks stand:
    after a blank line, a heading or a colon, with code right below. (The fence that ends a report has
    the report's last line above and a blank line below.)
    """
    if not _two_more_bare(fences, at, opener):
        return False
    fence = fences[at]
    if fence.length > opener.length or fence.indent > opener.indent:
        return True
    above = lines[fence.line - 1].strip()
    below = lines[fence.line + 1].strip()
    return bool(below) and (not above or above.startswith("#") or above.endswith((":", "：")))


def _two_more_bare(fences: list[_Fence], at: int, opener: _Fence) -> bool:
    missing = 2
    for fence in fences[at + 1 : at + 1 + _LOOK_AHEAD]:
        if fence.fits(opener):
            missing += 1 if fence.info else -1
        if not missing:
            return True
    return False


def _settle(lines: list[str], opened: list[_Open]) -> Iterator[tuple[_Fence, int]]:
    """Where each outermost block ends; the inner ones of an unterminated block come out of it."""
    waiting = opened[::-1]
    while waiting:
        block = waiting.pop()
        if block.end is not None:
            yield block.fence, block.end
        elif block.inner:
            yield block.fence, block.inner[0].fence.line
            waiting.extend(reversed(block.inner))
        else:
            yield block.fence, _cut_end(lines, block)


def _cut_end(lines: list[str], block: _Open) -> int:
    """Where a block stops that nothing closes: before the status tags at the end of the output.

    If the last bare fence stands right there, it was meant for this block: an inner one was left open.
    """
    end = len(lines)
    while end > block.fence.line + 1 and (not lines[end - 1].strip() or is_tag_line(lines[end - 1])):
        end -= 1
    return end - 1 if block.last_bare == end - 1 else end


def _block(lines: list[str], fence: _Fence, end: int) -> MarkdownBlock:
    content = [_outdented(line, fence.indent) for line in lines[fence.line + 1 : end]]
    return MarkdownBlock(fence.line, end, fence.info, "".join(f"{line}\n" for line in content))


def _outdented(line: str, indent: int) -> str:
    return line[min(indent, len(line) - len(line.lstrip(" \t"))) :]
