"""``demo``: plays plan-build-review from a script, on a real project, without any key."""

from typing import Annotated

import typer

from cadenza.cli.context import Context
from cadenza.piece.vocabulary import Language


def demo(
    ctx: typer.Context,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the project's folder and its journal.")] = False,
    lang: Annotated[Language | None, typer.Option(help="Language of the piece and of what is said.")] = None,
) -> None:
    """Play a whole piece from a script, without any key: a plan, a question, a review, a fix."""
    from cadenza.cli.showpiece import play_demo

    code = play_demo(Context.of(ctx), keep=keep, language=lang)
    if code:
        raise typer.Exit(code)
