"""``run``, ``resume``, ``retry`` and ``cancel``: the commands that play a run here."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cadenza.cli.context import Context
from cadenza.cli.output import out
from cadenza.cli.places import limits_of
from cadenza.errors import Conflict, UsageError
from cadenza.piece.vocabulary import Language, PermissionMode, Phases

if TYPE_CHECKING:
    from cadenza.engine import Engine, Run

AsJson = Annotated[bool, typer.Option("--json", help="One JSON event a line on stdout, and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result; the end on stderr.")]
RunId = Annotated[str, typer.Argument(help="A run's id, a unique beginning of it, or 'last'.")]


def run(
    ctx: typer.Context,
    piece: Annotated[str, typer.Argument(help="A piece's name, or the path of its file.")],
    task: Annotated[str | None, typer.Argument(help="What to do; '-' reads it from stdin.")] = None,
    *,
    task_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Read the task from a file.", show_default=False)
    ] = None,
    provider: Annotated[
        str | None, typer.Option(help="Who plays: openai, scripted:FILE or a plug-in's name.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model to ask for.")] = None,
    script: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Play from a script; implies the scripted provider.")
    ] = None,
    permit_edit: Annotated[
        bool, typer.Option("--permit-edit", help="Agents may change files and run allowed commands.")
    ] = False,
    permit_full: Annotated[
        bool, typer.Option("--permit-full", help="Agents may do all that their tools can, a shell too.")
    ] = False,
    cwd: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The working directory; the current one.")
    ] = None,
    lang: Annotated[Language | None, typer.Option(help="Language of the engine's texts.")] = None,
    phases: Annotated[
        Phases | None, typer.Option(help="How each movement is asked; else as the piece says.")
    ] = None,
    max_movements: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The limit; else as the piece says.")
    ] = None,
    interactive: Annotated[
        bool | None,
        typer.Option(
            "--interactive/--no-interactive",
            help="Whether somebody is there, so that interactive_only rules count; "
            "else whether stdin is a terminal.",
        ),
    ] = None,
    workspace: Annotated[
        str, typer.Option(metavar="W", help="A name under which listings find the run.")
    ] = "default",
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="LIMITS", help="For the run and its children: tokens=50000,cost=2.5,tool_calls=100."
        ),
    ] = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Play a piece.

    Without a permission its agents may read the working directory and change nothing.
    """
    from cadenza.cli.task import is_attended, piece_reference, read_task, suggesting

    permission = _permission(permit_edit, permit_full)
    provider = _provider(provider, script)
    words = read_task(task, task_file)
    options: dict[str, Any] = {
        "cwd": cwd,
        "language": lang,
        "permission": permission,
        "phases": phases,
        "max_movements": max_movements,
        "interactive": is_attended() if interactive is None else interactive,
        "workspace": workspace,
        **limits_of(budget),
    }

    async def begin(engine: "Engine") -> "Run":
        with suggesting(piece):
            return await engine.start(piece_reference(piece, cwd), words, **options)

    _play(ctx, begin, provider=provider, model=model, json=json, quiet=quiet)


def resume(
    ctx: typer.Context,
    run: RunId,
    restart_visit: Annotated[
        bool, typer.Option("--restart-visit", help="Play the movement again from its beginning.")
    ] = False,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a held or interrupted run, or with one whose process was lost."""

    async def begin(engine: "Engine") -> "Run":
        row = engine.service.run(run)
        if row.status == "completed":
            again = Context.of(ctx).command("retry", row.id, "--from", "MOVEMENT")
            raise Conflict(f"run {row.id} has ended (completed)", hint=f"{again} plays it again from there")
        return await engine.resume(run, restart_visit=restart_visit)

    _play(ctx, begin, run=run, json=json, quiet=quiet)


def retry(
    ctx: typer.Context,
    run: RunId,
    movement: Annotated[
        str | None, typer.Option("--from", metavar="MOVEMENT", help="Where; the movement that ended it.")
    ] = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Reopen a run that has ended, and play it on."""

    async def begin(engine: "Engine") -> "Run":
        return await engine.retry(run, movement=movement)

    _play(ctx, begin, run=run, json=json, quiet=quiet)


def cancel(ctx: typer.Context, run: RunId) -> None:
    """End a run. Whoever plays it stops at once."""
    from cadenza.cli.driver import Plan, play
    from cadenza.cli.views import Silent

    async def begin(engine: "Engine") -> "Run":
        return await engine.cancel(run)

    result = play(Plan(context=Context.of(ctx), begin=begin, view=Silent, run=run))
    out.line(f"run {result.run}: {result.message or result.status}")


def _play(
    ctx: typer.Context,
    begin: Any,
    *,
    json: bool,
    quiet: bool,
    run: str | None = None,
    provider: str | None = None,
    model: str | None = None,
) -> None:
    from cadenza.cli.driver import Plan, play
    from cadenza.cli.ending import exit_code
    from cadenza.cli.views import view_for

    plan = Plan(
        context=Context.of(ctx),
        begin=begin,
        view=view_for(json=json, quiet=quiet),
        run=run,
        provider=provider,
        model=model,
    )
    raise typer.Exit(exit_code(play(plan)))


def _permission(edit: bool, full: bool) -> PermissionMode:
    if edit and full:
        raise UsageError(
            "--permit-edit and --permit-full exclude each other", hint="--permit-full includes the other"
        )
    return "acceptEdits" if edit else "bypassPermissions" if full else "default"


def _provider(provider: str | None, script: Path | None) -> str | None:
    if script is None:
        return provider
    if provider not in (None, "scripted"):
        raise UsageError(
            f"--script goes with the provider 'scripted', not {provider!r}", hint="leave one of the two out"
        )
    return f"scripted:{script.expanduser().absolute()}"
