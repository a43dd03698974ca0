"""Text and tool calls that arrive in pieces."""

from __future__ import annotations

from cadenza.providers.base import OnText, ToolCall


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


class StreamedCalls:
    """Tool calls that arrive in pieces: a piece belongs to the call of its index, or where a server gives
    none
    to the last one, unless it brings a new id or name."""

    def __init__(self) -> None:
        self._calls: dict[object, list[str]] = {}
        self._last: object = None

    def add(self, index: int | None, id: str | None, name: str | None, arguments: str | None) -> None:
        """Take a piece."""
        place: object = index
        if index is None:
            begun = self._calls.get(self._last)
            fresh = begun is None or (bool(id) and id != begun[0]) or (bool(name) and bool(begun[2]))
            place = ("no index", len(self._calls)) if fresh else self._last
        call = self._calls.setdefault(place, ["", "", ""])
        self._last = place
        call[0] = id or call[0]
        call[1] = name or call[1]
        call[2] += arguments or ""

    def finished(self) -> tuple[ToolCall, ...]:
        """The calls in the order in which they began."""
        return tuple(ToolCall(id, name, arguments) for id, name, arguments in self._calls.values() if name)
