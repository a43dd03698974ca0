"""What every command is given: the settings, the journal, and how to write a command that reaches it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer

    from cadenza.service import Service
    from cadenza.settings import Settings


class Context:
    """The global options. ``journal`` is what ``--journal`` said."""

    def __init__(self, journal: Path | None = None) -> None:
        self.journal = journal

    @classmethod
    def of(cls, ctx: typer.Context) -> Context:
        """The context of a command."""
        found = ctx.find_object(cls)
        return found if found is not None else cls()

    def settings(self) -> Settings:
        """The settings from the environment and the configuration, with the global options over them.

        Raises:
            ConfigError: a variable or a file holds what it cannot hold.
        """
        import msgspec

        from cadenza.config import Configuration

        settings = Configuration.load(Path.cwd()).settings()
        if self.journal is None:
            return settings
        return msgspec.structs.replace(settings, journal=self.journal)

    @contextmanager
    def service(self) -> Iterator[Service]:
        """The application, over the journal, for a command that plays nothing.

        Raises:
            JournalError: the journal cannot be opened.
        """
        from cadenza.journal import open_journal
        from cadenza.service import Service

        settings = self.settings()
        journal = open_journal(settings.journal)
        try:
            yield Service(journal, actor=settings.actor, language=settings.language)
        finally:
            journal.close()

    def command(self, *words: str) -> str:
        """The command line that does ``words`` on the same journal."""
        import shlex

        told = [] if self.journal is None else ["--journal", os.path.abspath(self.journal)]
        return shlex.join(["cadenza", *told, *words])


def as_data(value: Any) -> Any:
    """A struct, or a list of them, as plain data for JSON."""
    import msgspec

    return msgspec.to_builtins(value)
