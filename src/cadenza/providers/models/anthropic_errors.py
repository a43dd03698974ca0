"""What is particular to the errors of Anthropic's messages format; the rest is in :mod:`.call_errors`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cadenza.errors import ProviderError
from cadenza.providers.models import call_errors
from cadenza.providers.models.call_errors import Caller, Format

_CODES = {
    "authentication_error": "auth",
    "permission_error": "auth",
    "not_found_error": "not_found",
    "invalid_request_error": "bad_request",
    "request_too_large": "bad_request",
    "billing_error": "bad_request",
    "rate_limit_error": "rate_limited",
    "timeout_error": "timeout",
}
"""What an error inside a stream means, where HTTP had said 200. All others are the server's fault."""

_LARGEST = re.compile(r"max_tokens: \d+ > (\d+)")
_NAMES = {
    "output_config": ("output_config", "output_format", "structured output", "json_schema"),
    "tool_choice": ("tool_choice", "tools", "tool use"),
    "cache_control": ("cache_control",),
}


def explained(error: Exception, caller: Caller, *, streaming: bool) -> ProviderError:
    """The ProviderError for what the client library raised; ``streaming``: the answer had begun."""
    import anthropic

    return call_errors.explained(error, caller, streaming=streaming, sdk=anthropic)


def refused_field(error: Any, sent: Mapping[str, Any], marked: bool) -> str | None:
    """The field that the server does not know and that the call can do without, if it is that.

    ``marked`` says whether ``sent`` has cache marks. A schema that the server understood and found wrong
    is not refused: that error is for a person.
    """
    if error.status_code not in (400, 422):
        return None
    told = words_of(error).lower()
    present = {"output_config": "output_config" in sent, "tool_choice": "tools" in sent}
    for field, names in _NAMES.items():
        if not present.get(field, marked) or not any(name in told for name in names):
            continue
        if "schema:" in told or "invalid schema" in told:
            return None
        return field
    return None


def largest_answer(error: Any) -> int | None:
    """How many tokens the model may write at most, where the server says that we asked for more."""
    found = _LARGEST.search(words_of(error)) if error.status_code == 400 else None
    return int(found[1]) or None if found else None


def words_of(error: Any) -> str:
    """The server's own message."""
    inner = _inner(error)
    message = inner.get("message")
    return message if isinstance(message, str) and message else str(error.message)


def _inner(error: Any) -> Mapping[str, Any]:
    inner = error.body.get("error") if isinstance(error.body, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def _spent(error: Any) -> bool:
    return _inner(error).get("type") == "billing_error" or "credit balance is too low" in words_of(error)


def _code_of(error: Any) -> str | None:
    """An error event inside a stream carries its meaning in its type alone."""
    if error.status_code >= 400:
        return None
    return _CODES.get(str(_inner(error).get("type")), "server")


MESSAGES = Format(
    name="messages",
    key="ANTHROPIC_API_KEY",
    url="ANTHROPIC_BASE_URL",
    address_hint="does the server at this address answer at /v1/messages?",
    words_of=words_of,
    spent=_spent,
    code_of=_code_of,
)
