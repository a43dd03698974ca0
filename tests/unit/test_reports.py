"""Reports in an output: which block is which, where a block ends, and which file names are allowed."""

from __future__ import annotations

import itertools
import time
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadenza.core.fences import scan_markdown
from cadenza.core.reports import ReportWanted, extract, report_name_problem

PLAN = (ReportWanted("01-plan.md"),)
TWO = (ReportWanted("summary.md", "Summary"), ReportWanted("01-scope.md", "Scope"))
TWO_JA = (ReportWanted("summary.md", "要約"), ReportWanted("01-scope.md", "範囲"))
CONTRACTS = (ReportWanted("plan.md"), ReportWanted("plan-review.md"))
WHOLE = object()


def block(text: str, info: str = "markdown") -> str:
    return f"```{info}\n{text}\n```\n"


class Case(NamedTuple):
    name: str
    output: str
    wanted: tuple[ReportWanted, ...]
    found: tuple[object, ...]


A, B = block("# One\n1"), block("# Two\n2")
ONE, SECOND = "# One\n1\n", "# Two\n2\n"

CASES = [
    # a single report
    Case("one block", f"Done.\n\n{A}\n[STEP:0]", PLAN, (ONE,)),
    Case("one block about something else", f"## other.md\n{A}", PLAN, (ONE,)),
    Case("no block", "# Plan\nwords\n[STEP:0]", PLAN, (WHOLE,)),
    Case("empty output", "", PLAN, (WHOLE,)),
    Case("a block in another language only", block("x = 1", "python"), PLAN, (WHOLE,)),
    Case("a bare block only", block("# Plan", ""), PLAN, (WHOLE,)),
    Case("an empty block", block("  "), PLAN, (WHOLE,)),
    Case("an empty block beside a full one", block("") + "\n" + A, PLAN, (ONE,)),
    Case("several blocks without a clue", f"{A}\n{B}", PLAN, (WHOLE,)),
    Case("several blocks, one named by a heading", f"{A}\n## 01-plan.md\n\n{B}", PLAN, (SECOND,)),
    Case("a draft and a final one: the last", f"# 01-plan.md\n{A}\n# 01-plan.md\n{B}", PLAN, (SECOND,)),
    Case("upper case and md", "```MD\n# One\n1\n```", PLAN, (ONE,)),
    Case("words of the file name", f"{B}\n### Plan\n{A}", PLAN, (ONE,)),
    # headings
    Case("headings of files", f"## summary.md\n{A}\n## 01-scope.md\n{B}", TWO, (ONE, SECOND)),
    Case("in the other order", f"## 01-scope.md\n{A}\n## summary.md\n{B}", TWO, (SECOND, ONE)),
    Case("headings of labels", f"## Summary\n\n{A}\n## Scope\n\n{B}", TWO, (ONE, SECOND)),
    Case("numbered labels", f"### 2. Scope\n{A}\n### 1. Summary\n{B}", TWO, (SECOND, ONE)),
    Case("labels, ja", f"## 範囲\n{A}\n## 要約\n{B}", TWO_JA, (SECOND, ONE)),
    Case("labels within words, ja", f"## 変更範囲の報告\n{A}\n## 全体要約\n{B}", TWO_JA, (SECOND, ONE)),
    Case("bold lines", f"**Scope**\n\n{A}\n**Summary:**\n\n{B}", TWO, (SECOND, ONE)),
    Case("underlined headings", f"Scope\n=====\n{A}\nSummary\n=====\n{B}", TWO, (SECOND, ONE)),
    Case("labels among words", f"## Scope of the change\n{A}\n## A short summary\n{B}", TWO, (SECOND, ONE)),
    Case("plain lines", f"Scope:\n{A}\nSummary:\n{B}", TWO, (SECOND, ONE)),
    Case(
        "the order's own lines",
        f"2. Scope → File name: 01-scope.md\n\n{A}\n## Summary\n{B}",
        TWO,
        (SECOND, ONE),
    ),
    Case("paths", f"`.takt/runs/x/reports/01-scope.md`:\n{A}\n./summary.md\n{B}", TWO, (SECOND, ONE)),
    Case(
        "prose between",
        f"## Scope\nI looked around.\n\n{A}\n## Summary\nAll is well.\n\n{B}",
        TWO,
        (SECOND, ONE),
    ),
    Case(
        "first headings inside",
        block("# Scope\ns") + "\n" + block("# Summary\nt"),
        TWO,
        ("# Summary\nt\n", "# Scope\ns\n"),
    ),
    Case("a comment in code is no heading", block("```sh\n# Scope\n```\n# Summary") + A, TWO, (WHOLE, WHOLE)),
    Case("file names of contracts", f"## plan-review.md\n{A}\n## plan.md\n{B}", CONTRACTS, (SECOND, ONE)),
    Case("words of file names", f"## Plan Review\n{A}\n## Plan\n{B}", CONTRACTS, (SECOND, ONE)),
    Case("the longer words win", f"## The plan review, done\n{A}\n## My plan\n{B}", CONTRACTS, (SECOND, ONE)),
    # comments, the fence, prose
    Case("comments above", f"<!-- 01-scope.md -->\n{A}\n<!-- report: Summary -->\n{B}", TWO, (SECOND, ONE)),
    Case(
        "comments inside",
        block("<!-- 01-scope.md -->\nx") + block("<!-- v1 -->\n<!-- summary.md -->\ny"),
        TWO,
        ("<!-- v1 -->\n<!-- summary.md -->\ny\n", "<!-- 01-scope.md -->\nx\n"),
    ),
    Case(
        "a comment beats a heading",
        f"## Summary\n<!-- 01-scope.md -->\n{A}\n## Summary\n{B}",
        TWO,
        (SECOND, ONE),
    ),
    Case(
        "the fence",
        block("x", "markdown 01-scope.md") + block("y", "markdown:summary.md"),
        TWO,
        ("y\n", "x\n"),
    ),
    Case("prose", f"Saved as 01-scope.md, as asked:\n\n{A}\nNext comes summary.md.\n{B}", TWO, (SECOND, ONE)),
    Case("prose, ja", f"範囲は01-scope.mdに書きます。\n{A}\n次はsummary.mdです。\n{B}", TWO, (SECOND, ONE)),
    Case("a list of all files is no clue", f"- summary.md\n- 01-scope.md\n\n{A}\n{B}", TWO, (WHOLE, WHOLE)),
    Case(
        "a list of all files, then headings",
        f"- summary.md\n- 01-scope.md\n\n{block('# Scope')}\n{block('# Summary')}",
        TWO,
        ("# Summary\n", "# Scope\n"),
    ),
    Case(
        "another file of that ending",
        f"## old-summary.md\n{A}\n## not.01-scope.md.bak\n{B}",
        TWO,
        (ONE, SECOND),
    ),
    # what cannot be told
    Case("two blocks, no clue", f"{A}\n{B}", TWO, (WHOLE, WHOLE)),
    Case("one block, no clue", A, TWO, (WHOLE, WHOLE)),
    Case("one block, one clue", f"## Scope\n{A}", TWO, (WHOLE, ONE)),
    Case("the one left over", f"## Scope\n{A}\n---\n{B}", TWO, (SECOND, ONE)),
    Case("two for the same report", f"## Scope\n{A}\n## Scope\n{B}", TWO, (WHOLE, SECOND)),
    Case("no block, two reports", "words", TWO, (WHOLE, WHOLE)),
    Case("nothing wanted", A, (), ()),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_extract(case: Case) -> None:
    expected = [case.output if found is WHOLE else found for found in case.found]
    assert extract(case.output, case.wanted) == {
        report.name: text for report, text in zip(case.wanted, expected, strict=True)
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_line_endings_stay_as_they_are(case: Case) -> None:
    crlf = {name: text.replace("\n", "\r\n") for name, text in extract(case.output, case.wanted).items()}
    assert extract(case.output.replace("\n", "\r\n"), case.wanted) == crlf


BLOCKS = [
    (
        "code with a language",
        "```markdown\n# A\n```python\nx = 1\n```\nend\n```\nbye",
        ["# A\n```python\nx = 1\n```\nend\n"],
    ),
    (
        "two code blocks with languages",
        "```markdown\n```sh\nls\n```\nthen\n```json\n{}\n```\n```",
        ["```sh\nls\n```\nthen\n```json\n{}\n```\n"],
    ),
    (
        "a bare code block after a blank line",
        "```markdown\n# A\n\n```\nls\n```\n\nend\n```\nbye",
        ["# A\n\n```\nls\n```\n\nend\n"],
    ),
    ("a bare code block after a colon", "```markdown\nRun:\n```\nls\n```\n```", ["Run:\n```\nls\n```\n"]),
    (
        "a bare code block after a heading",
        "```markdown\n## Run\n```\nls\n```\n```",
        ["## Run\n```\nls\n```\n"],
    ),
    (
        "bare code before markdown in markdown",
        "```markdown\n# A\n\n```\nls\n```\n\n```markdown\nx\n```\nend\n```\n",
        ["# A\n\n```\nls\n```\n\n```markdown\nx\n```\nend\n"],
    ),
    (
        "bare code after the report stays outside",
        "```markdown\n# A\n```\n\nI ran:\n\n```\nls\n```\nbye",
        ["# A\n"],
    ),
    ("code with a language after the report", "```markdown\n# A\n```\n\n```sh\nls\n```\n", ["# A\n"]),
    (
        "markdown in markdown",
        "```markdown\n# A\n```markdown\nx\n```\nend\n```\n",
        ["# A\n```markdown\nx\n```\nend\n"],
    ),
    ("a longer fence", "````markdown\n# A\n```\nls\n```\n````\nbye", ["# A\n```\nls\n```\n"]),
    ("a longer fence with the same inside", "````markdown\n````sh\nls\n````\n````\n", ["````sh\nls\n````\n"]),
    (
        "a longer bare fence inside",
        "```markdown\n# A\n````\n```\n````\nend\n```\n",
        ["# A\n````\n```\n````\nend\n"],
    ),
    ("a longer closing fence", "```markdown\n# A\n`````\nbye", ["# A\n"]),
    ("tildes", "~~~markdown\n# A\n```\nls\n```\n~~~\nbye", ["# A\n```\nls\n```\n"]),
    ("tildes inside", "```markdown\n# A\n~~~\nls\n~~~\n```\nbye", ["# A\n~~~\nls\n~~~\n"]),
    ("in a list item", "1. Plan:\n   ```markdown\n   # A\n     - b\n\n   ```\n", ["# A\n  - b\n\n"]),
    (
        "deeper bare code",
        "```markdown\n- one\n  ```\n  ls\n  ```\n- two\n```\n",
        ["- one\n  ```\n  ls\n  ```\n- two\n"],
    ),
    ("inline code is no fence", "```markdown\n```ls``` lists\n```\n", ["```ls``` lists\n"]),
    ("unterminated", "```markdown\n# A\nmore", ["# A\nmore\n"]),
    ("unterminated, then a tag", "```markdown\n# A\n\n[STEP:1]\n", ["# A\n"]),
    ("unterminated code inside", "```markdown\n# A\n```sh\nls\n```\n\n[STEP:0]", ["# A\n```sh\nls\n"]),
    ("cut after code", "```markdown\n# A\n```sh\nls\n```\nand th", ["# A\n```sh\nls\n```\nand th\n"]),
    ("unterminated before another", "```markdown\n# A\n\n```markdown\n# B\n```\n", ["# A\n\n", "# B\n"]),
    ("two unterminated", "```markdown\n# A\n```markdown\n# B", ["# A\n", "# B\n"]),
    ("the opening fence is the last line", "```markdown", [""]),
    ("inside another block", "````text\n```markdown\n# A\n```\n````\n", []),
    ("after a block that somebody forgot to close", "```sh\nls\n\n```markdown\n# A\n```\n", ["# A\n"]),
    ("after a stray fence", "~~~\n```markdown\n# A\n```\n", ["# A\n"]),
    ("another word", "```markdownlint\nx\n```\n", []),
    ("not at the start of a line", "see ```markdown\n# A\n", []),
    ("two blocks", "```markdown\n# A\n```\n```md\n# B\n```", ["# A\n", "# B\n"]),
]


@pytest.mark.parametrize(("output", "texts"), [row[1:] for row in BLOCKS], ids=[row[0] for row in BLOCKS])
def test_where_a_block_begins_and_ends(output: str, texts: list[str]) -> None:
    assert [found.text for found in scan_markdown(output).blocks] == texts
    crlf = scan_markdown(output.replace("\n", "\r\n")).blocks
    assert [found.text.replace("\r", "") for found in crlf] == texts


MARKS = st.lists(
    st.sampled_from(
        [
            "```markdown",
            "```",
            "```sh",
            "````",
            "~~~",
            "~~~md",
            "  ```",
            "",
            "# Scope",
            "Scope:",
            "summary.md",
            "[STEP:0]",
            "<!-- summary.md -->",
            "<!--",
            "text",
            "**Summary**",
            "===",
        ]
    ),
    max_size=30,
).map("\n".join)


@given(
    MARKS | st.text(), st.sampled_from([(), PLAN, TWO, CONTRACTS, (ReportWanted(""), ReportWanted("..", ""))])
)
def test_extract_never_raises_and_invents_nothing(output: str, wanted: tuple[ReportWanted, ...]) -> None:
    found = extract(output, wanted)
    assert list(found) == [report.name for report in wanted]
    for text in found.values():
        assert text == output or all(line.strip() in output for line in text.split("\n"))


@given(MARKS)
def test_blocks_are_in_order_and_apart(output: str) -> None:
    blocks = scan_markdown(output).blocks
    for first, second in itertools.pairwise(blocks):
        assert first.line < first.end <= second.line


@given(st.text(alphabet="abc #\n-|`", max_size=80))
def test_a_report_in_a_fence_long_enough_comes_back_as_it_was(text: str) -> None:
    longest = max((len(run) for run in text.replace("\n", " ").split() if set(run) == {"`"}), default=0)
    fence = "`" * (max(3, longest, text.count("`")) + 1)
    assert extract(f"Here:\n{fence}markdown\n{text}x\n{fence}\n", PLAN) == {"01-plan.md": f"{text}x\n"}


@pytest.mark.parametrize(
    "output",
    [
        "```markdown\n" * 50_000,
        "```\n" * 150_000,
        "```sh\n" * 100_000,
        "```markdown\n\n```\nx\n```\n" * 20_000,
        "<!--" * 100_000 + "\n```markdown\nx\n```\n",
        "```markdown\n" + "<!--" * 100_000,
        "".join("`" * n + "x\n" for n in range(3, 800)),
    ],
    ids=["open", "bare", "code", "blocks", "comments", "comments-inside", "lengths"],
)
def test_a_hostile_output_is_read_in_reasonable_time(output: str) -> None:
    started = time.process_time()
    extract(output, TWO)
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    "name", ["plan.md", "01-plan.md", "sub/plan.md", "計画 書.md", ".hidden", "a..b.md", "./a.md"]
)
def test_a_good_report_name(name: str) -> None:
    assert report_name_problem(name) is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "is empty"),
        (" ", "is empty"),
        ("a\0b", "holds a NUL character"),
        ("a\nb", "holds a control character"),
        ("a\ud800b", "holds a control character"),
        ("a\\b.md", "holds a backslash; write folders with /"),
        ("/etc/passwd", "is an absolute path"),
        ("C:plan.md", "is an absolute path"),
        ("../plan.md", "leaves the report folder"),
        ("a/../../b.md", "leaves the report folder"),
        ("a/..", "leaves the report folder"),
        ("a/", "names a folder"),
        (".", "names a folder"),
        ("a/.", "names a folder"),
        ("計" * 100, "is longer than 200 bytes"),
    ],
)
def test_a_bad_report_name(name: str, problem: str) -> None:
    assert report_name_problem(name) == problem
