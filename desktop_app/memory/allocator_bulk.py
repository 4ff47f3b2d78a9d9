"""The allocator replica without objects: one loop over lists of integers, for the many replays of a search.

The rules are those of ``CachingAllocator``, with which the tests compare every replay; names of PyTorch's functions
stand in the comments there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
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
_NONE_SO_LARGE: Final = 1 << 62


class BulkHeap:
    """Segments and blocks of one replay of ``events`` events, all sizes in blocks of 512 B.

    A block is the number of the event that made it, from 1; first blocks of segments come after the last event. Lists
    by block hold the rest: neighbours (0 is the edge of a segment), address, size, and size while it is free, else 0.
    A pool is two lists side by side, sizes in ascending order and the blocks that have them, by address where they
    are equal; a size at both ends that no block has saves the questions whether there is a next one.

    After a run: ``steps`` are (position, reserved) wherever that changed, ``tails`` (position, blocks) what an
    allocation got beyond what it needs, ``skipped`` the optional allocations that failed, ``failed`` the position
    that ran out of memory.
    """

    def __init__(self, events: int, *, limit: int, large_segment: int) -> None:
        size = events + 1
        self.reserved = 0
        self.retries = 0
        self.steps: list[tuple[int, int]] = []
        self.tails: list[tuple[int, int]] = []
        self.skipped: list[int] = []
        self.failed: int | None = None
        self._limit: Final = limit
        self._large_segment: Final = large_segment
        self._handles: Final = [0] * events
        self._sizes: Final = [0] * size  # of live blocks
        self._free: Final = [0] * size
        self._starts: Final = [0] * size
        self._before: Final = [0] * size
        self._behind: Final = [0] * size
        self._small: Final = ([0, _NONE_SO_LARGE], [0, 0])
        self._large: Final = ([0, _NONE_SO_LARGE], [0, 0])
        self._next = self._bottom = self._range_end = 0  # as FreshAddresses, from 0 downwards

    def run(self, owners: Sequence[int], sizes: Sequence[int], *, first: int, optional: Container[int]) -> bool:
        """Carry out events ``first``, ``first`` + 1 …; ``False`` when memory ran out.

        ``sizes`` > 0 allocates so many blocks, 0 frees what event ``owners`` has allocated, or nothing. Everything is
        inlined on purpose, even twice: a call would cost as much as the work.
        """
        handles, live, free = self._handles, self._sizes, self._free
        starts, befores, behinds = self._starts, self._before, self._behind
        small_sizes, small_blocks = self._small
        large_sizes, large_blocks = self._large
        find, find_end, start_of = bisect_left, bisect_right, starts.__getitem__
        for block, owner, size in zip(range(first + 1, first + 1 + len(owners)), owners, sizes, strict=True):
            if size:
                if size > _SMALL_LIMIT:
                    pool_sizes, pool_blocks, split_above = large_sizes, large_blocks, _SMALL_LIMIT
                else:
                    pool_sizes, pool_blocks, split_above = small_sizes, small_blocks, 0
                at = find(pool_sizes, size)
                found = pool_blocks[at]
                if not found:
                    found = self._grow(size, block, pool_sizes, pool_blocks)
                    if not found:
                        if owner in optional:
                            self.skipped.append(owner)
                            continue
                        self.failed = owner
                        return False
                    at = len(pool_sizes) - 2
                rest = pool_sizes[at] - size
                if rest > split_above:  # the front becomes a block of its own, what is left stays what it was
                    live[block] = size
                    free[found] = rest
                    starts[block] = address = starts[found]
                    starts[found] = address = address + size
                    left = befores[found]
                    behinds[left] = block
                    befores[block] = left
                    behinds[block] = found
                    befores[found] = block
                    handles[owner] = block
                    if pool_sizes[at - 1] < rest:
                        pool_sizes[at] = rest
                    else:
                        del pool_sizes[at], pool_blocks[at]
                        at = find(pool_sizes, rest, 0, at)
                        if pool_sizes[at] == rest and starts[pool_blocks[at]] < address:
                            at = find(pool_blocks, address, at + 1, find_end(pool_sizes, rest, at), key=start_of)
                        pool_sizes.insert(at, rest)
                        pool_blocks.insert(at, found)
                else:
                    if rest:
                        self.tails.append((owner, rest))
                    live[found] = size + rest
                    free[found] = 0
                    handles[owner] = found
                    del pool_sizes[at], pool_blocks[at]
            else:
                block = handles[owner]
                size = live[block]
                if size > _SMALL_LIMIT:
                    pool_sizes, pool_blocks = large_sizes, large_blocks
                elif block:
                    pool_sizes, pool_blocks = small_sizes, small_blocks
                else:
                    continue  # it was never allocated
                left = befores[block]
                right = behinds[block]
                more = free[right]
                if more:
                    at = find(pool_sizes, more)
                    if pool_blocks[at] != right:
                        at = pool_blocks.index(right, at)
                    size += more
                    more = free[left]
                    if more:
                        del pool_sizes[at], pool_blocks[at]
                        right = behinds[right]
                        at = find(pool_sizes, more)
                        if pool_blocks[at] != left:
                            at = pool_blocks.index(left, at)
                        size += more
                        behinds[left] = right
                        befores[right] = left
                        block = left
                    else:
                        starts[right] = starts[block]
                        befores[right] = left
                        behinds[left] = right
                        block = right
                else:
                    more = free[left]
                    if not more:
                        free[block] = size
                        at = find(pool_sizes, size)
                        if pool_sizes[at] == size and starts[pool_blocks[at]] < starts[block]:
                            end = find_end(pool_sizes, size, at)
                            at = find(pool_blocks, starts[block], at + 1, end, key=start_of)
                        pool_sizes.insert(at, size)
                        pool_blocks.insert(at, block)
                        continue
                    at = find(pool_sizes, more)
                    if pool_blocks[at] != left:
                        at = pool_blocks.index(left, at)
                    size += more
                    behinds[left] = right
                    befores[right] = left
                    block = left
                free[block] = size
                if pool_sizes[at + 1] > size:
                    pool_sizes[at] = size
                else:
                    del pool_sizes[at], pool_blocks[at]
                    at = find(pool_sizes, size, at)
                    if pool_sizes[at] == size and starts[pool_blocks[at]] < starts[block]:
                        end = find_end(pool_sizes, size, at)
                        at = find(pool_blocks, starts[block], at + 1, end, key=start_of)
                    pool_sizes.insert(at, size)
                    pool_blocks.insert(at, block)
        return True

    def empty(self, *, at: int) -> None:
        """Every wholly free segment goes back to the driver; ``at`` is the position of the next event."""
        reserved = self.reserved
        for sizes, blocks in (self._large, self._small):
            for index in range(len(blocks) - 2, 0, -1):
                if not self._before[blocks[index]] and not self._behind[blocks[index]]:
                    self.reserved -= sizes[index]
                    del sizes[index], blocks[index]
        if self.reserved != reserved:
            self.steps.append((at, self.reserved))

    def _grow(self, size: int, block: int, pool_sizes: list[int], pool_blocks: list[int]) -> int:
        """A new segment of one free block, the largest in its pool; 0 when there is no room."""
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
        found = len(self._free)
        self._free.append(wanted)
        self._starts.append(self._next)
        for facts in (self._sizes, self._before, self._behind):
            facts.append(0)
        self._next += wanted
        self.reserved += wanted
        self.steps.append((block - 1, self.reserved))
        pool_sizes.insert(-1, wanted)  # nothing in the pool was as large as the request, which the segment is
        pool_blocks.insert(-1, found)
        return found
