"""A run's events as server-sent events: the id of each is its number, so that a reader can go on behind
it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec

from cadenza.engine import Engine

LOOK_SECONDS = 0.2
ALIVE_SECONDS = 15.0
"""How often a stream says that it is still there, where nothing happens."""


async def event_stream(engine: Engine, run: str, after: int, *, follow: bool) -> AsyncIterator[bytes]:
    """Events behind ``after`` as they come, until the run goes no further by itself; with ``follow`` until it
    has ended."""
    quiet = 0.0
    while True:
        row = await asyncio.to_thread(engine.journal.run, run)
        for recorded in await asyncio.to_thread(engine.journal.events, run, after=after):
            after = recorded.seq
            data = msgspec.json.encode(recorded)
            kind = str(type(recorded.event).__struct_config__.tag).encode()
            yield b"id: %d\nevent: %s\ndata: %s\n\n" % (after, kind, data)
            quiet = 0.0
        ended = row.status in ("completed", "aborted", "cancelled", "error")
        if row.seq <= after and (ended if follow else not engine.goes_on(row)):
            yield b"event: stands\ndata: %s\n\n" % msgspec.json.encode(row)
            return
        await asyncio.sleep(LOOK_SECONDS)
        quiet += LOOK_SECONDS
        if quiet >= ALIVE_SECONDS:
            quiet = 0.0
            yield b": still here\n\n"
