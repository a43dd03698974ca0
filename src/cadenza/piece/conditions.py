"""The grammar of a rule's condition.

Source of behaviour: TAKT engine, rule evaluation and aggregates; its command-line engine for the exact
patterns. There are four kinds::

    approved                       label   chosen by its status tag or by the judge
    ai("the tests pass")           ai      the same, shown to the model without ``ai("...")``
    all("approved", "no issues")   all     an aggregate over the results of a parallel movement
    any("needs_fix")               any
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from cadenza.errors import PieceError

Kind = Literal["label", "ai", "all", "any"]

_AI = re.compile(r'ai\("(.+)"\)')
_AGGREGATE = re.compile(r"(all|any)\((.+)\)")
_ARGUMENT = re.compile(r'"([^"]+)"')


class Condition(msgspec.Struct, frozen=True):
    """One parsed condition.

    ``text`` is the condition as written (less surrounding white space): what is recorded when it
    matches and what aggregates compare. ``args`` are the quoted arguments: those of ``all`` / ``any``
    in order, the inner text of ``ai``, none for a label.
    """

    kind: Kind
    text: str
    args: tuple[str, ...] = ()

    @property
    def is_aggregate(self) -> bool:
        """Whether it looks at the results of sub-movements instead of at an output."""
        return self.kind in ("all", "any")

    @property
    def shown(self) -> str:
        """The text that a model or a person reads: ``ai("x")`` is shown as ``x``."""
        return self.args[0] if self.kind == "ai" else self.text


def parse_condition(text: str) -> Condition:
    """Read one condition.

    ``all(...)`` and ``any(...)`` take every ``"..."`` between the parentheses as an argument; a quoted
    text has no escapes. Anything that is neither an aggregate nor ``ai("...")`` is a label.

    Raises:
        PieceError: an aggregate without a single quoted, non-empty argument.
    """
    text = text.strip()
    if ai := _AI.fullmatch(text):
        return Condition("ai", text, (ai[1],))
    if not (aggregate := _AGGREGATE.fullmatch(text)):
        return Condition("label", text)
    args = tuple(_ARGUMENT.findall(aggregate[2]))
    if not args:
        raise PieceError(
            f"condition {text!r} names no sub-movement result",
            hint=f'quote each result, as in {aggregate[1]}("approved"), or reword it if it is a plain label',
        )
    return Condition("all" if aggregate[1] == "all" else "any", text, args)


def display_condition(text: str) -> str:
    """The condition as one line for a prompt: ``ai("x")`` becomes ``x``, line breaks become spaces.

    Never raises, whatever the text. TAKT engine, status tags, "ai() conditions".
    """
    text = text.strip()
    if ai := _AI.fullmatch(text):
        text = ai[1]
    return " ".join(part.strip() for part in text.splitlines())
