"""The one place where ids and hashes are made.

A run has one random seed. Every other id in it is derived from the seed, so that ids are unguessable
for strangers, equal after a replay, and never drawn twice.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from base64 import b32encode

Hash = str
"""The first 160 bits of a text's SHA-256, in hex: 40 characters."""


def text_hash(text: str) -> Hash:
    """The content address of ``text`` (encoded as UTF-8).

    Raises:
        UnicodeEncodeError: the text holds lone surrogates; the doors refuse such text before this.
    """
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:40]


def new_run_id() -> str:
    """A fresh run id: ``r`` and twelve random characters, easy to type and to paste."""
    return "r" + b32encode(secrets.token_bytes(8)).decode("ascii").lower().rstrip("=")[:12]


def new_seed() -> str:
    """128 random bits in hex, drawn once per run."""
    return secrets.token_hex(16)


def derive_seed(seed: str, id: str) -> str:
    """The seed of the run ``id`` that a run with ``seed`` started: the same whenever it is asked for."""
    return hmac.digest(bytes.fromhex(seed), f"seed\x1f{id}".encode(), "sha256")[:16].hex()


def derive(seed: str, kind: str, *parts: object) -> str:
    """The id of a thing in a run: ``kind`` is its first letter, ``parts`` say which one.

    The same seed and parts give the same id for ever; without the seed nobody can guess it.
    """
    message = "\x1f".join([kind, *map(str, parts)]).encode("utf-8")
    digest = hmac.digest(bytes.fromhex(seed), message, "sha256")
    return kind[0] + digest[:10].hex()


def jitter(seed: str, *parts: object) -> float:
    """A number in [0, 1) that depends on nothing but the seed and ``parts``: backoff's randomness."""
    message = "\x1f".join(map(str, ("jitter", *parts))).encode("utf-8")
    digest = hmac.digest(bytes.fromhex(seed), message, "sha256")
    return int.from_bytes(digest[:8], "big") / 2**64
