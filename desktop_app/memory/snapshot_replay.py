"""A recording carried out again in the allocator replica: where do the two differ?"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from desktop_app.memory.allocator import Block, CachingAllocator, ReplicaOutOfMemoryError
from desktop_app.memory.allocator_settings import AllocatorSettings
from desktop_app.memory.segments import DEFAULT_POOL, WAITING, PoolId
from desktop_app.memory.snapshot import Action, Snapshot, SnapshotEvent
from desktop_app.memory.snapshot_history import Beginning

_OWN_ADDRESSES: Final = 1 << 60  # above any that a driver hands out
_OTHER_STREAM: Final = -1
_GIVES: Final = frozenset({Action.SEGMENT_ALLOC, Action.SEGMENT_MAP})
_TAKES: Final = frozenset({Action.SEGMENT_FREE, Action.SEGMENT_UNMAP})


@dataclass(frozen=True, slots=True)
class Difference:
    """The first event at which replica and recording part. ``kind``: "address", "segment", "release" or "block"."""

    position: int
    kind: str
    recorded: str
    replica: str


@dataclass(frozen=True, slots=True, eq=False)
class RecordedReplay:
    """What came of it, by kind of event, and the levels after each event (bytes, int64).

    ``segment_events`` are segments and pages that came or went; ``reserved_equal`` counts the ``compared`` events
    after which the replica holds as much as the recording. ``block_bytes`` is, by event, the block that served an
    allocation. The levels are the replica's for what is live and the recording's for what is reserved.
    """

    allocations: int
    placed: int
    segment_events: int
    segments_right: int
    compared: int
    reserved_equal: int
    difference: Difference | None
    live_bytes: NDArray[np.int64]
    reserved_bytes: NDArray[np.int64]
    block_bytes: dict[int, int]

    @property
    def agrees(self) -> bool:
        return self.difference is None


def replay_recording(snapshot: Snapshot, beginning: Beginning) -> RecordedReplay:
    """Carry out the events from the state before the first one, segments placed where the recording has them.

    Raises ``ValueError`` when the state at the beginning is none the replica can be in: segments of both kinds.
    """
    # What the fraction allowed and when memory was collected for it is in the recording: it is followed there.
    settings = replace(snapshot.settings, per_process_memory_fraction=None, throw_on_cudamalloc_oom=False)
    run = _Run(snapshot, beginning, settings)
    for position, event in enumerate(snapshot.events):
        run.step(position, event)
    return run.result()


@dataclass(slots=True)
class _RecordedAddresses:
    """Hands out addresses of the recording in its order; a segment that it does not have goes out of the way."""

    upcoming: deque[tuple[int, int]] = field(default_factory=deque)
    handed: int = 0
    invented: int = 0
    expandable: bool = False

    def reserve(self, size_bytes: int) -> int:
        if self.upcoming and (self.expandable or self.upcoming[0][1] == size_bytes):
            self.handed += 1
            return self.upcoming[0][0] if self.expandable else self.upcoming.popleft()[0]
        self.invented += 1
        return _OWN_ADDRESSES + self.invented * (1 << 46)

    def release(self, address: int, size_bytes: int) -> None:
        """The recording says when segments go; nothing is to be noted."""


class _Run:
    """One replay under way."""

    def __init__(self, snapshot: Snapshot, beginning: Beginning, settings: AllocatorSettings) -> None:
        self.addresses: Final = _RecordedAddresses(expandable=settings.expandable_segments)
        self.allocator: Final = CachingAllocator(settings=settings, addresses=self.addresses)
        adopted = self.allocator.adopt(beginning.segments)
        self.blocks: dict[int, Block] = {at: block for at, block in adopted.items() if block.state != WAITING}
        self.waiting: dict[int, Block] = {at: block for at, block in adopted.items() if block.state == WAITING}
        self.events: Final = snapshot.events
        self.completes: Final = _completes(snapshot)
        self.partial: Final = settings.max_split_size_bytes is not None or settings.garbage_collection_threshold > 0
        self.pools: Final = _Pools(snapshot, beginning)
        self.reserved = self.allocator.reserved_bytes
        self.allocations = self.placed = self.segment_events = self.segments_right = 0
        self.compared = self.equal = 0
        self.freed: int | None = None  # by the request, whose completion comes next
        self.difference: Difference | None = None
        self.live_levels: list[int] = []
        self.reserved_levels: list[int] = []
        self.block_bytes: dict[int, int] = {}

    def step(self, position: int, event: SnapshotEvent) -> None:
        action = event.action
        if action in _GIVES:
            self.addresses.upcoming.append((event.address, event.size_bytes))
            self.segment_events += 1
            self.reserved += event.size_bytes
        elif action in _TAKES:
            self._give_back(position, event)
        elif action is Action.ALLOC:
            self._allocate(position, event)
        elif action is Action.FREE_REQUESTED:
            self._request_free(position, event)
        elif action is Action.FREE_COMPLETED:
            self._complete_free(position, event)
        if action not in _GIVES and action not in _TAKES:
            self.compared += 1
            self.equal += self.allocator.reserved_bytes == self.reserved
        self.live_levels.append(self.allocator.live_bytes)
        self.reserved_levels.append(self.reserved)

    def _allocate(self, position: int, event: SnapshotEvent) -> None:
        pool = self.pools.of(event)
        self.allocator.send_to(pool)
        invented, before = self.addresses.invented, self.allocator.reserved_bytes
        expected = sum(size for _, size in self.addresses.upcoming)
        recorded = len(self.addresses.upcoming)
        try:
            block = self.allocator.allocate(event.size_bytes, stream=event.stream)
        except ReplicaOutOfMemoryError as error:
            self._differ(position, "block", f"{event.size_bytes} bytes at {event.address:#x}", str(error))
            self.addresses.upcoming.clear()
            return
        grown = self.allocator.reserved_bytes - before
        if grown == expected and self.addresses.invented == invented:
            self.segments_right += recorded
        else:
            self._differ(position, "segment", f"{expected} bytes from the driver", f"{grown} bytes")
        self.addresses.upcoming.clear()
        self.allocations += 1
        if block.address == event.address:
            self.placed += 1
        else:
            self._differ(position, "address", f"a block at {event.address:#x}", f"{block.address:#x}")
        self.blocks[event.address] = block
        self.block_bytes[position] = block.size_bytes

    def _request_free(self, position: int, event: SnapshotEvent) -> None:
        following = self.events[position + 1] if position + 1 < len(self.events) else None
        at_once = following is not None and following[:2] == (Action.FREE_COMPLETED, event.address)
        block = self.blocks.pop(event.address, None)
        if block is None:
            self._differ(position, "block", f"a free of {event.address:#x}", "nothing lives there")
        elif at_once:
            self.allocator.free(block)
            self.freed = event.address
        elif self.completes:
            self.allocator.record_stream(block, stream=_OTHER_STREAM)
            self.allocator.free(block)
            self.waiting[event.address] = block
        else:
            self.allocator.free(block)

    def _complete_free(self, position: int, event: SnapshotEvent) -> None:
        if self.freed == event.address:
            self.freed = None
            return
        waiting = self.waiting.pop(event.address, None)
        if waiting is not None:
            if waiting.state == WAITING:
                self.allocator.complete(waiting)
            return
        block = self.blocks.pop(event.address, None)
        if block is None:
            self._differ(position, "block", f"a free of {event.address:#x}", "nothing lives there")
        else:
            self.allocator.free(block)

    def _give_back(self, position: int, event: SnapshotEvent) -> None:
        self.segment_events += 1
        self.reserved -= event.size_bytes
        if event.action is Action.SEGMENT_UNMAP:
            if not self._follows_a_take(position):
                self.allocator.empty_cache()
            right = True
        else:
            right = self.allocator.release_segment(event.address)
        following = self.events[position + 1] if position + 1 < len(self.events) else None
        last = following is None or following.action not in _TAKES
        if not right:
            self._differ(position, "release", f"the segment at {event.address:#x} goes back", "it is not wholly free")
        elif last and not self.partial:
            kept = self.allocator.returnable_bytes
            expected = self.reserved
            if kept and event.action is Action.SEGMENT_FREE and self.pools.of(event) == DEFAULT_POOL:
                self._differ(position, "release", "nothing more goes back", f"{kept} more bytes would")
            elif self.allocator.reserved_bytes != expected and event.action is Action.SEGMENT_UNMAP:
                held = self.allocator.reserved_bytes
                self._differ(position, "release", f"{expected} bytes are kept", f"{held} bytes are")
                right = False
        self.segments_right += right

    def _follows_a_take(self, position: int) -> bool:
        return position > 0 and self.events[position - 1].action in _TAKES

    def _differ(self, position: int, kind: str, recorded: str, replica: str) -> None:
        if self.difference is None:
            self.difference = Difference(position, kind, recorded, replica)

    def result(self) -> RecordedReplay:
        return RecordedReplay(
            allocations=self.allocations,
            placed=self.placed,
            segment_events=self.segment_events,
            segments_right=self.segments_right,
            compared=self.compared,
            reserved_equal=self.equal,
            difference=self.difference,
            live_bytes=np.array(self.live_levels, dtype=np.int64),
            reserved_bytes=np.array(self.reserved_levels, dtype=np.int64),
            block_bytes=self.block_bytes,
        )


def _completes(snapshot: Snapshot) -> bool:
    """A free has a second event, its completion, in this recording."""
    return any(event.action is Action.FREE_COMPLETED for event in snapshot.events) or any(
        block.state == WAITING for segment in snapshot.segments for block in segment.blocks
    )


class _Pools:
    """Which private pool an event belongs to: as it says itself, or by a segment at its address."""

    def __init__(self, snapshot: Snapshot, beginning: Beginning) -> None:
        spans: Iterable[tuple[int, int, PoolId]] = [
            *((view.address, view.size_bytes, view.pool) for view in beginning.segments),
            *((each.address, each.size_bytes, each.pool) for each in snapshot.segments),
        ]
        private = sorted(span for span in spans if span[2] != DEFAULT_POOL)
        self._starts = [start for start, _, _ in private]
        self._spans: Sequence[tuple[int, int, PoolId]] = private

    def of(self, event: SnapshotEvent) -> PoolId:
        if event.pool is not None:
            return event.pool
        index = bisect_right(self._starts, event.address) - 1
        if index >= 0:
            start, size, pool = self._spans[index]
            if event.address < start + size:
                return pool
        return DEFAULT_POOL


@dataclass(frozen=True, slots=True)
class OtherSettings:
    """The same requests under other settings: bytes at the peak of what is reserved."""

    settings: AllocatorSettings
    reserved_peak_bytes: int
    live_peak_bytes: int


def replay_with(snapshot: Snapshot, beginning: Beginning, settings: AllocatorSettings) -> OtherSettings:
    """What the recorded requests would have reserved in a fresh process with these settings.

    Blocks that were there before the first event are requested first, in order of address. Emptying the cache is
    carried out where the recording has it.
    """
    allocator = CachingAllocator(settings=replace(settings, per_process_memory_fraction=None))
    _request_all(snapshot, beginning, allocator, snapshot.events)
    return OtherSettings(settings, allocator.reserved_peak_bytes, allocator.live_peak_bytes)


def fits_with(
    snapshot: Snapshot, beginning: Beginning, settings: AllocatorSettings, *, position: int, limit_bytes: int
) -> bool:
    """Whether the request that ran out of memory at ``position`` would have fitted with these settings."""
    allocator = CachingAllocator(limit_bytes=limit_bytes, settings=replace(settings, per_process_memory_fraction=None))
    failed = snapshot.events[position]
    try:
        _request_all(snapshot, beginning, allocator, snapshot.events[:position])
        allocator.allocate(failed.size_bytes, stream=failed.stream)
    except ReplicaOutOfMemoryError:
        return False
    return True


def _request_all(
    snapshot: Snapshot, beginning: Beginning, allocator: CachingAllocator, events: Sequence[SnapshotEvent]
) -> None:
    streams = {piece.address: view.stream for view in beginning.segments for piece in view.blocks}
    blocks = {
        old.address: allocator.allocate(old.requested_bytes or old.size_bytes, stream=streams[old.address])
        for old in sorted(beginning.blocks, key=lambda old: old.address)
    }
    ends = Action.FREE_COMPLETED if _completes(snapshot) else Action.FREE_REQUESTED
    taking = False
    for event in events:
        if event.action is Action.ALLOC:
            blocks[event.address] = allocator.allocate(event.size_bytes, stream=event.stream)
        elif event.action is ends and event.address in blocks:
            allocator.free(blocks.pop(event.address))
        elif event.action in _TAKES and not taking:
            allocator.empty_cache()
        taking = event.action in _TAKES
