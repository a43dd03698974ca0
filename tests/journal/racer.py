"""A process that works on a journal beside others: ``python racer.py TASK PATH NAME``; prints JSON."""

from __future__ import annotations

import json
import sys
import time

from cadenza.core import events as ev
from cadenza.core.demands import Host
from cadenza.core.outcomes import Returned
from cadenza.errors import JournalError
from cadenza.journal.holders import this_process
from cadenza.journal.sqlite import SqliteJournal
from tests.journal.by_hand import ByHand

STEPS = 8
"""A run is ended by the commit that reaches this many resolved demands."""


def play(journal: SqliteJournal, name: str) -> list[list[str]]:
    """Claim whatever is due, one step a claim, until every run has ended; the demands resolved here."""
    done: list[list[str]] = []
    while any(journal.runs(status=("queued",), limit=1)):
        lease = journal.claim(this_process(name))
        if lease is None:
            time.sleep(0.001)
            continue
        run = ByHand(journal, lease.run).reload()
        run.lease, demand = lease, next(iter(run.state.open))
        last = sum(isinstance(item.event, ev.DemandResolved) for item in journal.events(run.run)) == STEPS - 1
        following = (
            run.ended() if last else ev.DemandIssued(id=f"{demand}+", key=f"{demand}+", demand=_host())
        )
        run.commit(ev.DemandResolved(id=demand, outcome=Returned(name)), following)
        done.append([lease.run, demand])
        journal.release(lease)
    return done


def _host() -> Host:
    return Host(op="prepare")


def answer(journal: SqliteJournal, name: str) -> list[str]:
    """Answer everything that is open; the requests whose answer was ours."""
    requests = [request.id for request in journal.requests(status=("open", "decided"))]
    return [
        id for id in requests if journal.decide(id, name, at=time.time(), actor=name).result == "accepted"
    ]


def begin(journal: SqliteJournal, name: str) -> list[str]:
    """Begin runs side by side with others that open the file for the first time."""
    return [ByHand(journal, f"r-{name}-{number}").begin().run for number in range(20)]


def hold(journal: SqliteJournal, name: str) -> None:
    """Claim a run and hang."""
    assert journal.claim(this_process(name)) is not None
    print("claimed", flush=True)
    time.sleep(60)


def main() -> None:
    task, path, name = sys.argv[1:]
    try:
        journal = SqliteJournal(path)
        print(json.dumps({"play": play, "answer": answer, "begin": begin, "hold": hold}[task](journal, name)))
        journal.close()
    except JournalError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
