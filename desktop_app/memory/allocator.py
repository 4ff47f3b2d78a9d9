"""An exact replica of PyTorch's native CUDA caching allocator, without torch and without a GPU.

What the real one does is in c10/cuda/CUDACachingAllocator.cpp; names of its functions stand in the comments.
Not replayed: free-memory callbacks, other backends, and how far the GPU has come with what other streams use.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from desktop_app.memory.allocator_expandable import ExpandableStore
from desktop_app.memory.allocator_settings import (
    DEFAULT_SETTINGS,
    MIN_BLOCK_BYTES,
    SMALL_LIMIT_BYTES,
    SMALL_SEGMENT_BYTES,
    AllocatorSettings,
    round_request,
    segment_bytes,
)
from desktop_app.memory.driver_addresses import AddressSource, FreshAddresses
from desktop_app.memory.oom_message import ONE_EXABYTE, ReplicaOutOfMemoryError
from desktop_app.memory.segments import (
    DEFAULT_POOL,
    EMPTY,
    GONE,
    LIVE,
    WAITING,
    Block,
    BlockView,
    FreePool,
    PoolGroup,
    PoolId,
    SegmentView,
)

__all__ = [
    "AllocatorSettings",
    "Block",
    "BlockView",
    "CachingAllocator",
    "ReplicaOutOfMemoryError",
    "SegmentView",
]

_UNLIMITED: Final = 1 << 64  # larger than any block: max_split_size "unlimited" in comparisons


class CachingAllocator(ExpandableStore):
    """One device's caching allocator. Not thread-safe: one thread owns it.

    ``limit_bytes`` is what the driver would give this allocator now: device capacity minus context minus other
    processes (``None``: unlimited); it may be changed at any time. ``total_bytes`` is the device's total, for the
    memory fraction and for expandable segments. The same calls give the same addresses and the same statistics.
    ``addresses`` says where the driver puts segments, as when a recording is replayed.

    Statistics are attributes, in bytes: ``live_bytes`` (torch's allocated), ``requested_bytes``, ``active_bytes``,
    ``reserved_bytes``, ``idle_split_bytes``, ``returnable_bytes``, ``live_peak_bytes``, ``reserved_peak_bytes``; and
    the counts ``alloc_retries``, ``oom_count``, ``rejections``, ``segment_count``.
    """

    def __init__(
        self,
        *,
        limit_bytes: int | None = None,
        total_bytes: int | None = None,
        settings: AllocatorSettings = DEFAULT_SETTINGS,
        addresses: AddressSource | None = None,
    ) -> None:
        super().__init__(FreshAddresses() if addresses is None else addresses, total_bytes=total_bytes)
        self.settings: Final = settings
        self.limit_bytes = limit_bytes
        self.alloc_retries = 0
        self.oom_count = 0
        self.rejections = 0  # out of memory by throw_on_cudamalloc_oom
        self._table = settings.division_table()
        self._allowed_bytes = settings.allowed_bytes(total_bytes)
        self._ages = self._allowed_bytes is not None and settings.garbage_collection_threshold > 0
        self._max_split_bytes = settings.max_split_size_bytes or _UNLIMITED
        self._plain = settings.max_split_size_bytes is None and not self._ages and not settings.expandable_segments
        self._captures: list[PoolId] = []
        self._target = DEFAULT_POOL
        default = self._groups[DEFAULT_POOL]
        self._small_pools, self._large_pools = default.small, default.large  # where requests go now, by stream

    @property
    def limit_bytes(self) -> int | None:
        """What the driver would give this allocator in all. Lower than what is reserved: it just gets no more."""
        return self._limit_bytes

    @limit_bytes.setter
    def limit_bytes(self, limit_bytes: int | None) -> None:
        if limit_bytes is not None and limit_bytes < 0:
            raise ValueError(f"limit_bytes must not be negative, got {limit_bytes}")
        self._limit_bytes = limit_bytes

    @property
    def returnable_bytes(self) -> int:
        """What ``empty_cache`` would give back now, blocks that wait for other streams aside.

        Wholly free segments; of expandable ones whole pages. Private pools count when nothing holds them any more.
        """
        if self._plain and len(self._groups) == 1:
            return self._whole_bytes
        pools = [pool for group in self._groups.values() if group.returnable for pool in group.pools()]
        if self.settings.expandable_segments:
            return sum(self._idle_page_bytes(pool) for pool in pools)
        return sum(block.size_bytes for pool in pools for block in pool.whole_blocks())

    @property
    def idle_split_bytes(self) -> int:
        """Free, but not in what could be given back: in segments, or pages, that are partly in use.

        ``inactive_split_bytes`` of torch, which keeps none for expandable segments.
        """
        idle_bytes = self.reserved_bytes - self.active_bytes
        if self.settings.expandable_segments:
            pools = (pool for group in self._groups.values() for pool in group.pools())
            return idle_bytes - sum(self._idle_page_bytes(pool) for pool in pools)
        return idle_bytes - self._whole_bytes

    def reset_peaks(self) -> None:
        """``torch.cuda.reset_peak_memory_stats``."""
        self.live_peak_bytes = self.live_bytes
        self.reserved_peak_bytes = self.reserved_bytes

    def allocate(self, size_bytes: int, *, stream: int = 0) -> Block:
        """A block of at least ``size_bytes``, from the cache or from a new segment.

        0 bytes give a handle without memory, as torch gives a null pointer. Raises ``ReplicaOutOfMemoryError``, and
        ``ValueError`` for a negative size. Inlined on purpose: this is the hot path of every replay.
        """
        if size_bytes <= 0:
            return self._empty_handle(size_bytes, stream)
        if self._table is None:
            size = (size_bytes + (MIN_BLOCK_BYTES - 1)) & -MIN_BLOCK_BYTES
        else:
            size = round_request(size_bytes, self._table)
        pool = (self._small_pools if size <= SMALL_LIMIT_BYTES else self._large_pools).get(stream)
        if pool is None:
            pool = self._pool(self._target, stream, small=size <= SMALL_LIMIT_BYTES)
        sizes = pool.sizes
        index = bisect_left(sizes, size)
        if not self._plain:
            index = self._restrict(pool, size, index)
        if index < len(sizes):
            block = pool.blocks[index]
            if block.before is block.behind:
                self._whole_bytes -= block.size_bytes
            rest = block.size_bytes - size
            if rest > pool.split_above and size < pool.split_below:
                block = self._cut(block, size)
                pool.shrink(index, rest)
            else:
                del sizes[index], pool.blocks[index]
        else:
            block = self._grow(size_bytes, size, pool)
            pool = block.pool
            rest = block.size_bytes - size
            if rest > pool.split_above and size < pool.split_below:
                remainder = block
                block = self._cut(remainder, size)
                remainder.size_bytes = rest
                pool.add(remainder)
        block.state = LIVE
        block.requested_bytes = size_bytes
        self.requested_bytes += size_bytes
        self.live_bytes = live_bytes = self.live_bytes + block.size_bytes
        if live_bytes > self.live_peak_bytes:
            self.live_peak_bytes = live_bytes
        return block

    def free(self, block: Block) -> None:
        """Give a block back: to the cache at once, or after ``synchronize`` if other streams have used it.

        Raises ``ValueError`` when it was given back before.
        """
        if block.state != LIVE:
            if block.state != EMPTY:
                raise ValueError(f"{block!r} is freed twice")
            block.state = GONE
            return
        self.live_bytes -= block.size_bytes
        if self._uses and block in self._uses:
            del self._uses[block]
            block.state = WAITING
            self._waiting_bytes += block.size_bytes
            self._waiting.append(block)
        else:
            self._recycle(block)

    def record_stream(self, block: Block, *, stream: int) -> None:
        """Say that ``stream`` uses the block too (``Tensor.record_stream``): freed, it waits for ``synchronize``."""
        if block.state != LIVE:
            raise ValueError(f"{block!r} is not in use")
        if stream != block.stream:
            self._uses.setdefault(block, set()).add(stream)

    def synchronize(self) -> None:
        """All streams have caught up: what waits goes to the cache (``synchronize_and_free_events``)."""
        waiting, self._waiting = self._waiting, []
        self._waiting_bytes = 0
        for block in waiting:
            self._recycle(block)

    def complete(self, block: Block) -> None:
        """The other streams of one block that waits have caught up (``process_events``)."""
        if block.state != WAITING:
            raise ValueError(f"{block!r} does not wait")
        self._waiting.remove(block)
        self._waiting_bytes -= block.size_bytes
        self._recycle(block)

    def release_segment(self, address: int) -> bool:
        """Give one wholly free segment back to the driver; ``False`` when there is none at this address."""
        edge = self._edges.get(address)
        if edge is None or edge.pool.page_bytes or edge.behind.state or edge.behind.behind is not edge:
            return False
        self._release(edge.behind)
        return True

    def empty_cache(self) -> int:
        """Synchronize, give what is idle back to the driver, and return how many bytes that was.

        Wholly free segments of the default pools and of private pools that nothing holds; of expandable segments
        whole pages. While a capture is underway nothing of the default pools (``release_cached_blocks``).
        """
        before_bytes = self.reserved_bytes
        if not self._captures:
            self.synchronize()
        for group in list(self._groups.values()):
            if (group.owner == DEFAULT_POOL and self._captures) or not group.returnable:
                continue
            for pool in group.pools():
                if pool.page_bytes:
                    self._unmap_idle(pool)
                else:
                    for block in pool.whole_blocks():
                        self._release(block)
        return before_bytes - self.reserved_bytes

    def begin_capture(self, pool: PoolId, *, splits: bool = True, serves_on_oom: bool = False) -> None:
        """Requests of all streams go to this private pool (``torch.cuda.use_mem_pool``, a graph's capture).

        Meanwhile a refusal of the driver is final: nothing is given back for want of memory. ``splits`` and
        ``serves_on_oom`` are ``MemPool``'s ``no_split`` (negated) and ``use_on_oom``, for a pool that is new.
        """
        if pool == DEFAULT_POOL:
            raise ValueError("the default pool is not private")
        if pool in self._captures:
            raise ValueError(f"already recording to pool {pool}")
        group = self._groups.get(pool)
        if group is None:
            group = self._groups[pool] = PoolGroup(pool, splits=splits, serves_on_oom=serves_on_oom)
        group.uses += 1
        self._captures.append(pool)
        self._route(pool)

    def send_to(self, pool: PoolId) -> None:
        """Requests go to this pool from now on, without a capture: for a replay that is told of every one."""
        self._pool(pool, 0, small=True)
        self._route(pool)

    def end_capture(self) -> None:
        """Back to where requests went before. The pool stays held until ``release_pool``."""
        if not self._captures:
            raise ValueError("nothing is captured")
        self._captures.pop()
        self._route(self._captures[-1] if self._captures else DEFAULT_POOL)

    def release_pool(self, pool: PoolId) -> None:
        """A graph or region that held the pool is gone; after the last one its idle memory can be given back."""
        group = self._groups.get(pool)
        if group is None or not group.uses:
            raise ValueError(f"nothing holds pool {pool}")
        group.uses -= 1

    def adopt(self, segments: Iterable[SegmentView]) -> dict[int, Block]:
        """Take over segments that are there already, as in a snapshot; gives the blocks in use, by address.

        Those that wait for other streams are among them. The address source is not asked: it must know of these
        segments. Private pools count as held. Raises
        ``ValueError`` when the blocks of a segment do not fill it, or when it is expandable though the settings are
        not, or the reverse.
        """
        blocks: dict[int, Block] = {}
        ranges: dict[tuple[PoolId, int, bool], list[SegmentView]] = {}
        for view in segments:
            if sum(piece.size_bytes for piece in view.blocks) != view.size_bytes:
                raise ValueError(f"the blocks do not fill the segment at {view.address:#x}")
            if view.expandable != self.settings.expandable_segments:
                raise ValueError(f"the segment at {view.address:#x} does not agree with expandable_segments")
            if view.expandable:
                ranges.setdefault((view.pool, view.stream, view.small), []).append(view)
                continue
            pool = self._pool(view.pool, view.stream, small=view.small)
            edge = self._open_segment(pool, view.address, view.size_bytes)
            self._reserve(view.size_bytes)
            blocks |= {block.address: block for block in self._fill(pool, view.blocks, before=edge)}
            if edge.behind.behind is edge and not edge.behind.state:
                self._whole_bytes += view.size_bytes
        for (owner, stream, small), views in ranges.items():
            blocks |= self._adopt_range(self._pool(owner, stream, small=small), views)
        self.live_peak_bytes = max(self.live_peak_bytes, self.live_bytes)
        return blocks

    def _pool(self, owner: PoolId, stream: int, *, small: bool) -> FreePool:
        group = self._groups.get(owner)
        if group is None:
            group = self._groups[owner] = PoolGroup(owner)
            group.uses = 1
        pools = group.small if small else group.large
        if stream not in pools:
            page_bytes = SMALL_SEGMENT_BYTES if small else self.settings.large_segment_size_bytes
            pools[stream] = FreePool(
                small=small,
                stream=stream,
                owner=owner,
                page_bytes=page_bytes if self.settings.expandable_segments else 0,
                splits=group.splits,
                split_below=self._max_split_bytes,
            )
        return pools[stream]

    def _route(self, owner: PoolId) -> None:
        group = self._groups[owner]
        self._target = owner
        self._small_pools = group.small
        self._large_pools = group.large

    def _empty_handle(self, size_bytes: int, stream: int) -> Block:
        if size_bytes < 0:
            raise ValueError(f"size_bytes must not be negative, got {size_bytes}")
        return Block(FreePool(small=True, stream=stream), 0, 0, EMPTY)

    def _restrict(self, pool: FreePool, size: int, index: int) -> int:
        """``get_free_block`` beyond best fit: ages for garbage collection, and who may take an oversize block."""
        if self._ages and not pool.small and pool.owner == DEFAULT_POOL:
            self._large_lookups += 1
        if index == len(pool.sizes):
            return index
        if pool.page_bytes:
            index = self._prefer(pool, index)
        found = pool.sizes[index]
        if size < self._max_split_bytes:
            refused = found >= self._max_split_bytes
        else:
            refused = found >= size + self.settings.max_non_split_rounding_bytes
        return len(pool.sizes) if refused else index

    def _grow(self, size_bytes: int, size: int, pool: FreePool) -> Block:
        """``malloc`` after a miss: new memory, giving back more and more of the cache until the driver agrees."""
        wanted = segment_bytes(size, large_segment_bytes=self.settings.large_segment_size_bytes)
        if wanted >= ONE_EXABYTE:  # torch does not even ask the driver
            raise self._out_of_memory(size_bytes, wanted)
        if self._ages:
            self._collect_garbage()
        if self.settings.throw_on_cudamalloc_oom and not self._allows(wanted):
            self.rejections += 1
            raise self._out_of_memory(size_bytes, wanted)
        block = self._obtain(pool, size, wanted) or self._borrow(pool, size)
        if block is None and self._release_oversize(pool, size):
            block = self._obtain(pool, size, wanted)
        if block is None and not self._captures:
            self.empty_cache()
            self.alloc_retries += 1
            block = self._obtain(pool, size, wanted)
        if block is None:
            self.oom_count += 1
            raise self._out_of_memory(size_bytes, wanted)
        return block

    def _obtain(self, pool: FreePool, size: int, wanted: int) -> Block | None:
        """``alloc_block``: a new segment, or pages for an expandable one; ``None`` when fraction or driver refuse."""
        if not self._allows(wanted):
            return None
        if pool.page_bytes:
            return self._take_mapped(pool, size)
        if not self._grants(wanted):
            return None
        address = self._addresses.reserve(wanted)
        edge = self._open_segment(pool, address, wanted)
        self._reserve(wanted)
        block = Block(pool, address, wanted)
        block.link(edge, edge)
        return block

    def _allows(self, wanted: int) -> bool:
        return self._allowed_bytes is None or self.reserved_bytes + wanted <= self._allowed_bytes

    def _borrow(self, pool: FreePool, size: int) -> Block | None:
        """``try_mempool_fallback``: a free block of a private pool that serves when memory runs out.

        Read from the source; of several such pools torch takes them in the order of a hash table.
        """
        if pool.owner != DEFAULT_POOL:
            return None
        for group in self._groups.values():
            if group.serves_on_oom:
                other = (group.small if pool.small else group.large).get(pool.stream)
                if other is None:
                    continue
                index = self._restrict(other, size, bisect_left(other.sizes, size))
                if index < len(other.sizes):
                    block = other.blocks[index]
                    other.remove(block)
                    if block.before is block.behind:
                        self._whole_bytes -= block.size_bytes
                    return block
        return None

    def _cut(self, block: Block, size: int) -> Block:
        """A new block of the first ``size`` bytes of ``block``, which moves up; its size is the caller's to change."""
        before = block.before
        front = Block(block.pool, block.address, size, LIVE, before, block)
        before.behind = block.before = front
        block.address += size
        return front

    def _out_of_memory(self, size_bytes: int, wanted: int) -> ReplicaOutOfMemoryError:
        return ReplicaOutOfMemoryError(
            size_bytes,
            segment_bytes=wanted,
            live_bytes=self.live_bytes,
            reserved_bytes=self.reserved_bytes,
            limit_bytes=self._limit_bytes,
            allowed_bytes=self._allowed_bytes,
            fraction_limited=not self._allows(wanted),
            private_pool_bytes=self.private_idle_bytes(),
        )

    def _release_oversize(self, pool: FreePool, size: int) -> bool:
        """``release_available_cached_blocks``: with ``max_split_size``, just enough oversize blocks of this pool."""
        if self.settings.max_split_size_bytes is None or pool.page_bytes:
            return False
        needed = max(size, self._max_split_bytes)
        index = bisect_left(pool.sizes, needed)
        if index < len(pool.sizes):
            self._release(pool.blocks[index])
            return True
        released = 0
        while released < needed and pool.sizes and pool.sizes[-1] >= self._max_split_bytes:
            block = pool.blocks[-1]
            released += block.size_bytes
            self._release(block)
        return released >= needed

    def _collect_garbage(self) -> None:
        """``garbage_collect_cached_blocks``: give back large segments of at least average age, until below the limit.

        Age is the number of look-ups in the large pool since the segment became free.
        """
        assert self._allowed_bytes is not None
        if self.settings.expandable_segments:
            return
        target = self.reserved_bytes - int(self.settings.garbage_collection_threshold * self._allowed_bytes)
        large = self._groups[DEFAULT_POOL].large
        idle = [block for stream in sorted(large) for block in large[stream].whole_blocks()]
        aged = [(self._large_lookups - block.freed_at, block) for block in idle]
        while target > 0 and aged:
            average = sum(age for age, _ in aged) / len(aged)
            for age, block in aged:
                if age >= average:
                    target -= block.size_bytes
                    self._release(block)
            aged = [(age, block) for age, block in aged if age < average]
