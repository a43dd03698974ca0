"""The addresses of model servers: whether they are any, and how they are shown."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from cadenza.errors import UsageError


def check_address(base_url: str, example: str) -> None:
    """Refuse what is no ``http(s)`` address.

    Raises:
        UsageError: with ``example`` as hint.
    """
    try:
        parts = urlsplit(base_url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(f"not an address of a model server: {base_url!r}", hint=example)


def shown_address(base_url: str) -> str:
    """The address without a user name, password or query."""
    parts = urlsplit(base_url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def secrets_of(base_url: str, *keys: str) -> tuple[str, ...]:
    """What must never be shown: the keys, and a password in the address."""
    return tuple(secret for secret in (*keys, urlsplit(base_url).password) if secret)
