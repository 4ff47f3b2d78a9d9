"""One monotonic clock per session, with one wall-clock anchor beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SessionClock:
    """Seconds since the session began. Every ``t_s`` in the program comes from one of these.

    ``anchor_wall_s`` is Unix time at ``t_s == 0``; it is read once, so a step of the wall clock never moves samples.
    """

    monotonic: Callable[[], float] = time.monotonic
    anchor_wall_s: float = field(default_factory=time.time)
    origin_s: float = field(default_factory=time.monotonic)

    def now_s(self) -> float:
        """Seconds since the session began (float64, monotonic)."""
        return self.monotonic() - self.origin_s

    def wall_s(self, t_s: float) -> float:
        """Unix time of a session time, for labels only."""
        return self.anchor_wall_s + t_s
