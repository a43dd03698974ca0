"""The demonstration's project: two real files, under git where there is git."""

from __future__ import annotations

import difflib
import os
import subprocess
from pathlib import Path

from cadenza.piece.find import package_root

_GIT = (
    *("git", "-c", "user.name=Cadenza", "-c", "user.email=demo@example.invalid"),
    *("-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null", "-c", "init.defaultBranch=main"),
)


class Project:
    """Files in ``folder``. ``in_git`` says whether they were committed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.in_git = False
        self._before: dict[str, str] = {}

    def make(self) -> None:
        """Copy the files, and commit them."""
        source = package_root() / "demo" / "project"
        self.folder.mkdir()
        for file in source.iterdir():
            name, text = file.name.removesuffix(".txt"), file.read_text(encoding="utf-8")
            (self.folder / name).write_text(text, encoding="utf-8")
            self._before[name] = text
        commit = ("commit", "-q", "-m", "A small program")
        self.in_git = all(self._git(*words) is not None for words in (("init", "-q"), ("add", "."), commit))

    def read(self, name: str) -> str:
        """A file's text."""
        return (self.folder / name).read_text(encoding="utf-8")

    def append(self, name: str, section: str) -> None:
        """Put a section behind what a file holds."""
        text = f"{self.read(name).rstrip()}\n\n{section}\n"
        (self.folder / name).write_text(text, encoding="utf-8")

    def diff(self, name: str) -> list[str]:
        """What has changed in a file."""
        shown = self._git("diff", "--no-color", "--no-ext-diff", "--", name) if self.in_git else None
        if shown is not None:
            return shown.splitlines()
        before, now = self._before[name].splitlines(), self.read(name).splitlines()
        return list(difflib.unified_diff(before, now, f"a/{name}", f"b/{name}", lineterm=""))

    def _git(self, *words: str) -> str | None:
        """What git printed; None where there is no git, or where it refused."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        try:
            done = subprocess.run(
                [*_GIT, *words],
                cwd=self.folder,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None
