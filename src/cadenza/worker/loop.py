"""The worker: claims runs, plays them side by side, keeps its leases alive."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping

from cadenza.clock import Clock, system_clock
from cadenza.core.conductor import Conductor
from cadenza.core.events import AnyEvent
from cadenza.core.movements import KINDS, MovementKind
from cadenza.core.retrying import RetryPolicy
from cadenza.core.state import RunState
from cadenza.errors import JournalBusy, JournalError, JournalFull, JournalReadOnly, LeaseLost
from cadenza.ids import Hash
from cadenza.journal.holders import this_process
from cadenza.journal.store import LEASE_SECONDS, Commit, Journal, Lease
from cadenza.journal.writer import Writer
from cadenza.piece.model import Piece, read_piece
from cadenza.worker.folders import project_folder
from cadenza.worker.meeting import Meeting
from cadenza.worker.session import Session
from cadenza.worker.texts import JournalTexts

CLAIM_SECONDS = 0.5
"""How often an idle worker looks for runs that other processes made claimable."""

PIECES_KEPT = 64

WHOLE = (JournalFull, JournalReadOnly, JournalBusy)
"""What is wrong with a journal as a whole, and not with one of its runs."""

OnCommit = Callable[[str, RunState, tuple[AnyEvent, ...]], None]


class Worker:
    """Plays runs of one journal.

    Args:
        meeting: meets the demands.
        slots: how many runs are played at once.
        kinds: movement kinds by name.
        retry: the retry policy for model calls.
        on_commit: is told of every commit, after the fact.
        on_error: is told (run, error) of a run that :meth:`serve` could not play.
    """

    def __init__(
        self,
        journal: Journal,
        meeting: Meeting,
        *,
        slots: int = 4,
        kinds: Mapping[str, MovementKind] = KINDS,
        retry: RetryPolicy | None = None,
        clock: Clock = system_clock,
        on_commit: OnCommit | None = None,
        on_error: Callable[[str, BaseException], None] | None = None,
        name: str = "worker",
    ) -> None:
        self._journal = journal
        self._meeting = meeting
        self._slots = slots
        self._kinds = kinds
        self._retry = retry
        self._clock = clock
        self._on_commit = on_commit
        self._on_error = on_error
        self._holder = this_process(name)
        self._writer = Writer(journal)
        self._sessions: dict[str, Session] = {}
        self._pieces: dict[Hash, Piece] = {}

    async def serve(self, stop: asyncio.Event | None = None, *, until_idle: bool = False) -> int:
        """Claim and play until ``stop`` is set, or until nothing is claimable; how many runs were played.

        A run that cannot be played (its session raised) is left alone until its lease runs out; the others
        go on, and ``on_error`` is told. Runs that are being played when the worker stops are given back,
        not held.

        Raises:
            JournalError: the journal as a whole failed (full, read-only, busy for too long).
        """
        stop = stop or asyncio.Event()
        playing: dict[asyncio.Task[None], str] = {}
        played = 0
        try:
            while not stop.is_set():
                free = self._slots - len(playing)
                if free:
                    leases = await asyncio.to_thread(self._journal.claim_many, self._holder, free)
                    played += len(leases)
                    for lease in leases:
                        playing[asyncio.create_task(self._play(lease))] = lease.run
                if not playing and until_idle:
                    return played
                await self._pause(playing, stop)
                for task in [task for task in playing if task.done()]:
                    self._look_at(task, playing.pop(task))
        finally:
            for session in self._sessions.values():
                session.leave()
            await asyncio.gather(*playing, return_exceptions=True)
        return played

    def _look_at(self, task: asyncio.Task[None], run: str) -> None:
        """What one run's end means for the worker: only a journal that failed as a whole stops it."""
        error = task.exception()
        if isinstance(error, WHOLE):
            raise error
        if error is not None and not isinstance(error, LeaseLost) and self._on_error is not None:
            self._on_error(run, error)

    async def play(self, run: str, *, hold: bool = False) -> RunState | None:
        """Play one run until it stands or ends; None when another worker is playing it. With ``hold`` it is
        only held, with reason ``interrupted``.

        Raises:
            LeaseLost: another worker has taken the run over.
            JournalError: the journal failed, or holds something that this version cannot read.
        """
        lease = await asyncio.to_thread(self._journal.claim, self._holder, run=run)
        if lease is None:
            return None
        return await self._play_claimed(lease, hold=hold)

    def interrupt(self, run: str) -> bool:
        """Hold a run that is being played here; whether it is."""
        session = self._sessions.get(run)
        if session is not None:
            session.interrupt()
        return session is not None

    def notify(self, run: str) -> None:
        """An input was appended for ``run``."""
        session = self._sessions.get(run)
        if session is not None:
            session.notify()

    def close(self) -> None:
        """Stop the writer thread."""
        self._writer.close()

    async def _play(self, lease: Lease) -> None:
        await self._play_claimed(lease, quarantine=True)

    async def _play_claimed(self, lease: Lease, *, hold: bool = False, quarantine: bool = False) -> RunState:
        """With ``quarantine``, the lease of a run that cannot be played is not given back but runs out, so
        that the run is not claimed again at once, and becomes poison when that goes on."""
        session = await asyncio.to_thread(self._session, lease)
        self._sessions[lease.run] = session
        if hold:
            session.interrupt()
        beat = asyncio.create_task(self._keep(lease))
        try:
            await session.play()
        except Exception as error:
            session.owned = session.owned and (isinstance(error, WHOLE) or not quarantine)
            raise
        finally:
            beat.cancel()
            del self._sessions[lease.run]
            with contextlib.suppress(JournalError):
                await self._settle(lease, session)
        return session.state

    def _session(self, lease: Lease) -> Session:
        return Session(
            self._journal,
            lease,
            self._conductor,
            self._meeting,
            clock=self._clock,
            commit=self._commit,
            on_commit=self._on_commit,
        )

    async def _settle(self, lease: Lease, session: Session) -> None:
        """While the lease is ours: bring the run's folder up to date, then give the lease back."""
        if not session.owned:
            return
        try:
            if session.state.folder is not None:
                await asyncio.to_thread(project_folder, self._journal, lease.run, session.state)
        finally:
            await asyncio.to_thread(self._journal.release, lease)

    def _conductor(self, state: RunState, texts: JournalTexts) -> Conductor:
        return Conductor(self._piece(state.run.piece, texts), kinds=self._kinds, retry=self._retry)

    def _piece(self, hash: Hash, texts: JournalTexts) -> Piece:
        """The piece that a run pinned; many runs share one, and reading it costs more than a step."""
        if hash not in self._pieces:
            while len(self._pieces) >= PIECES_KEPT:
                del self._pieces[next(iter(self._pieces))]
            self._pieces[hash] = read_piece(texts[hash], hash)
        return self._pieces[hash]

    async def _commit(self, commit: Commit) -> None:
        await self._writer.commit(commit)

    async def _keep(self, lease: Lease) -> None:
        """Renew the lease while the run is played."""
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            with contextlib.suppress(JournalError):
                lease = await asyncio.to_thread(self._journal.renew, lease)

    async def _pause(self, playing: Mapping[asyncio.Task[None], str], stop: asyncio.Event) -> None:
        """Wait until a run is over, ``stop`` is set, or it is time to look for new runs."""
        stopping = asyncio.ensure_future(stop.wait())
        await asyncio.wait([*playing, stopping], timeout=CLAIM_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
