"""Where the CUDA driver puts segments: it decides which of two equally good blocks the allocator takes."""

from __future__ import annotations

from typing import Final, Protocol

from desktop_app.core.units import MIB

RANGE_BYTES: Final = 32 * MIB  # seen in recordings of 1,715 segments


class AddressSource(Protocol):
    """Who decides where a segment lies. Of equally large free blocks the one with the lowest address is taken."""

    def reserve(self, size_bytes: int) -> int:
        """Where the next segment begins."""

    def release(self, address: int, size_bytes: int) -> None:
        """That segment went back to the driver."""


class FreshAddresses:
    """Addresses in the order of the CUDA driver on Linux, but none of them twice.

    The driver reserves ranges of a multiple of 32 MiB from the top down and fills each upwards (seen in recordings of
    1,715 segments). It also uses addresses again; leaving that out changed the reserved peak of 2 in 150 random
    replays, by 0.24 % at most, where addresses in ascending order changed 22, by up to 3.1 %.
    """

    def __init__(self, top: int = 1 << 60) -> None:
        self._bottom = self._next = self._range_end = top

    def reserve(self, size_bytes: int) -> int:
        if self._next + size_bytes > self._range_end:
            self._range_end = self._bottom
            self._bottom -= -(-size_bytes // RANGE_BYTES) * RANGE_BYTES
            self._next = self._bottom
        address = self._next
        self._next += size_bytes
        return address

    def release(self, address: int, size_bytes: int) -> None:
        """Nothing: the range is not used again."""
