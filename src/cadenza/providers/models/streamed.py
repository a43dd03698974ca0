"""Text that arrives in pieces."""

from __future__ import annotations

from cadenza.providers.base import OnText


class StreamedText:
    """Streamed text. A character that JSON wrote as two surrogate escapes may arrive in two pieces."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._parts: list[str] = []
        self._half = ""

    def add(self, piece: str) -> None:
        """One more piece; what is whole of it is passed on."""
        piece = self._half + piece
        self._half = piece[-1:] if "\ud800" <= piece[-1:] <= "\udbff" else ""
        whole = _mended(piece[: len(piece) - len(self._half)])
        if whole:
            self._parts.append(whole)
            self._on_text(whole)

    def finished(self) -> str:
        """All of it."""
        return "".join(self._parts) + ("\ufffd" if self._half else "")


def _mended(text: str) -> str:
    """Surrogate pairs joined; a lone half becomes U+FFFD, as no file or database could hold it."""
    if not any("\ud800" <= letter <= "\udfff" for letter in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
