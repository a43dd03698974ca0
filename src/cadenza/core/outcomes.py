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
    """A model answered. The text is the conversation's next assistant message; ``blank``: it says nothing.
    ``calls`` are the tool calls that came with it: a JSON list of ``{id, name, arguments}``, by hash."""

    text: Hash
    usage: Usage = Usage()
    model: str | None = None
    finish: str = "stop"
    blocked: bool = False
    blank: bool = False
    calls: Hash | None = None


class Returned(Outcome, frozen=True, tag="returned", omit_defaults=True):
    """A host operation or a tool came back with JSON."""

    value: Any = None


class Wanted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a tool needs from a person before it can go on: it is called again with the decision."""

    question: str
    reason: str = ""
    schema: dict[str, Any] | None = None
    screen: str | None = None
    generation: int = 0


class Did(Outcome, frozen=True, tag="did", kw_only=True, omit_defaults=True):
    """An agent's tool came back with a text for the model, by hash. ``error``: it could not do what it was
    asked, ``code`` says why for machines. ``data`` is what software may want to know (an exit code, a
    path). ``wants``: a person is needed first. ``again``: not yet; ask again later (waiting tools)."""

    text: Hash
    error: bool = False
    code: str | None = None
    data: Any = None
    wants: Wanted | None = None
    again: bool = False


class Answered(Outcome, frozen=True, tag="answered", omit_defaults=True):
    """A person (or whoever ``by`` names) answered a request; ``earlier``: one that was decided before."""

    value: Any
    by: str = ""
    earlier: bool = False


class Expired(Outcome, frozen=True, tag="expired", omit_defaults=True):
    """Nobody answered a request in time."""


class Failed(Outcome, frozen=True, tag="failed", kw_only=True, omit_defaults=True):
    """The demand was not met. ``code`` is for machines, ``message`` for people."""

    code: str
    message: str
    retriable: bool = False
    retry_after: float | None = None


BUDGET = "budget"
"""The code of a demand that was not met because what the tree of runs may spend is spent."""

NO_PROVIDER = "no_provider"
"""The code of a model call for which no provider could be made: nothing was asked, and the run is held."""


class Unknown(Outcome, frozen=True, tag="unknown", kw_only=True, omit_defaults=True):
    """It was started and its outcome was lost (the process died in between). Never repeated silently."""

    message: str = ""


class Cancelled(Outcome, frozen=True, tag="cancelled", omit_defaults=True):
    """The run was cancelled while the demand was being met."""


AnyOutcome = Replied | Returned | Did | Answered | Expired | Failed | Unknown | Cancelled
