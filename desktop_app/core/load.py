"""Where a training and the simulated card it runs on meet: memory held, and time spent computing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another process on a simulated card, as a demonstration wants it: it grows while the training computes.

    It takes ``first_bytes`` when the training has been computing for ``delay_s``, and ``bytes_per_s`` more from then.
    """

    name: str
    first_bytes: int
    bytes_per_s: int
    delay_s: float = 0.0

    def wants_bytes(self, since_s: float) -> int:
        """What it would hold ``since_s`` seconds after the training began to compute."""
        grown_s = since_s - self.delay_s
        return 0 if grown_s < 0 else self.first_bytes + int(self.bytes_per_s * grown_s)


class CardLoad:
    """What a training does to its card. The trainer thread writes, the sampler thread reads; all calls are safe.

    Times are session seconds (``SessionClock.now_s``); sizes are bytes. ``begin_busy`` and ``end_busy`` enclose the
    time inside micro-steps; between them the trainer waits for data or control.
    """

    def __init__(self, *, t_s: float = 0.0) -> None:
        self._lock = threading.Lock()
        self._reserved_bytes = 0
        self._outside_bytes = 0
        self._others_bytes = 0
        self._busy_since_s: float | None = None
        self._busy_s = 0.0  # finished busy time since the last take
        self._taken_s = t_s
        self._last_duty = 0.0
        self._neighbour: Neighbour | None = None
        self._neighbour_since_s: float | None = None
        self._on_others: Callable[[int], None] | None = None

    def set_memory(self, *, reserved_bytes: int, outside_bytes: int) -> None:
        """What the training holds: its caching allocator's reserve, and context and handles outside it."""
        if reserved_bytes < 0 or outside_bytes < 0:
            raise ValueError("bytes held cannot be negative")
        with self._lock:
            self._reserved_bytes = reserved_bytes
            self._outside_bytes = outside_bytes

    def set_others(self, others_bytes: int) -> None:
        """What other processes hold on the card."""
        if others_bytes < 0:
            raise ValueError("bytes held cannot be negative")
        with self._lock:
            changed = others_bytes != self._others_bytes
            self._others_bytes = others_bytes
            told = self._on_others
        if changed and told is not None:
            told(others_bytes)

    def watch_others(self, told: Callable[[int], None] | None) -> None:
        """``told`` hears at once of every change of what others hold, in the thread that changes it."""
        with self._lock:
            self._on_others = told

    def invite(self, neighbour: Neighbour | None) -> None:
        """A neighbour for the training that comes; ``None``: it goes, and what it held with it."""
        with self._lock:
            goes = self._neighbour is not None
            self._neighbour, self._neighbour_since_s = neighbour, None
        if goes:
            self.set_others(0)

    def move_neighbour(self, now_s: float, *, capacity_bytes: int) -> None:
        """The neighbour takes what it wants by now, as far as there is room; what it has it keeps."""
        with self._lock:
            neighbour, since_s = self._neighbour, self._neighbour_since_s
            free_bytes = capacity_bytes - self._reserved_bytes - self._outside_bytes
            held_bytes = self._others_bytes
        if neighbour is not None and since_s is not None:
            self.set_others(max(held_bytes, min(neighbour.wants_bytes(now_s - since_s), free_bytes)))

    def begin_busy(self, t_s: float) -> None:
        """The trainer starts computing. Twice in a row is once."""
        with self._lock:
            if self._busy_since_s is None:
                self._busy_since_s = max(t_s, self._taken_s)
            if self._neighbour is not None and self._neighbour_since_s is None:
                self._neighbour_since_s = t_s

    def end_busy(self, t_s: float) -> None:
        """The trainer stops computing. Without a beginning it says nothing."""
        with self._lock:
            if self._busy_since_s is not None:
                self._busy_s += max(0.0, t_s - self._busy_since_s)
                self._busy_since_s = None

    def take_duty(self, now_s: float) -> float:
        """Share of the time since the last take that was busy, in [0, 1], an unfinished interval included.

        Asked again at the same moment, it repeats its last answer.
        """
        with self._lock:
            elapsed_s = now_s - self._taken_s
            if elapsed_s <= 0:
                return self._last_duty
            busy_s = self._busy_s
            if self._busy_since_s is not None:
                busy_s += max(0.0, now_s - self._busy_since_s)
                self._busy_since_s = max(now_s, self._busy_since_s)
            self._busy_s = 0.0
            self._taken_s = now_s
            self._last_duty = min(1.0, busy_s / elapsed_s)
            return self._last_duty

    @property
    def reserved_bytes(self) -> int:
        """Held by the training's caching allocator."""
        with self._lock:
            return self._reserved_bytes

    @property
    def outside_bytes(self) -> int:
        """Held by the training outside its allocator."""
        with self._lock:
            return self._outside_bytes

    @property
    def others_bytes(self) -> int:
        """Held by other processes."""
        with self._lock:
            return self._others_bytes

    @property
    def neighbour_name(self) -> str | None:
        """The neighbour's name; ``None`` when there is none."""
        with self._lock:
            return None if self._neighbour is None else self._neighbour.name

    @property
    def process_bytes(self) -> int:
        """Held by the training as the driver would book it on its process: reserved and outside."""
        with self._lock:
            return self._reserved_bytes + self._outside_bytes

    @property
    def used_bytes(self) -> int:
        """Held on the card by all processes (what NVML calls used; the driver's own reserve is apart)."""
        with self._lock:
            return self._reserved_bytes + self._outside_bytes + self._others_bytes

    @property
    def busy(self) -> bool:
        """The trainer is inside a micro-step now."""
        with self._lock:
            return self._busy_since_s is not None
