"""How a demand ended: facts that the journal keeps and that movements are resumed with."""

from __future__ import annotations

from typing import Any

import msgspec

from cadenza.ids import Hash


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of one model call, normalised: ``input`` counts every prompt token, ``cached`` those of
    them that the server had already (a part of ``input``, as OpenAI counts; providers whose servers
    report them apart add them up)."""

    input: int = 0
    output: int = 0
    cached: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.input + other.input, self.output + other.output, self.cached + other.cached)


class Outcome(msgspec.Struct, frozen=True, tag_field="is", omit_defaults=True):
    """Base of all outcomes."""


class Replied(Outcome, frozen=True, tag="replied", kw_only=True, omit_defaults=True):
    """A model answered. The text is the conversation's next assistant message; ``blank``: it says nothing."""

    text: Hash
    usage: Usage = Usage()
    model: str | None = None
    finish: str = "stop"
    blocked: bool = False
    blank: bool = False


class Returned(Outcome, frozen=True, tag="returned", omit_defaults=True):
    """A host operation or a tool came back with JSON."""

    value: Any = None


class Answered(Outcome, frozen=True, tag="answered", omit_defaults=True):
    """A person (or whoever ``by`` names) answered a request."""

    value: Any
    by: str = ""


class Failed(Outcome, frozen=True, tag="failed", kw_only=True, omit_defaults=True):
    """The demand was not met. ``code`` is for machines, ``message`` for people."""

    code: str
    message: str
    retriable: bool = False
    retry_after: float | None = None


NO_PROVIDER = "no_provider"
"""The code of a model call for which no provider could be made: nothing was asked, and the run is held."""


class Unknown(Outcome, frozen=True, tag="unknown", kw_only=True, omit_defaults=True):
    """It was started and its outcome was lost (the process died in between). Never repeated silently."""

    message: str = ""


class Cancelled(Outcome, frozen=True, tag="cancelled", omit_defaults=True):
    """The run was cancelled while the demand was being met."""


AnyOutcome = Replied | Returned | Answered | Failed | Unknown | Cancelled
