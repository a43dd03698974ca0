"""The words in which both stores refuse, and the door that lets only JSON in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from cadenza.core import events as ev
from cadenza.errors import Conflict, InputRefused, JournalCorrupt, LeaseLost, NotFound, SequenceConflict
from cadenza.ids import Hash
from cadenza.journal.store import Commit, Lease

_NOT_ENCODABLE = (TypeError, ValueError, OverflowError, RecursionError, msgspec.EncodeError)


def payloads(events: Iterable[ev.AnyEvent]) -> list[str]:
    """Each event's canonical JSON.

    Raises:
        InputRefused: a value in one is not JSON: a lone surrogate, an object.
    """
    try:
        return [ev.encode(event).decode() for event in events]
    except _NOT_ENCODABLE as error:
        raise InputRefused(f"A value cannot be written as JSON: {error}.") from error


def decision(request: str, value: Any) -> tuple[ev.RequestDecided, str]:
    """An answer as the journal will read it back, and its JSON (a tuple is a list then, a NaN null).

    Raises:
        InputRefused: the value is not JSON.
    """
    (stored,) = payloads([ev.RequestDecided(id=request, value=value)])
    event = ev.decode(stored)
    assert isinstance(event, ev.RequestDecided)
    return event, stored


def no_run(run: str) -> NotFound:
    """There is no such run."""
    return NotFound(f"there is no run {run!r} in the journal", hint="cadenza runs lists them")


def no_request(request: str) -> NotFound:
    """There is no such request."""
    return NotFound(
        f"there is no request {request!r} in the journal", hint="cadenza inbox lists those that are open"
    )


def run_exists(run: str) -> Conflict:
    """A run of that id was begun before."""
    return Conflict(f"There is a run {run} already.")


def out_of_sequence(commit: Commit, seq: int) -> SequenceConflict:
    """Somebody appended in between."""
    return SequenceConflict(f"Run {commit.run} has event {seq} now, not {commit.after}.")


def not_yours(run: str, epoch: int, worker: str | None) -> LeaseLost:
    """What a worker hears that writes under an epoch that is over; ``worker`` plays the run now."""
    now = f"worker {worker} has it now" if worker else "it was given back"
    return LeaseLost(f"The lease of run {run} under epoch {epoch} is over: {now}.")


def lost(lease: Lease) -> LeaseLost:
    """A lease that cannot be extended any more."""
    return LeaseLost(f"Run {lease.run} is no longer worker {lease.worker}'s (epoch {lease.epoch}).")


def missing_text(path: str, hash: Hash) -> JournalCorrupt:
    """A text that some event names is not there."""
    return JournalCorrupt(
        f"The journal {path} lacks the text {hash}.",
        hint="`cadenza doctor --verify` shows what else is wrong; restore the journal from a backup.",
    )


def lone_surrogate(error: UnicodeEncodeError) -> InputRefused:
    """A text that UTF-8 cannot hold."""
    return InputRefused(f"A text holds a lone surrogate at character {error.start}.")


def check_texts(texts: Mapping[Hash, str]) -> None:
    """Raises InputRefused for a text with lone surrogates."""
    for body in texts.values():
        try:
            body.encode("utf-8")
        except UnicodeEncodeError as error:
            raise lone_surrogate(error) from error
