"""Pictures of graphs: Graphviz's language turned into SVG by a program.

``dot`` on the PATH is used where Graphviz is installed; else ``graphviz-pure``, a port of it that comes as
a package without any libraries of the system.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from cadenza.errors import HostError

PROGRAMS = ("dot", "graphviz-pure")
LONGEST = 60.0
"""Seconds that a drawing may take."""


def svg_of(dot: str) -> str:
    """The picture of a graph in Graphviz's language.

    Raises:
        HostError: ``not_found``: neither program is installed; ``failed``: it could not draw the graph.
    """
    program = _program()
    if program is None:
        raise HostError(
            "an SVG is drawn by Graphviz's dot or by graphviz-pure, and neither is installed",
            code="not_found",
            hint="pip install 'cadenza[svg]', or install Graphviz; --format dot and mermaid need neither",
        )
    name = Path(program).name
    try:
        done = subprocess.run(
            [program, "-Tsvg"], input=dot.encode(), capture_output=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        raise HostError(f"{name} did not finish within {LONGEST:.0f} seconds") from None
    except OSError as error:
        raise HostError(f"{program} cannot be run: {error.strerror}", hint="is it whole?") from None
    if done.returncode:
        told = " ".join(done.stderr.decode(errors="replace").split())[:300]
        raise HostError(f"{name} could not draw the graph: {told or f'exit code {done.returncode}'}")
    return done.stdout.decode()


def _program() -> str | None:
    """The first of :data:`PROGRAMS` on the PATH or beside the running Python."""
    beside = os.path.dirname(sys.executable)
    found = (shutil.which(name) or shutil.which(name, path=beside) for name in PROGRAMS)
    return next(filter(None, found), None)
