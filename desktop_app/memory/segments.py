"""Segments, the blocks they are cut into, and the pools of free blocks: the mechanism under the allocator replica."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter
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
HOLE: Final = 6  # addresses of an expandable segment without memory

# Of graphs and of torch.cuda.MemPool: MempoolId_t, where one of the two numbers is not 0. (0, 0) is the default pool.
PoolId = tuple[int, int]
DEFAULT_POOL: Final[PoolId] = (0, 0)

_NEVER: Final = 1 << 64  # larger than any block
_address: Final = attrgetter("address")


class Block:
    """A piece of one segment. As a handle only size, address and request matter; the rest is the allocator's.

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
    )

    freed_at: int  # look-ups in the large pools when it became free, for garbage collection; set when it does

    def __init__(
        self,
        pool: FreePool,
        address: int,
        size_bytes: int,
        state: int = FREE,
        before: Block | None = None,
        behind: Block | None = None,
    ) -> None:
        self.address = address
        self.size_bytes = size_bytes
        self.requested_bytes = 0
        self.pool = pool
        self.state = state
        self.before: Block = before or self
        self.behind: Block = behind or self

    @property
    def stream(self) -> int:
        return self.pool.stream

    def link(self, before: Block, behind: Block) -> None:
        """Stand between two neighbours of the ring."""
        self.before = before
        self.behind = behind
        before.behind = self
        behind.before = self

    def __repr__(self) -> str:
        return f"<Block {self.address:#x} {self.size_bytes} B, stream {self.stream}>"


class FreePool:
    """The free blocks of one kind (small or large) on one stream of one memory pool, ordered by size and address.

    ``sizes`` and ``blocks`` are parallel. ``holes`` are the unmapped parts of its expandable segments, by address;
    ``split_above`` and ``split_below`` say of which remainder and which request a block is cut (``should_split``).
    """

    __slots__ = ("blocks", "holes", "owner", "page_bytes", "sizes", "small", "split_above", "split_below", "stream")

    def __init__(
        self,
        *,
        small: bool,
        stream: int,
        owner: PoolId = DEFAULT_POOL,
        page_bytes: int = 0,
        splits: bool = True,
        split_below: int = _NEVER,
    ) -> None:
        self.small: Final = small
        self.stream: Final = stream
        self.owner: Final = owner
        self.page_bytes: Final = page_bytes  # 0: no expandable segments
        self.split_above: Final = (
            _NEVER if not splits else MIN_BLOCK_BYTES - 1 if small or page_bytes else SMALL_LIMIT_BYTES
        )
        self.split_below: Final = _NEVER if small or page_bytes else split_below
        self.sizes: Final[list[int]] = []
        self.blocks: Final[list[Block]] = []
        self.holes: Final[list[Block]] = []

    def add(self, block: Block) -> None:
        sizes = self.sizes
        size = block.size_bytes
        index = bisect_left(sizes, size)
        if index < len(sizes) and sizes[index] == size and self.blocks[index].address < block.address:
            end = bisect_right(sizes, size, index)
            index = bisect_left(self.blocks, block.address, index + 1, end, key=_address)
        sizes.insert(index, size)
        self.blocks.insert(index, block)

    def remove(self, block: Block) -> None:
        """The block, under the size that it was added with."""
        index = self.blocks.index(block, bisect_left(self.sizes, block.size_bytes))
        del self.sizes[index], self.blocks[index]

    def shrink(self, index: int, size: int) -> None:
        """The block at ``index`` has been cut down to ``size``, and lies higher than before."""
        sizes = self.sizes
        block = self.blocks[index]
        block.size_bytes = size
        if not index or sizes[index - 1] < size:
            sizes[index] = size
        else:
            del sizes[index], self.blocks[index]
            self.add(block)

    def whole_blocks(self) -> list[Block]:
        """Free blocks that are a segment of their own, smallest first, then lowest."""
        return [block for block in self.blocks if block.before is block.behind]


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
    """One segment, with its blocks in order of address and without gaps.

    Of an expandable segment it is one run of mapped pages, as in ``torch.cuda.memory_snapshot``. ``pool`` is the
    private pool that owns it.
    """

    address: int
    size_bytes: int
    stream: int
    small: bool
    blocks: tuple[BlockView, ...]
    pool: PoolId = DEFAULT_POOL
    expandable: bool = False


def view_segments(edge: Block) -> Iterator[SegmentView]:
    """What lies between the two sides of an ``EDGE`` node: one segment, or the mapped runs of an expandable one."""
    pool = edge.pool
    blocks: list[BlockView] = []
    block = edge.behind
    while True:
        if block.state in {EDGE, HOLE}:
            if blocks:
                yield SegmentView(
                    blocks[0].address,
                    sum(view.size_bytes for view in blocks),
                    pool.stream,
                    pool.small,
                    tuple(blocks),
                    pool.owner,
                    expandable=pool.page_bytes > 0,
                )
            if block is edge:
                return
            blocks = []
        else:
            blocks.append(BlockView(block.address, block.size_bytes, block.requested_bytes, block.state))
        block = block.behind


class PoolGroup:
    """The pools of one owner by stream: the default ones, or a private pool of a graph or ``torch.cuda.MemPool``.

    ``uses`` counts the graphs and regions that hold a private pool; without any, its idle memory can be given back.
    ``splits`` and ``serves_on_oom`` are what ``MemPool`` can be told.
    """

    def __init__(self, owner: PoolId, *, splits: bool = True, serves_on_oom: bool = False) -> None:
        self.owner: Final = owner
        self.splits: Final = splits
        self.serves_on_oom: Final = serves_on_oom
        self.uses = 0
        self.small: Final[dict[int, FreePool]] = {}
        self.large: Final[dict[int, FreePool]] = {}

    @property
    def returnable(self) -> bool:
        return self.owner == DEFAULT_POOL or not self.uses

    def pools(self) -> Iterator[FreePool]:
        """Large before small, by stream: the order in which they are given back."""
        for pools in (self.large, self.small):
            yield from (pools[stream] for stream in sorted(pools))


class SegmentStore:
    """Segments, the blocks in them and the byte counts of both: how memory is cut and mended, not who gets it."""

    def __init__(self, addresses: AddressSource) -> None:
        self.live_bytes = 0  # allocated: blocks in use, rounded
        self.live_peak_bytes = 0
        self.requested_bytes = 0  # as asked for, before rounding; waiting blocks count
        self.reserved_bytes = 0
        self.reserved_peak_bytes = 0
        self._addresses: Final = addresses
        self._edges: Final[dict[int, Block]] = {}
        self._groups: Final[dict[PoolId, PoolGroup]] = {DEFAULT_POOL: PoolGroup(DEFAULT_POOL)}
        self._whole_bytes = 0  # in wholly free segments, whoever owns them
        self._large_lookups = 0
        self._waiting: list[Block] = []
        self._waiting_bytes = 0
        self._uses: Final[dict[Block, set[int]]] = {}  # other streams that use a live block

    @property
    def active_bytes(self) -> int:
        """Live blocks and those that wait for other streams."""
        return self.live_bytes + self._waiting_bytes

    @property
    def segment_count(self) -> int:
        return len(self._edges)

    def segments(self) -> tuple[SegmentView, ...]:
        """Every segment with its blocks, by address: ``torch.cuda.memory_snapshot``."""
        return tuple(view for address in sorted(self._edges) for view in view_segments(self._edges[address]))

    def private_idle_bytes(self) -> int:
        """Free blocks of private pools: what torch's out-of-memory message calls allocated in private pools."""
        private = (group for owner, group in self._groups.items() if owner != DEFAULT_POOL)
        return sum(sum(pool.sizes) for group in private for pool in group.pools())

    def _reserve(self, size_bytes: int) -> None:
        self.reserved_bytes += size_bytes
        self.reserved_peak_bytes = max(self.reserved_peak_bytes, self.reserved_bytes)

    def _open_segment(self, pool: FreePool, address: int, size_bytes: int) -> Block:
        edge = Block(pool, address, size_bytes, EDGE)
        self._edges[address] = edge
        return edge

    def _release(self, block: Block) -> None:
        """``release_block``: give a wholly free segment back to the driver."""
        assert block.state == FREE, "only free segments can be given back"
        assert block.before is block.behind, "only whole segments can be given back"
        block.pool.remove(block)
        del self._edges[block.address]
        block.state = GONE
        self.reserved_bytes -= block.size_bytes
        self._whole_bytes -= block.size_bytes
        self._addresses.release(block.address, block.size_bytes)

    def _recycle(self, block: Block) -> None:
        """``free_block``: merge with free neighbours; the result goes to the pool, never under the same handle."""
        pool = block.pool
        before = block.before
        behind = block.behind
        self.requested_bytes -= block.requested_bytes
        # The dead handle may be kept by its owner: it must not keep the ring alive.
        block.state = GONE
        block.before = block.behind = NOWHERE
        if not before.state:
            merged = before
            pool.remove(merged)
            merged.size_bytes += block.size_bytes
            before = merged.before
            if not behind.state:
                pool.remove(behind)
                merged.size_bytes += behind.size_bytes
                behind = behind.behind
                merged.behind = behind
                behind.before = merged
            else:
                merged.behind = behind
                behind.before = merged
        elif not behind.state:
            merged = behind
            pool.remove(merged)
            merged.size_bytes += block.size_bytes
            merged.address = block.address
            behind = merged.behind
            merged.before = before
            before.behind = merged
        else:
            merged = Block(pool, block.address, block.size_bytes, FREE, before, behind)
            before.behind = behind.before = merged
        merged.freed_at = self._large_lookups
        pool.add(merged)
        if before is behind:
            self._whole_bytes += merged.size_bytes

    def _fill(self, pool: FreePool, pieces: Iterable[BlockView], *, before: Block) -> Iterator[Block]:
        """Blocks that were there already, ahead of a node of their ring; gives those in use."""
        for piece in pieces:
            block = Block(pool, piece.address, piece.size_bytes, piece.state)
            block.link(before.before, before)
            block.freed_at = self._large_lookups
            if piece.state == FREE:
                pool.add(block)
                continue
            block.requested_bytes = piece.requested_bytes
            self.requested_bytes += piece.requested_bytes
            if piece.state == WAITING:
                self._waiting_bytes += block.size_bytes
                self._waiting.append(block)
            else:
                self.live_bytes += block.size_bytes
            yield block
