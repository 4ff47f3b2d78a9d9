"""Replay a list of allocations and frees in the allocator replica."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from desktop_app.memory.oom_message import ReplicaOutOfMemoryError

if TYPE_CHECKING:
    from desktop_app.memory.allocator import CachingAllocator
    from desktop_app.memory.segments import Block


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """What a replay did. Peaks are those of this replay, with the index of the event that reached them first.

    A peak index is -1 when the level before the first event was never exceeded. ``events`` counts the events that
    were carried out; ``oom_index`` is the event that ran out of memory, which ended the replay. The curves, on
    request, hold the level after each event that was carried out (int64, length ``events``).
    """

    events: int
    live_peak_bytes: int
    live_peak_index: int
    reserved_peak_bytes: int
    reserved_peak_index: int
    oom_index: int | None = None
    oom: ReplicaOutOfMemoryError | None = None
    live_curve_bytes: NDArray[np.int64] | None = None
    reserved_curve_bytes: NDArray[np.int64] | None = None


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
    )
