"""Asks the person at the terminal what a run waits for, right where it is played."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from cadenza.cli.forms import read_answer, wanted
from cadenza.cli.output import out
from cadenza.cli.words import clean, without_tag
from cadenza.errors import CadenzaError

if TYPE_CHECKING:
    from cadenza.engine import Engine, RunResult
    from cadenza.journal.store import RequestRow


async def ask_here(engine: Engine, result: RunResult) -> bool:
    """Ask for every answer that a run waits for. An empty line leaves a question for later; whether any was
    answered."""
    answered = False
    for request in result.requests:
        if request.screen is None:
            answered = await _ask(engine, request) or answered
    return answered


async def _ask(engine: Engine, request: RequestRow) -> bool:
    schema = engine.service.schema(request)
    text = without_tag(clean(engine.service.text(request.question))).strip()
    lane = f" (lane {request.lane})" if request.lane else ""
    out.line(f"{request.movement}{lane} asks:")
    for line in text.splitlines():
        out.line(f"  | {line}".rstrip())
    while True:
        out.raw(f"your answer ({wanted(schema)}; empty: later)> ")
        sys.stdout.flush()
        typed = await asyncio.to_thread(sys.stdin.readline)
        if not typed.strip():
            if not typed:
                out.line()
            return False
        try:
            decision = await engine.answer(request.id, read_answer(typed.rstrip("\n"), schema))
        except CadenzaError as refused:
            out.note(str(refused))
            continue
        if decision.result != "accepted":
            out.note(f"somebody else was faster: {decision.result}")
        return True
