"""What an HTTP status means for a model call: the code of its ProviderError, and whether to try again."""

from __future__ import annotations

import re

RETRIABLE = frozenset({"unavailable", "timeout", "rate_limited", "server", "cut"})
"""The codes that another try may cure."""

CODES = (
    "unavailable",
    "timeout",
    "rate_limited",
    "server",
    "cut",
    "auth",
    "bad_request",
    "not_found",
    "context_full",
    "failed",
)
"""Every code of a :class:`~cadenza.errors.ProviderError` but ``script``."""

_BY_STATUS = {
    401: "auth",
    403: "auth",
    404: "not_found",
    408: "timeout",
    409: "unavailable",
    429: "rate_limited",
}


_TOO_LONG = re.compile(
    r"exceed_context_size|context_length_exceeded|exceeds? the (available |maximum )?context"
    r"|prompt is too long|maximum context length|context window",
    re.IGNORECASE,
)


def is_too_long(words: str) -> bool:
    """Whether a server that refuses a call says that its prompt is longer than the model can read."""
    return _TOO_LONG.search(words) is not None


def code_of(status: int) -> str:
    """The error code of an HTTP status: 408, 409, 429 and 5xx get one of :data:`RETRIABLE`."""
    if status >= 500:
        return "server"
    return _BY_STATUS.get(status, "bad_request" if 400 <= status < 500 else "failed")
