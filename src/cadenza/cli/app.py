"""The typer application: the global options, and every command in the order of the help.

Here and in the files of the commands annotations are not postponed: typer would compile each of them again.
"""

from pathlib import Path
from typing import Annotated

import typer

from cadenza import __version__
from cadenza.cli import demo, eject, graph, looking, pieces, places, playing, requests, serving_http, upkeep
from cadenza.cli.boundary import Guarded
from cadenza.cli.context import Context

app = typer.Typer(
    cls=Guarded,
    name="cadenza",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cadenza {__version__}")
        raise typer.Exit


@app.callback()
def cadenza(
    ctx: typer.Context,
    journal: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The journal; CADENZA_JOURNAL or the user's own.")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Agent workflows that software keeps in order.

    Exit codes: 0 completed, 1 error, 2 usage or not found, 3 aborted or cancelled, 4 waiting for a person
    or held, 130 interrupted.
    """
    ctx.obj = Context(journal=journal)


app.command()(playing.run)
app.command()(playing.resume)
app.command()(playing.retry)
app.command()(playing.cancel)
app.command()(looking.runs)
app.command()(looking.show)
app.command()(looking.output)
app.command()(looking.events)
app.command()(looking.report)
app.command()(requests.inbox)
app.command()(requests.answer)
app.command()(requests.approve)
app.command()(requests.decline)
captcha = typer.Typer(help="Confirmation screens that runs wait for.", no_args_is_help=True)
captcha.command("resolve")(requests.resolve_screen)
app.add_typer(captcha, name="captcha")
workspace = typer.Typer(help="Folders with names, in which agents may start tasks.", no_args_is_help=True)
workspace.command("add")(places.add_workspace)
workspace.command("list")(places.list_workspaces)
app.add_typer(workspace, name="workspace")
app.command()(places.fork)
app.command()(places.budget)
app.command()(pieces.lint)
app.command("pieces")(pieces.list_all)
app.command()(pieces.prompt)
app.command()(graph.graph)
app.command()(upkeep.worker)
app.command()(serving_http.serve)
app.command()(upkeep.doctor)
app.command()(pieces.init)
app.command()(eject.eject)
app.command()(demo.demo)
