"""``eject``: a piece and its texts, copied to where they can be changed."""

from pathlib import Path
from typing import Annotated

import typer

from cadenza.cli.context import Context
from cadenza.cli.output import out
from cadenza.piece.vocabulary import Language


def eject(
    ctx: typer.Context,
    piece: Annotated[str, typer.Argument(help="A piece's name, or the path of its file.")],
    *,
    user: Annotated[
        bool, typer.Option("--user", help="To your own folder, for all projects; the project's without.")
    ] = False,
    lang: Annotated[Language | None, typer.Option(help="Language of the package's pieces.")] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Copy a piece and the texts that it uses, to change them. Nothing is written over."""
    from cadenza.piece.eject import eject as copy

    done = copy(piece, cwd=Path.cwd(), user=user, language=lang or Context.of(ctx).settings().language)
    if json:
        out.json([{"path": str(one.path), "what": one.what} for one in done])
        return
    notes = {
        "kept": " (it was there already)",
        "differs": " (another was there already; it is used as it is)",
    }
    for one in done:
        out.line(f"{'made' if one.what == 'made' else 'kept'}  {_shown(one.path)}{notes.get(one.what, '')}")
    out.line("")
    out.line(f"change them; cadenza run {done[-1].path.stem} plays the copy from now on")


def _shown(path: Path) -> str:
    """A path as a person here would write it."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
