"""What is particular to the errors of OpenAI-compatible servers; the rest is in :mod:`.call_errors`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cadenza.errors import ProviderError
from cadenza.providers.models import call_errors
from cadenza.providers.models.call_errors import Caller, Format, bad_request, cut, foreign, retry_after


def explained(error: Exception, caller: Caller, *, streaming: bool) -> ProviderError:
    """The ProviderError for what the client library raised; ``streaming``: the answer had begun."""
    import openai

    return call_errors.explained(error, caller, streaming=streaming, sdk=openai)


def refused_field(error: Any, sent: Mapping[str, Any]) -> str | None:
    """The optional field that the server does not know and that the call can do without, if it is that.

    A schema that the server understood and found wrong is not: that error is for a person.
    """
    if error.status_code not in (400, 422):
        return None
    told = str(error.message).lower()
    if "response_format" in sent and "invalid schema" not in told:
        names = ("response_format", "json_schema")
        if any(name in told for name in names):
            return "response_format"
    return next(
        (name for name in ("stream_options", "max_tokens") if name in sent and _unsupported(name, told)), None
    )


def _unsupported(name: str, told: str) -> bool:
    """``max_tokens`` is also named where its *value* is too large, which no other name would cure."""
    return name in told and (name != "max_tokens" or "max_completion_tokens" in told)


def _server_words(error: Any) -> str:
    body = error.body
    if isinstance(body, Mapping) and isinstance(body.get("message"), str) and body["message"]:
        return str(body["message"])
    return str(error.message)


def _spent(error: Any) -> bool:
    return getattr(error, "code", None) == "insufficient_quota"


CHAT_COMPLETIONS = Format(
    name="chat-completions",
    key="OPENAI_API_KEY",
    url="OPENAI_BASE_URL",
    address_hint="does the address end in /v1, and is it a model server?",
    words_of=_server_words,
    spent=_spent,
)

__all__ = [
    "CHAT_COMPLETIONS",
    "Caller",
    "bad_request",
    "cut",
    "explained",
    "foreign",
    "refused_field",
    "retry_after",
]
