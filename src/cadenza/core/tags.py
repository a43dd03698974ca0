"""The status tag ``[STEP:N]`` that an agent ends its output with.

Source of behaviour: TAKT engine, rule evaluation, "tag based detection": N counts from 0 and the last
tag wins. Its command-line engine reads tags whatever their case, so this does too. Blanks beside the
brackets and the colon are allowed (``[STEP: 1]``): small models write them and nothing else looks like
that. N is made of ASCII digits; ``[STEP:N]``, ``[STEP:-1]`` and ``[STEP:1.5]`` are no tags.
"""

from __future__ import annotations

import re

_TAG = re.compile(r"\[[ \t]{0,8}step[ \t]{0,8}:[ \t]{0,8}([0-9]+)[ \t]{0,8}\]", re.IGNORECASE | re.ASCII)
_DIGITS = 9

BEYOND = 10**_DIGITS
"""What a tag of more than nine significant digits counts as: no movement has that many rules."""


def last_tag(text: str) -> int | None:
    """The N of the last ``[STEP:N]`` in ``text``, or ``None`` when there is no tag.

    The number is returned even where no rule has it. That is the caller's to decide: a last tag that
    is out of range goes to the judge, and an earlier tag in range does not come back.
    """
    digits = None
    for tag in _TAG.finditer(text):
        digits = tag[1]
    if digits is None:
        return None
    digits = digits.lstrip("0")
    return BEYOND if len(digits) > _DIGITS else int(digits or "0")


def is_tag_line(line: str) -> bool:
    """Whether a line holds one tag and nothing else, emphasis and code marks aside."""
    return _TAG.fullmatch(line.strip(" \t\r\n*_`")) is not None
