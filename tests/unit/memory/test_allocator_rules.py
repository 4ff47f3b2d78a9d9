"""One test per rule of the native caching allocator, with values worked out by hand."""

from __future__ import annotations

import pytest

from desktop_app.core.units import GIB, KIB, MIB
from desktop_app.memory.allocator import (
    AllocatorSettings,
    Block,
    CachingAllocator,
    ReplicaOutOfMemoryError,
    SegmentView,
)
from desktop_app.memory.segments import FREE, LIVE, BlockView


def sizes(allocator: CachingAllocator) -> list[list[tuple[int, bool]]]:
    """Per segment, the blocks as (bytes, free)."""
    return [[(block.size_bytes, block.state == FREE) for block in view.blocks] for view in allocator.segments()]


def free_all(allocator: CachingAllocator, *blocks: Block) -> None:
    for block in blocks:
        allocator.free(block)


# Rounding and statistics


@pytest.mark.parametrize(
    ("request_bytes", "block_bytes"),
    [(1, 512), (511, 512), (512, 512), (513, 1024), (1_000_000, 1_000_448), (1 * MIB, 1 * MIB)],
)
def test_a_request_is_rounded_to_512_bytes(request_bytes: int, block_bytes: int) -> None:
    allocator = CachingAllocator()
    block = allocator.allocate(request_bytes)
    assert (block.size_bytes, block.requested_bytes) == (block_bytes, request_bytes)
    assert (allocator.live_bytes, allocator.requested_bytes) == (block_bytes, request_bytes)


def test_statistics_tell_live_active_requested_and_reserved_apart() -> None:
    allocator = CachingAllocator()
    first = allocator.allocate(1000)
    second = allocator.allocate(3 * MIB)
    allocator.record_stream(second, stream=7)
    allocator.free(second)
    assert allocator.live_bytes == 1024
    assert allocator.active_bytes == 1024 + 3 * MIB  # second waits for stream 7
    assert allocator.requested_bytes == 1000 + 3 * MIB
    assert allocator.reserved_bytes == 2 * MIB + 20 * MIB
    assert allocator.idle_split_bytes == 2 * MIB - 1024 + 17 * MIB
    assert allocator.returnable_bytes == 0
    allocator.free(first)
    assert allocator.returnable_bytes == 2 * MIB
    assert allocator.idle_split_bytes == 17 * MIB


def test_peaks_last_until_they_are_reset() -> None:
    allocator = CachingAllocator()
    allocator.free(allocator.allocate(30 * MIB))
    allocator.empty_cache()
    kept = allocator.allocate(4 * MIB)
    assert (allocator.live_peak_bytes, allocator.reserved_peak_bytes) == (30 * MIB, 30 * MIB)
    allocator.reset_peaks()
    assert (allocator.live_peak_bytes, allocator.reserved_peak_bytes) == (kept.size_bytes, 20 * MIB)


def test_no_bytes_need_no_block() -> None:
    allocator = CachingAllocator()
    nothing = allocator.allocate(0)
    assert (nothing.size_bytes, allocator.reserved_bytes, allocator.live_bytes) == (0, 0, 0)
    allocator.free(nothing)
    with pytest.raises(ValueError, match="twice"):
        allocator.free(nothing)


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        CachingAllocator().allocate(-1)


# Pools and segments


@pytest.mark.parametrize(
    ("request_bytes", "segment_bytes"),
    [
        (1, 2 * MIB),
        (1 * MIB, 2 * MIB),  # the largest of the small pool
        (1 * MIB + 1, 20 * MIB),
        (8_519_680, 20 * MIB),  # cuBLAS workspace before Hopper
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 1, 12 * MIB),
        (33_554_432, 32 * MIB),  # cuBLAS workspace on Hopper
        (164_626_432, 158 * MIB),  # 157 MiB exactly, rounded to 2 MiB
    ],
)
def test_the_size_of_a_new_segment(request_bytes: int, segment_bytes: int) -> None:
    allocator = CachingAllocator()
    allocator.allocate(request_bytes)
    assert allocator.reserved_bytes == segment_bytes
    assert allocator.segment_count == 1


def test_small_and_large_requests_never_share_a_segment() -> None:
    allocator = CachingAllocator()
    allocator.free(allocator.allocate(4 * MIB))
    allocator.allocate(1 * MIB)
    assert sorted((view.small, view.size_bytes) for view in allocator.segments()) == [
        (False, 20 * MIB),
        (True, 2 * MIB),
    ]


def test_streams_never_share_a_segment() -> None:
    allocator = CachingAllocator()
    allocator.free(allocator.allocate(4 * MIB, stream=1))
    allocator.allocate(4 * MIB, stream=2)
    assert [view.stream for view in allocator.segments()] in ([1, 2], [2, 1])
    assert allocator.reserved_bytes == 40 * MIB


# Search


def adopt_two(first: int, second: int, *, gap: int = 1 * GIB) -> CachingAllocator:
    """Two wholly free large segments of the given sizes, the first at the lower address."""
    allocator = CachingAllocator()
    base = 0x7F00_0000_0000
    allocator.adopt(
        SegmentView(base + index * gap, size, 0, False, (BlockView(base + index * gap, size, 0, FREE),))
        for index, size in enumerate((first, second))
    )
    return allocator


def test_the_smallest_free_block_that_fits_is_taken() -> None:
    allocator = adopt_two(60 * MIB, 40 * MIB)
    assert allocator.allocate(30 * MIB).address == 0x7F00_0000_0000 + 1 * GIB
    assert allocator.reserved_bytes == 100 * MIB


def test_of_equal_blocks_the_lowest_address_is_taken() -> None:
    allocator = adopt_two(40 * MIB, 40 * MIB)
    assert allocator.allocate(40 * MIB).address == 0x7F00_0000_0000
    assert allocator.allocate(40 * MIB).address == 0x7F00_0000_0000 + 1 * GIB


def test_an_oversize_block_is_not_given_to_a_smaller_request() -> None:
    allocator = CachingAllocator(settings=AllocatorSettings(max_split_size_bytes=64 * MIB))
    allocator.free(allocator.allocate(64 * MIB))
    allocator.allocate(63 * MIB)  # below the limit: the cached 64 MiB may not be split
    assert allocator.reserved_bytes == (64 + 64) * MIB


def test_an_oversize_request_takes_a_block_that_is_little_larger() -> None:
    settings = AllocatorSettings(max_split_size_bytes=64 * MIB)
    allocator = CachingAllocator(settings=settings)
    allocator.free(allocator.allocate(100 * MIB))
    block = allocator.allocate(80 * MIB + 512)  # 512 B less than 20 MiB too large
    assert block.size_bytes == 100 * MIB  # and not split
    allocator.free(block)
    assert allocator.allocate(80 * MIB).size_bytes == 80 * MIB  # 20 MiB too large: a new segment
    assert allocator.reserved_bytes == 180 * MIB


# Split and merge


def test_the_small_pool_splits_when_512_bytes_remain() -> None:
    allocator = CachingAllocator()
    blocks = [allocator.allocate(1 * MIB), allocator.allocate(1 * MIB - 512)]
    assert sizes(allocator) == [[(1 * MIB, False), (1 * MIB - 512, False), (512, True)]]
    allocator.allocate(512)
    free_all(allocator, *blocks)
    assert sizes(allocator) == [[(2 * MIB - 512, True), (512, False)]]


def test_the_large_pool_splits_when_more_than_1_mib_remains() -> None:
    allocator = CachingAllocator()
    exactly = allocator.allocate(9 * MIB)
    rest = allocator.allocate(10 * MIB - 512)
    # 11 MiB were left after the first; 1 MiB + 512 B remain: split, and live counts the request only
    assert rest.size_bytes == 10 * MIB - 512
    assert sizes(allocator) == [[(9 * MIB, False), (10 * MIB - 512, False), (1 * MIB + 512, True)]]
    free_all(allocator, exactly, rest)
    allocator.allocate(9 * MIB)
    whole = allocator.allocate(10 * MIB)  # 11 MiB free: just 1 MiB would remain
    assert whole.size_bytes == 11 * MIB
    assert allocator.live_bytes == 20 * MIB  # the tail counts as allocated


def test_a_freed_block_merges_with_both_neighbours_at_once() -> None:
    allocator = CachingAllocator()
    first, second, third = (allocator.allocate(4 * MIB) for _ in range(3))
    free_all(allocator, first, third)
    assert sizes(allocator) == [[(4 * MIB, True), (4 * MIB, False), (12 * MIB, True)]]
    allocator.free(second)
    assert sizes(allocator) == [[(20 * MIB, True)]]
    assert allocator.returnable_bytes == 20 * MIB


def test_blocks_of_different_segments_never_merge() -> None:
    allocator = CachingAllocator()
    free_all(allocator, allocator.allocate(12 * MIB), allocator.allocate(14 * MIB))
    assert sorted(map(len, sizes(allocator))) == [1, 1]
    allocator.allocate(26 * MIB)
    assert allocator.segment_count == 3


# Other streams


def test_a_block_used_on_another_stream_waits_for_synchronize() -> None:
    allocator = CachingAllocator()
    block = allocator.allocate(12 * MIB)
    allocator.record_stream(block, stream=3)
    allocator.free(block)
    assert (allocator.live_bytes, allocator.active_bytes) == (0, 12 * MIB)
    allocator.allocate(12 * MIB)  # cannot have the waiting block
    assert allocator.reserved_bytes == 24 * MIB
    allocator.synchronize()
    assert allocator.active_bytes == 12 * MIB
    allocator.allocate(12 * MIB)
    assert allocator.reserved_bytes == 24 * MIB


def test_use_on_its_own_stream_makes_no_block_wait() -> None:
    allocator = CachingAllocator()
    block = allocator.allocate(12 * MIB, stream=3)
    allocator.record_stream(block, stream=3)
    allocator.free(block)
    assert allocator.active_bytes == 0


def test_a_waiting_block_is_not_merged_into() -> None:
    allocator = CachingAllocator()
    waiting, neighbour = allocator.allocate(4 * MIB), allocator.allocate(4 * MIB)
    allocator.record_stream(waiting, stream=1)
    free_all(allocator, waiting, neighbour)
    assert sizes(allocator) == [[(4 * MIB, False), (16 * MIB, True)]]
    allocator.synchronize()
    assert sizes(allocator) == [[(20 * MIB, True)]]


# Under pressure


def test_when_the_driver_refuses_every_free_segment_goes_back_first() -> None:
    allocator = CachingAllocator(limit_bytes=64 * MIB)
    kept = allocator.allocate(4 * MIB)  # 20 MiB segment, 16 MiB of it idle and not returnable
    allocator.free(allocator.allocate(30 * MIB))
    allocator.free(allocator.allocate(1 * KIB))
    allocator.allocate(44 * MIB)
    assert (allocator.alloc_retries, allocator.oom_count) == (1, 0)
    assert allocator.reserved_bytes == 64 * MIB
    allocator.free(kept)


def test_segments_in_part_use_cannot_go_back() -> None:
    allocator = CachingAllocator(limit_bytes=40 * MIB)
    first = [allocator.allocate(5 * MIB) for _ in range(4)]
    second = [allocator.allocate(5 * MIB) for _ in range(4)]
    free_all(allocator, *first[:3], *second[1:])
    assert (allocator.live_bytes, allocator.idle_split_bytes) == (10 * MIB, 30 * MIB)
    with pytest.raises(ReplicaOutOfMemoryError) as caught:
        allocator.allocate(16 * MIB)
    error = caught.value
    assert (error.requested_bytes, error.segment_bytes) == (16 * MIB, 16 * MIB)
    assert (error.live_bytes, error.reserved_bytes, error.limit_bytes) == (10 * MIB, 40 * MIB, 40 * MIB)
    assert (error.fraction_limited, error.allowed_bytes) == (False, None)
    assert (allocator.alloc_retries, allocator.oom_count) == (1, 1)


def test_tried_to_allocate_is_the_segment_and_not_the_request() -> None:
    allocator = CachingAllocator(limit_bytes=1 * MIB)
    for request_bytes, wanted in ((600, 2 * MIB), (3 * MIB, 20 * MIB), (11 * MIB, 12 * MIB)):
        with pytest.raises(ReplicaOutOfMemoryError) as caught:
            allocator.allocate(request_bytes)
        assert (caught.value.requested_bytes, caught.value.segment_bytes) == (request_bytes, wanted)


def test_the_allocator_lives_on_after_running_out() -> None:
    allocator = CachingAllocator(limit_bytes=20 * MIB)
    block = allocator.allocate(12 * MIB)
    with pytest.raises(ReplicaOutOfMemoryError):
        allocator.allocate(12 * MIB)
    allocator.free(block)
    assert allocator.allocate(20 * MIB).size_bytes == 20 * MIB  # after giving the 12 MiB back


def test_an_overflowed_size_is_refused_without_giving_anything_back() -> None:
    allocator = CachingAllocator()
    allocator.free(allocator.allocate(12 * MIB))
    with pytest.raises(ReplicaOutOfMemoryError):
        allocator.allocate(1 << 60)
    assert (allocator.reserved_bytes, allocator.alloc_retries, allocator.oom_count) == (12 * MIB, 0, 0)


def test_running_out_waits_for_other_streams_first() -> None:
    allocator = CachingAllocator(limit_bytes=20 * MIB)
    block = allocator.allocate(20 * MIB)
    allocator.record_stream(block, stream=1)
    allocator.free(block)
    allocator.allocate(20 * MIB)
    assert allocator.alloc_retries == 1


def test_the_limit_may_change_while_it_runs() -> None:
    allocator = CachingAllocator(limit_bytes=100 * MIB)
    block = allocator.allocate(40 * MIB)
    allocator.limit_bytes = 30 * MIB  # a neighbour has come; what is reserved stays
    assert allocator.reserved_bytes == 40 * MIB
    with pytest.raises(ReplicaOutOfMemoryError):
        allocator.allocate(2 * MIB)
    allocator.limit_bytes = None
    allocator.allocate(2 * MIB)
    allocator.free(block)
    with pytest.raises(ValueError, match="negative"):
        allocator.limit_bytes = -1


def test_with_max_split_one_large_enough_oversize_block_goes_back() -> None:
    settings = AllocatorSettings(max_split_size_bytes=32 * MIB)
    allocator = CachingAllocator(limit_bytes=200 * MIB, settings=settings)
    free_all(allocator, *[allocator.allocate(size * MIB) for size in (40, 100)])
    allocator.allocate(70 * MIB)  # 210 MiB would be needed: the 100 MiB block goes, the 40 MiB one stays
    assert (allocator.reserved_bytes, allocator.alloc_retries) == (110 * MIB, 0)


def test_with_max_split_several_oversize_blocks_go_back_largest_first() -> None:
    settings = AllocatorSettings(max_split_size_bytes=32 * MIB)
    allocator = CachingAllocator(limit_bytes=200 * MIB, settings=settings)
    free_all(allocator, *[allocator.allocate(size * MIB) for size in (40, 50, 60)])
    allocator.allocate(110 * MIB)  # 60 and 50 are enough
    assert (allocator.reserved_bytes, allocator.alloc_retries) == (150 * MIB, 0)
    assert sorted(view.size_bytes for view in allocator.segments()) == [40 * MIB, 110 * MIB]


def test_the_fraction_limits_although_the_device_has_room() -> None:
    settings = AllocatorSettings(per_process_memory_fraction=0.5)
    allocator = CachingAllocator(limit_bytes=10 * GIB, total_bytes=100 * MIB, settings=settings)
    allocator.allocate(30 * MIB)
    allocator.allocate(20 * MIB)
    with pytest.raises(ReplicaOutOfMemoryError) as caught:
        allocator.allocate(1)
    assert (caught.value.fraction_limited, caught.value.allowed_bytes) == (True, 50 * MIB)


def test_the_fraction_needs_the_total() -> None:
    with pytest.raises(ValueError, match="total_bytes"):
        CachingAllocator(settings=AllocatorSettings(per_process_memory_fraction=0.5))


def test_garbage_collection_gives_back_the_segments_of_at_least_average_age() -> None:
    settings = AllocatorSettings(garbage_collection_threshold=0.5, per_process_memory_fraction=1.0)
    allocator = CachingAllocator(total_bytes=200 * MIB, settings=settings)
    old, young, used = (allocator.allocate(size * MIB) for size in (40, 50, 60))  # look-ups 1, 2, 3
    allocator.free(old)  # age 0 now
    allocator.free(allocator.allocate(2 * MIB, stream=1))  # look-up 4; a 20 MiB segment of another stream
    allocator.free(young)
    # look-up 5 misses. Reserved is 170 MiB, the threshold 100 MiB. Ages: 40 MiB 2, 20 MiB 1, 50 MiB 1; average 4/3,
    # so the 40 MiB segment goes; 130 MiB are still too many: average 1, so the other two go as well.
    allocator.allocate(70 * MIB)
    assert sorted(view.size_bytes for view in allocator.segments()) == [60 * MIB, 70 * MIB]
    assert allocator.alloc_retries == 0
    allocator.free(used)


def test_garbage_collection_stops_below_the_threshold() -> None:
    settings = AllocatorSettings(garbage_collection_threshold=0.5, per_process_memory_fraction=1.0)
    allocator = CachingAllocator(total_bytes=200 * MIB, settings=settings)
    old, young = (allocator.allocate(size * MIB) for size in (60, 50))
    allocator.free(old)
    allocator.free(allocator.allocate(2 * MIB, stream=1))
    allocator.free(young)
    # Reserved 130 MiB, threshold 100 MiB. Ages: 60 MiB 2, 20 MiB 1, 50 MiB 1: giving back 60 MiB is enough.
    allocator.allocate(70 * MIB)
    assert sorted(view.size_bytes for view in allocator.segments()) == [20 * MIB, 50 * MIB, 70 * MIB]


def test_garbage_collection_needs_a_fraction() -> None:
    allocator = CachingAllocator(settings=AllocatorSettings(garbage_collection_threshold=0.1))
    allocator.free(allocator.allocate(40 * MIB))
    allocator.allocate(50 * MIB)
    assert allocator.reserved_bytes == 90 * MIB


def test_empty_cache_returns_wholly_free_segments_only() -> None:
    allocator = CachingAllocator()
    kept = allocator.allocate(4 * MIB)
    free_all(allocator, allocator.allocate(30 * MIB), allocator.allocate(100))
    assert allocator.returnable_bytes == 32 * MIB
    assert allocator.empty_cache() == 32 * MIB
    assert (allocator.reserved_bytes, allocator.returnable_bytes) == (20 * MIB, 0)
    allocator.free(kept)
    assert allocator.empty_cache() == 20 * MIB


# Handles


def test_a_double_free_is_an_error_even_when_the_memory_lives_again() -> None:
    allocator = CachingAllocator()
    block = allocator.allocate(12 * MIB)
    allocator.free(block)
    again = allocator.allocate(12 * MIB)
    assert again.address == block.address
    with pytest.raises(ValueError, match="twice"):
        allocator.free(block)
    with pytest.raises(ValueError, match="not in use"):
        allocator.record_stream(block, stream=1)
    assert allocator.live_bytes == 12 * MIB


def test_a_waiting_block_cannot_be_freed_again() -> None:
    allocator = CachingAllocator()
    block = allocator.allocate(12 * MIB)
    allocator.record_stream(block, stream=1)
    allocator.free(block)
    with pytest.raises(ValueError, match="twice"):
        allocator.free(block)


def test_a_snapshot_is_adopted_with_its_blocks() -> None:
    original = CachingAllocator()
    blocks = [original.allocate(size) for size in (700, 3 * MIB, 5 * MIB, 40 * MIB)]
    original.free(blocks[1])
    copy = CachingAllocator()
    adopted = copy.adopt(original.segments())
    assert sorted(adopted) == sorted(block.address for block in blocks if block.state == LIVE)
    assert copy.segments() == original.segments()
    for name in ("live_bytes", "requested_bytes", "reserved_bytes", "idle_split_bytes", "returnable_bytes"):
        assert getattr(copy, name) == getattr(original, name), name
    assert copy.allocate(3 * MIB).address == original.allocate(3 * MIB).address
    with pytest.raises(ValueError, match="fill"):
        copy.adopt([SegmentView(0, 2 * MIB, 0, True, ())])
