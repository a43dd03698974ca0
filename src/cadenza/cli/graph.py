"""``graph``: a piece as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cadenza.cli.context import Context
from cadenza.cli.output import out
from cadenza.piece.vocabulary import Language

if TYPE_CHECKING:
    from cadenza.piece.model import Piece

Format = Literal["text", "mermaid", "dot", "svg"]


def graph(
    ctx: typer.Context,
    piece: Annotated[str, typer.Argument(help="A piece's name, or the path of its file.")],
    format: Annotated[
        Format, typer.Option(help="How it is drawn; svg needs 'cadenza[svg]' or dot.")
    ] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it there.")
    ] = None,
    lang: Annotated[Language | None, typer.Option(help="Language of the package's pieces and texts.")] = None,
) -> None:
    """Draw a piece: its movements, the ways between them, and the loop monitors."""
    from cadenza.cli.task import suggesting
    from cadenza.piece.find import load_piece

    with suggesting(piece):
        loaded = load_piece(piece, cwd=Path.cwd(), language=lang or Context.of(ctx).settings().language)
    _deliver(_drawn(loaded.piece, format), output)


def _drawn(piece: Piece, format: Format) -> str:
    from cadenza.piece.graph import graph_of, render

    drawing = graph_of(piece)
    if format != "svg":
        return render(drawing, format)
    from cadenza.host.graphviz import svg_of

    return svg_of(render(drawing, "dot"))


def _deliver(text: str, output: Path | None) -> None:
    if output is None:
        out.raw(text)
        return
    from cadenza.errors import HostError

    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise HostError(
            f"{output} cannot be written: {error.strerror}", hint="choose another file or folder"
        ) from None
