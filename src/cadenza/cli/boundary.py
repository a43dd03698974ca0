"""Where errors become messages and exit codes: one clear message on stderr, never a traceback."""

from __future__ import annotations

import os
from typing import Any

import typer
from typer.core import TyperGroup

from cadenza.cli.output import out
from cadenza.errors import CadenzaError, NotFound, PieceError, UsageError

INTERRUPTED = 130


class Guarded(TyperGroup):
    """The group of all commands. Whatever a command raises leaves it as an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was named."""
        try:
            result = super().invoke(ctx)
        except CadenzaError as error:
            tell(error)
            raise typer.Exit(error.exit_code) from None
        except (KeyboardInterrupt, typer.Abort):
            raise typer.Exit(INTERRUPTED) from None
        except typer.Exit as error:
            raise typer.Exit(error.exit_code or int(out.failed)) from None
        except Exception as error:
            if hasattr(error, "show"):  # typer's own usage errors
                if getattr(error, "option_name", None) == "--journal":
                    tell(_journal_behind(error))
                    raise typer.Exit(2) from None
                raise
            if isinstance(error, FileNotFoundError) and not _has_folder():
                tell(NotFound("the current directory is not there any more", hint="cd to one that is"))
                raise typer.Exit(2) from None
            raise typer.Exit(unexpected(error)) from None
        if out.failed:
            raise typer.Exit(1)
        return result


def _journal_behind(error: Any) -> UsageError:
    name = getattr(error.ctx, "info_name", None) or "COMMAND"
    return UsageError("--journal stands before the command", hint=f"cadenza --journal FILE {name} ...")


def _has_folder() -> bool:
    """Whether the current directory is there."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def tell(error: CadenzaError) -> None:
    """An error a person can meet: what, and what to do about it."""
    lines = error.problems if isinstance(error, PieceError) else ()
    if len(lines) > 1:
        out.note(f"error: {len(lines)} problems")
        for line in lines:
            out.note(line)
    else:
        out.note(f"error: {error.message}")
    if error.hint:
        out.note(f"hint: {error.hint}")


def unexpected(error: Exception) -> int:
    """A bug: one line, and what to do with it; the traceback where it is asked for."""
    if os.environ.get("CADENZA_DEBUG") == "1":
        import traceback

        out.note("".join(traceback.format_exception(error)).rstrip())
    words = " ".join(str(error).split())
    out.note(
        f"error: unexpected {type(error).__name__}: {words}. This is a bug in Cadenza: please report it to "
        "its issue tracker, with what CADENZA_DEBUG=1 makes this command print"
    )
    return 1
