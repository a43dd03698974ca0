"""Every error a person can meet.

::

    CadenzaError
    ├── UsageError            the call itself is wrong (exit code 2)
    │   ├── NotFound          a piece, run, request, movement or file that is not there
    │   ├── InputRefused      text that cannot be taken: too long, NUL, lone surrogates
    │   └── Conflict          it was decided, ended or taken already
    ├── PieceError            a piece, facet or script that cannot be read: file:line:column
    ├── ConfigError           a setting that cannot be read
    ├── JournalError          the journal as a whole
    │   ├── JournalNewer      written by a later version
    │   ├── JournalCorrupt    not a journal, or a damaged one
    │   ├── JournalFull       no space left for it
    │   ├── JournalReadOnly   its file or folder cannot be written
    │   ├── JournalBusy       another process held it for too long
    │   ├── SequenceConflict  somebody appended in between: fold the tail and try again
    │   └── LeaseLost         another worker owns the run now
    ├── HostError             a file or folder of the workspace
    ├── ProviderError         a model call that failed
    └── CodeChanged           a run cannot be rebuilt by this version of a movement kind

The default message of each class is its docstring's first line, so an error raised without words still
says what it is. ``hint`` says what to do and is printed on a line of its own.
"""

from __future__ import annotations


class CadenzaError(Exception):
    """Something went wrong in Cadenza."""

    exit_code = 1

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        self.message = message or (type(self).__doc__ or "").strip().splitlines()[0]
        self.hint = hint
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(CadenzaError):
    """The call cannot be carried out as written."""

    exit_code = 2


class NotFound(UsageError):
    """There is no such thing."""


class InputRefused(UsageError):
    """This text cannot be taken."""


class Conflict(UsageError):
    """It was decided, ended or taken already."""

    exit_code = 1


class PieceError(CadenzaError):
    """This piece cannot be played.

    ``problems`` holds one line each, ``file:line:column: what (value); what to do``.
    """

    def __init__(self, message: str, *, problems: tuple[str, ...] = (), hint: str | None = None) -> None:
        self.problems = problems or (message,)
        super().__init__(message, hint=hint)


class ConfigError(CadenzaError):
    """A setting cannot be read."""

    exit_code = 2


class JournalError(CadenzaError):
    """The journal cannot be used."""


class JournalNewer(JournalError):
    """The journal was written by a later version of Cadenza."""


class JournalCorrupt(JournalError):
    """The journal is damaged, or is not a journal at all."""


class JournalFull(JournalError):
    """There is no space left for the journal; nothing was lost, free some and resume."""


class JournalReadOnly(JournalError):
    """The journal cannot be written."""


class JournalBusy(JournalError):
    """Another process held the journal for too long."""


class SequenceConflict(JournalError):
    """Somebody appended to this run in between."""


class LeaseLost(JournalError):
    """Another worker owns this run now."""


class HostError(CadenzaError):
    """A file or folder of the workspace cannot be used.

    ``code`` is ``disk_full``, ``read_only``, ``not_found``, ``escapes`` (a path that leaves its folder)
    or ``failed``.
    """

    def __init__(self, message: str, *, code: str = "failed", hint: str | None = None) -> None:
        self.code = code
        super().__init__(message, hint=hint)


class ProviderError(CadenzaError):
    """A model call failed.

    ``code`` is ``unavailable`` (refused, reset, DNS), ``timeout``, ``rate_limited``, ``server`` (5xx),
    ``cut`` (the stream ended early), ``auth``, ``bad_request``, ``not_found``, ``context_full``,
    ``script`` or ``failed``.
    ``retry_after`` is what the server asked for, in seconds. ``status`` is the HTTP status.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "failed",
        retriable: bool = False,
        retry_after: float | None = None,
        status: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.code = code
        self.retriable = retriable
        self.retry_after = retry_after
        self.status = status
        super().__init__(message, hint=hint)


class CodeChanged(CadenzaError):
    """This run was played by another version of a movement kind and cannot be rebuilt."""
