"""How a run ended or why it stands, and what a person can do now."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from cadenza.cli.context import Context
from cadenza.cli.forms import wanted
from cadenza.cli.requests import answering
from cadenza.cli.words import clean, duration, plural, tokens, without_tag
from cadenza.core.control import APPROVAL
from cadenza.engine import RunResult

if TYPE_CHECKING:
    from cadenza.core.events import RunStarted
    from cadenza.core.state import RunState
    from cadenza.journal.store import RequestRow, RunRow
    from cadenza.service import Service

COMPLETED, ERROR, ABORTED, WAITING, INTERRUPTED = 0, 1, 3, 4, 130

_CODES = {"completed": COMPLETED, "error": ERROR, "aborted": ABORTED, "cancelled": ABORTED}


def exit_code(result: RunResult) -> int:
    """The exit code that says how a run stands."""
    if result.status == "held" and result.reason == "interrupted":
        return INTERRUPTED
    return _CODES.get(result.status, WAITING)


def ending(context: Context, service: Service, result: RunResult, elapsed: float) -> list[str]:
    """The lines that end a run's view: status and reason, figures, places, and the next command."""
    state = service.state(result.run)
    usage = result.usage
    figures = f"{plural(state.iteration, 'iteration')} of at most {state.limit}, {duration(elapsed)}, "
    lines = [headline(result.status, result.reason, result.message), f"  run      {result.run}"]
    lines.append(f"  figures  {figures}{tokens(usage.input, usage.output, usage.cached)}")
    lines += [f"  provider {provider_words(state.run)}", *_places(result.run, state)]
    return lines + next_step(context, service, result, result.requests)


def headline(status: str, reason: str | None, message: str | None) -> str:
    """``aborted (rule_no_match): …``; the message may have several lines."""
    names = {"waiting_human": "waiting for a person", "waiting_subtasks": "waiting for its sub-tasks"}
    status = names.get(status, status)
    told = f" ({reason})" if reason and reason not in (status, "complete") else ""
    words = f": {clean(message)}".replace("\n", "\n  ") if message else ""
    return f"{status}{told}{words}"


def provider_words(started: RunStarted) -> str:
    """Who plays, with the server's address where it has one, and the model."""
    meant = started.providers
    if started.provider is not None:
        told = [_at(started.provider, meant.get(started.provider))]
    else:
        told = ["as each movement says", *(_at(name, address) for name, address in meant.items())]
    return ": ".join([told[0], ", ".join(told[1:])]).rstrip(": ") + (
        f", model {started.model}" if started.model else ""
    )


def _at(name: str, meant: str | None) -> str:
    kind, _, address = (meant or "").partition(":")
    return f"{name or kind} at {clean(address)}" if address and address not in name else name


def _places(run: str, state: RunState) -> list[str]:
    """Where the reports and the log are: only what is really there."""
    if state.folder is None:
        return []
    folder = Path(state.run.cwd) / state.folder
    log = folder / "logs" / f"{run}.jsonl"
    lines = []
    if state.reports:
        lines.append(f"  reports  {', '.join(state.reports)}")
        lines.append(f"           in {folder / 'reports'}")
    if log.exists():
        lines.append(f"  log      {log}")
    return lines


def next_step(
    context: Context, service: Service, run: RunRow | RunResult, requests: Iterable[RequestRow]
) -> list[str]:
    """The commands that a run in this state waits for, with the questions that it asks."""
    status, id = run.status, run.run if isinstance(run, RunResult) else run.id
    if status == "waiting_human":
        return [line for request in requests for line in _question(context, service, request)]
    if status.startswith("waiting_"):
        return _waiting(context, service, id)
    if status == "held":
        again = [context.command("resume", id, "--restart-visit")] if run.reason == "code_changed" else []
        return [f"go on with: {context.command('resume', id)}", *(f"or with: {line}" for line in again)]
    if status == "queued":
        go_on, worker = context.command("resume", id), context.command("worker")
        return ["nobody plays it now", f"go on with: {go_on}", f"or, with all that can be played: {worker}"]
    if status in ("aborted", "error", "cancelled"):
        return [f"try again with: {context.command('retry', id)}"]
    return []


def _waiting(context: Context, service: Service, run: str) -> list[str]:
    """What a run waits for that is no person: its children, with what they ask; or a tool."""
    lines = []
    for child in service.tree(run)[1:]:
        told = f" ({child.reason})" if child.reason else ""
        lines.append(f"sub-task {child.id}: {child.status.replace('_', ' ')}{told}")
        for request in service.inbox(run=child.id):
            lines += _question(context, service, request)
    return [*lines, f"go on with: {context.command('worker', '--until-idle')}"]


def _question(context: Context, service: Service, request: RequestRow) -> list[str]:
    text = without_tag(clean(service.text(request.question))).strip()
    lane = f" (lane {request.lane})" if request.lane else ""
    return [
        f"{request.movement}{lane} asks:",
        *(f"  | {line}".rstrip() for line in text.splitlines()),
        *([f"  ({wanted(schema)})"] if (schema := service.schema(request)) is not None else []),
        f"answer with: {answering(context, request, approval=schema == APPROVAL)}",
    ]
