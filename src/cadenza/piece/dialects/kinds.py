"""The movements that are more than one agent's turn: what a team leader and an arpeggio say of themselves.

Source of behaviour: the TAKT command-line engine, team leader and arpeggio.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from cadenza.piece.dialects.fields import Fields, names_of
from cadenza.piece.dialects.grammar import Grammar
from cadenza.piece.facets import FacetResolver
from cadenza.piece.model import Arpeggio, TeamLeader
from cadenza.piece.problems import Problems
from cadenza.piece.source import Node

KINDS = ("parallel", "team_leader", "arpeggio")
"""The keys that make a movement more than an agent's; they exclude one another."""

PERMISSIONS = ("readonly", "edit", "full")
MOST_PARTS = 3
STRATEGIES = ("concat", "custom")
_LATER = "this version does not play it"


def kind_of(fields: Fields) -> str:
    """What kind a movement is of; a problem where it says two."""
    said = [(key, node) for key, node in fields if key in KINDS and node.value is not None]
    for key, _ in said[1:]:
        what = f"a movement cannot have both {said[0][0]} and {key}"
        fields.problems.error(key, what, None, "make two movements of it")
    return str(said[0][0]) if said else "agent"


@dataclass(slots=True)
class KindReader:
    """Reads the blocks ``team_leader`` and ``arpeggio``."""

    grammar: Grammar
    facets: FacetResolver
    problems: Problems

    def leader(self, fields: Fields) -> Node | None:
        """Who leads, where the block says so; it wins over the movement's persona."""
        block = fields.mapping("team_leader")
        return block.get("persona") if block and block.text("persona") is not None else None

    def team_leader(self, fields: Fields) -> TeamLeader | None:
        """A team leader's block."""
        block = self._block(fields, "team_leader")
        if block is None:
            return None
        parts = block.count("max_parts", default=MOST_PARTS, most=MOST_PARTS)
        persona, name = (None, None)
        if block.text("part_persona") is not None:
            persona, name = self.facets.persona(block.at("part_persona"), "part")
        return TeamLeader(
            max_parts=parts,
            refill_threshold=block.count("refill_threshold", default=0, least=0, most=parts),
            timeout=block.seconds("timeout_ms", default=600.0),
            part_persona=persona,
            part_persona_name=name,
            part_edit=block.flag("part_edit"),
            part_allowed_tools=names_of(block, "part_allowed_tools"),
            part_permission_mode=block.choice("part_permission_mode", PERMISSIONS),
        )

    def arpeggio(self, fields: Fields) -> Arpeggio | None:
        """An arpeggio's block. ``None``: it lacks what cannot be guessed."""
        block = self._block(fields, "arpeggio")
        if block is None:
            return None
        self._check_source(block)
        separator = self._separator(block)
        table, template = self._path(block, "source_path"), self._template(block)
        if table is None or template is None:
            return None
        return Arpeggio(
            source=os.fspath(self.facets.beside(table)),
            template=template,
            batch_size=block.count("batch_size", default=1),
            concurrency=block.count("concurrency", default=1),
            separator=separator,
            max_retries=block.count("max_retries", default=2, least=0),
            retry_delay=block.seconds("retry_delay_ms", default=1.0, least=0),
            output=self._output(block),
        )

    def _block(self, fields: Fields, name: str) -> Fields | None:
        block = fields.mapping(name)
        if block is not None:
            known = self.grammar.team_leader if name == "team_leader" else self.grammar.arpeggio
            block.check_keys(known, strict=self.grammar.strict)
        return block

    def _check_source(self, block: Fields) -> None:
        source = block.required_text("source")
        if source and source != "csv":
            what = f"rows that come from a program of one's own: {_LATER}"
            fix = "write the rows to a CSV file, and source: csv"
            self.problems.error(block.at("source"), what, source, fix)

    def _path(self, block: Fields, name: str) -> Node | None:
        return block.at(name) if block.required_text(name) else None

    def _template(self, block: Fields) -> str | None:
        node = self._path(block, "template")
        return None if node is None else self.facets.file(node, "prompt")

    def _output(self, block: Fields) -> str | None:
        if not block.text("output_path"):
            return None
        return os.path.normpath(self.facets.folder / os.path.expanduser(block.at("output_path").text))

    def _separator(self, block: Fields) -> str:
        merge = block.mapping("merge")
        if merge is None:
            return "\n"
        merge.check_keys(self.grammar.merge, strict=self.grammar.strict)
        strategy = merge.choice("strategy", STRATEGIES) or "concat"
        for name in ("inline_js", "file"):
            node = merge.get(name)
            if node is not None and name in self.grammar.merge and strategy == "concat":
                fix = "remove it: outputs are put one after the other"
                self.problems.error(node, f"merge: concat takes no {name}", node.text or None, fix)
        if strategy == "custom":
            what = f"outputs that are merged by a program of one's own: {_LATER}"
            fix = "write strategy: concat, and let a later movement put them in shape"
            self.problems.error(merge.at("strategy"), what, "custom", fix)
        separator = merge.text("separator")
        return "\n" if separator is None else separator


__all__ = ["KINDS", "PERMISSIONS", "KindReader", "kind_of"]
