"""The texts of a journal as the mapping that the conductor is handed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cadenza.ids import Hash
from cadenza.journal.store import Journal

KEPT = 2_000


class JournalTexts(Mapping[Hash, str]):
    """Texts by hash, read when they are first asked for; the last :data:`KEPT` stay in memory."""

    def __init__(self, journal: Journal, known: Mapping[Hash, str] | None = None) -> None:
        self._journal = journal
        self._known: dict[Hash, str] = dict(known or {})

    def add(self, texts: Mapping[Hash, str]) -> None:
        """Remember texts that were just made."""
        self._known.update(texts)
        while len(self._known) > KEPT:
            del self._known[next(iter(self._known))]

    def __getitem__(self, hash: Hash) -> str:
        if hash not in self._known:
            self.add(self._journal.texts([hash]))
        return self._known[hash]

    def __iter__(self) -> Iterator[Hash]:
        return iter(dict(self._known))

    def __len__(self) -> int:
        return len(self._known)
