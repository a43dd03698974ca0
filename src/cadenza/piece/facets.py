"""Where the words of a movement come from: section maps, paths, facets by name, or inline text.

A reference is tried in this order (TAKT engine, section maps; TAKT's schema, facets by bare name):

1. a key of the piece's section map, whose value is a path relative to the piece's folder or inline text;
2. a path relative to the piece's folder;
3. a bare name: ``../facets/<kind>/NAME.md`` beside the piece's folder, then the project's, the user's
   and the package's facets;
4. the text itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from cadenza.errors import CadenzaError
from cadenza.ids import Hash, text_hash
from cadenza.piece.model import Facet
from cadenza.piece.problems import Problems
from cadenza.piece.source import Node, read_text
from cadenza.piece.vocabulary import FacetKind

_BARE_NAME = re.compile(r"\w[\w.-]*")
_ONE_WORD = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9_-])?")
"""What is taken for a name. A word with a full stop behind it is a sentence."""
_LONGEST_PATH = 1024
_LONGEST_GUESS = 100
_MOST_NAMES = 200

FACET_WORDS: Mapping[FacetKind, str] = {
    "personas": "persona",
    "policies": "policy",
    "knowledge": "knowledge",
    "instructions": "instruction",
    "output-contracts": "report format",
}


@dataclass(frozen=True, slots=True)
class FacetShelf:
    """One folder of facets (``<root>/<kind>/NAME.md``), and what its facets are called to a person."""

    label: str
    root: Path

    def find(self, kind: FacetKind, name: str) -> Path | None:
        """The file of the facet ``name``, if this shelf has it."""
        path = self.root / kind / f"{name}.md"
        return path if os.path.isfile(path) else None

    def names(self, kind: FacetKind) -> list[str]:
        """The names of all facets of one kind here."""
        try:
            return sorted(path.stem for path in (self.root / kind).glob("*.md"))
        except OSError:
            return []


@dataclass(frozen=True, slots=True)
class Resolved:
    """A text that was found: what it is called, where it came from, and the path it was named by."""

    name: str
    text: str
    origin: str
    spec: str | None = None


@dataclass(frozen=True, slots=True)
class UsedFile:
    """A file that a piece draws on. ``kind``: it is a facet that was found by its bare name; without a
    kind, ``reference`` is the path by which the piece names it. ``node`` is where."""

    reference: str
    path: Path
    node: Node
    kind: FacetKind | None = None


@dataclass(slots=True)
class FacetResolver:
    """Resolves the references of one piece, and gathers its texts by hash.

    ``strict`` (our own format) makes a name or path that leads nowhere an error; TAKT takes it as text,
    so there it is a warning.
    """

    folder: Path
    shelves: tuple[FacetShelf, ...]
    problems: Problems
    strict: bool = False
    sections: dict[FacetKind, dict[str, Node]] = field(default_factory=dict)
    texts: dict[Hash, str] = field(default_factory=dict)
    used: list[UsedFile] = field(default_factory=list)

    def keep(self, text: str) -> Hash:
        """Keep ``text`` among the piece's texts."""
        key = text_hash(text)
        self.texts[key] = text
        return key

    def text(self, kind: FacetKind, node: Node) -> Hash | None:
        """The hash of an instruction's or a report format's text. ``None``: it could not be read."""
        found = self.resolve(kind, node)
        return self.keep(found.text) if found else None

    def facet(self, kind: FacetKind, node: Node, fallback: str) -> Facet | None:
        """A named text; ``fallback`` names it when it was written inline."""
        found = self.resolve(kind, node)
        if found is None:
            return None
        return Facet(name=found.name or fallback, text=self.keep(found.text), origin=found.origin)

    def persona(self, node: Node, fallback: str) -> tuple[Facet | None, str | None]:
        """A persona, and what scripts call it where that is not the persona's name."""
        found = self.resolve("personas", node)
        if found is None:
            return None, None
        name = found.name or fallback
        facet = Facet(name=name, text=self.keep(found.text), origin=found.origin)
        return facet, performer_of(found.spec, name)

    def beside(self, node: Node) -> Path:
        """The path that a node names, relative to the piece's folder, whether or not there is anything."""
        path = Path(os.path.normpath(self.folder / os.path.expanduser(node.text)))
        self.used.append(UsedFile(node.text, path, node))
        return path

    def file(self, node: Node, what: str) -> Hash | None:
        """The hash of the text of a file that must be there. ``None``: it is not; the problem is recorded."""
        path = self.beside(node)
        if not os.path.isfile(path):
            self.problems.error(node, "there is no such file", node.text, f"put the {what} there")
            return None
        found = self._read(node, path, origin=node.text, spec=node.text)
        return self.keep(found.text) if found else None

    def resolve(self, kind: FacetKind, node: Node) -> Resolved | None:
        """Follow one reference. ``None``: a file that cannot be read; the problem is recorded."""
        reference = str(node.value)
        mapped = self.sections.get(kind, {}).get(reference)
        if mapped is not None:
            return self._mapped(kind, reference, mapped)
        if _looks_like_path(reference):
            return self._path(kind, node, reference)
        if _BARE_NAME.fullmatch(reference) and len(reference) <= _LONGEST_PATH:
            return self._named(kind, node, reference)
        return Resolved("", reference, "inline")

    def _mapped(self, kind: FacetKind, key: str, node: Node) -> Resolved | None:
        found = (
            self._path(kind, node, node.text) if _looks_like_path(node.text) else self._file(node, node.text)
        )
        if found is None or found.spec is not None:
            return found
        return Resolved(key, node.text, "inline")

    def _path(self, kind: FacetKind, node: Node, reference: str) -> Resolved | None:
        found = self._file(node, reference)
        if found is not None and found.spec is None and not _is_prose(reference):
            fix = f"put the {FACET_WORDS[kind]} there, or mend the path"
            return self._literal(node, reference, "there is no such file", fix)
        return found

    def _file(self, node: Node, reference: str) -> Resolved | None:
        """The file at a path relative to the piece's folder; without ``spec`` when there is none."""
        path = self.folder / os.path.expanduser(reference)
        if "\n" in reference or len(reference) > _LONGEST_PATH or not os.path.isfile(path):
            return Resolved("", reference, "inline")
        self.used.append(UsedFile(reference, path, node))
        return self._read(node, path, origin=reference, spec=reference)

    def _named(self, kind: FacetKind, node: Node, name: str) -> Resolved | None:
        for shelf in self.shelves:
            if path := shelf.find(kind, name):
                self.used.append(UsedFile(name, path, node, kind))
                return self._read(node, path, origin=f"{shelf.label}{kind}/{name}.md", spec=name)
        if not _ONE_WORD.fullmatch(name):
            return Resolved(name, name, "inline")
        near = self._nearest(kind, name)
        fix = f"did you mean {near}?" if near else _how_to_say(kind, name)
        return self._literal(node, name, f"no {FACET_WORDS[kind]} has this name", fix)

    def _literal(self, node: Node, text: str, message: str, fix: str) -> Resolved | None:
        if self.strict:
            self.problems.error(node, message, text, fix)
            return None
        self.problems.warning(node, f"{message}: it is taken as the text itself", text, fix)
        return Resolved(PurePosixPath(text).name.removesuffix(".md"), text, "inline")

    def _read(self, node: Node, path: Path, *, origin: str, spec: str) -> Resolved | None:
        try:
            text = read_text(path)
        except CadenzaError as error:
            self.problems.error(node, f"the file cannot be used: {error.message}", spec, "mend that file")
            return None
        return Resolved(path.name.removesuffix(".md"), text, origin, spec)

    def _nearest(self, kind: FacetKind, name: str) -> str | None:
        known: Iterable[str] = self.sections.get(kind, {})
        return nearest(name, [*known, *(item for shelf in self.shelves for item in shelf.names(kind))])


def _how_to_say(kind: FacetKind, word: str) -> str:
    return (
        f"write {kind}/{word}.md into a facets folder, or, where the word is the text itself, end it with a "
        "full stop, write more than one word, or a block (|)"
    )


def _is_prose(reference: str) -> bool:
    """Whether something that could be a path is a text all the same where no such file exists.

    ``Write the summary to summary.md`` is; what begins like a path is meant as one, blanks or not.
    """
    begins = reference.startswith(("./", "../", "/", "~/"))
    return not begins and any(char.isspace() for char in reference)


def _looks_like_path(reference: str) -> bool:
    """A line that ends in ``.md`` or begins like a path (TAKT, facet references)."""
    if "\n" in reference or len(reference) > _LONGEST_PATH:
        return False
    return reference.endswith(".md") or reference.startswith(("./", "../", "/", "~/"))


def performer_of(spec: str | None, name: str) -> str | None:
    """What scripts call a persona that was named by ``spec``.

    The file's name without ``.md``; a file that is not directly in a folder ``personas`` is called
    ``<folder>/<name>`` (TAKT, mock provider). ``None``: nothing but the facet's own name.
    """
    if spec is None or not spec.endswith(".md"):
        return None
    parent = PurePosixPath(spec).parent.name
    return None if parent in ("", ".", "..", "personas") else f"{parent}/{name}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that a person most likely meant; not searched for where it would take seconds."""
    import difflib

    names = sorted(set(known))
    if len(name) > _LONGEST_GUESS or len(names) > _MOST_NAMES:
        return None
    found = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return found[0] if found else None


__all__ = ["FacetResolver", "FacetShelf", "Resolved", "UsedFile", "nearest", "performer_of"]
