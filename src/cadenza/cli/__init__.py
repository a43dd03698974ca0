"""The command line: one file per group of commands, heavy imports inside the commands."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """The entry point ``cadenza``."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        from cadenza.cli.app import app

        app()
    except KeyboardInterrupt:
        sys.exit(130)
