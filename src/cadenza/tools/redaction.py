"""Secrets never reach the model or the journal: whatever a tool says is looked through first."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, quote_plus

SECRET_NAME = re.compile(r"(?i)(key|token|secret|passw(or)?d|credential|passphrase|api_?auth)")
LEAST = 8
"""Shorter values are not looked for: they would be found everywhere."""


class Redactor:
    """Replaces the values of secret environment variables, plain, quoted for URLs and in base64.

    Args:
        environment: variables; those whose names look secret are taken.
        secrets: more values, by the name that is shown in their place.
    """

    def __init__(self, environment: Mapping[str, str], secrets: Mapping[str, str] | None = None) -> None:
        found = {name: value for name, value in environment.items() if SECRET_NAME.search(name)}
        found.update(secrets or {})
        self._names: dict[str, str] = {}
        for name, value in found.items():
            if len(value.strip()) >= LEAST:
                for form in _forms(value.strip()):
                    self._names.setdefault(form, name)
        longest_first = sorted(self._names, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def text(self, text: str) -> str:
        """The text, each secret replaced by ``[secret NAME]``."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: f"[secret {self._names[found[0]]}]", text)

    def value(self, value: Any) -> Any:
        """The same for every text in a JSON value, keys too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(key)): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value


def _forms(value: str) -> set[str]:
    """How a secret may be written. In base64 only the part that does not depend on what stands around it."""
    forms = {value, quote(value, safe=""), quote_plus(value)}
    raw = value.encode("utf-8")
    for shift in range(3):
        coded = base64.b64encode(b"\0" * shift + raw).decode("ascii").rstrip("=")
        inner = coded[(0, 2, 3)[shift] : len(coded) - (1 if (len(raw) + shift) % 3 else 0)]
        if len(inner) >= LEAST:
            forms.add(inner)
            forms.add(inner.replace("+", "-").replace("/", "_"))
    return {form for form in forms if len(form) >= LEAST}
