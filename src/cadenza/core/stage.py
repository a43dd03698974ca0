"""Where a visit is played: the live generator, and how it is rebuilt from the journal.

The live one is a cache. It is used only while it stands exactly where the state does; in every other case
(a restart, a refused commit, another worker's progress) it is thrown away and rebuilt.
"""

from __future__ import annotations

from collections.abc import Mapping

from cadenza.core.movements import MovementKind, perform
from cadenza.core.performance import Issued, Player
from cadenza.core.state import RunState, VisitState
from cadenza.core.visit import Book, Visit
from cadenza.errors import CodeChanged
from cadenza.piece.model import Piece

Place = tuple[str, int, int]


class Stage:
    """Plays the visits of one piece."""

    def __init__(self, piece: Piece, kinds: Mapping[str, MovementKind], book: Book) -> None:
        self.piece = piece
        self.kinds = kinds
        self.book = book
        self._player: Player | None = None
        self._place: Place | None = None

    def version(self, movement: str) -> int:
        """The version of the kind that ``movement`` is of. Raises CodeChanged for an unknown kind."""
        return self._kind(self.piece.by_name[movement].kind).version

    def open(self, state: RunState) -> list[Issued]:
        """Begin the visit that ``state`` has just started; its first demands."""
        self._player, self._place = self._play(state), _place(_visit(state))
        return self._player.start()

    def adopt(self, state: RunState) -> list[Issued]:
        """Take up the visit of ``state``, which was played in another run; what it waits for now."""
        visit = _visit(state)
        self._player, self._place = self._replay(state, visit), _place(visit)
        return self._player.pending()

    @property
    def player(self) -> Player:
        """The player that was opened or made ready last."""
        assert self._player is not None
        return self._player

    def clear(self) -> None:
        """Forget the visit: it is over."""
        self._player, self._place = None, None

    def ready(self, state: RunState) -> Player:
        """The player that stands where ``state`` does.

        Raises:
            CodeChanged: this version of the movement kind would not have come to where the journal is.
        """
        visit = _visit(state)
        live = self._player
        if live is not None and self._place == _place(visit) and _fits(live, state, visit):
            return live
        self._player, self._place = self._rebuild(state, visit), _place(visit)
        return self._player

    def _rebuild(self, state: RunState, visit: VisitState) -> Player:
        started = visit.started
        version = self.version(started.movement)
        where = f"visit {started.visit} of {started.movement!r}"
        if version != started.version:
            kind = self.piece.by_name[started.movement].kind
            raise CodeChanged(
                f"{where} was begun by version {started.version} of {kind!r} movements; "
                f"this is version {version}"
            )
        player = self._replay(state, visit)
        asked, recorded = set(player.open), {d.key for d in state.open.values()}
        if asked != recorded:
            raise CodeChanged(f"{where} waits for {_names(recorded)}; this version asks for {_names(asked)}")
        return player

    def _replay(self, state: RunState, visit: VisitState) -> Player:
        player = self._play(state)
        player.start()
        for key, outcome in visit.outcomes.items():
            player.feed(key, outcome)
        self.book.new.clear()
        player.told.clear()
        return player

    def _play(self, state: RunState) -> Player:
        movement = self.piece.by_name[_visit(state).started.movement]
        visit = Visit(self.piece, movement, state, self.book)
        return Player.of(perform(visit, self._kind(movement.kind)))

    def _kind(self, name: str) -> MovementKind:
        try:
            return self.kinds[name]
        except KeyError:
            known = ", ".join(sorted(self.kinds))
            raise CodeChanged(f"there is no movement kind {name!r} here; known are {known}") from None


def _visit(state: RunState) -> VisitState:
    if state.visit is None:
        raise ValueError("no visit is going on in this state")
    return state.visit


def _place(visit: VisitState) -> Place:
    return visit.started.movement, visit.started.visit, visit.started.attempt


def _fits(live: Player, state: RunState, visit: VisitState) -> bool:
    outcomes = visit.outcomes
    return (
        not live.done
        and live.fed == len(outcomes)
        and live.last == next(reversed(outcomes), "")
        and live.open.keys() == {d.key for d in state.open.values()}
    )


def _names(keys: set[str]) -> str:
    return ", ".join(sorted(keys)) or "nothing"
