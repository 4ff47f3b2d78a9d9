"""Replay a list of allocations and frees in the allocator replica: once in any allocator, or often and fast."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from desktop_app.memory.allocator import Block, CachingAllocator, ReplicaOutOfMemoryError
from desktop_app.memory.allocator_bulk import BulkHeap
from desktop_app.memory.allocator_settings import (
    DEFAULT_SETTINGS,
    MIN_BLOCK_BYTES,
    AllocatorSettings,
    round_request,
    segment_bytes,
)
from desktop_app.memory.oom_message import ONE_EXABYTE

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What a replay did. Peaks are those of this replay, with the index of the event that reached them first.

    A peak index is -1 when the level before the first event was never exceeded. ``events`` counts the events that
    were carried out; ``oom_index`` is the event that ran out of memory, which ended the replay. ``skipped`` are the
    optional allocations that failed, ``retries`` how often the cache was given back for want of memory. The curves,
    on request, hold the level after each event that was carried out (int64, length ``events``).
    """

    events: int
    live_peak_bytes: int
    live_peak_index: int
    reserved_peak_bytes: int
    reserved_peak_index: int
    oom_index: int | None = None
    oom: ReplicaOutOfMemoryError | None = None
    live_curve_bytes: Ints | None = None
    reserved_curve_bytes: Ints | None = None
    skipped: tuple[int, ...] = ()
    retries: int = 0


def replay(
    events: Iterable[tuple[int, int]],
    *,
    allocator: CachingAllocator,
    blocks: dict[int, Block] | None = None,
    curves: bool = False,
) -> ReplayResult:
    """Carry out ``(id, bytes)`` events: ``bytes`` > 0 allocates, 0 frees; stops at the first out-of-memory error.

    ``blocks`` holds the blocks that live across replays, by id, and is updated in place. Raises ``ValueError`` when
    an id is freed that does not live, or allocated while it does.
    """
    if blocks is None:
        blocks = {}
    allocate = allocator.allocate
    free = allocator.free
    retries = allocator.alloc_retries
    live_peak, live_index = allocator.live_bytes, -1
    reserved_peak, reserved_index = allocator.reserved_bytes, -1
    live_curve: list[int] = []
    reserved_curve: list[int] = []
    oom: ReplicaOutOfMemoryError | None = None
    index = -1
    try:
        for index, (key, size_bytes) in enumerate(events):
            if size_bytes:
                if key in blocks:
                    raise ValueError(f"event {index}: id {key} is allocated while it lives")
                blocks[key] = allocate(size_bytes)
                if allocator.live_bytes > live_peak:
                    live_peak, live_index = allocator.live_bytes, index
                if allocator.reserved_bytes > reserved_peak:
                    reserved_peak, reserved_index = allocator.reserved_bytes, index
            else:
                block = blocks.pop(key, None)
                if block is None:
                    raise ValueError(f"event {index}: id {key} is freed but does not live")
                free(block)
            if curves:
                live_curve.append(allocator.live_bytes)
                reserved_curve.append(allocator.reserved_bytes)
    except ReplicaOutOfMemoryError as error:
        oom = error
    return ReplayResult(
        events=index if oom else index + 1,
        live_peak_bytes=live_peak,
        live_peak_index=live_index,
        reserved_peak_bytes=reserved_peak,
        reserved_peak_index=reserved_index,
        oom_index=index if oom else None,
        oom=oom,
        live_curve_bytes=np.array(live_curve, dtype=np.int64) if curves else None,
        reserved_curve_bytes=np.array(reserved_curve, dtype=np.int64) if curves else None,
        retries=allocator.alloc_retries - retries,
    )


@dataclass(frozen=True, slots=True, eq=False)
class ReplayPlan:
    """The order of some allocations and frees, checked once and replayed with many sizes.

    An allocation is named by its position. ``allocations`` are those positions, ``frees`` those of the events that
    give back, ``freed`` the allocation that each of these gives back.
    """

    events: int
    allocations: Ints
    frees: Ints
    freed: Ints
    owners: tuple[int, ...]  # by event: the allocation that it makes or frees
    optional: frozenset[int]

    @classmethod
    def of(cls, keys: ArrayLike, *, optional: Collection[int] = ()) -> Self:
        """``keys``: k > 0 allocates under that name, −k frees it; a name may be used again once it is free.

        ``optional`` are positions of allocations whose failure does no harm, as of a cuDNN workspace. Raises
        ``ValueError`` when a key is 0, freed though it does not live, or allocated while it does.
        """
        names = np.asarray(keys, dtype=np.int64).reshape(-1)
        owners = _owners(names)
        frees = np.flatnonzero(names < 0)
        return cls(
            events=len(names),
            allocations=np.flatnonzero(names > 0),
            frees=frees,
            freed=owners[frees],
            owners=tuple(owners.tolist()),
            optional=frozenset(optional),
        )

    def run(
        self,
        sizes: ArrayLike,
        *,
        limit_bytes: int | None = None,
        total_bytes: int | None = None,
        settings: AllocatorSettings = DEFAULT_SETTINGS,
        empty_before: Collection[int] = (),
        curves: bool = False,
    ) -> ReplayResult:
        """Replay in a fresh allocator. ``sizes`` are requested bytes by event; those of frees are not looked at.

        An allocation of 0 bytes is left out, with its free. Before the events in ``empty_before`` the cache is
        emptied. Limit, total and settings are those of ``CachingAllocator``. Raises ``ValueError`` for a negative
        size or a wrong number of sizes.
        """
        requests = np.asarray(sizes, dtype=np.int64).reshape(-1)
        if len(requests) != self.events:
            raise ValueError(f"{len(requests)} sizes for {self.events} events")
        if self.events and requests[self.allocations].min(initial=0) < 0:
            raise ValueError("sizes must not be negative")
        blocks = np.zeros(self.events, dtype=np.int64)
        blocks[self.allocations] = _blocks_of(requests[self.allocations], settings)
        allowed = settings.allowed_bytes(total_bytes)
        if not _is_plain(settings) or blocks.max(initial=0) >= ONE_EXABYTE // MIN_BLOCK_BYTES:
            allocator = CachingAllocator(limit_bytes=limit_bytes, total_bytes=total_bytes, settings=settings)
            return self._run_slowly(requests.tolist(), allocator, frozenset(empty_before), curves=curves)
        limit = min(ONE_EXABYTE if bytes_ is None else bytes_ for bytes_ in (limit_bytes, allowed))
        heap = BulkHeap(
            self.events,
            limit=limit // MIN_BLOCK_BYTES,
            large_segment=settings.large_segment_size_bytes // MIN_BLOCK_BYTES,
        )
        queue = blocks.tolist()
        for begin, end in _stretches(self.events, empty_before):
            if begin in empty_before:
                heap.empty(at=begin)
            if not heap.run(self.owners[begin:end], queue[begin:end], first=begin, optional=self.optional):
                break
        levels = self._levels(heap, blocks)
        oom = None
        if heap.failed is not None:
            request = int(requests[heap.failed])
            wanted = segment_bytes(
                int(blocks[heap.failed]) * MIN_BLOCK_BYTES, large_segment_bytes=settings.large_segment_size_bytes
            )
            reserved = heap.reserved * MIN_BLOCK_BYTES
            oom = ReplicaOutOfMemoryError(
                request,
                segment_bytes=wanted,
                live_bytes=int(levels[-1]) if len(levels) else 0,
                reserved_bytes=reserved,
                limit_bytes=limit_bytes,
                allowed_bytes=allowed,
                fraction_limited=allowed is not None and reserved + wanted > allowed,
            )
        return _result(heap, levels, oom=oom, curves=curves)

    def _levels(self, heap: BulkHeap, blocks: Ints) -> Ints:
        """Live bytes after each event that was carried out."""
        change = blocks.copy()
        for position, rest in heap.tails:
            change[position] += rest
        change[heap.skipped] = 0
        change[self.frees] = -change[self.freed]
        levels: Ints = np.cumsum(change[: heap.failed]) * MIN_BLOCK_BYTES
        return levels

    def _run_slowly(
        self, requests: list[int], allocator: CachingAllocator, empty_before: frozenset[int], *, curves: bool
    ) -> ReplayResult:
        """The same with any settings."""
        handles: dict[int, Block] = {}
        live: list[int] = []
        reserved: list[int] = []
        reserved_peak, reserved_index = 0, -1
        skipped: list[int] = []
        oom: ReplicaOutOfMemoryError | None = None
        for position, owner in enumerate(self.owners):
            if position in empty_before:
                allocator.empty_cache()
            if position != owner:
                if owner in handles:
                    allocator.free(handles.pop(owner))
            elif requests[position]:
                try:
                    handles[owner] = allocator.allocate(requests[position])
                except ReplicaOutOfMemoryError as error:
                    if owner not in self.optional:
                        oom = error
                        break
                    skipped.append(owner)
                if allocator.reserved_peak_bytes > reserved_peak:
                    reserved_peak, reserved_index = allocator.reserved_peak_bytes, position
            live.append(allocator.live_bytes)
            reserved.append(allocator.reserved_bytes)
        return ReplayResult(
            events=len(live),
            live_peak_bytes=max(live, default=0),
            live_peak_index=_first_peak(np.array(live, dtype=np.int64)),
            reserved_peak_bytes=reserved_peak,
            reserved_peak_index=reserved_index,
            oom_index=len(live) if oom else None,
            oom=oom,
            live_curve_bytes=np.array(live, dtype=np.int64) if curves else None,
            reserved_curve_bytes=np.array(reserved, dtype=np.int64) if curves else None,
            skipped=tuple(skipped),
            retries=allocator.alloc_retries,
        )


def replay_sizes(
    keys: ArrayLike,
    sizes: ArrayLike,
    *,
    limit_bytes: int | None = None,
    total_bytes: int | None = None,
    settings: AllocatorSettings = DEFAULT_SETTINGS,
    optional: Collection[int] = (),
    empty_before: Collection[int] = (),
    curves: bool = False,
) -> ReplayResult:
    """Replay once in a fresh allocator, fast: ``ReplayPlan.of(keys, optional=…).run(sizes, …)``.

    ``keys`` as in ``TraceEvent``: k > 0 allocates ``sizes[i]`` bytes, −k frees them. ``optional`` and
    ``empty_before`` are positions. Whoever replays one order with many sizes keeps the plan, and gives arrays.
    """
    return ReplayPlan.of(keys, optional=optional).run(
        sizes,
        limit_bytes=limit_bytes,
        total_bytes=total_bytes,
        settings=settings,
        empty_before=empty_before,
        curves=curves,
    )


def _result(heap: BulkHeap, levels: Ints, *, oom: ReplicaOutOfMemoryError | None, curves: bool) -> ReplayResult:
    reserved_peak, reserved_index = 0, -1
    for position, reserved in heap.steps:
        if reserved > reserved_peak:
            reserved_peak, reserved_index = reserved, position
    live_index = _first_peak(levels)
    return ReplayResult(
        events=len(levels),
        live_peak_bytes=int(levels[live_index]) if live_index >= 0 else 0,
        live_peak_index=live_index,
        reserved_peak_bytes=reserved_peak * MIN_BLOCK_BYTES,
        reserved_peak_index=reserved_index,
        oom_index=heap.failed,
        oom=oom,
        live_curve_bytes=levels if curves else None,
        reserved_curve_bytes=_reserved_curve(heap.steps, len(levels)) if curves else None,
        skipped=tuple(heap.skipped),
        retries=heap.retries,
    )


def _reserved_curve(steps: list[tuple[int, int]], events: int) -> Ints:
    curve = np.zeros(events + 1, dtype=np.int64)
    level = 0
    for position, reserved in steps:
        curve[min(position, events)] += reserved - level
        level = reserved
    result: Ints = np.cumsum(curve)[:events] * MIN_BLOCK_BYTES
    return result


def _first_peak(levels: Ints) -> int:
    """Where the highest level above 0 is reached first, or -1."""
    index = int(levels.argmax()) if len(levels) else -1
    return index if index >= 0 and levels[index] > 0 else -1


def _owners(names: Ints) -> Ints:
    """By event, the position of the allocation that it makes or frees."""
    owners = np.arange(len(names), dtype=np.int64)
    top = int(np.abs(names).max(initial=0))
    allocations = np.flatnonzero(names > 0)
    frees = np.flatnonzero(names < 0)
    if top <= 8 * len(names) + 1024 and len(allocations) + len(frees) == len(names):
        made = np.full(top + 1, len(names), dtype=np.int64)
        made[names[allocations]] = allocations
        freed = made[-names[frees]]
        unique = bool((made[names[allocations]] == allocations).all())
        if unique and bool((freed < frees).all()) and np.bincount(freed, minlength=1).max() <= 1:
            owners[frees] = freed
            return owners
    live: dict[int, int] = {}  # the ordinary way, for names used again, large ones, and mistakes
    for position, name in enumerate(names.tolist()):
        if not name:
            raise ValueError(f"event {position}: a key must not be 0")
        if name > 0:
            if name in live:
                raise ValueError(f"event {position}: id {name} is allocated while it lives")
            live[name] = position
        else:
            owner = live.pop(-name, None)
            if owner is None:
                raise ValueError(f"event {position}: id {-name} is freed but does not live")
            owners[position] = owner
    return owners


def _blocks_of(requests: Ints, settings: AllocatorSettings) -> Ints:
    """Blocks of 512 B that serve these requests."""
    table = settings.division_table()
    if table is None:
        blocks: Ints = -(-requests // MIN_BLOCK_BYTES)
        return blocks
    distinct, back = np.unique(requests, return_inverse=True)
    rounded = [round_request(size, table) // MIN_BLOCK_BYTES if size else 0 for size in distinct.tolist()]
    return np.array(rounded, dtype=np.int64)[back]


def _is_plain(settings: AllocatorSettings) -> bool:
    """The rules of ``BulkHeap`` are all that these settings need."""
    collects = settings.garbage_collection_threshold > 0 and settings.per_process_memory_fraction is not None
    return not (
        settings.max_split_size_bytes is not None
        or settings.expandable_segments
        or settings.throw_on_cudamalloc_oom
        or collects
    )


def _stretches(events: int, cuts: Collection[int]) -> Iterator[tuple[int, int]]:
    edges = sorted({0, events, *(cut for cut in cuts if 0 < cut < events)})
    return itertools.pairwise(edges)
