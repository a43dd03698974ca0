"""One event as one line, for ``cadenza events``."""

from __future__ import annotations

from typing import Any

from cadenza.cli.narrator import lane_words, way
from cadenza.cli.spending import limits
from cadenza.cli.words import answer_words, one_line, tokens
from cadenza.clock import iso
from cadenza.core import events as ev
from cadenza.core.demands import AskPerson, CallModel, CallTool, Host
from cadenza.core.outcomes import Answered, Did, Failed, Replied, Unknown


def told(recorded: ev.Recorded) -> str:
    """``   4  2026-01-31T09:05:00.250Z  demand.resolved  …``."""
    event = recorded.event
    name = str(type(event).__struct_config__.tag)
    words = one_line(_words(event), 300)
    by = "" if recorded.actor == "engine" else f"by {recorded.actor}"
    tail = "; ".join(part for part in (words, by) if part)
    return f"{recorded.seq:>4}  {iso(recorded.at)}  {name:<21} {tail}".rstrip()


def _words(event: Any) -> str:
    teller = _TELLERS.get(type(event))
    return teller(event) if teller is not None else ""


def _issued(event: ev.DemandIssued) -> str:
    demand = event.demand
    if isinstance(demand, CallModel):
        what = f"model for {demand.persona}: {demand.purpose}"
    elif isinstance(demand, Host):
        what = demand.op
    elif isinstance(demand, AskPerson):
        what = f"question{_in_brackets(demand.reason)}"
    else:
        what = f"tool {demand.name}" if isinstance(demand, CallTool) else type(demand).__name__
    return f"{event.id} {event.key}: {what}"


def _resolved(event: ev.DemandResolved) -> str:
    outcome = event.outcome
    if isinstance(outcome, Replied):
        usage = outcome.usage
        words = f"replied, {tokens(usage.input, usage.output, usage.cached)}"
    elif isinstance(outcome, Failed):
        words = f"failed ({outcome.code}): {outcome.message}"
    elif isinstance(outcome, Unknown):
        words = f"unknown: {outcome.message}"
    elif isinstance(outcome, Did):
        words = "wants a person" if outcome.wants else "not yet" if outcome.again else _did(outcome)
    elif isinstance(outcome, Answered):
        words = f"answered: {answer_words(outcome.value)}"
    else:
        words = type(outcome).__name__.lower()
    return f"{event.id} {words}"


def _did(outcome: Did) -> str:
    return f"refused{_in_brackets(outcome.code or '')}" if outcome.error else "did"


def _in_brackets(words: str) -> str:
    return f" ({words})" if words else ""


def _visit_ended(event: ev.VisitEnded) -> str:
    lanes = "".join(f"; {lane.name}: {lane_words(lane)}" for lane in event.signal.lanes)
    return f"{way(event.signal)}{lanes}"


_TELLERS: dict[type, Any] = {
    ev.RunStarted: lambda e: f"{e.name}, permission {e.permission}",
    ev.VisitStarted: lambda e: f"{e.movement}, iteration {e.iteration}, {e.cause}",
    ev.DemandIssued: _issued,
    ev.DemandStarted: lambda e: e.id,
    ev.DemandRetried: lambda e: f"{e.id} try {e.attempt} failed ({e.code}): {e.message}; again in {e.wait} s",
    ev.DemandResolved: _resolved,
    ev.RequestOpened: lambda e: f"{e.id} {e.movement} asks{_in_brackets(e.reason)}",
    ev.RequestDecided: lambda e: f"{e.id} {answer_words(e.value)}",
    ev.RequestClosed: lambda e: f"{e.id} {e.reason}",
    ev.ReportSaved: lambda e: e.name,
    ev.VisitEnded: _visit_ended,
    ev.RunForked: lambda e: f"from event {e.seq} of run {e.origin}",
    ev.RequestMoved: lambda e: f"{e.id} now for {e.demand}",
    ev.RequestReminded: lambda e: f"{e.id}, reminder {e.count}",
    ev.RequestExpired: lambda e: e.id,
    ev.RequestKept: lambda e: e.id,
    ev.AskDeflected: lambda e: f"a question too many{_in_brackets(e.lane)}",
    ev.ToolGranted: lambda e: e.name,
    ev.ChildEnded: lambda e: f"{e.run} {e.status}{_in_brackets(e.reason)}",
    ev.ChildReopened: lambda e: e.run,
    ev.BudgetRaised: lambda e: limits(e.budget) or "no limit",
    ev.InputTaken: lambda e: e.input,
    ev.Warned: lambda e: f"{e.code}: {e.message}",
    ev.CancelRequested: lambda e: e.reason,
    ev.ResumeRequested: lambda e: "restart the visit" if e.restart_visit else "",
    ev.RetryRequested: lambda e: f"at {e.movement}" if e.movement else "where it ended",
    ev.InputRefused: lambda e: f"{e.input}: {e.message}",
    ev.RunHeld: lambda e: f"{e.reason}: {e.message}",
    ev.RunEnded: lambda e: f"{e.status} ({e.reason}): {e.message}",
}
