"""``inbox``, ``answer``, ``approve``, ``decline``: what runs ask of people."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from cadenza.cli.context import Context, as_data
from cadenza.cli.output import out
from cadenza.errors import Conflict, NotFound

if TYPE_CHECKING:
    from cadenza.engine import Engine, Run
    from cadenza.journal.store import Decision, RequestRow, RunRow
    from cadenza.service import Service

Play = Annotated[bool, typer.Option("--play/--no-play", help="Play the run on here.")]
AsLines = Annotated[bool, typer.Option("--json", help="One JSON event a line on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result; the end on stderr.")]


def inbox(
    ctx: typer.Context,
    workspace: Annotated[
        str | None, typer.Option(metavar="W", help="Only what belongs to this workspace.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List open questions, oldest first."""
    from cadenza.cli.words import age, one_line, table, without_tag
    from cadenza.core.control import APPROVAL

    context = Context.of(ctx)
    with context.service() as service:
        rows = service.inbox(workspace=workspace)
        texts = service.journal.texts({row.question for row in rows})
        pieces = {row.run: service.journal.run(row.run).piece for row in rows}
        approvals = {row.id for row in rows if service.schema(row) == APPROVAL}
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
            r.reason or "question",
            age(now - r.opened_at),
            f"in {age(r.deadline - now)}" if r.deadline else "-",
            one_line(without_tag(texts[r.question]), 60),
        )
        for r in rows
    ]
    drop = ("PIECE", "DUE", "AGE", "MOVEMENT", "REASON", "RUN")
    shrink = {"PIECE": 12, "MOVEMENT": 12, "QUESTION": 16}
    heads = ("REQUEST", "RUN", "PIECE", "MOVEMENT", "REASON", "AGE", "DUE", "QUESTION")
    for line in table(heads, cells, drop=drop, shrink=shrink):
        out.line(line)
    out.line()
    out.line(f"the whole question: {context.command('show', 'RUN')}")
    for row in rows:
        out.line(f"answer with: {answering(context, row, approval=row.id in approvals)}")


def answer(
    ctx: typer.Context,
    request: Annotated[str, typer.Argument(help="A request's id, a unique beginning of it, or a run's id.")],
    value: Annotated[str, typer.Argument(help="The answer; '-' reads it from stdin.")],
    *,
    play: Play = True,
    json: AsLines = False,
    quiet: Quiet = False,
) -> None:
    """Answer a question; the run that asked is played on here.

    What is asked for decides how VALUE is read: a text, yes or no, one of several choices, or JSON.
    """
    from cadenza.cli.forms import read_answer
    from cadenza.cli.task import typed

    words, context = typed(value, "the answer"), Context.of(ctx)
    with context.service() as service:
        row = _request(context, service, request)
        before = service.run(row.run)
        decision = service.answer(row.id, read_answer(words, service.schema(row)))
    _go_on(context, before, decision, play=play, json=json, quiet=quiet)


Decided = Annotated[str, typer.Argument(help="A request's id, a unique beginning of it, or a run's id.")]
Note = Annotated[str, typer.Option(metavar="TEXT", help="What the agent is told beside it.")]


def approve(
    ctx: typer.Context,
    request: Decided,
    note: Note = "",
    *,
    play: Play = True,
    json: AsLines = False,
    quiet: Quiet = False,
) -> None:
    """Say yes to what an agent asks for: a tool, a package, a task in another workspace."""
    context = Context.of(ctx)
    before, decision = _decide(context, request, approved=True, note=note)
    _go_on(context, before, decision, play=play, json=json, quiet=quiet)


def decline(
    ctx: typer.Context,
    request: Decided,
    note: Note = "",
    *,
    play: Play = True,
    json: AsLines = False,
    quiet: Quiet = False,
) -> None:
    """Say no to what an agent asks for; it goes on another way."""
    context = Context.of(ctx)
    before, decision = _decide(context, request, approved=False, note=note)
    _go_on(context, before, decision, play=play, json=json, quiet=quiet)


def _decide(context: Context, named: str, *, approved: bool, note: str) -> "tuple[RunRow, Decision]":
    with context.service() as service:
        row = _request(context, service, named)
        return service.run(row.run), service.decide(row.id, approved=approved, note=note)


def resolve_screen(
    ctx: typer.Context,
    screen: Annotated[str, typer.Argument(help="The screen, as show and inbox name it.")],
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Say that a confirmation screen was solved: every run that waits for it goes on."""
    with Context.of(ctx).service() as service:
        rows = service.resolve_screen(screen)
    if json:
        out.json({"screen": screen, "resumed": [row.run for row in rows]})
        return
    for row in rows:
        out.line(f"resumed: run {row.run}, {row.movement}")
    if not rows:
        out.note(f"no run waits for the screen {screen}")
    else:
        out.note("a worker plays them on: cadenza worker --until-idle")


def answering(context: Context, row: "RequestRow", *, approval: bool) -> str:
    """The command that answers a request."""
    if approval:
        return f"{context.command('approve', row.id)}   or: {context.command('decline', row.id)}"
    if row.screen is not None:
        return context.command("captcha", "resolve", row.screen)
    return context.command("answer", row.id, "VALUE")


def _request(context: Context, service: "Service", named: str) -> "RequestRow":
    """A request by its id; or the one that a run has open."""
    from cadenza.core.control import APPROVAL

    try:
        return service.request(named)
    except NotFound as unknown:
        try:
            run = service.run(named)
        except NotFound:
            raise unknown from None
    rows = service.inbox(run=run.id)
    if len(rows) == 1:
        return rows[0]
    told = "waits for no answer" if not rows else f"waits for {len(rows)} answers"
    ways = [answering(context, row, approval=service.schema(row) == APPROVAL) for row in rows]
    hint = "\n  ".join(ways) or context.command("show", run.id)
    raise Conflict(f"run {run.id} {told}: name the request", hint=hint)


def _go_on(
    context: Context, before: "RunRow", decision: "Decision", *, play: bool, json: bool, quiet: bool
) -> None:
    """Tell what became of an answer, and play the run on."""
    from cadenza.cli.driver import Plan
    from cadenza.cli.driver import play as play_run
    from cadenza.cli.ending import exit_code
    from cadenza.cli.views import view_for

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
    from cadenza.cli.words import answer_words, one_line
    from cadenza.clock import iso

    row = decision.request
    given = f"{row.decided_by} answered at {iso(row.decided_at)}" if row.decided_at is not None else ""
    value = one_line(answer_words(row.value), 200)
    if decision.result == "accepted":
        say(f"accepted: the answer to {row.movement} of run {row.run}")
    elif decision.result == "expired":
        raise Conflict("too late: the deadline of this request has passed", hint=f"cadenza show {row.run}")
    elif decision.result == "equal":
        say(f"already answered with the same: {given}")
    elif decision.result == "conflict":
        raise Conflict(f"it was answered differently: {given}: {value}", hint="the first answer counts")
    else:
        why = f"{given}: {value}" if given else f"the request was closed ({row.closed_reason})"
        raise Conflict(f"too late, nobody waits for this answer: {why}", hint=f"cadenza show {row.run}")
