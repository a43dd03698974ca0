"""Between SQLite's rows and the journal's structs."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from cadenza.core import upcasting
from cadenza.core.events import AnyEvent, Recorded
from cadenza.core.state import RunState
from cadenza.journal import queries
from cadenza.journal.projections import SNAPSHOT_VERSION, Derived, MessageRow, Standing
from cadenza.journal.store import Loaded, RequestRow, RunRow

_SQL = queries.load("sqlite.sql")
_RUN = RunRow.__struct_fields__
_REQUEST = RequestRow.__struct_fields__
_VALUE = _REQUEST.index("value")

encode_json = msgspec.json.Encoder().encode
decode_json = msgspec.json.decode
decode_state = msgspec.json.Decoder(RunState).decode


def run(row: tuple[Any, ...]) -> RunRow:
    """A run from the columns of ``run``."""
    return RunRow(**dict(zip(_RUN, row, strict=False)))


def of_run(row: RunRow, standing: Standing, budget: str | None) -> tuple[Any, ...]:
    """The parameters of ``insert_run`` and ``rewrite_run``."""
    return (*msgspec.structs.astuple(row), standing, budget)


def of_commit(derived: Derived, ref: int, seq: int, at: float) -> tuple[Any, ...]:
    """The parameters of ``update_run``."""
    return (seq, at, *derived, ref)


def request(row: tuple[Any, ...]) -> RequestRow:
    """A request from the columns of ``request``."""
    values = dict(zip(_REQUEST, row, strict=True))
    if values["value"] is not None:
        values["value"] = decode_json(values["value"])
    return RequestRow(**values)


def of_request(ref: int, row: RequestRow) -> tuple[Any, ...]:
    """The parameters of ``put_request``."""
    values = list(msgspec.structs.astuple(row))
    values[1] = ref
    values[_VALUE] = encode_json(row.value).decode() if row.status == "decided" else None
    return tuple(values)


def of_message(ref: int, row: MessageRow) -> tuple[Any, ...]:
    """The parameters of ``insert_message``."""
    return (ref, *row)


def event(payload: str, run: str | int, seq: int) -> AnyEvent:
    """An event from its stored JSON. Raises JournalNewer or JournalCorrupt."""
    return upcasting.read(payload, run=str(run), seq=seq)


def events(connection: sqlite3.Connection, ref: int, run: str, after: int, limit: int = -1) -> list[Recorded]:
    """A run's events after a seq."""
    rows = connection.execute(_SQL["events"], (ref, after, limit)).fetchall()
    return [
        Recorded(run=run, seq=seq, at=at, actor=actor, event=event(payload, run, seq))
        for seq, at, actor, payload in rows
    ]


def snapshot(connection: sqlite3.Connection, ref: int) -> RunState | None:
    """A run's snapshot; None where there is none that this version reads (the events say the same)."""
    found = connection.execute(_SQL["snapshot"], (ref,)).fetchone()
    if found is None or found[0] != SNAPSHOT_VERSION:
        return None
    try:
        return decode_state(found[1])
    except msgspec.DecodeError:
        return None


def put_snapshot(connection: sqlite3.Connection, ref: int, state: RunState) -> None:
    """Replace a run's snapshot."""
    connection.execute(_SQL["put_snapshot"], (ref, state.seq, SNAPSHOT_VERSION, encode_json(state).decode()))
    connection.execute(_SQL["mark_snapshot"], (state.seq, ref))


def load(connection: sqlite3.Connection, ref: int, run: str) -> Loaded:
    """Snapshot, then the events after it: events are only added, so the two fit without a transaction."""
    state = snapshot(connection, ref)
    tail = events(connection, ref, run, state.seq if state is not None else 0)
    return Loaded(snapshot=state, tail=tuple(tail))
