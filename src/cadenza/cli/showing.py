"""Everything about one run, for ``cadenza show``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadenza.cli.caching import cache_lines, uses_of
from cadenza.cli.context import Context, as_data
from cadenza.cli.ending import headline, next_step, provider_words
from cadenza.cli.narrator import permission_words
from cadenza.cli.output import is_terminal
from cadenza.cli.path import Step, path_of, remarks
from cadenza.cli.spending import limits
from cadenza.cli.words import (
    age,
    clean,
    duration,
    one_line,
    table,
    terminal_width,
    tokens,
    without_tag,
    wrapped,
)
from cadenza.clock import iso

if TYPE_CHECKING:
    from cadenza.core.state import RunState
    from cadenza.piece.model import Piece
    from cadenza.service import Service


def as_lines(context: Context, service: Service, run: str) -> list[str]:
    """For a person."""
    row = service.row(run)
    state = service.state(row.id)
    requests = service.inbox(run=row.id)
    first, *more = headline(row.status, row.reason, row.message).split("\n")
    lines = wrapped(f"run {row.id}: ", first)
    for line in more:
        lines += wrapped("  ", line.strip())
    for name, value in _facts(service, row, state):
        if value:
            lines += wrapped(f"  {name:<10} ", value)
    events = service.journal.events(row.id)
    lines += ["", *_path(path_of(events))]
    lines += cache_lines(events)
    lines += _family(service, row.id)
    lines += _output(context, service, row.id, state)
    further = next_step(context, service, row, requests)
    return [*lines, "", *further] if further else lines


def _facts(service: Service, row: Any, state: RunState) -> list[tuple[str, str]]:
    started, piece = state.run, service.piece(row.id)
    now = service.journal.now()
    folder = str(Path(started.cwd) / state.folder) if state.folder else ""
    return [
        ("piece", f"{started.name}, {piece.dialect} dialect, {started.piece[:12]}{_phases(piece)}"),
        ("task", one_line(service.text(started.task), 200)),
        ("permission", permission_words(started.permission, piece.control)),
        ("parent", "" if started.parent is None else started.parent),
        ("budget", limits(state.budget)),
        ("granted", ", ".join(state.granted)),
        ("provider", provider_words(started)),
        ("workspace", "" if started.workspace == "default" else started.workspace),
        ("directory", started.cwd),
        ("folder", folder),
        ("reports", ", ".join(state.reports)),
        ("begun", f"{iso(row.created_at)}, {age(now - row.created_at)} ago, by {row.actor}"),
        ("iteration", f"{state.iteration} of at most {state.limit}"),
        ("usage", tokens(row.input_tokens, row.output_tokens, row.cached_tokens)),
    ]


def _family(service: Service, run: str) -> list[str]:
    """The runs that this one's agents started, and how they stand."""
    rows = service.tree(run)[1:]
    if not rows:
        return []
    lines = ["", "sub-tasks:"]
    for row in rows:
        told = f" ({row.reason})" if row.reason and row.reason != "complete" else ""
        lines.append(f"  {row.id}  {row.status.replace('_', ' ')}{told}")
    return lines


def _phases(piece: Piece) -> str:
    return "" if piece.phases == "single" else f", phases {piece.phases}"


def _path(steps: list[Step]) -> list[str]:
    heads = ("VISIT", "MOVEMENT", "ITERATION", "TIME", "TOKENS", "NEXT", "HOW")
    rows = table(heads, [_row(step) for step in steps], indent="  ", drop=_DROP, shrink=_SHRINK)
    lines = rows[:1]
    for line, step in zip(rows[1:], steps, strict=True):
        lines.append(line)
        for remark in remarks(step):
            lines += wrapped("         - ", one_line(remark, 200))
    return lines


_DROP = ("ITERATION", "TOKENS", "TIME", "VISIT", "NEXT")
_SHRINK = {"MOVEMENT": 12, "NEXT": 12, "HOW": 32}
_BEGINNING = 3


def _output(context: Context, service: Service, run: str, state: RunState) -> list[str]:
    """The beginning of what the last movement said, and how to have all of it."""
    if state.previous is None:
        return []
    said = without_tag(clean(service.text(state.previous))).strip().splitlines()
    if not said:
        return []
    lines = ["", "output:", *(f"  | {one_line(line, _shown())}".rstrip() for line in said[:_BEGINNING])]
    return [*lines, f"  all of it: {context.command('output', run)}"]


def _shown() -> int:
    """How much of a line of the output is shown."""
    return terminal_width() - 4 if is_terminal() else 120


def _row(step: Step) -> tuple[str, ...]:
    took = "..." if step.ended_at is None else duration(step.ended_at - step.started_at)
    if step.kind is None:
        how, target = "goes on", "-"
    elif step.kind == "again":
        target, how = step.movement, f"{step.label} ({step.method or 'person'})"
        how += "" if step.method == "gate" else ", answered by a person"
    elif step.kind == "moved":
        target, how = step.next or "-", step.method or "tool"
    elif step.kind == "sentinel":
        target, how = step.next or "-", step.message or step.label or "by a tool"
    elif step.kind == "rule":
        target, how = step.next or "-", f"{step.label} ({step.method})"
    else:
        how = "no rule matched" if step.kind == "no_match" else _ended(step)
        target = "-"
    used = f"{step.usage.input + step.usage.output:,}"
    return str(step.visit), step.movement, str(step.iteration), took, used, target, clean(how)


def _ended(step: Step) -> str:
    """How a visit ended that led nowhere: ``failed: …``, ``cancelled by …``."""
    kind, message = step.kind or "", step.message or ""
    return message if message.startswith(kind) else f"{kind}: {message}"


def as_json(service: Service, run: str) -> dict[str, Any]:
    """For a program: the row, how the run began, its path, its open questions with their texts."""
    row = service.row(run)
    state = service.state(row.id)
    piece = service.piece(row.id)
    requests = service.inbox(run=row.id)
    return {
        "run": as_data(row),
        "piece": {"name": piece.name, "hash": piece.hash, "dialect": piece.dialect},
        "task": service.text(state.run.task),
        "started": as_data(state.run),
        "folder": state.folder,
        "reports": list(state.reports),
        "limit": state.limit,
        "output": None if state.previous is None else service.text(state.previous),
        "path": as_data(path_of(service.journal.events(row.id))),
        "prompt_cache": as_data(uses_of(service.journal.events(row.id))),
        "children": as_data(service.tree(row.id)[1:]),
        "requests": [{**as_data(item), "text": service.text(item.question)} for item in requests],
    }
