"""``inbox`` and ``answer``: what runs ask of people."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from cadenza.cli.context import Context, as_data
from cadenza.cli.output import out
from cadenza.errors import Conflict

if TYPE_CHECKING:
    from cadenza.engine import Engine, Run
    from cadenza.journal.store import Decision


def inbox(
    ctx: typer.Context,
    workspace: Annotated[
        str | None, typer.Option(metavar="W", help="Only what belongs to this workspace.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List open questions, oldest first."""
    from cadenza.cli.words import age, one_line, table, without_tag

    context = Context.of(ctx)
    with context.service() as service:
        rows = service.inbox(workspace=workspace)
        texts = service.journal.texts({row.question for row in rows})
        pieces = {row.run: service.journal.run(row.run).piece for row in rows}
        now = service.journal.now()
    if json:
        out.json([{**as_data(r), "piece": pieces[r.run], "text": texts[r.question]} for r in rows])
        return
    if not rows:
        out.note("nothing waits for an answer")
        return
    cells = [
        (
            r.id,
            r.run,
            pieces[r.run],
            r.movement,
            age(now - r.opened_at),
            one_line(without_tag(texts[r.question]), 60),
        )
        for r in rows
    ]
    drop, shrink = ("PIECE", "AGE", "MOVEMENT", "RUN"), {"PIECE": 12, "MOVEMENT": 12, "QUESTION": 16}
    for line in table(
        ("REQUEST", "RUN", "PIECE", "MOVEMENT", "AGE", "QUESTION"), cells, drop=drop, shrink=shrink
    ):
        out.line(line)
    out.line()
    out.line(f"the whole question: {context.command('show', 'RUN')}")
    for row in rows:
        out.line(f"answer with: {context.command('answer', row.id, 'VALUE')}")


def answer(
    ctx: typer.Context,
    request: Annotated[str, typer.Argument(help="A request's id, or a unique beginning of it.")],
    value: Annotated[str, typer.Argument(help="The answer; '-' reads it from stdin.")],
    *,
    play: Annotated[bool, typer.Option("--play/--no-play", help="Play the run on here.")] = True,
    json: Annotated[bool, typer.Option("--json", help="One JSON event a line on stdout.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the result; the end on stderr.")
    ] = False,
) -> None:
    """Answer a question; the run that asked is played on here."""
    from cadenza.cli.driver import Plan
    from cadenza.cli.driver import play as play_run
    from cadenza.cli.ending import exit_code
    from cadenza.cli.task import typed
    from cadenza.cli.views import view_for

    words, context = typed(value, "the answer"), Context.of(ctx)
    with context.service() as service:
        before = service.run(service.request(request).run)
        decision = service.answer(request, words)
    _tell(decision, out.note if json or (quiet and play) else out.line)
    if not play:
        return

    async def begin(engine: "Engine") -> "Run":
        return engine.play(before.id)

    plan = Plan(
        context=context, begin=begin, view=view_for(json=json, quiet=quiet), run=before.id, after=before.seq
    )
    raise typer.Exit(exit_code(play_run(plan)))


def _tell(decision: "Decision", say: Callable[[str], None]) -> None:
    """What became of the answer.

    Raises:
        Conflict: another answer was given, or nobody waits any more.
    """
    from cadenza.cli.words import one_line
    from cadenza.clock import iso

    row = decision.request
    given = f"{row.decided_by} answered at {iso(row.decided_at)}" if row.decided_at is not None else ""
    value = one_line(str(row.value), 200)
    if decision.result == "accepted":
        say(f"accepted: the answer to {row.movement} of run {row.run}")
    elif decision.result == "equal":
        say(f"already answered with the same: {given}")
    elif decision.result == "conflict":
        raise Conflict(f"it was answered differently: {given}: {value}", hint="the first answer counts")
    else:
        why = f"{given}: {value}" if given else f"the request was closed ({row.closed_reason})"
        raise Conflict(f"too late, nobody waits for this answer: {why}", hint=f"cadenza show {row.run}")
