"""The view on a terminal: told lines scroll by, and below them stands who is at work now."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live as RichLive
from rich.text import Text

from cadenza.cli.context import Context
from cadenza.cli.narrator import Narrator, Speaker
from cadenza.cli.output import out
from cadenza.cli.views import Plain
from cadenza.cli.words import cut, duration, tokens

if TYPE_CHECKING:
    from cadenza.service import Service

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_STYLES = {"head": "bold", "text": "", "dim": "dim", "good": "green", "warn": "yellow", "bad": "red"}


class Live(Plain):
    """Told lines above, and a footer with a line for each speaker and one for the run."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
        self._live: RichLive | None = None
        self._gone = False

    @contextmanager
    def showing(self, service: Service, run: str) -> Iterator[None]:
        """Narrate above the footer."""
        self._live = RichLive(
            console=self._console,
            get_renderable=self.footer,
            refresh_per_second=10,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=True,
        )
        with super().showing(service, run):
            self._live.start()
            yield

    def emit(self, text: str, style: str) -> None:
        """One line above the footer."""
        if self._gone:
            return
        try:
            self._console.print(Text(text, style=_STYLES[style]))
        except OSError as error:
            self.close()
            out.note(f"the terminal is gone ({error.strerror}); the run goes on")
            self._gone = True

    def footer(self) -> Group:
        """Who is at work, for how long, with the line that is being written; then the run's figures."""
        narrator = self._narrator
        if narrator is None:
            return Group()
        width = shutil.get_terminal_size().columns - 1
        lines = [self._speaker(narrator, speaker, width) for speaker in list(narrator.speakers.values())]
        usage = narrator.usage
        elapsed = duration(time.monotonic() - self._begun)
        figures = f"{elapsed} · {tokens(usage.input, usage.output, usage.cached)} · Ctrl-C saves and stops"
        return Group(*lines, Text(cut(figures, width), style="dim"))

    def _speaker(self, narrator: Narrator, speaker: Speaker, width: int) -> Text:
        frame = _FRAMES[int(time.monotonic() * 10) % len(_FRAMES)]
        visit = narrator.visit
        place = "" if visit is None else f"[{visit.iteration}/{narrator.limit}] {visit.movement}"
        if speaker.lane:
            place += f" / {speaker.lane}"
        if speaker.judges:
            place += ": which rule?"
        head = f"{frame} {place} {duration(time.monotonic() - speaker.since)} "
        line = Text(cut(head, width), style="cyan")
        room = width - len(head) - 1
        if room > 10 and not speaker.judges:
            line.append(cut(speaker.tail, room), style="dim")
        return line

    def close(self) -> None:
        """Take the footer away and give the cursor back."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()
