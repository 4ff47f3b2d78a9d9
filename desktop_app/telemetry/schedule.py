"""When the next reading is due, and how long to wait for a card that is gone. Pure arithmetic on session time."""

from __future__ import annotations

import math
import time
from typing import Final

# A tick is late when it begins this share of the interval after it was due (50 ms at 5 Hz: a visible shift).
_LATE_SHARE: Final = 0.25
_SAME_MOMENT: Final = 1e-6  # of an interval: what rounding makes of a moment on the grid is not a tick before it


class TickSchedule:
    """A grid of moments start + k × interval. No drift: a slow tick never moves the grid, missed ticks are skipped."""

    def __init__(self, *, start_s: float, interval_s: float) -> None:
        self.interval_s = interval_s
        self._start_s = start_s
        self._tick = 0

    @property
    def due_s(self) -> float:
        """The moment of the next tick."""
        return self._start_s + self._tick * self.interval_s

    def is_late(self, now_s: float) -> bool:
        """Whether a tick that begins now is late."""
        return now_s - self.due_s > _LATE_SHARE * self.interval_s

    def advance(self, now_s: float) -> int:
        """Move to the first moment after ``now_s``; returns how many were missed on the way."""
        passed = math.floor((now_s - self._start_s) / self.interval_s + _SAME_MOMENT)
        following = max(self._tick + 1, passed + 1)
        missed = following - self._tick - 1
        self._tick = following
        return missed


class BackOff:
    """Waits that double up to a limit: 1, 2, 4 … 60 s."""

    def __init__(self, *, first_s: float = 1.0, longest_s: float = 60.0) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._next_s = first_s
        self.until_s: float | None = None  # None: nothing to wait for

    def is_over(self, now_s: float) -> bool:
        """Whether there was something to wait for and the wait has ended."""
        return self.until_s is not None and now_s >= self.until_s

    def start(self, now_s: float) -> None:
        """Wait from now, unless a wait is under way."""
        if self.until_s is None:
            self.until_s = now_s + self._next_s

    def again(self, now_s: float) -> None:
        """The attempt was made: wait twice as long for the next one."""
        self._next_s = min(2 * self._next_s, self._longest_s)
        self.until_s = now_s + self._next_s

    def reset(self) -> None:
        """All is well."""
        self._next_s = self._first_s
        self.until_s = None


def suspended_s() -> float:
    """How long this computer has been suspended since it was started, as far as its clocks tell (Linux).

    There the monotonic clock stands still meanwhile; elsewhere it goes on, and the sampler sees that it woke up late.
    """
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return 0.0 if boot is None else time.clock_gettime(boot) - time.clock_gettime(time.CLOCK_MONOTONIC)
