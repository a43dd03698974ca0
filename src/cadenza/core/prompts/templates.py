"""Template variables of an instruction.

Source of behaviour: TAKT engine, "expansion of template variables"; ``{user_inputs}`` and
``{cycle_count}`` as in its schema. A template is read in ONE pass: what a variable is replaced by is
data and is never read again, so braces in a task or in an output arrive as they are. A placeholder
that nobody knows stays as it is written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cadenza.piece.vocabulary import VARIABLES

__all__ = ["VARIABLES", "expand", "mentions", "reports_mentioned"]

_PLACEHOLDER = re.compile(r"\{(?:report:([^{}\r\n]+)|([a-z_]+))\}")


def expand(
    template: str,
    values: Mapping[str, str],
    reports: Mapping[str, str | None],
    *,
    missing_report: str,
) -> str:
    """``template`` with its variables replaced.

    ``{name}`` becomes ``values[name]`` where there is one. ``{report:FILE}`` becomes ``reports[FILE]``,
    or ``missing_report`` where that is ``None`` or not there. Blanks around FILE do not count.
    """

    def replacement(placeholder: re.Match[str]) -> str:
        file, name = placeholder.groups()
        if file is None:
            return values.get(name, placeholder[0])
        content = reports.get(file.strip())
        return missing_report if content is None else content

    return _PLACEHOLDER.sub(replacement, template)


def mentions(template: str, name: str) -> bool:
    """Whether the template holds the variable ``{name}``."""
    return any(placeholder[2] == name for placeholder in _PLACEHOLDER.finditer(template))


def reports_mentioned(template: str) -> tuple[str, ...]:
    """Each FILE of a ``{report:FILE}`` in the template, in order of first mention, once each."""
    files = (placeholder[1] for placeholder in _PLACEHOLDER.finditer(template))
    return tuple(dict.fromkeys(file.strip() for file in files if file is not None))
