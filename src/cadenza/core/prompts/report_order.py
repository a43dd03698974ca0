"""Part 10 of the prompt: which reports to write, and how.

Source of behaviour: TAKT engine, "automatic insertion of the report instruction". Its two forms, and
the third of the command-line engine::

    report: {name: 01-plan.md, format: plan}                 form 1   a contract
    report: [{Summary: summary.md}, {Scope: 01-scope.md}]    form 2   labels
    report: {name: 01-plan.md, order: ..., format: plan}     form 3   words of its own, then the contract

Several reports with contracts are form 2's two sentences followed by form 1's lines for each report.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cadenza.core.prompts.templates import expand, reports_mentioned
from cadenza.core.prompts.texts import Texts
from cadenza.core.reports import ReportWanted


class ReportItem(msgspec.Struct, frozen=True, kw_only=True):
    """One report that a movement is to write.

    ``format`` is the text of the output contract: given to the model as it is, since a contract is full
    of blanks in braces. ``order`` is form 3's text before it: a template, in which ``{report:FILE}`` is
    the *path* of a report, as in the command-line engine that the form comes from.
    """

    name: str
    label: str | None = None
    format: str | None = None
    order: str | None = None

    @property
    def contract(self) -> str | None:
        """What ``Output contract:`` shows: the format, or the order where there is nothing else."""
        return self.order if self.format is None else self.format


class ReportOrder(msgspec.Struct, frozen=True):
    """The reports of one movement, in the order of the piece."""

    items: tuple[ReportItem, ...]

    @property
    def wanted(self) -> tuple[ReportWanted, ...]:
        """What :func:`cadenza.core.reports.extract` looks for in the output."""
        return tuple(ReportWanted(item.name, item.label) for item in self.items)


def render_order(order: ReportOrder, texts: Texts, values: Mapping[str, str]) -> str:
    """The report instruction, from its ``---`` on; ``values`` are the instruction's variables."""
    items = [_expand_order(item, values) for item in order.items]
    if len(items) == 1 and items[0].label is None and items[0].contract is not None:
        return f"{texts.report_one}\n\n{_entry(1, items[0], texts)}"
    rendered = texts.report_many
    previous: ReportItem | None = None
    for number, item in enumerate(items, 1):
        in_list = previous is not None and previous.contract is None and item.contract is None
        rendered += ("\n" if in_list else "\n\n") + _entry(number, item, texts)
        previous = item
    return rendered


def _expand_order(item: ReportItem, values: Mapping[str, str]) -> ReportItem:
    if item.order is None:
        return item
    paths = {file: f"{values['report_dir']}/{file}" for file in reports_mentioned(item.order)}
    text = expand(item.order.rstrip("\r\n"), values, paths, missing_report="")
    return msgspec.structs.replace(item, order=text)


def _entry(number: int, item: ReportItem, texts: Texts) -> str:
    values = {
        "number": str(number),
        "label": item.label or item.name,
        "name": item.name,
        "contract": (item.contract or "").rstrip("\r\n"),
    }
    if item.contract is None:
        return _fill(texts.report_labelled, values)
    lines = [_fill(texts.report_file if item.label is None else texts.report_labelled, values)]
    if item.order is not None and item.format is not None:
        lines.append(item.order)
    lines.append(_fill(texts.report_contract, values))
    return "\n".join(lines)


def _fill(template: str, values: Mapping[str, str]) -> str:
    return expand(template, values, {}, missing_report="")
