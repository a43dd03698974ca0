"""``runs``, ``show``, ``events`` and ``report``: the commands that only look."""

from typing import Annotated

import typer

from cadenza.cli.context import Context, as_data
from cadenza.cli.output import out
from cadenza.errors import NotFound

AsJson = Annotated[bool, typer.Option("--json", help="As JSON.")]
RunId = Annotated[str, typer.Argument(help="A run's id, a unique beginning of it, or 'last'.")]
Workspace = Annotated[str | None, typer.Option(metavar="W", help="Only what belongs to this workspace.")]


def runs(ctx: typer.Context, workspace: Workspace = None, json: AsJson = False) -> None:
    """List runs, newest first."""
    from cadenza.cli.words import age, table

    with Context.of(ctx).service() as service:
        rows = service.runs(workspace=workspace)
        now = service.journal.now()
    if json:
        out.json(as_data(rows))
        return
    if not rows:
        where = "" if workspace is None else f" in workspace {workspace!r}"
        out.note(f"no run yet{where}: cadenza run PIECE TASK starts one")
        return
    cells = [
        (
            row.id,
            row.status,
            row.reason or "-",
            row.piece,
            row.movement or "-",
            str(row.iteration),
            age(now - row.created_at),
            f"{row.input_tokens + row.output_tokens:,}",
        )
        for row in rows
    ]
    heads = ("RUN", "STATUS", "REASON", "PIECE", "MOVEMENT", "ITERATION", "AGE", "TOKENS")
    drop = ("ITERATION", "REASON", "MOVEMENT", "PIECE", "TOKENS")
    for line in table(heads, cells, drop=drop, shrink={"REASON": 12, "PIECE": 12, "MOVEMENT": 12}):
        out.line(line)


def show(ctx: typer.Context, run: RunId, json: AsJson = False) -> None:
    """Show a run: its piece, how it stands, the path it took, what it asks."""
    from cadenza.cli.showing import as_json, as_lines

    context = Context.of(ctx)
    with context.service() as service:
        if json:
            out.json(as_json(service, run))
            return
        for line in as_lines(context, service, run):
            out.line(line)


def output(ctx: typer.Context, run: RunId, json: AsJson = False) -> None:
    """Print what the last movement of a run said: its result, once it has ended."""
    from cadenza.cli.views import tell_output
    from cadenza.cli.words import without_tag

    with Context.of(ctx).service() as service:
        row, state = service.row(run), service.state(run)
        said = None if state.previous is None else service.text(state.previous)
    if json:
        text = None if said is None else without_tag(said)
        out.json({"run": row.id, "status": row.status, "output": text})
        return
    if state.ended is None:
        out.note(f"note: run {row.id} has not ended ({row.status}); this is what its last movement said")
    if said is None:
        raise NotFound(f"run {row.id} has no output yet", hint=f"cadenza show {row.id} tells how it stands")
    tell_output(said)


def events(
    ctx: typer.Context,
    run: RunId,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run ends or waits for somebody.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON event a line.")] = False,
) -> None:
    """Print a run's events."""
    import time

    from cadenza.cli.telling import told
    from cadenza.cli.views import json_line

    with Context.of(ctx).service() as service:
        id, after = service.run(run).id, 0
        while True:
            row = service.journal.run(id)
            for recorded in service.journal.events(id, after=after):
                after = recorded.seq
                out.line(json_line(recorded) if json else told(recorded))
            if not follow or (row.wake_at is None and row.seq <= after):
                return
            time.sleep(0.1)


def report(
    ctx: typer.Context,
    run: RunId,
    name: Annotated[
        str | None, typer.Argument(help="The report to print; without it they are listed.")
    ] = None,
    json: AsJson = False,
) -> None:
    """List a run's reports, or print one as it is."""
    from cadenza.cli.words import size, table

    with Context.of(ctx).service() as service:
        if name is not None:
            text = service.report(service.run(run).id, name)
            if json:
                out.json({"name": name, "text": text})
            else:
                _print(text)
            return
        sizes = {name: len(text.encode()) for name, text in service.reports(run).items()}
    if json:
        out.json([{"name": name, "bytes": count} for name, count in sizes.items()])
    elif not sizes:
        out.note("this run has no report")
    else:
        for line in table(("REPORT", "SIZE"), [(name, size(count)) for name, count in sizes.items()]):
            out.line(line)


def _print(text: str) -> None:
    """Raw into a file or pipe; on a terminal without what would steer it."""
    from cadenza.cli.output import is_terminal
    from cadenza.cli.words import clean

    if is_terminal():
        out.line(clean(text).rstrip("\n"))
    else:
        out.raw(text)
