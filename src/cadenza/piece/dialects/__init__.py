"""One module per file format; each reads a file into a :class:`~cadenza.piece.model.Piece`.

A file whose top level has the key ``cadenza`` is of our own format (:mod:`.native`); any other piece is
TAKT's (:mod:`.takt`).
"""

from __future__ import annotations

from cadenza.piece.dialects.native import NATIVE, check_version, is_native
from cadenza.piece.dialects.reading import Reading, read_piece
from cadenza.piece.dialects.takt import TAKT
from cadenza.piece.facets import FacetShelf
from cadenza.piece.source import Node, Source
from cadenza.piece.vocabulary import Dialect, Language


def dialect_of_node(root: Node) -> Dialect:
    """The format of a parsed file."""
    return "native" if is_native(root) else "takt"


def read_dialect(
    source: Source, shelves: tuple[FacetShelf, ...], language: Language | None = None
) -> Reading:
    """Read a parsed file in the format that it is of; problems are collected, not raised."""
    if not is_native(source.root):
        return read_piece(source, TAKT, shelves, language)
    reading = read_piece(source, NATIVE, shelves, language)
    check_version(source.root, reading.problems)
    return reading


__all__ = ["Reading", "dialect_of_node", "read_dialect"]
