"""Template variables: one pass, unknown names stay, values are data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadenza.core.prompts.templates import VARIABLES, expand, mentions, reports_mentioned

VALUES = {name: f"<{name}>" for name in VARIABLES}
REPORTS = {"plan.md": "the plan", "sub/計画 1.md": "下位", "gone.md": None, "empty.md": ""}
BRACES = st.text(alphabet="{}ab_:task report.md\n\\1$&", max_size=40)


def expanded(template: str) -> str:
    return expand(template, VALUES, REPORTS, missing_report="(none)")


@pytest.mark.parametrize(
    ("template", "result"),
    [
        *((f"x{{{name}}}y", f"x<{name}>y") for name in sorted(VARIABLES)),
        ("{task}{task}", "<task><task>"),
        ("{{task}}", "{<task>}"),
        ("{unknown} {Task} { task } {}", "{unknown} {Task} { task } {}"),
        ("{report:plan.md}", "the plan"),
        ("{report: plan.md }", "the plan"),
        ("{report:sub/計画 1.md}", "下位"),
        ("{report:gone.md}{report:never.md}", "(none)(none)"),
        ("[{report:empty.md}]", "[]"),
        ("{report:}", "{report:}"),
        ("{report:{task}}", "{report:<task>}"),
        ("{report:a\nb}", "{report:a\nb}"),
        ("{var.environment} {N} {}{", "{var.environment} {N} {}{"),
    ],
)
def test_expansion(template: str, result: str) -> None:
    assert expanded(template) == result


@pytest.mark.parametrize("value", ["{task}", "{report:plan.md}", r"\1 \g<0>", "$& $1 $$", "{{}}", "｛x｝"])
def test_a_value_is_never_read_again(value: str) -> None:
    values = {"task": value, "iteration": "7"}
    assert expand("{task} {iteration}", values, REPORTS, missing_report="") == f"{value} 7"
    assert expand("{report:a}", values, {"a": value}, missing_report="") == value


@given(BRACES, BRACES, BRACES)
def test_what_stands_around_a_variable_does_not_matter(task: str, report: str, previous: str) -> None:
    values = {"task": task, "previous_response": previous}
    result = expand("{task}|{report:r}|{previous_response}", values, {"r": report}, missing_report="")
    assert result == f"{task}|{report}|{previous}"


@given(BRACES)
def test_a_template_without_known_variables_stays(template: str) -> None:
    if not reports_mentioned(template):
        assert expand(template, {}, {}, missing_report="!") == template


@given(BRACES, st.sampled_from(["task", "report_dir", "a"]))
def test_mentions_agrees_with_expansion(template: str, name: str) -> None:
    gone = expand(template, {name: ""}, {}, missing_report="")
    kept = expand(template, {}, {}, missing_report="")
    assert mentions(template, name) == (gone != kept) == (f"{{{name}}}" in template)


def test_reports_mentioned_are_in_order_and_once_each() -> None:
    template = "{report:b.md} {task} {report:a.md} {report: b.md } {report:}"
    assert reports_mentioned(template) == ("b.md", "a.md")
