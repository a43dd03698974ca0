"""What every command is given: the settings, the journal, and how to write a command that reaches it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer

    from cadenza.journal.store import Journal
    from cadenza.service import Service
    from cadenza.settings import Settings

_GO_ON = frozenset({"resume", "retry", "cancel"})
"""The commands that play a run which is there already."""


class Context:
    """The global options. ``journal`` is what ``--journal`` said."""

    def __init__(self, journal: Path | None = None) -> None:
        self.journal = journal

    @classmethod
    def of(cls, ctx: typer.Context) -> Context:
        """The context of a command.

        Raises:
            NotFound: the command goes on with a run, and the journal that was named is not there.
        """
        found = ctx.find_object(cls)
        found = found if found is not None else cls()
        if ctx.info_name in _GO_ON:
            found.settings_of_existing()
        return found

    def settings(self) -> Settings:
        """The settings from the environment and the configuration, with the global options over them.

        Raises:
            ConfigError: a variable or a file holds what it cannot hold.
            UsageError: the journal is to be in memory.
        """
        import msgspec

        from cadenza.config import Configuration
        from cadenza.errors import UsageError
        from cadenza.journal import MEMORY

        settings = Configuration.load(Path.cwd()).settings()
        if self.journal is not None:
            settings = msgspec.structs.replace(settings, journal=self.journal)
        if str(settings.journal) == MEMORY:
            raise UsageError(
                "a journal in memory lives only as long as one command",
                hint="name a file with --journal; Engine(journal=':memory:') is for tests in Python",
            )
        return settings

    def settings_of_existing(self) -> Settings:
        """The settings of a command that needs a journal which is there.

        A journal that was named (with ``--journal`` or ``CADENZA_JOURNAL``) and is not there was mistyped;
        the user's own is not there before the first run, and then it is as good as empty.

        Raises:
            NotFound: the journal that was named is not there.
        """
        from cadenza.journal import is_there, no_journal

        settings = self.settings()
        named = self.journal is not None or bool(os.environ.get("CADENZA_JOURNAL"))
        if named and not is_there(settings.journal):
            raise no_journal(settings.journal)
        return settings

    @contextmanager
    def service(self, *, make: bool = False) -> Iterator[Service]:
        """The application, over the journal, for a command that plays nothing: it makes no journal, unless it
        has something to ``make`` in it.

        One that cannot be written is opened for reading only. Where the user's own is not there yet, an
        empty one stands in for it.

        Raises:
            NotFound: the journal that was named is not there.
            JournalError: the journal cannot be opened.
        """
        from cadenza.journal import open_journal
        from cadenza.service import Service

        settings = self.settings() if make else self.settings_of_existing()
        journal = open_journal(settings.journal) if make else _opened(settings.journal)
        try:
            yield Service(journal, actor=settings.actor, language=settings.language)
        finally:
            journal.close()

    def command(self, *words: str) -> str:
        """The command line that does ``words`` on the same journal."""
        import shlex

        told = [] if self.journal is None else ["--journal", os.path.abspath(self.journal)]
        return shlex.join(["cadenza", *told, *words])


def _opened(path: Path) -> Journal:
    from cadenza.errors import JournalReadOnly
    from cadenza.journal import MEMORY, is_there, open_journal

    if not is_there(path):
        return open_journal(MEMORY)
    try:
        return open_journal(path, must_exist=True)
    except JournalReadOnly:
        return open_journal(path, read_only=True)


def as_data(value: Any) -> Any:
    """A struct, or a list of them, as plain data for JSON."""
    import msgspec

    return msgspec.to_builtins(value)
