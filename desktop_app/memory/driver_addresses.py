"""Where the driver puts segments: addresses decide which of two equally large free blocks is taken."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Final, Protocol

from desktop_app.core.units import MIB


class AddressSource(Protocol):
    """Who decides where a segment lies. Addresses matter: of equally large free blocks the lowest is taken."""

    def reserve(self, size_bytes: int) -> int | None:
        """A free address range, or ``None`` when there is none."""

    def release(self, address: int, size_bytes: int) -> None:
        """Take a range back."""


class DriverAddresses:
    """Virtual addresses as the CUDA driver hands them out on Linux.

    Seen in three recordings of 1,715 segments (benchmarks/allocator_replay.py shows how well it fits): the driver
    reserves ranges of a multiple of 32 MiB from the top down; a segment goes to the lowest gap in a reserved range
    that fits, else to the start of a new range; a range whose last segment goes is free again.
    """

    GRAIN_BYTES: Final = 32 * MIB
    TOP: Final = 1 << 47

    def __init__(self, top: int = TOP) -> None:
        self._gaps: list[tuple[int, int]] = []  # (start, end) inside ranges, by address
        self._holes: list[tuple[int, int]] = [(0, top)]  # not reserved, by address
        self._ranges: list[int] = []  # starts, by address
        self._range_ends: dict[int, int] = {}

    def occupy(self, address: int, size_bytes: int) -> None:
        """Count a segment that is there already, as when a recording begins in the middle of a process."""
        low = address // self.GRAIN_BYTES * self.GRAIN_BYTES
        high = -(-(address + size_bytes) // self.GRAIN_BYTES) * self.GRAIN_BYTES
        for gap in self._gaps:
            if gap[0] <= address and address + size_bytes <= gap[1]:
                self._gaps.remove(gap)
                break
        else:
            gap = self._reserve_range(low, high)
        for piece in ((gap[0], address), (address + size_bytes, gap[1])):
            if piece[0] < piece[1]:
                insort(self._gaps, piece)

    def reserve(self, size_bytes: int) -> int | None:
        for index, (start, end) in enumerate(self._gaps):
            if end - start >= size_bytes:
                self._shrink_gap(index, start + size_bytes, end)
                return start
        return self._open_range(size_bytes)

    def release(self, address: int, size_bytes: int) -> None:
        start, end = address, address + size_bytes
        low = self._ranges[bisect_left(self._ranges, address + 1) - 1]
        high = self._range_ends[low]
        index = bisect_left(self._gaps, (start, end))
        if index < len(self._gaps) and self._gaps[index][0] == end < high:
            end = self._gaps.pop(index)[1]
        if index > 0 and low < start == self._gaps[index - 1][1]:
            index -= 1
            start = self._gaps.pop(index)[0]
        if (start, end) == (low, high):
            self._close_range(low, high)
        else:
            self._gaps.insert(index, (start, end))

    def _shrink_gap(self, index: int, start: int, end: int) -> None:
        if start < end:
            self._gaps[index] = (start, end)
        else:
            del self._gaps[index]

    def _open_range(self, size_bytes: int) -> int | None:
        range_bytes = -(-size_bytes // self.GRAIN_BYTES) * self.GRAIN_BYTES
        for low, high in reversed(self._holes):
            if high - low > range_bytes:  # address 0 is never handed out
                start, end = self._reserve_range(high - range_bytes, high)
                if size_bytes < range_bytes:
                    insort(self._gaps, (start + size_bytes, end))
                return start
        return None

    def _reserve_range(self, low: int, high: int) -> tuple[int, int]:
        index = bisect_right(self._holes, (low, self.TOP)) - 1
        hole_low, hole_high = self._holes[index]
        assert hole_low <= low, "ranges overlap"
        assert high <= hole_high, "ranges overlap"
        self._holes[index : index + 1] = [hole for hole in ((hole_low, low), (high, hole_high)) if hole[0] < hole[1]]
        insort(self._ranges, low)
        self._range_ends[low] = high
        return low, high

    def _close_range(self, low: int, high: int) -> None:
        self._ranges.remove(low)
        del self._range_ends[low]
        index = bisect_left(self._holes, (low, high))
        if index < len(self._holes) and self._holes[index][0] == high:
            high = self._holes.pop(index)[1]
        if index > 0 and self._holes[index - 1][1] == low:
            index -= 1
            low = self._holes.pop(index)[0]
        self._holes.insert(index, (low, high))
