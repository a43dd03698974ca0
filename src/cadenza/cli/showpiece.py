"""The demonstration: a small project in a temporary git repository, and a piece that is played on it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from cadenza.cli.context import Context
from cadenza.cli.demo_words import WORDS, Words
from cadenza.cli.driver import Begin, Plan, play
from cadenza.cli.ending import COMPLETED, exit_code
from cadenza.cli.output import out
from cadenza.cli.project import Project
from cadenza.cli.views import view_for
from cadenza.piece.find import package_root
from cadenza.piece.vocabulary import Language

if TYPE_CHECKING:
    from cadenza.engine import Engine, Run, RunResult

PIECE = "plan-build-review"


def play_demo(context: Context, *, keep: bool, language: Language | None) -> int:
    """Play it in a folder of its own, with a journal of its own unless one was named; the exit code."""
    language = language or context.settings().language
    home = Path(tempfile.mkdtemp(prefix="cadenza-demo-"))
    context = Context(journal=context.journal or home / "journal.sqlite")
    code = -1
    try:
        code = _Demo(context, home / "project", language).play()
    finally:
        words = WORDS[language]
        if keep or code != COMPLETED:
            out.line(words.kept.format(folder=home, show=context.command("show", "last")))
        else:
            shutil.rmtree(home, ignore_errors=True)
            out.line(words.removed)
    return code


class _Demo:
    def __init__(self, context: Context, folder: Path, language: Language) -> None:
        self._context = context
        self._language: Language = language
        self._words: Words = WORDS[language]
        self._project = Project(folder)

    def play(self) -> int:
        words, project = self._words, self._project
        project.make()
        out.line(words.begin.format(folder=project.folder, piece=PIECE))
        if not project.in_git:
            out.line(words.no_git)
        out.line()
        result = self._start()
        if result.requests:
            result = self._answer(result)
        if result.completed:
            self._hand_over(result)
        return exit_code(result)

    def _start(self) -> RunResult:
        script = package_root() / "demo" / f"{self._language}.yaml"
        task = self._words.task.format(code=self._project.read("count.py"))

        async def begin(engine: Engine) -> Run:
            return await engine.start(PIECE, task, cwd=self._project.folder, language=self._language)

        return self._play(begin, f"scripted:{script}")

    def _answer(self, result: RunResult) -> RunResult:
        """The run is parked now. What a person would do, the demo does."""
        request = result.requests[0]
        command = self._context.command("answer", request.id, self._words.answer)
        out.line()
        out.line(self._words.parked.format(command=command))
        out.line()
        with self._context.service() as service:
            after = service.run(result.run).seq
            service.answer(request.id, self._words.answer)

        async def begin(engine: Engine) -> Run:
            return engine.play(result.run)

        return self._play(begin, None, run=result.run, after=after)

    def _play(
        self, begin: Begin, provider: str | None, *, run: str | None = None, after: int | None = None
    ) -> RunResult:
        view = view_for(json=False, quiet=False)
        return play(
            Plan(context=self._context, begin=begin, view=view, run=run, after=after, provider=provider)
        )

    def _hand_over(self, result: RunResult) -> None:
        """Agents have no tools in this version: the demo itself puts their text where it belongs."""
        with self._context.service() as service:
            report = service.report(result.run, "result.md")
        section = report.partition("\n\n")[2].partition(f"\n{self._words.checks}")[0].strip("\n")
        self._project.append("README.md", section)
        out.line()
        out.line(self._words.handed_over)
        for line in self._project.diff("README.md"):
            out.line(f"  {line}")
        out.line()
