"""What Floodmark itself costs, without the training that runs inside it."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Final

TRAINER_THREAD: Final = "trainer"
# A minute of frames at 10 Hz.
_FRAMES_KEPT: Final = 600


class OwnCost:
    """CPU time of all our threads but the trainer's, and the cost of the window's frames. Thread-safe."""

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None
        self._frames_s: deque[float] = deque(maxlen=_FRAMES_KEPT)

    def cpu_percent(self) -> float | None:
        """Share of one core since the last call, in percent; ``None`` at first and where threads are not accounted."""
        now = (time.monotonic(), _own_cpu_s())
        last, self._last = self._last, now
        if last is None or now[1] != now[1] or now[0] <= last[0]:
            return None
        # A thread that ended takes its time with it: never below nought.
        return max(0.0, 100.0 * (now[1] - last[1]) / (now[0] - last[0]))

    def note_frame(self, seconds: float) -> None:
        self._frames_s.append(seconds)

    def frame_p95_ms(self) -> float | None:
        frames = sorted(self._frames_s)
        return 1e3 * frames[int(0.95 * (len(frames) - 1))] if frames else None


def _own_cpu_s() -> float:
    """Seconds of CPU of all threads but the trainer's; NaN where the platform has no clock per thread."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return float("nan")
    total_s = 0.0
    for thread in threading.enumerate():
        if thread.name == TRAINER_THREAD or thread.ident is None:
            continue
        try:
            total_s += time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
        except OSError:  # it has just ended
            continue
    return total_s
