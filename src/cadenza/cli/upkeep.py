"""``worker`` and ``doctor``: what keeps runs going, and what looks after the journal."""

from typing import Annotated

import typer

from cadenza.cli.context import Context
from cadenza.cli.output import out
from cadenza.errors import UsageError


def worker(
    ctx: typer.Context,
    slots: Annotated[int, typer.Option(metavar="N", min=1, help="How many runs are played at once.")] = 4,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Stop when there is nothing left to play.")
    ] = False,
) -> None:
    """Play whatever can be played, until it is told to stop. Prints a line per run that ends or stands."""
    from cadenza.cli.serving import serve

    serve(Context.of(ctx), slots, until_idle=until_idle)


def doctor(
    ctx: typer.Context,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare everything with what the events say.")
    ] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Write everything anew from the events, run folders too.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say what Cadenza works with here; check or mend the journal."""
    from cadenza.cli import health

    if verify and rebuild:
        raise UsageError("--verify and --rebuild exclude each other", hint="rebuild, then verify")
    context = Context.of(ctx)
    if rebuild:
        found = health.rebuild(context)
        out.json(found) if json else _lines(health.rebuilt(found))
    elif verify:
        problems = health.verify(context)
        out.json(problems) if json else _lines(health.verified(context, problems))
        if problems:
            raise typer.Exit(1)
    else:
        facts, wrong = health.facts(context)
        out.json(facts) if json else _lines(health.told(facts))
        if wrong is not None:
            raise wrong


def _lines(lines: list[str]) -> None:
    for line in lines:
        out.line(line)
