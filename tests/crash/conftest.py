"""A folder for runs that are played hundreds of times: in memory where the machine has such a place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.nursery import Nursery

SHM = Path("/dev/shm")


@pytest.fixture
def lab() -> Iterator[Path]:
    """An empty folder, on a file system that syncs at once where there is one."""
    base = SHM if SHM.is_dir() and os.access(SHM, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="cadenza-lab-", dir=base))
    yield folder / "run"
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    """A process that bears others, each with everything imported, to be killed."""
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root / "src"), str(root), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
        cwd=root,
        text=True,
    )
    yield Nursery(process)
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=10)
