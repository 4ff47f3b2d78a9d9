"""What Floodmark itself costs, without the training that runs inside it."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

TRAINER_THREAD: Final = "trainer"
# A minute of frames at 10 Hz.
_FRAMES_KEPT: Final = 600
# Linux: the clock of a thread's CPU time has a number made of its id (MAKE_THREAD_CPUCLOCK in the kernel's
# posix-timers.h). Unlike pthread_getcpuclockid it is safe to ask for a thread that has just ended.
_PER_THREAD: Final = 4
_SCHEDULER: Final = 2

ThreadTimes = Mapping[int, float]


class OwnCost:
    """CPU time of all our threads but the trainer's, and the cost of the window's frames. Thread-safe.

    ``thread_times`` gives CPU seconds by thread id, ``None`` where the platform does not tell.
    """

    def __init__(
        self,
        *,
        thread_times: Callable[[], ThreadTimes | None] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._thread_times = thread_times or own_thread_times
        self._monotonic = monotonic
        self._last: tuple[float, ThreadTimes] | None = None
        self._frames_s: deque[float] = deque(maxlen=_FRAMES_KEPT)

    def cpu_percent(self) -> float | None:
        """Share of one core since the last call, in percent; ``None`` at first and where it cannot be told."""
        now_s, times = self._monotonic(), self._thread_times()
        if times is None:
            return None
        last, self._last = self._last, (now_s, times)
        if last is None or now_s <= last[0]:
            return None
        # A thread that has ended takes its time with it; one that began meanwhile counts from nought.
        spent_s = sum(max(0.0, spent - last[1].get(thread, 0.0)) for thread, spent in times.items())
        return 100.0 * spent_s / (now_s - last[0])

    def note_frame(self, seconds: float) -> None:
        self._frames_s.append(seconds)

    def frame_p95_ms(self) -> float | None:
        """95th percentile of the last minute's frames; ``None`` before the first."""
        frames = sorted(self._frames_s)
        return 1e3 * frames[int(0.95 * (len(frames) - 1))] if frames else None


def own_thread_times() -> ThreadTimes | None:
    """CPU seconds of every Python thread but the trainer's. torch's pool of workers belongs to the training."""
    if sys.platform != "linux":
        return None
    times = {}
    for thread in threading.enumerate():
        if thread.name == TRAINER_THREAD or thread.native_id is None:
            continue
        try:
            times[thread.native_id] = time.clock_gettime((~thread.native_id << 3) | _PER_THREAD | _SCHEDULER)
        except OSError:  # it has just ended
            continue
    return times
