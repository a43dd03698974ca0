"""Command gates: commands that must succeed before a movement is over."""

from __future__ import annotations

from typing import Any

from cadenza.core.demands import CallTool
from cadenza.core.outcomes import AnyOutcome, Failed, Returned
from cadenza.core.performance import Performance
from cadenza.core.prompts.notices import gate_failed
from cadenza.core.signals import Signal
from cadenza.core.visit import Visit
from cadenza.ids import Hash
from cadenza.piece.model import CommandGate

GATE_TOOL = "command_gate"


def pass_gates(visit: Visit, output: Hash) -> Performance[Signal | None]:
    """None when every gate of the movement is passed; else the signal that performs the movement anew,
    told what failed (TAKT's command-line engine, quality gates; each round costs one iteration)."""
    refused = yield from run_gates(visit)
    if refused is None:
        return None
    gate, note = refused
    return Signal(kind="again", method="gate", answer=visit.put(note), label=gate.name, output=output)


def run_gates(visit: Visit) -> Performance[tuple[CommandGate, str] | None]:
    """The first gate that is not passed, and what an agent is told of it. For a lane that is its failure."""
    for number, gate in enumerate(visit.movement.command_gates, 1):
        outcome: AnyOutcome = yield visit.need(f"gate:{number}", _call(visit, gate))
        problem = _problem(outcome)
        if problem is not None:
            return gate, gate_failed(visit.language, gate.name or gate.command, problem)
    return None


def _call(visit: Visit, gate: CommandGate) -> CallTool:
    cwd = f"{visit.run.cwd}/{gate.cwd}" if gate.cwd else visit.run.cwd
    arguments: dict[str, Any] = {"command": gate.command, "cwd": cwd, "timeout": gate.timeout}
    return CallTool(name=GATE_TOOL, arguments=arguments, effect="idempotent")


def _problem(outcome: AnyOutcome) -> str | None:
    """What a gate's outcome says against the movement; None when it is passed."""
    if isinstance(outcome, Returned):
        value = outcome.value
        if value["exit_code"] == 0:
            return None
        return f"exit code {value['exit_code']}\n{value['output']}".rstrip()
    return outcome.message if isinstance(outcome, Failed) else "the command did not come back"
