"""Tells a run's events and its streamed text as lines, for every view that shows lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from cadenza.cli.words import answer_words, clean, duration, one_line, plural, tokens
from cadenza.core import events as ev
from cadenza.core.demands import CallModel, CallTool, StartRun
from cadenza.core.outcomes import Did, Failed, Replied, Unknown, Usage
from cadenza.tools.sandbox import sandbox_state

if TYPE_CHECKING:
    from cadenza.core.signals import LaneResult
    from cadenza.service import Service

Emit = Callable[[str, str], None]
"""Called with a line and its style: ``head``, ``text``, ``dim``, ``good``, ``warn`` or ``bad``."""

PERMITTED = {
    "default": "agents may read, and change nothing",
    "acceptEdits": "agents may change files and run allowed commands",
    "bypassPermissions": "agents may do all that their tools can",
}
"""What each permission means for agents with tools."""


def permission_words(permission: str, control: str) -> str:
    """A run's permission, and what its agents may do with it."""
    told = PERMITTED[permission] if control == "tools" else "agents answer with text only"
    return f"{permission} ({told})"


class Speaker:
    """A model call that is under way: who speaks, since when, and the line that is not finished yet."""

    def __init__(self, demand: CallModel, lane: str) -> None:
        self.movement = demand.movement
        self.judges = demand.purpose == "rules"
        self.lane = lane
        self.since = time.monotonic()
        self.tail = ""
        self.said = 0

    @property
    def prefix(self) -> str:
        """What its lines begin with."""
        return f"  [{self.lane}] " if self.lane else "  "


class Narrator:
    """Turns what happens into lines, in order, whole lines only, each with who says it."""

    def __init__(self, emit: Emit, service: Service, run: str) -> None:
        self._emit = emit
        self._service = service
        self._run = run
        self._piece = service.piece(run)
        self._early: dict[str, list[str]] = {}
        self._closed: set[str] = set()
        self._tools: dict[str, ev.DemandIssued] = {}
        self._open: dict[str, ev.DemandIssued] = {}
        self._spent = Usage()
        self.speakers: dict[str, Speaker] = {}
        self.visit: ev.VisitStarted | None = None
        self.limit = self._piece.max_movements
        self.usage = Usage()

    def catch_up(self, events: Iterable[ev.Recorded]) -> None:
        """Learn what happened before, without a word."""
        early, self._early = self._early, {}
        emit, self._emit = self._emit, lambda text, style: None
        try:
            for recorded in events:
                self.event(recorded)
        finally:
            self._emit = emit
        if self.visit is not None:
            self._emit(f"{self._place(self.visit)}, going on", "head")
        for demand, texts in early.items():
            for text in texts:
                self.text(demand, text)

    def event(self, recorded: ev.Recorded) -> None:
        """Tell one event."""
        handler = _HANDLERS.get(type(recorded.event))
        if handler is not None:
            handler(self, recorded.event, recorded)

    def text(self, demand: str, text: str) -> None:
        """A piece of streamed text. What comes before its demand was told waits for that."""
        speaker = self.speakers.get(demand)
        if speaker is None:
            if demand not in self._closed:
                self._early.setdefault(demand, []).append(text)
            return
        speaker.said += len(text)
        *lines, speaker.tail = (speaker.tail + clean(text)).split("\n")
        if not speaker.judges:
            for line in lines:
                self._emit((speaker.prefix + line).rstrip(), "text")

    def _place(self, visit: ev.VisitStarted) -> str:
        return f"[{visit.iteration}/{self.limit}] {visit.movement}"

    def _started(self, event: ev.RunStarted, recorded: ev.Recorded) -> None:
        self.limit = event.limit
        piece = self._piece
        how = f"{piece.dialect}, {event.piece[:12]}" + (", phases three" if piece.phases == "three" else "")
        self._emit(f"run {self._run}: {event.name} ({how})", "head")
        task = one_line(self._service.text(event.task))
        self._emit(f"  task: {task}", "dim")
        model = f", model {event.model}" if event.model else ""
        self._emit(f"  provider: {event.provider or 'as each movement says'}{model}", "dim")
        self._emit(f"  permission: {permission_words(event.permission, piece.control)}", "dim")
        if piece.control == "tools" and event.permission != "default":
            self._emit(f"  sandbox: {sandbox_state()}", "dim")

    def _visit_started(self, event: ev.VisitStarted, recorded: ev.Recorded) -> None:
        self.visit = event
        self.limit = event.limit or self.limit
        self._closed.update(self._open)
        self._open.clear()
        self.speakers.clear()
        self._spent = self.usage
        movement = self._piece.by_name[event.movement]
        who = f"{plural(len(event.lanes), 'lane')} at once" if event.lanes else movement.performer
        why = {
            "answer": ", with the answer",
            "gate": ", told what failed",
            "retry": ", retried",
            "restart": ", from its beginning",
            "children": ", with the results of the sub-tasks",
            "context": ", in a new conversation",
        }
        self._emit("", "dim")
        self._emit(f"{self._place(event)} ({who}{why.get(event.cause, '')})", "head")

    def _issued(self, event: ev.DemandIssued, recorded: ev.Recorded) -> None:
        if isinstance(event.demand, CallModel):
            self._open[event.id] = event
            self._speaks(event)
        elif isinstance(event.demand, StartRun):
            self._emit(f"{_prefix(event.lane)}+ starts run {event.demand.id}", "dim")
        elif isinstance(event.demand, CallTool) and event.demand.calls is not None:
            self._tools[event.id] = event
            arguments = one_line(arguments_of(self._service, event.demand), 100)
            self._emit(f"{_prefix(event.lane)}* {event.demand.name} {arguments}".rstrip(), "dim")

    def _speaks(self, event: ev.DemandIssued) -> None:
        """A model call of the visit is under way, for the first time or again."""
        if isinstance(event.demand, CallModel):
            self.speakers[event.id] = Speaker(event.demand, event.lane)
            for text in self._early.pop(event.id, ()):
                self.text(event.id, text)

    def _retried(self, event: ev.DemandRetried, recorded: ev.Recorded) -> None:
        speaker = self.speakers.get(event.id)
        prefix = "  " if speaker is None else speaker.prefix
        self._finish_line(event.id)
        message = one_line(event.message, 200)
        again = f"again in {duration(event.wait)}"
        self._emit(f"{prefix}! try {event.attempt} failed ({event.code}): {message}; {again}", "warn")

    def _resolved(self, event: ev.DemandResolved, recorded: ev.Recorded) -> None:
        speaker = self.speakers.get(event.id)
        outcome = event.outcome
        if isinstance(outcome, Replied):
            self.usage = self.usage + outcome.usage
            if speaker is not None and not speaker.said:
                self.text(event.id, self._service.text(outcome.text))
        self._finish_line(event.id)
        if isinstance(outcome, Failed | Unknown):
            prefix = "  " if speaker is None else speaker.prefix
            first, *further = clean(outcome.message).splitlines() or [""]
            self._emit(f"{prefix}! {first}", "bad")
            for line in further:
                self._emit(f"{prefix}  {line.strip()}", "bad")
        if isinstance(outcome, Did):
            self._did(event.id, outcome)
        self.speakers.pop(event.id, None)
        self._open.pop(event.id, None)
        self._closed.add(event.id)

    def _did(self, demand: str, outcome: Did) -> None:
        issued = self._tools.pop(demand, None)
        if issued is not None and outcome.error:
            words = one_line(self._service.text(outcome.text), 160)
            self._emit(f"{_prefix(issued.lane)}  ! {words}", "warn")

    def _finish_line(self, demand: str) -> None:
        speaker = self.speakers.get(demand)
        if speaker is not None and speaker.tail:
            tail, speaker.tail = speaker.tail, ""
            if not speaker.judges:
                self._emit((speaker.prefix + tail).rstrip(), "text")

    def _report(self, event: ev.ReportSaved, recorded: ev.Recorded) -> None:
        self._emit(f"  report: {clean(event.name)}", "good")

    def _asked(self, event: ev.RequestOpened, recorded: ev.Recorded) -> None:
        why = f" ({event.reason})" if event.reason else ""
        self._emit(f"{_prefix(event.lane)}? asks a person, and waits{why}", "warn")

    def _deflected(self, event: ev.AskDeflected, recorded: ev.Recorded) -> None:
        self._emit(f"{_prefix(event.lane)}a question over the limit was sent back", "warn")

    def _expired(self, event: ev.RequestExpired, recorded: ev.Recorded) -> None:
        self._emit("  nobody answered in time", "warn")

    def _reminded(self, event: ev.RequestReminded, recorded: ev.Recorded) -> None:
        self._emit(f"  still waiting for an answer (reminder {event.count})", "warn")

    def _granted(self, event: ev.ToolGranted, recorded: ev.Recorded) -> None:
        self._emit(f"  granted: {clean(event.name)}", "good")

    def _child_ended(self, event: ev.ChildEnded, recorded: ev.Recorded) -> None:
        self._emit(f"  sub-task {event.run}: {event.status}", "dim")

    def _decided(self, event: ev.RequestDecided, recorded: ev.Recorded) -> None:
        self._emit(f"  answered by {recorded.actor}: {one_line(answer_words(event.value))}", "good")

    def _visit_ended(self, event: ev.VisitEnded, recorded: ev.Recorded) -> None:
        signal, visit = event.signal, self.visit
        for lane in signal.lanes:
            self._emit(f"  {lane.name}: {lane_words(lane)}", "dim")
        if signal.judged is not None:
            judged = signal.judged
            chosen = judged.label or "chose nothing, so the movement's own rules decide"
            self._emit(f"  loop judge after {judged.count} rounds: {clean(chosen)}", "warn")
        used = Usage(
            self.usage.input - self._spent.input,
            self.usage.output - self._spent.output,
            self.usage.cached - self._spent.cached,
        )
        took = "" if visit is None else f"{duration(recorded.at - visit.at)}, "
        good = signal.kind in ("rule", "again", "moved") or signal.next == "COMPLETE"
        self._emit(f"  -> {way(signal)}", "good" if good else "bad")
        self._emit(f"     {took}{tokens(used.input, used.output, used.cached)}", "dim")
        self.visit = None

    def _warned(self, event: ev.Warned, recorded: ev.Recorded) -> None:
        self._emit(f"  warning: {clean(event.message)}", "warn")

    def _released(self, event: ev.RunReleased, recorded: ev.Recorded) -> None:
        self._emit("  resumed", "dim")
        for opened in self._open.values():
            self._speaks(opened)

    def _refused(self, event: ev.InputRefused, recorded: ev.Recorded) -> None:
        self._emit(f"  {event.input} could not be taken: {clean(event.message)}", "bad")

    def _cancelling(self, event: ev.CancelRequested, recorded: ev.Recorded) -> None:
        self._emit(f"  {recorded.actor} cancels the run", "warn")

    def _quiet(self, event: ev.RunHeld | ev.RunEnded, recorded: ev.Recorded) -> None:
        for demand in list(self.speakers):
            self._finish_line(demand)
        self.speakers.clear()


def _prefix(lane: str) -> str:
    return f"  [{lane}] " if lane else "  "


def arguments_of(service: Service, demand: CallTool) -> str:
    """A tool call's arguments as the model wrote them."""
    import msgspec

    if demand.calls is None:
        return ""
    calls: list[dict[str, str]] = msgspec.json.decode(service.text(demand.calls))
    return calls[demand.index]["arguments"]


def lane_words(lane: LaneResult) -> str:
    """How a lane ended: its label and how it was found, or its error."""
    if lane.error is not None:
        return f"failed: {one_line(lane.error, 200)}"
    return f"{clean(lane.label or 'no rule matched')}{f' ({lane.method})' if lane.method else ''}"


def way(signal: Any) -> str:
    """Where a visit leads: ``build: the label (tag)``."""
    told = f": {one_line(signal.message, 200)}" if signal.message else ""
    if signal.kind == "again":
        why = "told what failed" if signal.method == "gate" else "with the answer"
        return f"the same movement, {why}: {clean(signal.label or '')} ({signal.method or 'person'})"
    words = {
        "no_match": "no rule matched",
        "failed": f"failed ({signal.code})",
        "broken": f"broken{told}",
        "moved": f"{signal.next} ({signal.method})",
        "sentinel": f"{signal.next or 'nothing settled'} ({signal.code or signal.method}){told}",
    }
    return words.get(signal.kind, f"{signal.next}: {clean(signal.label or '')} ({signal.method})")


_HANDLERS: dict[type, Any] = {
    ev.RunStarted: Narrator._started,
    ev.VisitStarted: Narrator._visit_started,
    ev.DemandIssued: Narrator._issued,
    ev.DemandRetried: Narrator._retried,
    ev.DemandResolved: Narrator._resolved,
    ev.ReportSaved: Narrator._report,
    ev.RequestOpened: Narrator._asked,
    ev.RequestDecided: Narrator._decided,
    ev.VisitEnded: Narrator._visit_ended,
    ev.Warned: Narrator._warned,
    ev.RunReleased: Narrator._released,
    ev.InputRefused: Narrator._refused,
    ev.CancelRequested: Narrator._cancelling,
    ev.AskDeflected: Narrator._deflected,
    ev.RequestExpired: Narrator._expired,
    ev.RequestReminded: Narrator._reminded,
    ev.ToolGranted: Narrator._granted,
    ev.ChildEnded: Narrator._child_ended,
    ev.RunHeld: Narrator._quiet,
    ev.RunEnded: Narrator._quiet,
}
