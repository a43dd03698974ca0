"""What went wrong with a call of a model server, said for machines and for people.

=====================================================  ================  =========
what happened                                          code              retriable
=====================================================  ================  =========
refused, reset before the answer, no such host; 409    ``unavailable``   yes
silence for longer than the timeout; 408               ``timeout``       yes
429 (but where the account has no credit left)         ``rate_limited``  yes
5xx; an error or broken data inside a stream           ``server``        yes
the stream ended before the answer did                 ``cut``           yes
401, 403                                               ``auth``          no
404                                                    ``not_found``     no
400, where the prompt is longer than the model reads   ``context_full``  no
400 and every other 4xx                                ``bad_request``   no
no stream of the format at all; anything else          ``failed``        no
=====================================================  ================  =========

No message holds a key: whatever a server echoes is blanked out. The official clients of OpenAI and
Anthropic come from one generator and name their exceptions alike; what differs is in :class:`Format`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from math import isfinite
from types import ModuleType
from typing import Any

import msgspec

from cadenza.clock import Clock
from cadenza.errors import ProviderError
from cadenza.providers.models.status import RETRIABLE, code_of, is_too_long

LONGEST_ECHO = 300
"""Characters of a server's own message that are repeated in ours."""


def _nothing(error: Any) -> None:
    return None


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """What the messages must know of one format.

    ``key`` and ``url`` are the environment variables of the key and the address. ``words_of`` finds the
    server's own message, ``spent`` says whether an error means that no credit is left, and ``code_of``
    may know better than the HTTP status what an error is.
    """

    name: str
    key: str
    url: str
    address_hint: str
    words_of: Callable[[Any], str]
    spent: Callable[[Any], bool]
    code_of: Callable[[Any], str | None] = _nothing


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who was called: what every message names. ``secrets`` are blanked out of it."""

    model: str
    url: str
    secrets: tuple[str, ...]
    clock: Clock
    format: Format

    def __str__(self) -> str:
        return f"{self.url} (model {self.model!r})"


def explained(error: Exception, caller: Caller, *, streaming: bool, sdk: ModuleType) -> ProviderError:
    """The ProviderError for what the client library ``sdk`` raised; ``streaming``: the answer had begun."""
    if isinstance(error, sdk.APIStatusError):
        return _status(error, caller)
    if isinstance(error, sdk.APITimeoutError) or "Timeout" in type(error).__name__:
        return _error("timeout", f"{caller} was silent for too long", "is the server overloaded?")
    if isinstance(error, sdk.APIConnectionError) or _from_transport(error):
        return cut(caller, None) if streaming else _unavailable(error, caller)
    if isinstance(error, sdk.APIError):
        told = _echo(str(getattr(error, "message", error)), caller)
        return _error("server", f"{caller} reported an error in its answer: {told}")
    if isinstance(error, ValueError):
        told = f"{caller} sent what is not the {caller.format.name} format ({_echo(str(error), caller)})"
        return _error("server", told, caller.format.address_hint)
    return _error("failed", f"{caller}: {type(error).__name__}: {_echo(str(error), caller)}")


def cut(caller: Caller, received: int | None) -> ProviderError:
    """The stream ended before the answer was complete; ``received`` characters had come."""
    after = "" if received is None else f" after {received} characters"
    return _error("cut", f"{caller} ended its answer in the middle{after}", "another try may get all of it")


def foreign(caller: Caller, content_type: str) -> ProviderError:
    """Something answered, with success, that is no model server: a web page, say."""
    told = f"{caller} answered with {content_type or 'no content type'} instead of a stream of the format"
    return _error("failed", told, caller.format.address_hint)


def bad_request(message: str, hint: str) -> ProviderError:
    """A call that cannot be made as it is."""
    return _error("bad_request", message, hint)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds the server asked to wait: ``retry-after-ms``, or ``retry-after`` in seconds or as a date."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        seconds = _number(value)
        if seconds is not None:
            return max(0.0, seconds * unit)
        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - now)
        except (ValueError, OverflowError):
            continue
    return None


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _status(error: Any, caller: Caller) -> ProviderError:
    status = int(error.status_code)
    code = caller.format.code_of(error) or code_of(status)
    spent = caller.format.spent(error)
    told = _echo(caller.format.words_of(error), caller)
    if status in (400, 413, 422) and is_too_long(f"{told} {getattr(error, 'body', '')}"):
        code = "context_full"
    failed = status >= 400  # else it is an event inside a stream that had begun well
    return ProviderError(
        f"{caller} answered {status}: {told}" if failed else f"{caller} broke off its answer: {told}",
        code=code,
        retriable=code in RETRIABLE and not spent,
        retry_after=retry_after(error.response.headers, caller.clock()),
        status=status if failed else None,
        hint=_QUOTA_HINT if spent else _hint(code, caller.format),
    )


_QUOTA_HINT = "the account has no credit left; add some, or choose another provider"
_HINTS = {
    "auth": "check {key}, and that it is a key for this server",
    "not_found": "check the model's name; {address}",
    "bad_request": "the server will not take this call as it is; is the model able to do what it asks?",
    "context_full": "the conversation is longer than the model can read",
    "rate_limited": "wait, or use fewer workers",
    "timeout": "is the server overloaded?",
    "unavailable": "the server is busy with something that excludes this call; another try may help",
    "server": "the fault is the server's; its log may say more",
}


def _hint(code: str, format: Format) -> str | None:
    hint = _HINTS.get(code)
    return hint and hint.format(key=format.key, address=format.address_hint)


def _unavailable(error: Exception, caller: Caller) -> ProviderError:
    cause = error.__cause__ or error
    told = _echo(str(cause) or type(cause).__name__, caller)
    return _error(
        "unavailable",
        f"{caller} cannot be reached ({told})",
        f"is the server running, and is {caller.format.url} its address?",
    )


def _from_transport(error: Exception) -> bool:
    """Some releases of the clients let errors of their HTTP library through while streaming."""
    return type(error).__module__.partition(".")[0] in ("httpx", "httpx2", "httpcore", "httpcore2")


def _error(code: str, message: str, hint: str | None = None) -> ProviderError:
    return ProviderError(message, code=code, retriable=code in RETRIABLE, hint=hint)


def _echo(text: str, caller: Caller) -> str:
    for secret in caller.secrets:
        text = text.replace(secret, "***")
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_ECHO else text[: LONGEST_ECHO - 1] + "…"
