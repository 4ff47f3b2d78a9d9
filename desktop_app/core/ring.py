"""A bounded ring whose newest entries are always one contiguous block."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

_FIRST_ROOM: Final = 64  # entries: with 23 columns a few pages

ScalarT = TypeVar("ScalarT", bound=np.generic)


class MirroredRing(Generic[ScalarT]):
    """The newest ``capacity`` entries of ``series`` parallel series; memory (series, 2 × capacity).

    Every entry is written twice, ``capacity`` apart, so any range of held entries can be read as one view without a
    copy. Each series is contiguous in time: reading one of them touches no other. Entries are numbered from 0 for as
    long as the ring lives.

    Memory doubles as entries come, up to the capacity. Allocating all of it and leaving it to the operating system to
    commit pages does not do: each series has its own stretch of it, and with huge pages the first entry commits all.

    Not thread-safe; a view shows later entries once the ring has gone round, so copy what outlives the lock.
    """

    def __init__(self, series: int, capacity: int, dtype: DTypeLike) -> None:
        if series < 1 or capacity < 1:
            raise ValueError(f"a ring needs at least one series and one entry, not {series} and {capacity}")
        self.capacity = capacity
        self.total = 0
        self._room = min(capacity, _FIRST_ROOM)
        self._slots: NDArray[ScalarT] = np.empty((series, 2 * self._room), dtype)

    @property
    def first(self) -> int:
        """Number of the oldest entry still held."""
        return max(0, self.total - self.capacity)

    @property
    def nbytes(self) -> int:
        """Memory taken now; it stops growing once the ring is full."""
        return self._slots.nbytes

    def append(self, entry: NDArray[ScalarT]) -> None:
        """Add one entry of shape (series,); the oldest one leaves when the ring is full."""
        if self.total == self._room < self.capacity:
            self._grow()
        slot = self.total % self._room
        self._slots[:, slot] = entry
        self._slots[:, slot + self._room] = entry
        self.total += 1

    def view(self, start: int, stop: int) -> NDArray[ScalarT]:
        """Entries ``start`` to ``stop`` (exclusive) as a view of shape (series, stop − start).

        ``ValueError`` unless first ≤ start ≤ stop ≤ total.
        """
        if not self.first <= start <= stop <= self.total:
            raise ValueError(f"entries {start} to {stop} are not all within {self.first} to {self.total}")
        slot = start % self._room
        return self._slots[:, slot : slot + stop - start]

    def newest(self, n: int) -> NDArray[ScalarT]:
        """The newest ``n`` entries as a view of shape (series, n)."""
        return self.view(self.total - n, self.total)

    def _grow(self) -> None:
        """Double the room. The ring has not gone round yet, so the copies are not needed."""
        room = min(2 * self._room, self.capacity)
        slots = np.empty((len(self._slots), 2 * room), self._slots.dtype)
        slots[:, : self.total] = self._slots[:, : self.total]
        self._slots, self._room = slots, room
