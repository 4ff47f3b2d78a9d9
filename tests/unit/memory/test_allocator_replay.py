"""Replaying a list of events."""

from __future__ import annotations

import random

import numpy as np
import pytest

from desktop_app.core.units import MIB
from desktop_app.memory.allocator import Block, CachingAllocator
from desktop_app.memory.allocator_replay import replay

STEP = [(1, 12 * MIB), (2, 3 * MIB), (2, 0), (3, 30 * MIB), (1, 0), (4, 12 * MIB)]


def test_peaks_come_with_the_event_that_reached_them() -> None:
    result = replay(STEP, allocator=CachingAllocator())
    assert (result.events, result.oom_index, result.oom) == (6, None, None)
    assert (result.live_peak_bytes, result.live_peak_index) == (42 * MIB, 3)
    assert (result.reserved_peak_bytes, result.reserved_peak_index) == (62 * MIB, 3)
    assert (result.live_curve_bytes, result.reserved_curve_bytes) == (None, None)


def test_curves_hold_the_level_after_each_event() -> None:
    result = replay(STEP, allocator=CachingAllocator(), curves=True)
    assert result.live_curve_bytes is not None
    assert result.reserved_curve_bytes is not None
    assert result.live_curve_bytes.dtype == np.int64
    assert (result.live_curve_bytes // MIB).tolist() == [12, 15, 12, 42, 30, 42]
    assert (result.reserved_curve_bytes // MIB).tolist() == [12, 32, 32, 62, 62, 62]


def test_a_replay_stops_where_memory_runs_out() -> None:
    allocator = CachingAllocator(limit_bytes=40 * MIB)
    result = replay(STEP, allocator=allocator, curves=True)
    assert (result.events, result.oom_index) == (3, 3)
    assert result.oom is not None
    assert result.oom.requested_bytes == 30 * MIB
    assert result.oom.reserved_bytes == 12 * MIB  # the 20 MiB segment went back
    assert result.live_curve_bytes is not None
    assert len(result.live_curve_bytes) == 3
    assert (result.live_peak_bytes, result.live_peak_index) == (15 * MIB, 1)


def test_blocks_may_live_across_replays() -> None:
    allocator = CachingAllocator()
    blocks: dict[int, Block] = {}
    replay([(1, 50 * MIB), (2, 4 * MIB)], allocator=allocator, blocks=blocks)
    assert sorted(blocks) == [1, 2]
    result = replay([(1, 0), (3, 4 * MIB)], allocator=allocator, blocks=blocks)
    assert sorted(blocks) == [2, 3]
    assert (result.live_peak_bytes, result.live_peak_index) == (54 * MIB, -1)
    assert allocator.live_bytes == 8 * MIB


@pytest.mark.parametrize("events", [[(1, 0)], [(1, 512), (1, 512)], [(1, 512), (1, 0), (1, 0)]])
def test_an_impossible_list_is_refused(events: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match=f"event {len(events) - 1}: id 1"):
        replay(events, allocator=CachingAllocator())


def test_a_hundred_thousand_random_events_run_and_leave_nothing() -> None:
    choose = random.Random(1)
    events: list[tuple[int, int]] = []
    live: list[int] = []
    for key in range(60_000):
        events.append((key, int(2 ** choose.uniform(0, 27))))
        live.append(key)
        if len(live) > 300:
            events.append((live.pop(choose.randrange(len(live))), 0))
    events += [(key, 0) for key in live]
    allocator = CachingAllocator()
    result = replay(events, allocator=allocator)
    assert result.events == len(events) > 100_000
    assert (allocator.live_bytes, allocator.idle_split_bytes) == (0, 0)
    assert allocator.empty_cache() == allocator.reserved_peak_bytes
    assert allocator.segment_count == 0
