"""How the tests talk to :mod:`tests.crash.child`."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any


class Nursery:
    """Lives that are lived in processes of their own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def drive(self, scenario: str, folder: Path, until: int | None) -> None:
        """Play with the deterministic driver; at the point of that number the process kills itself."""
        code = self._bear(what="drive", scenario=scenario, folder=str(folder), until=until)
        assert code == (0 if until is None else -signal.SIGKILL), f"the child ended with {code}"

    def play(self, folder: Path, kill_after: float | None) -> int:
        """Play the forty movements with the engine; killed that many seconds after it began.

        Returns:
            0 when it came to an end by itself, ``-SIGKILL`` when it was killed.
        """
        return self._bear(what="play", folder=str(folder), kill_after=kill_after)

    def _bear(self, **order: Any) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the nursery died"
        return int(answer)
