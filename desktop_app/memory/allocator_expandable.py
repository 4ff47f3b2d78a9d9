"""Expandable segments: one range of addresses per pool and stream, whose pages get memory as they are needed.

The rules are those of ``ExpandableSegment`` and of the functions around it in c10/cuda/CUDACachingAllocator.cpp.
Growing and taking blocks agree with a recording (253 mappings, 2,573 allocations); how pages are given back, and what
happens when the driver refuses, is read from the source and seen in no recording.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from desktop_app.memory.driver_addresses import AddressSource
from desktop_app.memory.segments import FREE, HOLE, Block, FreePool, SegmentStore, SegmentView

# An address range without a known card: larger than any, small enough for all the streams and pools there may be.
_ANY_RANGE_BYTES: Final = 1 << 45

_address: Final = attrgetter("address")


class ExpandableStore(SegmentStore):
    """A store that can also map and unmap pages. ``limit_bytes`` is what the driver would give in all.

    A range is a ring of blocks and holes behind an ``EDGE``; it spans 9/8 of ``total_bytes``.
    """

    def __init__(self, addresses: AddressSource, *, total_bytes: int | None) -> None:
        super().__init__(addresses)
        self._limit_bytes: int | None = None
        self._range_bytes: Final = _ANY_RANGE_BYTES if total_bytes is None else total_bytes + total_bytes // 8

    def _grants(self, size_bytes: int) -> bool:
        """The driver has so much more."""
        return self._limit_bytes is None or self.reserved_bytes + size_bytes <= self._limit_bytes

    def _take_mapped(self, pool: FreePool, size: int) -> Block | None:
        """``try_allocate_expandable_block``: a free block of at least ``size``, out of its pool, by mapping pages.

        ``None`` when the driver has no memory; what was mapped until then stays free in the pool.
        """
        found: Block | None = self._find_room(pool, size)
        if found is not None and found.state == HOLE:
            found = self._map(found, min(found.size_bytes, size))
        while found is not None and found.size_bytes < size:
            hole = found.behind
            assert hole.state == HOLE, "room was found, so a hole follows"
            found = self._map(hole, min(size - found.size_bytes, hole.size_bytes))
        if found is not None:
            pool.remove(found)
        return found

    def _find_room(self, pool: FreePool, size: int) -> Block | None:
        """``find_expandable_block``: the lowest hole, or free block before one, with room for ``size`` behind it.

        A new range where there is none; ``None`` when not even that is large enough.
        """
        for hole in pool.holes:
            start = hole if hole.before.state else hole.before
            room, block = 0, start
            while room < size and block.state in {FREE, HOLE}:
                room += block.size_bytes
                block = block.behind
            if room >= size:
                return start
        return self._open_range(pool, None).behind if size <= self._range_bytes else None

    def _open_range(self, pool: FreePool, address: int | None) -> Block:
        """A range that is one hole; the driver says where, unless it is known."""
        size_bytes = -(-self._range_bytes // pool.page_bytes) * pool.page_bytes
        edge = self._open_segment(pool, self._addresses.reserve(size_bytes) if address is None else address, size_bytes)
        hole = Block(pool, edge.address, size_bytes, HOLE)
        hole.link(edge, edge)
        insort(pool.holes, hole, key=_address)
        return edge

    def _map(self, hole: Block, size: int) -> Block | None:
        """``map_block``: memory for the first pages of a hole, merged with what is free around it."""
        pool = hole.pool
        mapped = -(-size // pool.page_bytes) * pool.page_bytes
        if not self._grants(mapped):
            return None
        block = Block(pool, hole.address, mapped)
        if mapped < hole.size_bytes:
            hole.address += mapped
            hole.size_bytes -= mapped
            block.link(hole.before, hole)
        else:
            pool.holes.remove(hole)
            block.link(hole.before, hole.behind)
        self._reserve(mapped)
        block.freed_at = self._large_lookups
        for other in (block.before, block.behind):
            if not other.state:
                pool.remove(other)
                block.address = min(block.address, other.address)
                block.size_bytes += other.size_bytes
                block.link(
                    other.before if other is block.before else block.before,
                    other.behind if other is block.behind else block.behind,
                )
        pool.add(block)
        return block

    def _prefer(self, pool: FreePool, index: int) -> int:
        """Best fit, but a block that can grow counts as large as it can become (``get_free_block``)."""
        blocks = pool.blocks
        while index + 1 < len(blocks) and _room(blocks[index + 1]) < _room(blocks[index]):
            index += 1
        return index

    def _unmap_idle(self, pool: FreePool) -> None:
        """``release_blocks``: take the memory from whole pages inside free blocks."""
        for block in list(pool.blocks):
            begin, end = self._whole_pages(block)
            if begin >= end:
                continue
            pool.remove(block)
            hole = Block(pool, begin, end - begin, HOLE)
            hole.link(block.before, block.behind)
            for address, size in ((block.address, begin - block.address), (end, _end(block) - end)):
                if size:
                    rest = Block(pool, address, size)
                    rest.freed_at = self._large_lookups
                    neighbours = (hole.before, hole) if address < begin else (hole, hole.behind)
                    rest.link(*neighbours)
                    pool.add(rest)
            self.reserved_bytes -= hole.size_bytes
            self._insert_hole(pool, hole)

    def _insert_hole(self, pool: FreePool, hole: Block) -> None:
        """Merge it with the holes around it; a range without memory goes back to the driver."""
        for other in (hole.before, hole.behind):
            if other.state == HOLE:
                pool.holes.remove(other)
                hole.address = min(hole.address, other.address)
                hole.size_bytes += other.size_bytes
                hole.link(
                    other.before if other is hole.before else hole.before,
                    other.behind if other is hole.behind else hole.behind,
                )
        if hole.before is hole.behind:
            edge = self._edges.pop(hole.address)
            self._addresses.release(edge.address, edge.size_bytes)
        else:
            insort(pool.holes, hole, key=_address)

    def _whole_pages(self, block: Block) -> tuple[int, int]:
        """First and last address of the whole pages inside a block."""
        edge = self._range_of(block)
        page = block.pool.page_bytes
        begin = -(-(block.address - edge.address) // page) * page
        end = (_end(block) - edge.address) // page * page
        return edge.address + begin, edge.address + end

    def _range_of(self, block: Block) -> Block:
        starts = sorted(self._edges)
        return self._edges[starts[bisect_right(starts, block.address) - 1]]

    def _idle_page_bytes(self, pool: FreePool) -> int:
        return sum(max(0, end - begin) for begin, end in map(self._whole_pages, pool.blocks))

    def _adopt_range(self, pool: FreePool, views: Iterable[SegmentView]) -> dict[int, Block]:
        """The mapped runs of one range, from the lowest address; where it begins before that nobody can know."""
        blocks: dict[int, Block] = {}
        edge: Block | None = None
        for view in sorted(views, key=_address):
            if edge is None:
                edge = self._open_range(pool, view.address)
            tail = edge.before
            gap, tail.address = tail.address, view.address + view.size_bytes
            tail.size_bytes = edge.address + edge.size_bytes - tail.address
            if view.address > gap:
                hole = Block(pool, gap, view.address - gap, HOLE)
                hole.link(tail.before, tail)
                pool.holes.insert(bisect_left(pool.holes, gap, key=_address), hole)
            blocks |= {block.address: block for block in self._fill(pool, view.blocks, before=tail)}
            self._reserve(view.size_bytes)
        return blocks


def _end(block: Block) -> int:
    return block.address + block.size_bytes


def _room(block: Block) -> int:
    behind = block.behind
    return block.size_bytes + (behind.size_bytes if behind.state == HOLE else 0)
