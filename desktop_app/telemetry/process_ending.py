"""Telling a process to end, and only the one that is meant: a pid may be another process's by now."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Final

import psutil

# Two start times this close are one process. The system counts in hundredths, and the time of its boot, from which they
# are reckoned, moves a little when the clock is corrected.
_SAME_START_S: Final = 0.5
_FIRST_PID: Final = 1  # the system itself (or the first process of a container), which nobody ends from here


class Told(StrEnum):
    """What came of it."""

    SENT = "sent"  # the system has told it
    GONE = "gone"  # it has ended already
    ANOTHER = "another"  # its pid belongs to another process now
    DENIED = "denied"
    OWN = "own"  # this program, or what it has started


def tell_to_end(pid: int, *, started_wall_s: float, force: bool) -> Told:
    """SIGTERM, or with ``force`` SIGKILL, to the process that has had ``pid`` since then. Under Windows both are the
    same: it is ended at once. Does not wait."""
    if pid <= _FIRST_PID:
        return Told.DENIED
    try:
        process = psutil.Process(pid)
        if abs(process.create_time() - started_wall_s) > _SAME_START_S:
            return Told.ANOTHER
        if process.status() == psutil.STATUS_ZOMBIE:
            return Told.GONE
        if _is_own(process):
            return Told.OWN
        if force:
            process.kill()  # psutil looks once more whether the pid is still the same process's
        else:
            process.terminate()
    except psutil.NoSuchProcess:
        return Told.GONE
    except (psutil.AccessDenied, PermissionError):
        return Told.DENIED
    return Told.SENT


def is_running(pid: int, *, started_wall_s: float) -> bool:
    """Whether that process still runs; what cannot be seen is taken to run. One that ended and waits for its parent
    to take note (a zombie) does not."""
    try:
        process = psutil.Process(pid)
        same: bool = abs(process.create_time() - started_wall_s) <= _SAME_START_S
        return same and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def _is_own(process: psutil.Process) -> bool:
    own = os.getpid()
    return process.pid == own or any(parent.pid == own for parent in process.parents())
