"""What a person sees while a run is played: live, plain lines, JSON lines, or only the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from cadenza.cli.context import Context
from cadenza.cli.ending import ending
from cadenza.cli.narrator import Narrator
from cadenza.cli.output import is_terminal, out
from cadenza.cli.words import clean, without_tag
from cadenza.core.signals import ENDED
from cadenza.worker.folders import log_line

if TYPE_CHECKING:
    from cadenza.core.events import Recorded
    from cadenza.engine import RunResult
    from cadenza.service import Service


class View:
    """Watches a run. This one shows nothing until the end."""

    asks = False
    """Whether the person at the terminal is asked right here what a run waits for."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._begun = time.monotonic()

    @contextmanager
    def showing(self, service: Service, run: str) -> Iterator[None]:
        """Around everything that is shown while the run is played."""
        try:
            yield
        finally:
            self.close()

    def catch_up(self, events: Iterable[Recorded]) -> None:
        """What happened before; it is not shown again."""

    def event(self, recorded: Recorded) -> None:
        """Something happened."""

    def text(self, demand: str, text: str) -> None:
        """A piece of streamed text arrived."""

    def close(self) -> None:
        """Give the terminal back."""

    def end(self, service: Service, result: RunResult) -> None:
        """How the run stands now."""
        for line in ending(self._context, service, result, time.monotonic() - self._begun):
            out.line(line)


class Silent(View):
    """Shows nothing at all."""

    def end(self, service: Service, result: RunResult) -> None:
        """The command itself says what came of it."""


class Quiet(View):
    """The result of an ended run on stdout, how it stands on stderr."""

    def end(self, service: Service, result: RunResult) -> None:
        """The text, then the rest for the person who looks on."""
        if result.status in ENDED and result.output is not None:
            tell_output(result.output)
        for line in ending(self._context, service, result, time.monotonic() - self._begun):
            out.note(line)


class JsonLines(View):
    """One event a line on stdout; the end on stderr, unless ``quiet``."""

    quiet = False

    def event(self, recorded: Recorded) -> None:
        """The event, with its envelope."""
        out.line(json_line(recorded))

    def end(self, service: Service, result: RunResult) -> None:
        """For the person who looks on."""
        if not self.quiet:
            for line in ending(self._context, service, result, time.monotonic() - self._begun):
                out.note(line)


class QuietJsonLines(JsonLines):
    """The events only."""

    quiet = True


class Plain(View):
    """Plain lines, as they come."""

    asks = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._narrator: Narrator | None = None
        self._early: list[tuple[str, str]] = []

    @contextmanager
    def showing(self, service: Service, run: str) -> Iterator[None]:
        """Narrate the run, line by line."""
        self._narrator = Narrator(self.emit, service, run)
        with super().showing(service, run):
            yield

    def emit(self, text: str, style: str) -> None:
        """One line."""
        out.line(text)

    def catch_up(self, events: Iterable[Recorded]) -> None:
        """What happened before."""
        assert self._narrator is not None
        self._narrator.catch_up(events)
        self._tell_early()

    def event(self, recorded: Recorded) -> None:
        """Something happened."""
        assert self._narrator is not None
        self._narrator.event(recorded)
        self._tell_early()

    def end(self, service: Service, result: RunResult) -> None:
        """How the run stands now, a line apart from what was told."""
        out.line()
        super().end(service, result)

    def text(self, demand: str, text: str) -> None:
        """A piece of streamed text arrived."""
        if self._narrator is None:
            self._early.append((demand, text))
        else:
            self._narrator.text(demand, text)

    def _tell_early(self) -> None:
        """What was said before there was somebody to tell it."""
        early, self._early = self._early, []
        for demand, text in early:
            self.text(demand, text)


def view_for(*, json: bool, quiet: bool) -> Callable[[Context], View]:
    """The view that fits the options and the terminal."""
    if json:
        return QuietJsonLines if quiet else JsonLines
    if quiet:
        return Quiet
    if is_terminal():
        from cadenza.cli.live import Live

        return Live
    return Plain


def tell_output(output: str) -> None:
    """What a movement said, without its status tag; on a terminal without what would steer it."""
    text = without_tag(output).strip("\n")
    out.line(clean(text) if is_terminal() else text)


def json_line(recorded: Recorded) -> str:
    """An event as a line of JSON: seq, at (ISO), run, actor, type, and what the type brings."""
    line: dict[str, object] = msgspec.json.decode(log_line(recorded))
    head = {"seq": line.pop("seq"), "at": line.pop("at"), "run": recorded.run, "actor": line.pop("actor")}
    return msgspec.json.encode({**head, **line}).decode()
