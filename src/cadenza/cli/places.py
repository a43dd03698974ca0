"""``workspace``, ``fork`` and ``budget``: where runs work, runs from a point of another, what they may
spend."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cadenza.cli.context import Context, as_data
from cadenza.cli.output import out
from cadenza.cli.requests import answering
from cadenza.errors import UsageError

if TYPE_CHECKING:
    from cadenza.journal.store import RunRow

AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]


def add_workspace(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="A word.")],
    folder: Annotated[Path, typer.Argument(help="The folder.")],
    shared: Annotated[bool, typer.Option("--shared", help="Others work there too.")] = False,
) -> None:
    """Give a folder a name in which runs, and tasks of agents, can be started."""
    with Context.of(ctx).service(make=True) as service:
        added = service.add_workspace(name, folder, shared=shared)
    out.line(f"workspace {added.name}: {added.path}{' (shared)' if added.shared else ''}")


def list_workspaces(ctx: typer.Context, json: AsJson = False) -> None:
    """List the workspaces that have a name."""
    from cadenza.cli.words import table

    with Context.of(ctx).service() as service:
        found = service.journal.workspaces()
    if json:
        out.json(as_data(found))
        return
    if not found:
        out.note("no workspace yet: cadenza workspace add NAME FOLDER")
        return
    rows = [(one.name, "shared" if one.shared else "personal", one.owner, one.path) for one in found]
    for line in table(("WORKSPACE", "KIND", "OWNER", "FOLDER"), rows, drop=("OWNER",), shrink={}):
        out.line(line)


def fork(
    ctx: typer.Context,
    run: Annotated[str, typer.Argument(help="A run's id, a unique beginning of it, or 'last'.")],
    at: Annotated[
        int | None, typer.Option("--at", metavar="SEQ", help="The event to begin after; its last one.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Begin a new run as another one stood after an event. Its files stay as they are now."""
    context = Context.of(ctx)
    with context.service() as service:
        origin = service.run(run).id
        row = service.fork(origin, at)
    if json:
        out.json(as_data(row))
        return
    out.line(f"run {row.id}: forked from {origin}")
    out.note(f"the files of {_directory(context, row.id)} stay as they are now")
    for line in _next(context, row):
        out.line(line)


def _next(context: Context, row: "RunRow") -> list[str]:
    """What can be done with a run that was just forked."""
    from cadenza.core.control import APPROVAL

    if row.status in ("aborted", "error", "cancelled", "completed"):
        return [f"go on with: {context.command('retry', row.id)}"]
    with context.service() as service:
        waiting = service.inbox(run=row.id)
        ways = [answering(context, one, approval=service.schema(one) == APPROVAL) for one in waiting]
    return [f"answer with: {way}" for way in ways] or [f"go on with: {context.command('resume', row.id)}"]


def _directory(context: Context, run: str) -> str:
    """Where a run works."""
    with context.service() as service:
        return service.state(run).run.cwd


def budget(
    ctx: typer.Context,
    run: Annotated[str, typer.Argument(help="A run's id, a unique beginning of it, or 'last'.")],
    limits: Annotated[
        str | None,
        typer.Option("--set", metavar="LIMITS", help="As tokens=50000,cost=2.5,tool_calls=100,wall_time=2h."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Show what a run and its children have spent, or change what they may spend."""
    from cadenza.cli.spending import lines_of, read_limits

    context = Context.of(ctx)
    with context.service() as service:
        row = service.run(run)
        if limits is not None:
            row = service.raise_budget(row.id, read_limits(limits))
        rows, state = service.tree(row.root), service.state(row.root)
    if json:
        out.json({"root": row.root, "limits": as_data(state.budget), "runs": as_data(rows)})
        return
    for line in lines_of(state.budget, rows):
        out.line(line)
    if limits is not None:
        waiting = [one.id for one in rows if one.status == "queued"]
        for id in waiting:
            out.line(f"go on with: {context.command('resume', id)}")


def limits_of(text: str | None) -> dict[str, object]:
    """The option ``--budget`` as an option of a run."""
    from cadenza.cli.spending import read_limits

    return {} if text is None else {"budget": read_limits(text)}


__all__ = ["UsageError", "add_workspace", "budget", "fork", "limits_of", "list_workspaces"]
