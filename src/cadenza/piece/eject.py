"""Copy a piece, with every text that it uses, to a place where it can be changed.

A piece of ours goes to ``.cadenza/``, one of TAKT's to ``.takt/``: the file to ``pieces/``, a facet that it
names by its bare name to ``facets/<kind>/``, and a file that it names by a path to the same place beside
the piece. So the copy is found by the piece's name before the original, and finds the copied texts before
any other. Nothing that is there already is written over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cadenza.errors import Conflict, HostError
from cadenza.piece.dialects import Reading
from cadenza.piece.facets import UsedFile
from cadenza.piece.find import find_piece, read_found
from cadenza.piece.problems import Problems
from cadenza.piece.vocabulary import Language

What = Literal["made", "kept", "differs"]


@dataclass(frozen=True, slots=True)
class Ejected:
    """One file. ``kept``: it was there already and is the same; ``differs``: it was there and is another,
    so the copied piece plays with that one."""

    path: Path
    what: What


def eject(
    reference: str, *, cwd: str | Path, user: bool = False, language: Language | None = None
) -> list[Ejected]:
    """Copy a piece and what it uses to the project below ``cwd``, or to the person's own folder.

    The piece is the last in the list: it is written when everything that it needs is there.

    Raises:
        NotFound: there is no such piece.
        PieceError: it has mistakes, or names files by paths that cannot be kept beside a copy.
        Conflict: a piece of this name is there already.
        HostError: a file cannot be written.
    """
    found = find_piece(reference, cwd=cwd, language=language)
    reading = read_found(found, shown=reference, cwd=cwd, language=language)
    reading.problems.raise_errors()
    assert reading.loaded is not None
    home = Path.home() if user else Path(cwd)
    house = home / (".cadenza" if reading.loaded.piece.dialect == "native" else ".takt")
    target = house / "pieces" / f"{found.path.stem}.yaml"
    if taken := next((path for path in (target, target.with_suffix(".yml")) if os.path.lexists(path)), None):
        raise Conflict(f"{taken} is there already", hint="change that one, or move it away first")
    copies = dict(_copies(reading, target, house))
    return [_copy(source, path) for path, source in copies.items()] + [_copy(found.path, target)]


def _copies(reading: Reading, target: Path, house: Path) -> Iterator[tuple[Path, Path]]:
    """Where each file of the piece goes, and where it comes from.

    Raises:
        PieceError: a path leads out of the house; a copy of the piece would name another file by it.
    """
    problems = Problems(reading.problems.file)
    for used in reading.files:
        path = _place(used, target, house)
        if path is None:
            continue
        if house not in path.parents:
            fix = "name it by a path below the folder that holds pieces/, or by its bare name"
            problems.error(used.node, "this path cannot be kept beside a copy", used.reference, fix)
        elif used.path.is_file():
            yield path, used.path
    problems.raise_errors()


def _place(used: UsedFile, target: Path, house: Path) -> Path | None:
    """Where a copy of a file must be for the copied piece to find it. ``None``: it finds it where it is."""
    if used.kind is not None:
        return house / "facets" / used.kind / f"{used.reference}.md"
    if os.path.isabs(os.path.expanduser(used.reference)):
        return None
    return Path(os.path.normpath(target.parent / used.reference))


def _copy(source: Path, target: Path) -> Ejected:
    try:
        data = source.read_bytes()
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with target.open("xb") as file:
                file.write(data)
        except FileExistsError:
            return Ejected(target, "kept" if target.read_bytes() == data else "differs")
    except OSError as error:
        raise HostError(
            f"{error.filename or target} cannot be copied to {target}: {error.strerror}",
            hint="mend it and eject again: what was written already is kept",
        ) from None
    return Ejected(target, "made")


__all__ = ["Ejected", "eject"]
