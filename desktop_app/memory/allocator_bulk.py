"""The allocator replica without objects: one loop over lists of integers, for the many replays of a search.

The rules are those of ``CachingAllocator``, with which the tests compare every replay; names of PyTorch's functions
stand in the comments there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Sequence
from typing import Final

from desktop_app.memory.allocator_settings import (
    LARGE_ROUND_BYTES,
    MIN_BLOCK_BYTES,
    MIN_LARGE_BYTES,
    SMALL_LIMIT_BYTES,
    SMALL_SEGMENT_BYTES,
)
from desktop_app.memory.driver_addresses import RANGE_BYTES

# Sizes and addresses are counted in blocks of 512 B: most of them are then small integers, which are faster.
_SMALL_LIMIT: Final = SMALL_LIMIT_BYTES // MIN_BLOCK_BYTES
_SMALL_SEGMENT: Final = SMALL_SEGMENT_BYTES // MIN_BLOCK_BYTES
_MIN_LARGE: Final = MIN_LARGE_BYTES // MIN_BLOCK_BYTES
_LARGE_ROUND: Final = LARGE_ROUND_BYTES // MIN_BLOCK_BYTES
_RANGE: Final = RANGE_BYTES // MIN_BLOCK_BYTES


class BulkHeap:
    """Segments and blocks of one replay of ``events`` events, all sizes in blocks of 512 B.

    A block is the number of the event that made it, from 1; the first block of a segment has ``events`` added. Lists
    by block hold the rest: neighbours (0 is the edge of a segment), size, address, whether it is free. A pool is two
    lists side by side, sizes in ascending order and the blocks that have them, by address where they are equal.

    After a run: ``steps`` are (position, reserved) wherever that changed, ``tails`` (position, blocks) what an
    allocation got beyond what it needs, ``skipped`` the optional allocations that failed, ``failed`` the position
    that ran out of memory.
    """

    def __init__(self, events: int, *, limit: int, large_segment: int) -> None:
        size = 2 * events + 2
        self.reserved = 0
        self.retries = 0
        self.steps: list[tuple[int, int]] = []
        self.tails: list[tuple[int, int]] = []
        self.skipped: list[int] = []
        self.failed: int | None = None
        self._events: Final = events
        self._limit: Final = limit
        self._large_segment: Final = large_segment
        self._handles: Final = [0] * events
        self._sizes: Final = [0] * size
        self._starts: Final = [0] * size
        self._before: Final = [0] * size
        self._behind: Final = [0] * size
        self._free: Final = [False] * size
        self._small: Final[tuple[list[int], list[int]]] = ([], [])
        self._large: Final[tuple[list[int], list[int]]] = ([], [])
        self._next = self._bottom = self._range_end = 0  # as FreshAddresses, from 0 downwards

    def run(self, owners: Sequence[int], sizes: Sequence[int], *, first: int, optional: Container[int]) -> bool:
        """Carry out events ``first``, ``first`` + 1 …; ``False`` when memory ran out.

        ``sizes`` > 0 allocates so many blocks, 0 frees what event ``owners`` has allocated, or nothing. Everything is
        inlined on purpose, even twice: a call would cost as much as the work.
        """
        handles, all_sizes, starts, free = self._handles, self._sizes, self._starts, self._free
        all_before, all_behind = self._before, self._behind
        small_sizes, small_blocks = self._small
        large_sizes, large_blocks = self._large
        for block, (owner, size) in enumerate(zip(owners, sizes, strict=True), first + 1):
            if size:
                if size > _SMALL_LIMIT:
                    pool_sizes, pool_blocks, split_above = large_sizes, large_blocks, _SMALL_LIMIT
                else:
                    pool_sizes, pool_blocks, split_above = small_sizes, small_blocks, 0
                at = bisect_left(pool_sizes, size)
                try:
                    found = pool_blocks[at]
                except IndexError:
                    found = self._grow(size, block, pool_sizes, pool_blocks)
                    if not found:
                        if owner in optional:
                            self.skipped.append(owner)
                            continue
                        self.failed = owner
                        return False
                    at = len(pool_sizes) - 1
                rest = pool_sizes[at] - size
                if rest > split_above:  # the front becomes a block of its own, what is left stays what it was
                    all_sizes[found] = rest
                    all_sizes[block] = size
                    starts[block] = address = starts[found]
                    starts[found] = address = address + size
                    left = all_before[found]
                    all_behind[left] = block
                    all_before[block] = left
                    all_behind[block] = found
                    all_before[found] = block
                    handles[owner] = block
                    if not at or pool_sizes[at - 1] < rest:
                        pool_sizes[at] = rest
                    else:
                        del pool_sizes[at], pool_blocks[at]
                        at = bisect_left(pool_sizes, rest, 0, at)
                        while at < len(pool_sizes) and pool_sizes[at] == rest and starts[pool_blocks[at]] < address:
                            at += 1
                        pool_sizes.insert(at, rest)
                        pool_blocks.insert(at, found)
                else:
                    if rest:
                        self.tails.append((owner, rest))
                    del pool_sizes[at], pool_blocks[at]
                    free[found] = False
                    handles[owner] = found
            else:
                block = handles[owner]
                if not block:
                    continue
                size = all_sizes[block]
                if size > _SMALL_LIMIT:
                    pool_sizes, pool_blocks = large_sizes, large_blocks
                else:
                    pool_sizes, pool_blocks = small_sizes, small_blocks
                left = all_before[block]
                right = all_behind[block]
                if free[right]:
                    more = all_sizes[right]
                    size += more
                    at = bisect_left(pool_sizes, more)
                    if pool_blocks[at] != right:
                        at = pool_blocks.index(right, at)
                    if free[left]:
                        del pool_sizes[at], pool_blocks[at]
                        right = all_behind[right]
                        more = all_sizes[left]
                        size += more
                        at = bisect_left(pool_sizes, more)
                        if pool_blocks[at] != left:
                            at = pool_blocks.index(left, at)
                        all_behind[left] = right
                        all_before[right] = left
                        block = left
                    else:
                        starts[right] = starts[block]
                        all_before[right] = left
                        all_behind[left] = right
                        block = right
                elif free[left]:
                    more = all_sizes[left]
                    size += more
                    at = bisect_left(pool_sizes, more)
                    if pool_blocks[at] != left:
                        at = pool_blocks.index(left, at)
                    all_behind[left] = right
                    all_before[right] = left
                    block = left
                else:
                    free[block] = True
                    at = bisect_left(pool_sizes, size)
                    if at < len(pool_sizes) and pool_sizes[at] == size:
                        address = starts[block]
                        while at < len(pool_sizes) and pool_sizes[at] == size and starts[pool_blocks[at]] < address:
                            at += 1
                    pool_sizes.insert(at, size)
                    pool_blocks.insert(at, block)
                    continue
                all_sizes[block] = size
                if at + 1 == len(pool_sizes) or pool_sizes[at + 1] > size:
                    pool_sizes[at] = size
                else:
                    del pool_sizes[at], pool_blocks[at]
                    at = bisect_left(pool_sizes, size, at)
                    if at < len(pool_sizes) and pool_sizes[at] == size:
                        address = starts[block]
                        while at < len(pool_sizes) and pool_sizes[at] == size and starts[pool_blocks[at]] < address:
                            at += 1
                    pool_sizes.insert(at, size)
                    pool_blocks.insert(at, block)
        return True

    def empty(self, *, at: int) -> None:
        """Every wholly free segment goes back to the driver; ``at`` is the position of the next event."""
        before = self.reserved
        for sizes, blocks in (self._large, self._small):
            kept = [index for index, block in enumerate(blocks) if self._before[block] or self._behind[block]]
            if len(kept) < len(blocks):
                self.reserved -= sum(sizes) - sum(sizes[index] for index in kept)
                sizes[:] = [sizes[index] for index in kept]
                blocks[:] = [blocks[index] for index in kept]
        if self.reserved != before:
            self.steps.append((at, self.reserved))

    def _grow(self, size: int, block: int, pool_sizes: list[int], pool_blocks: list[int]) -> int:
        """A new segment of one free block, the last in its pool that is large enough; 0 when there is no room."""
        if size <= _SMALL_LIMIT:
            wanted = _SMALL_SEGMENT
        elif size < _MIN_LARGE:
            wanted = self._large_segment
        else:
            wanted = -(-size // _LARGE_ROUND) * _LARGE_ROUND
        if self.reserved + wanted > self._limit:
            self.empty(at=block - 1)
            self.retries += 1
            if self.reserved + wanted > self._limit:
                return 0
        if self._next + wanted > self._range_end:
            self._range_end = self._bottom
            self._bottom -= -(-wanted // _RANGE) * _RANGE
            self._next = self._bottom
        found = block + self._events
        self._starts[found] = self._next
        self._sizes[found] = wanted
        self._free[found] = True
        self._next += wanted
        self.reserved += wanted
        self.steps.append((block - 1, self.reserved))
        pool_sizes.append(wanted)  # nothing in the pool was as large as the request, which the segment is
        pool_blocks.append(found)
        return found
