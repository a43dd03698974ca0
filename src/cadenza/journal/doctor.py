"""What a run's events say that every row about it should be, and where the stored rows differ."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import msgspec

from cadenza.core import folding
from cadenza.core import state as states
from cadenza.core.events import Recorded, RunForked, RunStarted
from cadenza.errors import JournalCorrupt
from cadenza.ids import Hash, text_hash
from cadenza.journal import projections
from cadenza.journal.projections import MessageRow, Standing
from cadenza.journal.store import Loaded, Problem, RequestRow, RunRow


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """All that one run's events tell, or the rows that a journal holds about it."""

    row: RunRow
    standing: Standing
    budget: str | None = None
    requests: tuple[RequestRow, ...]
    messages: tuple[MessageRow, ...]
    state: states.RunState


class Unfoldable(JournalCorrupt):
    """The events of a run contradict each other."""


def tell(run: str, recorded: Sequence[Recorded]) -> Told:
    """Fold a run's events, from the first, into everything that follows from them.

    Raises:
        Unfoldable: an event does not fit those before it; the message names it.
    """
    if not recorded:
        raise Unfoldable("it has no event")
    state = states.RunState()
    requests: dict[str, RequestRow] = {}
    for item in recorded:
        _fold_one(state, item)
        projections.project_requests(requests, [item.event], run=run, at=item.at, actor=item.actor)
    projected = projections.project((item.event for item in recorded), 1, lambda _: None)
    row = projections.run_row(
        run, state, created_at=recorded[0].at, updated_at=recorded[-1].at, actor=recorded[0].actor
    )
    return Told(
        row=row,
        standing=projections.derive(state).standing,
        budget=projections.budget_of(state),
        requests=tuple(requests.values()),
        messages=tuple(projected.messages),
        state=state,
    )


def _fold_one(state: states.RunState, item: Recorded) -> None:
    if item.seq != state.seq + 1:
        raise Unfoldable(f"event {state.seq + 1} is missing, or {item.seq} is there twice")
    try:
        folding.apply(state, item.event, item.actor)
        _ = state.run
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        raise Unfoldable(f"event {item.seq} does not fit those before it: {error!r}") from error


def differences(told: Told, stored: Told) -> Iterator[Problem]:
    """Where the rows of a journal are not what the events tell."""
    run = told.row.id
    for field in RunRow.__struct_fields__:
        expected, found = getattr(told.row, field), getattr(stored.row, field)
        if expected != found:
            yield Problem(run=run, what=f"its {field} is {found!r}, its events say {expected!r}")
    if told.standing != stored.standing:
        yield Problem(run=run, what=f"it stands as {stored.standing!r}, its events say {told.standing!r}")
    if told.budget != stored.budget:
        yield Problem(run=run, what=f"its budget is {stored.budget!r}, its events say {told.budget!r}")
    yield from _differing(run, "request", told.requests, stored.requests)
    told_messages, stored_messages = (sorted(t.messages, key=_place) for t in (told, stored))
    yield from _differing(run, "message", told_messages, stored_messages)
    if told.state != stored.state:
        yield Problem(run=run, what="its snapshot and the events after it give another state than its events")


def _place(message: MessageRow) -> tuple[str, int, int]:
    return message.conversation, message.seq, message.item


def _differing(run: str, what: str, told: Sequence[object], stored: Sequence[object]) -> Iterator[Problem]:
    if len(told) != len(stored):
        yield Problem(run=run, what=f"it has {len(stored)} {what} rows, its events say {len(told)}")
    for expected, found in zip(told, stored, strict=False):
        if expected != found:
            yield Problem(run=run, what=f"a {what} is {found!r}, its events say {expected!r}")


def stored_state(loaded: Loaded) -> states.RunState:
    """The state that a snapshot and its tail give.

    Raises:
        Unfoldable: they do not fit together.
    """
    state = states.RunState() if loaded.snapshot is None else loaded.snapshot.copy()
    for item in loaded.tail:
        _fold_one(state, item)
    return state


def missing_texts(run: str, recorded: Iterable[Recorded], known: Container[Hash]) -> Iterator[Problem]:
    """Texts that events refer to and the journal does not hold."""
    for item in recorded:
        for hash in projections.texts_of(item.event):
            if hash not in known:
                yield Problem(run=run, what=f"event {item.seq} refers to text {hash}, which is missing")


def pinned(recorded: Iterable[Recorded]) -> Hash:
    """The piece that a run plays."""
    for item in recorded:
        if isinstance(item.event, RunStarted):
            return item.event.piece
        if isinstance(item.event, RunForked):
            piece: Hash = item.event.state["started"]["piece"]
            return piece
    return ""


def missing_of_pieces(pieces: Mapping[Hash, str], known: Container[Hash]) -> Iterator[Problem]:
    """Texts that the pieces which runs have pinned refer to, and the journal does not hold."""
    for hash, source in pieces.items():
        for text in projections.QUOTED_HASH.findall(source):
            if text not in known:
                yield Problem(run=None, what=f"the piece {hash} refers to text {text}, which is missing")


def wrong_texts(bodies: Iterable[tuple[Hash, str]]) -> Iterator[Problem]:
    """Texts that are not those that their hash names."""
    for hash, body in bodies:
        if text_hash(body) != hash:
            yield Problem(run=None, what=f"text {hash} was changed: it hashes to {text_hash(body)}")
