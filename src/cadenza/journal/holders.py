"""Who holds a lease, and whether that process still lives.

A process is named by its pid and its start time, within one boot and one pid namespace: two containers
on one machine share the boot but not the pids, so neither ever takes the other for dead.
"""

from __future__ import annotations

import os
from functools import cache

from cadenza.journal.store import Holder


def this_process(worker: str) -> Holder:
    """The calling process, as the holder of leases under the name ``worker``."""
    pid = os.getpid()
    stat = _stat(pid)
    return Holder(worker=worker, pid=pid, boot=_boot(), process_start=stat[1] if stat else "")


def is_gone(holder: Holder) -> bool:
    """Whether the holder's process is known to be dead.

    False for a process of another machine, boot or namespace, and where the system does not tell: such a
    lease is taken over when it expires.
    """
    if not holder.boot or holder.boot != _boot() or not holder.process_start:
        return False
    if holder.pid == os.getpid() and holder.process_start == _own_start(holder.pid):
        return False
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    stat = _stat(holder.pid)
    return stat is not None and (stat[1] != holder.process_start or stat[0] in "ZX")


@cache
def _boot() -> str:
    """This boot and pid namespace; empty where there is no ``/proc``."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


@cache
def _own_start(pid: int) -> str:
    """This process's start time; ``pid`` tells a forked child from its parent."""
    stat = _stat(pid)
    return stat[1] if stat else ""


def _stat(pid: int) -> tuple[str, str] | None:
    """State letter and start time (clock ticks since boot) of a process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return (fields[0], fields[19]) if len(fields) > 19 else None
