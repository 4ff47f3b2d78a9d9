"""How a recording began: its end, with every event undone, as torch's own viewer does it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from desktop_app.memory.allocator_settings import (
    LARGE_SEGMENT_BYTES,
    SMALL_LIMIT_BYTES,
    SMALL_SEGMENT_BYTES,
    round_request,
)
from desktop_app.memory.segments import DEFAULT_POOL, FREE, LIVE, WAITING, BlockView, PoolId, SegmentView
from desktop_app.memory.snapshot import Action, Snapshot, SnapshotEvent

# Actions that no allocator answers for: they leave blocks and segments as they are.
QUIET: Final = frozenset({Action.OOM, Action.SNAPSHOT, Action.OTHER})

# Stack of a block that was made before the first event and is gone at the end. That of its free is another one.
BEFORE: Final = -1


@dataclass(slots=True)
class _Used:
    """A block in use: requested bytes, its size where the recording shows it, and whether it waits."""

    requested_bytes: int
    stack: int
    size_bytes: int | None = None
    waiting: bool = False


@dataclass(slots=True)
class _Span:
    """A segment, or a run of mapped pages."""

    address: int
    size_bytes: int
    stream: int
    small: bool
    pool: PoolId
    expandable: bool

    @property
    def end(self) -> int:
        return self.address + self.size_bytes


_start: Final = attrgetter("address")


@dataclass(frozen=True, slots=True)
class OldBlock:
    """A block that lived before the first event: its size in the allocator, and whose it is."""

    address: int
    size_bytes: int
    requested_bytes: int
    stack: int
    waiting: bool = False  # given back, but another stream still uses it


@dataclass(frozen=True, slots=True)
class Beginning:
    """The state before the first event. ``contradictions`` are events that do not go with the ones after them.

    There are some when the recording left out kinds of events (``skip_actions``) or was cut: it cannot be replayed.
    """

    segments: tuple[SegmentView, ...]
    blocks: tuple[OldBlock, ...]
    contradictions: int
    first_contradiction: int | None

    @property
    def reserved_bytes(self) -> int:
        return sum(view.size_bytes for view in self.segments)


def find_beginning(snapshot: Snapshot) -> Beginning:
    """Undo all events, from the last to the first."""
    undo = _Undo(snapshot)
    for position in range(len(snapshot.events) - 1, -1, -1):
        undo.event(snapshot.events[position], position)
    tails = _find_tails(snapshot.events, undo)
    segments = tuple(undo.view(span, tails) for span in undo.spans)
    old = [
        OldBlock(
            piece.address,
            piece.size_bytes,
            piece.requested_bytes,
            undo.used[piece.address].stack,
            waiting=piece.state == WAITING,
        )
        for view in segments
        for piece in view.blocks
        if piece.state != FREE
    ]
    return Beginning(segments, tuple(old), len(undo.contradictions), min(undo.contradictions, default=None))


class _Undo:
    """Goes back in time from the final segments."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.spans: list[_Span] = []
        self.used: dict[int, _Used] = {}
        self.contradictions: list[int] = []
        self.table = snapshot.settings.division_table()
        self._sorted: list[int] | None = None
        for each in snapshot.segments:
            self.spans.append(_Span(each.address, each.size_bytes, each.stream, each.small, each.pool, each.expandable))
            for block in each.blocks:
                if block.state != FREE:
                    self.used[block.address] = _Used(
                        block.requested_bytes, block.stack, block.size_bytes, block.state == WAITING
                    )

    def event(self, event: SnapshotEvent, position: int) -> None:
        match event.action:
            case Action.ALLOC:
                if self.used.pop(event.address, None) is None:
                    self.contradictions.append(position)
            case Action.FREE_COMPLETED:
                if event.address in self.used:
                    self.contradictions.append(position)
                self.used[event.address] = _Used(event.size_bytes, BEFORE, waiting=True)
            case Action.FREE_REQUESTED:
                found = self.used.get(event.address)
                if found is None:  # the recording may end before it was completed, or leave that out
                    self.used[event.address] = _Used(event.size_bytes, BEFORE)
                else:
                    found.waiting = False
            case Action.SEGMENT_ALLOC | Action.SEGMENT_MAP:
                self._remove(event, position)
            case Action.SEGMENT_FREE | Action.SEGMENT_UNMAP:
                self._add(event)

    def _remove(self, event: SnapshotEvent, position: int) -> None:
        index = bisect_right(self.spans, event.address, key=_start) - 1
        span = self.spans[index] if index >= 0 else None
        end = event.address + event.size_bytes
        if span is None or end > span.end or (event.action is Action.SEGMENT_ALLOC and span.address != event.address):
            self.contradictions.append(position)
            return
        del self.spans[index]
        for start, stop in ((end, span.end), (span.address, event.address)):
            if start < stop:
                self.spans.insert(
                    index, _Span(start, stop - start, span.stream, span.small, span.pool, span.expandable)
                )

    def _add(self, event: SnapshotEvent) -> None:
        expandable = event.action is Action.SEGMENT_UNMAP
        added = _Span(
            event.address,
            event.size_bytes,
            event.stream,
            self._is_small(event, expandable=expandable),
            event.pool or DEFAULT_POOL,
            expandable,
        )
        index = bisect_right(self.spans, added.address, key=_start)
        self.spans.insert(index, added)
        if expandable:
            self._join(index)
            self._join(index - 1)

    def _is_small(self, event: SnapshotEvent, *, expandable: bool) -> bool:
        """A segment of 2 MiB is of the small pool. Pages of 20 MiB are of the large one, unless a neighbour is not."""
        if not expandable:
            return event.size_bytes == SMALL_SEGMENT_BYTES
        index = bisect_right(self.spans, event.address, key=_start)
        for span in self.spans[max(0, index - 1) : index + 1]:
            if span.expandable and (span.end == event.address or span.address == event.address + event.size_bytes):
                return span.small
        return event.size_bytes % LARGE_SEGMENT_BYTES != 0

    def _join(self, index: int) -> None:
        """The span at ``index`` and the one behind it are one run of pages, if they touch."""
        if 0 <= index < len(self.spans) - 1:
            first, second = self.spans[index], self.spans[index + 1]
            if first.expandable and second.expandable and first.end == second.address:
                first.size_bytes += second.size_bytes
                del self.spans[index + 1]

    def view(self, span: _Span, tails: dict[int, int]) -> SegmentView:
        """The segment with its blocks; what lies between them is free, or the tail of the block before it."""
        inside = self.inside(span)
        pieces: list[BlockView] = []
        position = span.address
        for number, address in enumerate(inside):
            if address > position:
                pieces.append(BlockView(position, address - position, 0, FREE))
            limit = inside[number + 1] if number + 1 < len(inside) else span.end
            used = self.used[address]
            size = used.size_bytes
            if size is None:
                size = round_request(used.requested_bytes, self.table)
                gap = limit - address - size
                if not (span.small or span.expandable) and 0 < gap <= SMALL_LIMIT_BYTES:
                    size += gap  # no free block of the large pool is so small
                else:
                    size += tails.get(address, 0)
            size = min(size, limit - address)
            pieces.append(BlockView(address, size, used.requested_bytes, WAITING if used.waiting else LIVE))
            position = address + size
        if position < span.end:
            pieces.append(BlockView(position, span.end - position, 0, FREE))
        return SegmentView(
            span.address, span.size_bytes, span.stream, span.small, tuple(pieces), span.pool, expandable=span.expandable
        )

    def inside(self, span: _Span) -> list[int]:
        """Addresses of the blocks in use, when all events are undone."""
        if self._sorted is None:
            self._sorted = sorted(self.used)
        return self._sorted[bisect_right(self._sorted, span.address - 1) : bisect_right(self._sorted, span.end - 1)]


def _find_tails(events: Sequence[SnapshotEvent], undo: _Undo) -> dict[int, int]:
    """What old blocks own beyond what they need, where a free block follows: the first block cut from that tells.

    A block of the large pool keeps up to 1 MiB that is too small to split off, and no event shows it.
    """
    gaps: list[tuple[int, int, int]] = []  # first and last address of what follows an old block, and the block
    for span in undo.spans:
        if span.small or span.expandable:
            continue
        inside = undo.inside(span)
        for number, address in enumerate(inside):
            used = undo.used[address]
            limit = inside[number + 1] if number + 1 < len(inside) else span.end
            end = address + round_request(used.requested_bytes, undo.table)
            if used.size_bytes is None and limit - end > SMALL_LIMIT_BYTES:
                gaps.append((end, limit, address))
    gaps.sort()
    starts = [start for start, _, _ in gaps]
    tails: dict[int, int] = {}
    settled: set[int] = set()
    for event in events:
        index = bisect_right(starts, event.address) - 1
        if event.action is Action.ALLOC and index >= 0 and index not in settled:
            start, limit, block = gaps[index]
            if event.address < limit:
                settled.add(index)
                if 0 < event.address - start <= SMALL_LIMIT_BYTES:
                    tails[block] = event.address - start
    return tails
