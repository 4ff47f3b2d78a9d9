"""Segments, the blocks they are cut into, and the pools of free blocks: the mechanism under the allocator replica."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from desktop_app.memory.allocator_settings import MIN_BLOCK_BYTES, SMALL_LIMIT_BYTES
from desktop_app.memory.driver_addresses import AddressSource

# States of a block. FREE must be falsy: the merge rule asks ``if not neighbour.state``.
FREE: Final = 0
LIVE: Final = 1
WAITING: Final = 2  # given back by its owner, still in use on another stream
GONE: Final = 3  # a handle whose memory has been given back, or a segment returned to the driver
EDGE: Final = 4  # the ring node that bounds a segment; never free, so nothing merges across it
EMPTY: Final = 5  # the handle of a request for 0 bytes, for which torch makes no block

# A free block is found by size, then address. Both live in one integer, size above address: integers compare and
# insert faster than pairs. Real addresses have 48 bits; FreshAddresses, which never uses one twice, needs more.
ADDRESS_BITS: Final = 62


class Block:
    """A piece of one segment. As a handle only the first four attributes matter; the rest is the allocator's.

    ``size_bytes`` is what counts as allocated: the rounded request plus a tail that was too small to split off.
    Blocks of a segment form a ring closed by one ``EDGE`` node, so that neighbours always exist.
    """

    __slots__ = (
        "address",
        "before",
        "behind",
        "freed_at",
        "pool",
        "requested_bytes",
        "size_bytes",
        "state",
        "stream",
        "uses",
    )

    def __init__(self, pool: FreePool, address: int, size_bytes: int, state: int = FREE) -> None:
        self.address = address
        self.size_bytes = size_bytes
        self.requested_bytes = 0
        self.stream = pool.stream
        self.pool = pool
        self.state = state
        self.before = self
        self.behind = self
        self.uses: set[int] | None = None  # other streams that used it
        self.freed_at = 0  # look-ups in the large pools when it became free, for garbage collection

    def link(self, before: Block, behind: Block) -> None:
        """Stand between two neighbours of the ring."""
        self.before = before
        self.behind = behind
        before.behind = self
        behind.before = self

    def __repr__(self) -> str:
        return f"<Block {self.address:#x} {self.size_bytes} B, stream {self.stream}>"


class FreePool:
    """The free blocks of one kind (small or large) on one stream, ordered by size and then address."""

    __slots__ = ("blocks", "keys", "small", "split_above", "stream")

    def __init__(self, *, small: bool, stream: int) -> None:
        self.small = small
        self.stream = stream
        # should_split in torch: at least 512 B must remain in the small pool, more than 1 MiB in the large one.
        self.split_above = MIN_BLOCK_BYTES - 1 if small else SMALL_LIMIT_BYTES
        self.keys: list[int] = []
        self.blocks: dict[int, Block] = {}

    def add(self, block: Block) -> None:
        key = block.size_bytes << ADDRESS_BITS | block.address
        insort(self.keys, key)
        self.blocks[key] = block

    def remove(self, block: Block) -> None:
        keys = self.keys
        key = block.size_bytes << ADDRESS_BITS | block.address
        del keys[bisect_left(keys, key)]
        del self.blocks[key]

    def whole_blocks(self) -> list[Block]:
        """Free blocks that are a segment of their own, smallest first, then lowest."""
        return [block for key in self.keys if (block := self.blocks[key]).before is block.behind]


# Neighbour of every dead handle: one that its owner keeps must not keep a ring alive.
NOWHERE: Final = Block(FreePool(small=True, stream=0), 0, 0, EDGE)


@dataclass(frozen=True, slots=True)
class BlockView:
    """One block as a picture shows it. ``state`` is ``FREE``, ``LIVE`` or ``WAITING``."""

    address: int
    size_bytes: int
    requested_bytes: int
    state: int


@dataclass(frozen=True, slots=True)
class SegmentView:
    """One segment, with its blocks in order of address and without gaps."""

    address: int
    size_bytes: int
    stream: int
    small: bool
    blocks: tuple[BlockView, ...]


def view_segment(edge: Block) -> SegmentView:
    """What lies between the two sides of an ``EDGE`` node."""
    blocks: list[BlockView] = []
    block = edge.behind
    while block is not edge:
        blocks.append(BlockView(block.address, block.size_bytes, block.requested_bytes, block.state))
        block = block.behind
    return SegmentView(edge.address, edge.size_bytes, edge.stream, edge.pool.small, tuple(blocks))


class SegmentStore:
    """Segments, the blocks in them and the byte counts of both: how memory is cut and mended, not who gets it."""

    def __init__(self, addresses: AddressSource) -> None:
        self.live_bytes = 0  # allocated: blocks in use, rounded
        self.live_peak_bytes = 0
        self.requested_bytes = 0  # as asked for, before rounding; waiting blocks count
        self.reserved_bytes = 0
        self.reserved_peak_bytes = 0
        self.returnable_bytes = 0  # in wholly free segments
        self._addresses: Final = addresses
        self._edges: Final[dict[int, Block]] = {}
        self._small_pools: Final[dict[int, FreePool]] = {}
        self._large_pools: Final[dict[int, FreePool]] = {}
        self._large_lookups = 0
        self._waiting: list[Block] = []
        self._waiting_bytes = 0

    @property
    def active_bytes(self) -> int:
        """Live blocks and those that wait for other streams."""
        return self.live_bytes + self._waiting_bytes

    @property
    def idle_split_bytes(self) -> int:
        """``inactive_split_bytes`` of torch: free, but in segments that are partly in use."""
        return self.reserved_bytes - self.active_bytes - self.returnable_bytes

    @property
    def segment_count(self) -> int:
        return len(self._edges)

    def segments(self) -> tuple[SegmentView, ...]:
        """Every segment with its blocks, by address: ``torch.cuda.memory_snapshot``."""
        return tuple(view_segment(self._edges[address]) for address in sorted(self._edges))

    def adopt(self, segments: Iterable[SegmentView]) -> dict[int, Block]:
        """Take over segments that are there already, as in a snapshot; gives the blocks in use, by address.

        The address source is not asked: it must know of these segments. Raises ``ValueError`` when the blocks of a
        segment do not fill it.
        """
        blocks: dict[int, Block] = {}
        for view in segments:
            if sum(piece.size_bytes for piece in view.blocks) != view.size_bytes:
                raise ValueError(f"the blocks do not fill the segment at {view.address:#x}")
            edge = self._open_segment(self._pool(view.stream, small=view.small), view.address, view.size_bytes)
            for piece in view.blocks:
                block = Block(edge.pool, piece.address, piece.size_bytes, piece.state)
                block.link(edge.before, edge)
                if piece.state == FREE:
                    edge.pool.add(block)
                else:
                    blocks[piece.address] = block
                    self._count_adopted(block, piece.requested_bytes)
            if edge.behind.behind is edge and not edge.behind.state:
                self.returnable_bytes += view.size_bytes
        self.live_peak_bytes = max(self.live_peak_bytes, self.live_bytes)
        return blocks

    def _pool(self, stream: int, *, small: bool) -> FreePool:
        pools = self._small_pools if small else self._large_pools
        if stream not in pools:
            pools[stream] = FreePool(small=small, stream=stream)
        return pools[stream]

    def _whole_blocks(self, pools: dict[int, FreePool]) -> list[Block]:
        """Free blocks that are a segment of their own, by stream, size and address."""
        return [block for stream in sorted(pools) for block in pools[stream].whole_blocks()]

    def _open_segment(self, pool: FreePool, address: int, size_bytes: int) -> Block:
        edge = Block(pool, address, size_bytes, EDGE)
        self._edges[address] = edge
        self.reserved_bytes += size_bytes
        self.reserved_peak_bytes = max(self.reserved_peak_bytes, self.reserved_bytes)
        return edge

    def _release(self, block: Block) -> None:
        """``release_block``: give a wholly free segment back to the driver."""
        assert block.state == FREE, "only free segments can be given back"
        assert block.before is block.behind, "only whole segments can be given back"
        block.pool.remove(block)
        del self._edges[block.address]
        block.state = GONE
        self.reserved_bytes -= block.size_bytes
        self.returnable_bytes -= block.size_bytes
        self._addresses.release(block.address, block.size_bytes)

    def _split(self, block: Block, size: int) -> Block:
        """Cut ``size`` bytes off the front of ``block``; the rest goes to the pool."""
        front = Block(block.pool, block.address, size)
        front.link(block.before, block)
        block.address += size
        block.size_bytes -= size
        block.pool.add(block)
        return front

    def _recycle(self, block: Block) -> None:
        """``free_block``: merge with free neighbours; the result goes to the pool, never under the same handle."""
        pool = block.pool
        address = block.address
        size = block.size_bytes
        before = block.before
        behind = block.behind
        self.requested_bytes -= block.requested_bytes
        # The dead handle may be kept by its owner: it must not keep the ring alive.
        block.state = GONE
        block.before = block.behind = NOWHERE
        if not before.state:
            merged = before
            pool.remove(merged)
            address = merged.address
            size += merged.size_bytes
            before = merged.before
            if not behind.state:
                pool.remove(behind)
                size += behind.size_bytes
                behind = behind.behind
            merged.size_bytes = size
        elif not behind.state:
            merged = behind
            pool.remove(merged)
            size += merged.size_bytes
            behind = merged.behind
            merged.address = address
            merged.size_bytes = size
        else:
            merged = Block(pool, address, size)
        merged.before = before
        merged.behind = behind
        before.behind = behind.before = merged
        merged.freed_at = self._large_lookups
        key = size << ADDRESS_BITS | address
        insort(pool.keys, key)
        pool.blocks[key] = merged
        if before is behind:
            self.returnable_bytes += size

    def _count_adopted(self, block: Block, requested_bytes: int) -> None:
        block.requested_bytes = requested_bytes
        self.requested_bytes += requested_bytes
        if block.state == WAITING:
            self._waiting_bytes += block.size_bytes
            self._waiting.append(block)
        else:
            self.live_bytes += block.size_bytes
