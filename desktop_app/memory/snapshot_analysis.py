"""What a recording tells: blocks over time, owners, fragmentation, what could go back, and why memory ran out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from desktop_app.core.estimates import ALIVE, Timeline
from desktop_app.core.steps import Category
from desktop_app.memory.allocator_settings import SMALL_SEGMENT_BYTES, round_request, segment_bytes
from desktop_app.memory.segments import DEFAULT_POOL, FREE, LIVE, WAITING, PoolId
from desktop_app.memory.snapshot import Action, Snapshot, SnapshotSegment
from desktop_app.memory.snapshot_frames import BEFORE_RECORDING, NO_STACK, op_of, owner_of
from desktop_app.memory.snapshot_history import Beginning, OldBlock

_OTHER: Final = tuple(Category).index(Category.OTHER)


@dataclass(frozen=True, slots=True)
class Owner:
    """What one line of code holds: bytes in blocks of the allocator, and how many blocks."""

    name: str
    size_bytes: int
    blocks: int


@dataclass(frozen=True, slots=True)
class SegmentUse:
    """One segment: what is in use, what is idle, and the largest idle piece. Bytes."""

    address: int
    size_bytes: int
    stream: int
    small: bool
    pool: PoolId
    expandable: bool
    live_bytes: int
    idle_bytes: int
    largest_idle_bytes: int
    returnable_bytes: int


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """Where reserved memory is at the end of the recording. Bytes; the first five add up to ``reserved_bytes``.

    ``rounding_bytes`` is what blocks are larger than their requests. ``returnable_bytes``: in wholly free segments, or
    in whole free pages of expandable ones; ``idle_split_bytes``: free, but in segments or pages partly in use.
    """

    reserved_bytes: int
    requested_bytes: int
    rounding_bytes: int
    waiting_bytes: int
    idle_split_bytes: int
    returnable_bytes: int
    largest_idle_bytes: int
    idle_blocks: int
    private_pool_bytes: int
    segments: tuple[SegmentUse, ...]  # with the most idle memory first

    @property
    def live_bytes(self) -> int:
        """Torch's allocated."""
        return self.requested_bytes + self.rounding_bytes


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """One out-of-memory error. ``segment_bytes`` is torch's "Tried to allocate", ``device_free_bytes`` the driver's."""

    position: int
    requested_bytes: int
    segment_bytes: int
    device_free_bytes: int
    live_bytes: int
    reserved_bytes: int
    idle_bytes: int
    asked_by: str
    owners: tuple[Owner, ...]
    fits_expandable: bool | None = None  # whether it would have fitted with expandable segments; None: not tried


def measure_segments(snapshot: Snapshot) -> Fragmentation:
    """The final segments, block by block."""
    uses = [_use_of(snapshot, segment) for segment in snapshot.segments]
    blocks = [block for segment in snapshot.segments for block in segment.blocks]
    live = [block for block in blocks if block.state == LIVE]
    idle = [block.size_bytes for block in blocks if block.state == FREE]
    requested = sum(block.requested_bytes for block in live)
    returnable = sum(use.returnable_bytes for use in uses)
    return Fragmentation(
        reserved_bytes=snapshot.reserved_bytes,
        requested_bytes=requested,
        rounding_bytes=sum(block.size_bytes for block in live) - requested,
        waiting_bytes=sum(block.size_bytes for block in blocks if block.state == WAITING),
        idle_split_bytes=sum(idle) - returnable,
        returnable_bytes=returnable,
        largest_idle_bytes=max(idle, default=0),
        idle_blocks=len(idle),
        private_pool_bytes=sum(use.size_bytes for use in uses if use.pool != DEFAULT_POOL),
        segments=tuple(sorted(uses, key=lambda use: (-use.idle_bytes, use.address))),
    )


def _use_of(snapshot: Snapshot, segment: SnapshotSegment) -> SegmentUse:
    idle = [block for block in segment.blocks if block.state == FREE]
    idle_bytes = sum(block.size_bytes for block in idle)
    if segment.expandable:
        page = SMALL_SEGMENT_BYTES if segment.small else snapshot.settings.large_segment_size_bytes
        returnable = sum(
            _whole_pages(block.address - segment.address, block.size_bytes, page_bytes=page) for block in idle
        )
    else:
        returnable = segment.size_bytes if idle_bytes == segment.size_bytes else 0
    return SegmentUse(
        address=segment.address,
        size_bytes=segment.size_bytes,
        stream=segment.stream,
        small=segment.small,
        pool=segment.pool,
        expandable=segment.expandable,
        live_bytes=sum(block.size_bytes for block in segment.blocks if block.state == LIVE),
        idle_bytes=idle_bytes,
        largest_idle_bytes=max((block.size_bytes for block in idle), default=0),
        returnable_bytes=returnable,
    )


def _whole_pages(offset: int, size: int, *, page_bytes: int) -> int:
    begin = -(-offset // page_bytes)
    end = (offset + size) // page_bytes
    return max(0, end - begin) * page_bytes


def make_timeline(snapshot: Snapshot, beginning: Beginning, block_bytes: Mapping[int, int]) -> Timeline:
    """Every block of the recording, over its events. ``block_bytes``: blocks as the replica cut them, by event.

    Blocks that only the final segments show, of a recording without events, make a timeline of one moment.
    """
    tracker = _Tracker(snapshot, block_bytes)
    for old in beginning.blocks:
        if not old.waiting:
            tracker.begin(old)
    tracker.old = len(tracker.sizes)
    for position, event in enumerate(snapshot.events):
        tracker.step(position, event.action, event.address, event.size_bytes, event.stack)
    names = [*map(owner_of, snapshot.stacks), BEFORE_RECORDING]  # the last is that of stack −1, history.BEFORE
    ops = [*map(op_of, snapshot.stacks), ""]
    owners, owner_of_stack = _distinct(names)
    op_names, op_of_stack = _distinct(ops)
    stacks = np.array(tracker.stacks, dtype=np.int64)
    reserved = sum(view.size_bytes for view in beginning.segments) + np.cumsum(
        np.array(tracker.reserved_changes, dtype=np.int64)
    )
    live = sum(old.size_bytes for old in beginning.blocks if not old.waiting) + np.cumsum(
        np.array(tracker.live_changes, dtype=np.int64)
    )
    return Timeline(
        live_bytes=live.astype(np.int64),
        reserved_bytes=reserved.astype(np.int64),
        phases=(),
        born=np.array(tracker.born, dtype=np.int64),
        died=np.array(tracker.died, dtype=np.int64),
        size_bytes=np.array(tracker.sizes, dtype=np.int64),
        category=np.full(len(stacks), _OTHER, dtype=np.int32),
        owner=owner_of_stack[stacks],
        op=op_of_stack[stacks],
        owners=owners,
        ops=op_names,
    )


class _Tracker:
    """Columns of blocks, filled while events go by."""

    def __init__(self, snapshot: Snapshot, block_bytes: Mapping[int, int]) -> None:
        events = snapshot.events
        # Allocated ends with the request to free; where that was not recorded, with its completion.
        requests = any(event.action is Action.FREE_REQUESTED for event in events)
        self._ends: Final = Action.FREE_REQUESTED if requests else Action.FREE_COMPLETED
        self._block_bytes: Final = block_bytes
        self._table: Final = snapshot.settings.division_table()
        self._live: dict[int, int] = {}
        self.old = 0  # so many blocks lived before the first event
        self.born: list[int] = []
        self.died: list[int] = []
        self.sizes: list[int] = []
        self.stacks: list[int] = []
        self.live_changes: list[int] = []
        self.reserved_changes: list[int] = []

    def begin(self, old: OldBlock) -> None:
        self._add(old.address, 0, old.size_bytes, old.stack)

    def step(self, position: int, action: Action, address: int, size: int, stack: int) -> None:
        live = reserved = 0
        if action is Action.ALLOC:
            live = self._block_bytes.get(position) or round_request(size, self._table)
            live -= self._end(address, position)  # of a block whose free was not recorded
            self._add(address, position, self._block_bytes.get(position) or round_request(size, self._table), stack)
        elif action is self._ends:
            live = -self._end(address, position)
        elif action in {Action.SEGMENT_ALLOC, Action.SEGMENT_MAP}:
            reserved = size
        elif action in {Action.SEGMENT_FREE, Action.SEGMENT_UNMAP}:
            reserved = -size
        self.live_changes.append(live)
        self.reserved_changes.append(reserved)

    def _add(self, address: int, position: int, size: int, stack: int) -> None:
        self._live[address] = len(self.born)
        self.born.append(position)
        self.died.append(int(ALIVE))
        self.sizes.append(size)
        self.stacks.append(stack)

    def _end(self, address: int, position: int) -> int:
        column = self._live.pop(address, None)
        if column is None:
            return 0
        self.died[column] = position
        return self.sizes[column]


def owners_at(timeline: Timeline, position: int) -> tuple[Owner, ...]:
    """Who holds what after this event, the largest first."""
    alive = (timeline.born <= position) & (timeline.died > position)
    owner, sizes = timeline.owner[alive], timeline.size_bytes[alive]
    totals = np.bincount(owner, weights=sizes.astype(np.float64), minlength=len(timeline.owners)).tolist()
    counts = np.bincount(owner, minlength=len(timeline.owners)).tolist()
    found = [
        Owner(name, int(total), count)
        for name, total, count in zip(timeline.owners, totals, counts, strict=True)
        if count
    ]
    return tuple(sorted(found, key=lambda each: (-each.size_bytes, each.name)))


def final_owners(snapshot: Snapshot) -> tuple[Owner, ...]:
    """Who holds what at the end: from the segments, which are exact and there without events too."""
    totals: dict[str, list[int]] = {}
    for segment in snapshot.segments:
        for block in segment.blocks:
            if block.state == LIVE:
                entry = totals.setdefault(owner_of(snapshot.stacks[block.stack]), [0, 0])
                entry[0] += block.size_bytes
                entry[1] += 1
    owners = [Owner(name, size, count) for name, (size, count) in totals.items()]
    return tuple(sorted(owners, key=lambda each: (-each.size_bytes, each.name)))


def find_out_of_memory(snapshot: Snapshot, timeline: Timeline) -> tuple[OutOfMemory, ...]:
    """Every out-of-memory error, with what was full at that moment."""
    return tuple(
        _explain(snapshot, timeline, position)
        for position, event in enumerate(snapshot.events)
        if event.action is Action.OOM
    )


def _explain(snapshot: Snapshot, timeline: Timeline, position: int) -> OutOfMemory:
    event = snapshot.events[position]
    live, reserved = int(timeline.live_bytes[position]), int(timeline.reserved_bytes[position])
    size = round_request(event.size_bytes, snapshot.settings.division_table())
    return OutOfMemory(
        position=position,
        requested_bytes=event.size_bytes,
        segment_bytes=segment_bytes(size, large_segment_bytes=snapshot.settings.large_segment_size_bytes),
        device_free_bytes=event.address,
        live_bytes=live,
        reserved_bytes=reserved,
        idle_bytes=reserved - live,
        asked_by=owner_of(snapshot.stacks[event.stack]) if event.stack else NO_STACK,
        owners=owners_at(timeline, position),
    )


def peak_position(timeline: Timeline) -> int | None:
    """The event with the most live bytes, the first of them; ``None`` without events."""
    return int(timeline.live_bytes.argmax()) if timeline.event_count else None


def _distinct(names: Sequence[str]) -> tuple[tuple[str, ...], np.ndarray[tuple[int], np.dtype[np.int32]]]:
    """The names once each, and for every position its name's number."""
    numbers: dict[str, int] = {}
    positions = np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int32)
    return tuple(numbers), positions
