"""A piece file of either format, read from top to bottom into a piece with its texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cadenza.ids import Hash
from cadenza.piece.dialects.checks import Draft, check
from cadenza.piece.dialects.fields import Fields, check_line, mapping_of
from cadenza.piece.dialects.grammar import Grammar
from cadenza.piece.dialects.movements import MovementReader, Performer, performer
from cadenza.piece.dialects.tooling import (
    STABLE,
    control_of,
    read_budget,
    read_guards,
    read_requests,
    read_servers,
)
from cadenza.piece.facets import FacetResolver, FacetShelf, UsedFile
from cadenza.piece.model import LoadedPiece, Piece
from cadenza.piece.problems import Problems
from cadenza.piece.source import Source
from cadenza.piece.vocabulary import Language

LANGUAGES = ("en", "ja")
PHASES = ("single", "three")


@dataclass(frozen=True, slots=True)
class Reading:
    """One file, read: its piece (where it has one), the draft that lint looks at, the problems, the files
    that it draws on, and its texts by hash."""

    loaded: LoadedPiece | None
    draft: Draft | None
    problems: Problems
    files: tuple[UsedFile, ...] = ()
    texts: Mapping[Hash, str] = field(default_factory=dict)


def read_piece(
    source: Source, grammar: Grammar, shelves: tuple[FacetShelf, ...], language: Language | None = None
) -> Reading:
    """Read a parsed file with the keys of ``grammar``; never raises for what the file says.

    ``shelves`` are the facet folders in the order in which they are asked; ``language`` is the piece's
    when the file does not say.
    """
    problems = Problems(source.shown, list(source.problems))
    fields = mapping_of(source.root, problems, "a piece")
    if fields is None:
        return Reading(None, None, problems)
    fields.what = "a piece"
    fields.check_keys(grammar.piece, strict=grammar.strict)
    for key, node in fields:
        if key in grammar.refused:
            problems.error(key, f"{key} is not read", node.text or None, grammar.refused[key])
    facets = FacetResolver(source.path.absolute().parent, shelves, problems, strict=grammar.strict)
    _read_sections(fields, grammar, facets)
    reader = MovementReader(grammar, facets, problems, _piece_performer(fields, grammar))
    draft = _draft(fields, grammar, reader)
    check(draft, problems)
    piece = _piece(fields, grammar, draft, language)
    if problems.errors:
        return Reading(None, draft, problems, tuple(facets.used), facets.texts)
    warnings = tuple(str(problem) for problem in problems.warnings)
    loaded = LoadedPiece(piece=piece, texts=facets.texts, path=str(source.path), warnings=warnings)
    return Reading(loaded, draft, problems, tuple(facets.used), facets.texts)


def _read_sections(fields: Fields, grammar: Grammar, facets: FacetResolver) -> None:
    """The section maps: keys that movements use for paths or texts (TAKT engine, section maps)."""
    holder = fields.mapping(grammar.sections_under) if grammar.sections_under else fields
    if holder is None:
        return
    if holder is not fields:
        holder.check_keys(dict.fromkeys(grammar.sections, ""), strict=grammar.strict)
    for name, kind in grammar.sections.items():
        section = holder.mapping(name)
        if section is None:
            continue
        for key, node in section:
            check_line(key, f"a key of {name}", key, facets.problems)
            if isinstance(node.value, str):
                facets.sections.setdefault(kind, {})[str(key)] = node
            else:
                what = f"{name} maps names to paths or texts, and this is {node.kind}"
                facets.problems.error(node, what, node.text or None, "write a path or a text")


def _piece_performer(fields: Fields, grammar: Grammar) -> Performer:
    config = fields.mapping(*grammar.config_names) if grammar.config_names else fields
    if config is None:
        return Performer()
    if config is not fields:
        config.check_keys(grammar.config, strict=grammar.strict)
    return performer(config, fields.problems, Performer(), grammar)


def _draft(fields: Fields, grammar: Grammar, reader: MovementReader) -> Draft:
    nodes = fields.items(*grammar.movements_names)
    key = grammar.movements_names[0]
    if not nodes and (
        fields.get(*grammar.movements_names) is None or fields.at(*grammar.movements_names).value == []
    ):
        at = fields.at(*grammar.movements_names)
        fields.problems.error(at, "a piece has no movements", None, f"add {key}: with at least one")
    movements = [placed for node in nodes if (placed := reader.movement(node))]
    monitors = [watched for node in fields.items("loop_monitors") if (watched := reader.monitor(node))]
    initial = fields.get(*grammar.initial_names) if fields.text(*grammar.initial_names) is not None else None
    kinds = [placed.movement.kind for placed in movements]
    phases = fields.choice("phases", PHASES) or "single"
    control = control_of(fields, phases, kinds, native=grammar.dialect == "native")
    return Draft(fields, movements, monitors, initial, grammar.strict, control)


def _piece(fields: Fields, grammar: Grammar, draft: Draft, language: Language | None) -> Piece:
    first = draft.names[0] if draft.names else ""
    return Piece(
        name=fields.required_text("name"),
        description=fields.text("description"),
        dialect=grammar.dialect,
        phases=fields.choice("phases", PHASES) or "single",
        control=draft.control,
        language=fields.choice("language", LANGUAGES) or language,
        max_movements=fields.count(*grammar.limit_names, default=10),
        initial_movement=draft.initial.text if draft.initial else first,
        movements=tuple(placed.movement for placed in draft.movements),
        loop_monitors=tuple(placed.monitor for placed in draft.monitors),
        guards=read_guards(fields),
        requests=read_requests(fields),
        budget=read_budget(fields),
        mcp_servers=read_servers(fields) if grammar.dialect == "native" else (),
        stable_tools=fields.choice("stable_tools", STABLE) or "piece",
    )
