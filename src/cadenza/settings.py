"""The one settings object: what a person set in the environment, with the defaults in one place."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from cadenza.errors import ConfigError
from cadenza.piece.vocabulary import Language


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Defaults for every face.

    ``journal``: the file that holds all runs (``CADENZA_JOURNAL``).
    ``provider``, ``model``: what plays a movement that names none (``CADENZA_PROVIDER``, ``CADENZA_MODEL``).
    ``language``: of the engine's own texts (``CADENZA_LANG``: ``en`` or ``ja``).
    ``actor``: who is at the keyboard, for the journal (``CADENZA_ACTOR``).
    ``max_tokens``: the longest answer that a model may give; None leaves it to the server
    (``CADENZA_MAX_TOKENS``).
    ``base_url``: where an OpenAI-compatible provider is reached (``OPENAI_BASE_URL``).
    """

    journal: Path
    provider: str | None = None
    model: str | None = None
    language: Language = "en"
    actor: str = "person"
    max_tokens: int | None = None
    base_url: str | None = None

    @classmethod
    def from_environment(
        cls, environ: Mapping[str, str] | None = None, *, defaults: Mapping[str, Any] | None = None
    ) -> Settings:
        """Read the variables named above.

        ``defaults`` has values for ``provider``, ``model``, ``language`` and ``base_url`` where the
        environment is silent: what the configuration files say (see ``cadenza.config``).

        Raises:
            ConfigError: a variable holds what it cannot hold; the message names it and its value.
        """
        env = os.environ if environ is None else environ
        otherwise = defaults or {}
        return cls(
            journal=Path(env["CADENZA_JOURNAL"]) if env.get("CADENZA_JOURNAL") else default_journal_path(env),
            provider=env.get("CADENZA_PROVIDER") or otherwise.get("provider"),
            model=env.get("CADENZA_MODEL") or otherwise.get("model"),
            language=_language(env.get("CADENZA_LANG") or otherwise.get("language") or ""),
            actor=env.get("CADENZA_ACTOR") or _who(),
            max_tokens=_positive(env, "CADENZA_MAX_TOKENS"),
            base_url=env.get("OPENAI_BASE_URL") or otherwise.get("base_url"),
        )


def default_journal_path(environ: Mapping[str, str] | None = None) -> Path:
    """``$XDG_DATA_HOME/cadenza/journal.sqlite``, or under ``~/.local/share`` where that is not set.

    Raises:
        ConfigError: neither that variable nor a home directory is known.
    """
    data = (os.environ if environ is None else environ).get("XDG_DATA_HOME", "")
    if os.path.isabs(data):
        return Path(data) / "cadenza" / "journal.sqlite"
    try:
        return Path.home() / ".local" / "share" / "cadenza" / "journal.sqlite"
    except RuntimeError as error:
        raise ConfigError(
            "No home directory is known for the journal.", hint="Set XDG_DATA_HOME, or pass --journal FILE."
        ) from error


def _language(value: str) -> Language:
    if value in ("", "en"):
        return "en"
    if value == "ja":
        return "ja"
    raise ConfigError(f"CADENZA_LANG is {value!r}", hint="set it to en or ja")


def _positive(env: Mapping[str, str], name: str) -> int | None:
    value = env.get(name)
    if not value:
        return None
    if not value.isdecimal() or int(value) == 0:
        raise ConfigError(f"{name} is {value!r}", hint="set it to a whole number above 0, or unset it")
    return int(value)


def _who() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return socket.gethostname()
