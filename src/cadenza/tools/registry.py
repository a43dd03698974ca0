"""All tools by name: the package's own in their fixed order, then those of plug-ins.

Other packages add tools through the entry point group ``cadenza.tools``: each entry's object is a
:class:`~cadenza.tools.base.Tool`, a list of them, or a callable that gives either.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from cadenza.core.control import ON_REQUEST
from cadenza.core.signals import CATALOGUE
from cadenza.core.toolboxes import ALWAYS
from cadenza.core.tooling import ToolSpec
from cadenza.errors import UsageError
from cadenza.tools.base import Tool
from cadenza.tools.environment import INSTALL, INSTALLER
from cadenza.tools.fetching import FETCHING
from cadenza.tools.files import FILES
from cadenza.tools.running import RUNNING
from cadenza.tools.searching import SEARCHING

GROUP = "cadenza.tools"
NAME = re.compile("[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
SENTINEL = re.compile("[A-Z][A-Z0-9_]{0,63}")


def built_in() -> tuple[Tool, ...]:
    """The package's own work tools, in the order in which every model is shown them."""
    return (*FILES, *SEARCHING, *RUNNING, *FETCHING)


def _reserved() -> set[str]:
    own = {tool.spec.name for tool in built_in()}
    return own | ALWAYS | {spec.name for spec in ON_REQUEST} | {INSTALL}


@cache
def plugins() -> tuple[Tool, ...]:
    """The tools of other packages, by name.

    Raises:
        UsageError: a package brings what is no tool, or a name or sentinel that is taken.
    """
    from importlib.metadata import entry_points

    found: dict[str, Tool] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        for tool in _load(point):
            problem = problem_with(tool.spec, taken={*_reserved(), *found})
            if problem is not None:
                raise UsageError(
                    f"the tool {tool.spec.name!r} of {point.value} cannot be used: {problem}",
                    hint="that is a fault of the package that brings it; uninstall or repair it",
                )
            found[tool.spec.name] = tool
    return tuple(found[name] for name in sorted(found))


def _load(point: Any) -> Sequence[Tool]:
    try:
        made = point.load()
        if not isinstance(made, Tool) and callable(made):
            made = made()
    except Exception as error:
        raise UsageError(
            f"the tools of {point.value} cannot be loaded: {type(error).__name__}: {error}",
            hint="install or repair the package that brings them",
        ) from error
    tools = [made] if isinstance(made, Tool) else list(made) if isinstance(made, Iterable) else [made]
    for tool in tools:
        if not isinstance(tool, Tool):
            raise UsageError(
                f"{point.value} brings a {type(tool).__name__} where a cadenza.tools.base.Tool is due"
            )
    return [_with_origin(tool, point) for tool in tools]


def _with_origin(tool: Tool, point: Any) -> Tool:
    from msgspec.structs import replace

    name = point.dist.name if point.dist is not None else point.module
    return Tool(replace(tool.spec, origin=name), tool.execute)


def problem_with(spec: ToolSpec, taken: Iterable[str] = ()) -> str | None:
    """Why a definition cannot be used; None where it can."""
    return next(_problems(spec, taken), None)


def _problems(spec: ToolSpec, taken: Iterable[str]) -> Iterator[str]:
    if not NAME.fullmatch(spec.name):
        yield "its name is not made of letters, digits, _ and -"
    if spec.name in taken:
        yield "the name is taken"
    if spec.parameters.get("type") != "object":
        yield "the root of its parameters' schema is no object"
    if spec.kind == "terminal" and spec.ends is None:
        yield "it is terminal, and does not say how it ends the run"
    if spec.kind == "park" and spec.park is None:
        yield "it parks, and does not say what it waits for"
    sentinel = spec.park.sentinel if spec.park else spec.ends.sentinel if spec.ends else None
    if sentinel is not None and not SENTINEL.fullmatch(sentinel):
        yield f"its sentinel {sentinel!r} is not in capitals"
    if spec.park is not None and not spec.park.status.startswith("waiting_"):
        yield f"its status {spec.park.status!r} does not begin with waiting_"
    row = CATALOGUE.get(sentinel or "")
    if row is not None and spec.park is not None and row.status != spec.park.status:
        yield f"the sentinel {sentinel} means {row.status}"


def find(name: str) -> Tool | None:
    """A tool that this process can carry out, by name."""
    if name == INSTALL:
        return INSTALLER
    return next((tool for tool in (*built_in(), *plugins()) if tool.spec.name == name), None)
