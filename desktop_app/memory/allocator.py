"""An exact replica of PyTorch's native CUDA caching allocator, without torch and without a GPU.

What the real one does is in c10/cuda/CUDACachingAllocator.cpp; names of its functions stand in the comments.
Not replayed: expandable segments, private pools of CUDA graphs, free-memory callbacks, other backends.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

from desktop_app.memory.allocator_settings import (
    DEFAULT_SETTINGS,
    MIN_BLOCK_BYTES,
    SMALL_LIMIT_BYTES,
    AllocatorSettings,
    round_request,
    segment_bytes,
)
from desktop_app.memory.driver_addresses import AddressSource, FreshAddresses
from desktop_app.memory.oom_message import ONE_EXABYTE, ReplicaOutOfMemoryError
from desktop_app.memory.segments import (
    ADDRESS_BITS,
    EMPTY,
    GONE,
    LIVE,
    WAITING,
    Block,
    BlockView,
    FreePool,
    SegmentStore,
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


class CachingAllocator(SegmentStore):
    """One device's caching allocator. Not thread-safe: one thread owns it.

    ``limit_bytes`` is what the driver would give this allocator now: device capacity minus context minus other
    processes (``None``: unlimited); it may be changed at any time. ``total_bytes`` is the device's total, for the
    memory fraction. The same calls give the same addresses and the same statistics. ``addresses`` says where the
    driver puts segments, as when a recording is replayed.

    Statistics are attributes, in bytes: ``live_bytes`` (torch's allocated), ``requested_bytes``, ``active_bytes``,
    ``reserved_bytes``, ``idle_split_bytes``, ``returnable_bytes``, ``live_peak_bytes``, ``reserved_peak_bytes``; and
    the counts ``alloc_retries``, ``oom_count``, ``segment_count``.
    """

    def __init__(
        self,
        *,
        limit_bytes: int | None = None,
        total_bytes: int | None = None,
        settings: AllocatorSettings = DEFAULT_SETTINGS,
        addresses: AddressSource | None = None,
    ) -> None:
        super().__init__(FreshAddresses() if addresses is None else addresses)
        self.settings: Final = settings
        self.limit_bytes = limit_bytes
        self.alloc_retries = 0
        self.oom_count = 0
        self._table = settings.division_table()
        self._allowed_bytes = settings.allowed_bytes(total_bytes)
        self._ages = self._allowed_bytes is not None and settings.garbage_collection_threshold > 0
        self._max_split_bytes = settings.max_split_size_bytes or _UNLIMITED
        self._plain = settings.max_split_size_bytes is None and not self._ages

    @property
    def limit_bytes(self) -> int | None:
        """What the driver would give this allocator in all. Lower than what is reserved: it just gets no more."""
        return self._limit_bytes

    @limit_bytes.setter
    def limit_bytes(self, limit_bytes: int | None) -> None:
        if limit_bytes is not None and limit_bytes < 0:
            raise ValueError(f"limit_bytes must not be negative, got {limit_bytes}")
        self._limit_bytes = limit_bytes

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
            pool = self._pool(stream, small=size <= SMALL_LIMIT_BYTES)
        keys = pool.keys
        index = bisect_left(keys, size << ADDRESS_BITS)
        if not self._plain:
            index = self._restrict(pool, size, index)
        if index < len(keys):
            block = pool.blocks.pop(keys.pop(index))
            if block.before is block.behind:
                self.returnable_bytes -= block.size_bytes
        else:
            block = self._grow(size_bytes, size, pool)
        if block.size_bytes - size > pool.split_above and size < self._max_split_bytes:
            block = self._split(block, size)
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
        if block.uses is None:
            self._recycle(block)
        else:
            block.state = WAITING
            self._waiting_bytes += block.size_bytes
            self._waiting.append(block)

    def record_stream(self, block: Block, *, stream: int) -> None:
        """Say that ``stream`` uses the block too (``Tensor.record_stream``): freed, it waits for ``synchronize``."""
        if block.state != LIVE:
            raise ValueError(f"{block!r} is not in use")
        if stream != block.stream:
            block.uses = (block.uses or set()) | {stream}

    def synchronize(self) -> None:
        """All streams have caught up: what waits goes to the cache (``synchronize_and_free_events``)."""
        waiting, self._waiting = self._waiting, []
        self._waiting_bytes = 0
        for block in waiting:
            self._recycle(block)

    def empty_cache(self) -> int:
        """Synchronize, give every wholly free segment back to the driver, and return how many bytes that was."""
        before_bytes = self.reserved_bytes
        self.synchronize()
        for pools in (self._large_pools, self._small_pools):
            for block in self._whole_blocks(pools):
                self._release(block)
        return before_bytes - self.reserved_bytes

    def _empty_handle(self, size_bytes: int, stream: int) -> Block:
        if size_bytes < 0:
            raise ValueError(f"size_bytes must not be negative, got {size_bytes}")
        return Block(FreePool(small=True, stream=stream), 0, 0, EMPTY)

    def _restrict(self, pool: FreePool, size: int, index: int) -> int:
        """``get_free_block`` beyond best fit: ages for garbage collection, and who may take an oversize block."""
        if self._ages and not pool.small:
            self._large_lookups += 1
        if index == len(pool.keys):
            return index
        found = pool.keys[index] >> ADDRESS_BITS
        if size < self._max_split_bytes:
            refused = found >= self._max_split_bytes
        else:
            refused = found >= size + self.settings.max_non_split_rounding_bytes
        return len(pool.keys) if refused else index

    def _grow(self, size_bytes: int, size: int, pool: FreePool) -> Block:
        """``malloc`` after a miss: a new segment, giving back more and more of the cache until the driver agrees."""
        wanted = segment_bytes(size, large_segment_bytes=self.settings.large_segment_size_bytes)
        if wanted >= ONE_EXABYTE:  # torch does not even ask the driver
            raise self._out_of_memory(size_bytes, wanted)
        if self._ages:
            self._collect_garbage()
        address = self._ask_driver(wanted)
        if address is None and self._release_oversize(pool, size):
            address = self._ask_driver(wanted)
        if address is None:
            self.empty_cache()
            self.alloc_retries += 1
            address = self._ask_driver(wanted)
        if address is None:
            self.oom_count += 1
            raise self._out_of_memory(size_bytes, wanted)
        edge = self._open_segment(pool, address, wanted)
        block = Block(pool, address, wanted)
        block.link(edge, edge)
        return block

    def _ask_driver(self, wanted: int) -> int | None:
        """``alloc_block``: the address of a new segment, or ``None`` when fraction or driver refuse it."""
        after = self.reserved_bytes + wanted
        if self._allowed_bytes is not None and after > self._allowed_bytes:
            return None
        if self._limit_bytes is not None and after > self._limit_bytes:
            return None
        return self._addresses.reserve(wanted)

    def _out_of_memory(self, size_bytes: int, wanted: int) -> ReplicaOutOfMemoryError:
        allowed = self._allowed_bytes
        return ReplicaOutOfMemoryError(
            size_bytes,
            segment_bytes=wanted,
            live_bytes=self.live_bytes,
            reserved_bytes=self.reserved_bytes,
            limit_bytes=self._limit_bytes,
            allowed_bytes=allowed,
            fraction_limited=allowed is not None and self.reserved_bytes + wanted > allowed,
        )

    def _release_oversize(self, pool: FreePool, size: int) -> bool:
        """``release_available_cached_blocks``: with ``max_split_size``, just enough oversize blocks of this pool."""
        if self.settings.max_split_size_bytes is None:
            return False
        needed = max(size, self._max_split_bytes)
        index = bisect_left(pool.keys, needed << ADDRESS_BITS)
        if index < len(pool.keys):
            self._release(pool.blocks[pool.keys[index]])
            return True
        released = 0
        while released < needed and pool.keys and pool.keys[-1] >> ADDRESS_BITS >= self._max_split_bytes:
            block = pool.blocks[pool.keys[-1]]
            released += block.size_bytes
            self._release(block)
        return released >= needed

    def _collect_garbage(self) -> None:
        """``garbage_collect_cached_blocks``: give back large segments of at least average age, until below the limit.

        Age is the number of look-ups in the large pool since the segment became free.
        """
        assert self._allowed_bytes is not None
        target = self.reserved_bytes - int(self.settings.garbage_collection_threshold * self._allowed_bytes)
        aged = [(self._large_lookups - block.freed_at, block) for block in self._whole_blocks(self._large_pools)]
        while target > 0 and aged:
            average = sum(age for age, _ in aged) / len(aged)
            for age, block in aged:
                if age >= average:
                    target -= block.size_bytes
                    self._release(block)
            aged = [(age, block) for age, block in aged if age < average]
