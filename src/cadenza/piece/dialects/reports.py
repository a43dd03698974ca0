"""The forms in which a movement names its reports.

::

    report: {name: 01-plan.md, format: plan}                 1   a format by key or name
    report: {name: 01-plan.md, format: "# Plan …"}           1b  a format written inline
    report: [{Summary: summary.md}, {Scope: 01-scope.md}]    2   labels and files
    report: [{name: plan.md, order: "…", format: plan}]      3   words before and after

``output_contracts: {report: [...]}`` (TAKT's command line) holds the same items.
"""

from __future__ import annotations

from cadenza.piece.dialects.fields import Fields, mapping_of, text_of
from cadenza.piece.dialects.grammar import Grammar
from cadenza.piece.facets import FacetResolver
from cadenza.piece.model import Report
from cadenza.piece.problems import Problems
from cadenza.piece.report_files import report_name_problem
from cadenza.piece.source import Node

Placed = tuple[Report, Node]
"""A report, and where its name stands."""

NAMED = ("format", "order", "use_judge", "name")
"""A mapping with one of these keys is one report; any other is labels and files."""


def read_reports(fields: Fields, facets: FacetResolver, grammar: Grammar) -> list[Placed]:
    """All reports that one movement owes, in the order of the file."""
    found: list[Placed] = []
    for node in _items(fields):
        found += _item(node, facets, grammar)
    return [placed for placed in found if _fits(*placed, facets.problems)]


def _items(fields: Fields) -> list[Node]:
    items: list[Node] = []
    for node in (fields.get("report"), _contracts(fields)):
        if node is not None:
            items += node.value if isinstance(node.value, list) else [node]
    return items


def _contracts(fields: Fields) -> Node | None:
    node = fields.get("output_contracts")
    if node is None or isinstance(node.value, list):
        return node
    contracts = mapping_of(node, fields.problems, "output_contracts")
    if contracts is None:
        return None
    contracts.check_keys({"report": ""}, strict=False)
    return contracts.get("report")


def _item(node: Node, facets: FacetResolver, grammar: Grammar) -> list[Placed]:
    if isinstance(node.value, str):
        return [(Report(name=node.value), node)]
    fields = mapping_of(node, facets.problems, "a report")
    if fields is None:
        return []
    if any(key in NAMED for key, _ in fields):
        return _named(fields, facets, grammar)
    return [
        (Report(name=name, label=str(label)), value)
        for label, value in fields
        if (name := text_of(value, facets.problems, "a report's file name")) is not None
    ]


def _named(fields: Fields, facets: FacetResolver, grammar: Grammar) -> list[Placed]:
    fields.check_keys(grammar.report, strict=grammar.strict)
    name = fields.required_text("name")
    report = Report(
        name=name,
        label=fields.text("label"),
        format=_text(fields, "format", facets),
        order=_text(fields, "order", facets),
        use_judge=fields.flag("use_judge") is not False,
    )
    return [(report, fields.at("name"))] if name else []


def _text(fields: Fields, name: str, facets: FacetResolver) -> str | None:
    if fields.text(name) is None:
        return None
    return facets.text("output-contracts", fields.at(name))


def _fits(report: Report, node: Node, problems: Problems) -> bool:
    """Whether the name is that of a file in the report folder; a relative path with ``/`` is fine."""
    problem = report_name_problem(report.name)
    if problem is not None:
        fix = "write a plain file name such as plan.md"
        problems.error(node, f"this report's name {problem}", report.name, fix)
    return problem is None
