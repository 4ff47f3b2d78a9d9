"""What the processes that this one has started hold in RAM: loader workers, above all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import psutil

# Looking for children reads the parent of every process of the machine (11 ms with 93 of them); asking one that is
# known takes 0.05 ms. So looks are this far apart, and never take more than this share of the time.
_LOOK_EVERY_S: Final = 5.0
_LOOK_SHARE: Final = 0.003


class ChildProcesses:
    """Finds them now and then, and asks those it knows every time. Runs in: sampler thread.

    Their resident sets hold what they share with this process too, so that a sum is more than they cost; its growth
    is not.
    """

    def __init__(self, own: psutil.Process, *, clock: Callable[[], float] = time.perf_counter) -> None:
        self._own = own
        self._clock = clock
        self._known: list[psutil.Process] = []
        self._look_at_s = float("-inf")

    def read(self, t_s: float) -> tuple[int, int] | None:
        """(how many, resident bytes together) at ``t_s``; ``None`` when the system does not tell."""
        if t_s >= self._look_at_s:
            began_s = self._clock()
            try:
                self._known = self._own.children(recursive=True)
            except (psutil.Error, OSError):
                return None
            self._look_at_s = t_s + max(_LOOK_EVERY_S, (self._clock() - began_s) / _LOOK_SHARE)
        sizes = [(process, _resident_bytes(process)) for process in self._known]
        self._known = [process for process, size in sizes if size is not None]
        return len(self._known), sum(size for _, size in sizes if size is not None)


def _resident_bytes(process: psutil.Process) -> int | None:
    """``None`` when it has ended; a zombie holds nothing and is none of ours any more."""
    try:
        size = int(process.memory_info().rss)
    except (psutil.Error, OSError):
        return None
    return size or None
