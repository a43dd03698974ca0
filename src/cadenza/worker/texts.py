"""The texts of a journal as the mapping that the conductor is handed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

from cadenza.ids import Hash
from cadenza.journal.store import Journal

KEPT = 2_000


class JournalTexts(Mapping[Hash, str]):
    """Texts by hash, read when they are first asked for; the last :data:`KEPT` stay in memory. Threads that
    meet demands may read while the worker adds."""

    def __init__(self, journal: Journal, known: Mapping[Hash, str] | None = None) -> None:
        self._journal = journal
        self._known: dict[Hash, str] = dict(known or {})
        self._lock = threading.Lock()

    def add(self, texts: Mapping[Hash, str]) -> None:
        """Remember texts that were just made."""
        with self._lock:
            self._known.update(texts)
            while len(self._known) > KEPT:
                del self._known[next(iter(self._known))]

    def __getitem__(self, hash: Hash) -> str:
        known = self._known.get(hash)
        if known is not None:
            return known
        found = self._journal.texts([hash])
        self.add(found)
        return found[hash]

    def __iter__(self) -> Iterator[Hash]:
        with self._lock:
            return iter(list(self._known))

    def __len__(self) -> int:
        return len(self._known)
