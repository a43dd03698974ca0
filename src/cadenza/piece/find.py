"""Where pieces live, and how one is found by name or path.

A reference that ends in ``.yaml``, ``.yml`` or ``.json``, or that holds a ``/``, is a path. Anything else
is a name, looked up in this order (TAKT skill, piece lookup; the package last)::

    <cwd>/.cadenza/pieces   <cwd>/.takt/pieces     origin "project"
    ~/.cadenza/pieces       ~/.takt/pieces         origin "user"
    the package's pieces in the language asked for, then in the others     origin "package"
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from cadenza.errors import CadenzaError, NotFound
from cadenza.piece.dialects import Reading, dialect_of_node, read_dialect
from cadenza.piece.facets import FacetShelf, nearest
from cadenza.piece.model import LoadedPiece
from cadenza.piece.source import Source, read_source
from cadenza.piece.vocabulary import Dialect, Language

Origin = Literal["project", "user", "package", "path"]

_HOUSES = (".cadenza", ".takt")
_SUFFIXES = (".yaml", ".yml")
_LANGUAGES: tuple[Language, ...] = ("en", "ja")


@dataclass(frozen=True, slots=True)
class PieceFolder:
    """One folder that is searched for pieces by name."""

    path: Path
    origin: Origin
    language: Language | None = None

    def find(self, name: str) -> Path | None:
        """The file of the piece ``name``, if it is here."""
        candidates = (self.path / f"{name}{suffix}" for suffix in _SUFFIXES)
        return next((path for path in candidates if os.path.isfile(path)), None)

    def files(self) -> list[Path]:
        """All piece files here, by name."""
        try:
            return sorted(path for path in self.path.iterdir() if path.suffix in _SUFFIXES and path.is_file())
        except OSError:
            return []


@dataclass(frozen=True, slots=True)
class FoundPiece:
    """A piece's file, and where it was found. ``language`` is known for the package's own pieces."""

    path: Path
    origin: Origin
    language: Language | None = None


@dataclass(frozen=True, slots=True)
class PieceInfo:
    """A piece as a listing shows it. ``name`` is what to type; ``problem`` says why it cannot be read."""

    name: str
    description: str | None
    path: str
    origin: Origin
    dialect: Dialect | None
    problem: str | None = None


@cache
def package_root() -> Path:
    """The folder of the pieces that come with Cadenza: ``<language>/pieces`` and ``<language>/facets``."""
    return Path(str(files("cadenza") / "pieces"))


def piece_folders(cwd: str | Path, language: Language | None = None) -> list[PieceFolder]:
    """The folders that are searched, in order."""
    found = [PieceFolder(Path(cwd) / house / "pieces", "project") for house in _HOUSES]
    found += [PieceFolder(Path.home() / house / "pieces", "user") for house in _HOUSES]
    for code in _language_order(language):
        found.append(PieceFolder(package_root() / code / "pieces", "package", code))
    return found


def facet_shelves(piece: Path, cwd: str | Path, language: Language | None = None) -> tuple[FacetShelf, ...]:
    """The facet folders that a piece's bare names are looked up in, in order.

    Labels keep a facet's origin free of machine-dependent paths: they are part of the piece's hash.
    """
    beside = FacetShelf("../facets/", Path(os.path.normpath(piece.absolute().parent.parent / "facets")))
    project = [FacetShelf(f"project:{house}/", Path(cwd) / house / "facets") for house in _HOUSES]
    user = [FacetShelf(f"user:{house}/", Path.home() / house / "facets") for house in _HOUSES]
    code = _language_order(language)[0]
    return (beside, *project, *user, FacetShelf(f"package:{code}/", package_root() / code / "facets"))


def _language_order(language: Language | None) -> list[Language]:
    first = language or "en"
    return [first, *(code for code in _LANGUAGES if code != first)]


def looks_like_path(reference: str) -> bool:
    """Whether a reference names a file rather than a piece (TAKT skill, piece lookup)."""
    return reference.endswith((*_SUFFIXES, ".json")) or "/" in reference or os.sep in reference


def find_piece(reference: str, *, cwd: str | Path, language: Language | None = None) -> FoundPiece:
    """The file that ``reference`` stands for; a relative path is relative to ``cwd``.

    Raises:
        NotFound: nothing has this name; the message names the places looked at, the hint near names.
    """
    if looks_like_path(reference):
        path = Path(cwd) / os.path.expanduser(reference)
        if not os.path.exists(path):
            raise NotFound(
                f"{reference}: there is no such piece file", hint="check the path, or give a piece's name"
            )
        return FoundPiece(path, "path", _package_language(path))
    folders = piece_folders(cwd, language)
    for folder in folders:
        if path_found := folder.find(reference):
            return FoundPiece(path_found, folder.origin, folder.language)
    raise _not_found(reference, folders)


def _package_language(path: Path) -> Language | None:
    """The language of a path that leads into the package's own pieces."""
    parents = path.resolve().parents
    return next((code for code in _LANGUAGES if (package_root() / code).resolve() in parents), None)


def _not_found(name: str, folders: list[PieceFolder]) -> NotFound:
    known = sorted({path.stem for folder in folders for path in folder.files()})
    near = nearest(name, known)
    hint = f"did you mean {near}?" if near else f"known pieces: {', '.join(known) or 'none'}"
    places = ", ".join(str(folder.path) for folder in folders)
    return NotFound(f"there is no piece {name!r}; looked in {places}", hint=hint)


def load_piece(reference: str, *, cwd: str | Path, language: Language | None = None) -> LoadedPiece:
    """Find a piece by name or path and read it with all its texts.

    ``language`` chooses among the package's pieces and facets; a piece from there carries its language.

    Raises:
        NotFound: there is no such piece.
        PieceError: it has mistakes; ``problems`` has a line for each, all at once.
    """
    found = find_piece(reference, cwd=cwd, language=language)
    shown = reference if found.origin == "path" else str(found.path)
    reading = read_found(found, shown=shown, cwd=cwd, language=language)
    reading.problems.raise_errors()
    assert reading.loaded is not None
    return reading.loaded


def read_found(
    found: FoundPiece, *, shown: str, cwd: str | Path, language: Language | None = None
) -> Reading:
    """Read a piece's file with its facets; ``shown`` is what problems call it.

    Raises:
        NotFound, PieceError: the file itself cannot be read or parsed. Mistakes in the piece are collected.
    """
    source = read_source(found.path, shown=shown, go_on=True)
    shelves = facet_shelves(found.path, cwd, found.language or language)
    return read_dialect(source, shelves, found.language)


def list_pieces(cwd: str | Path, language: Language | None = None) -> list[PieceInfo]:
    """Every piece that a name can reach from ``cwd``, nearest first; a shadowed one is left out."""
    seen: set[str] = set()
    return list(_listed(piece_folders(cwd, language), seen))


def _listed(folders: list[PieceFolder], seen: set[str]) -> Iterator[PieceInfo]:
    for folder in folders:
        for path in folder.files():
            if path.stem not in seen:
                seen.add(path.stem)
                yield _info(path, folder.origin)


def _info(path: Path, origin: Origin) -> PieceInfo:
    try:
        source = read_source(path, go_on=True)
    except CadenzaError as error:
        return PieceInfo(path.stem, None, str(path), origin, None, error.message)
    problem = "\n".join(map(str, source.problems)) or None
    dialect = dialect_of_node(source.root)
    return PieceInfo(path.stem, _description(source), str(path), origin, dialect, problem)


def _description(source: Source) -> str | None:
    plain = source.root.plain()
    words = plain.get("description") if isinstance(plain, dict) else None
    return words if isinstance(words, str) else None


__all__ = [
    "FoundPiece",
    "PieceFolder",
    "PieceInfo",
    "facet_shelves",
    "find_piece",
    "list_pieces",
    "load_piece",
    "piece_folders",
]
