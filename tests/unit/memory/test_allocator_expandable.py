"""Expandable segments: the rules one by one, and agreement with their plain form after any calls."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.units import GIB, MIB
from desktop_app.memory.allocator import AllocatorSettings, Block, CachingAllocator, ReplicaOutOfMemoryError
from desktop_app.memory.segments import FREE, LIVE, WAITING, BlockView, SegmentView

from .naive_expandable import NaiveExpandable

EXPANDABLE = AllocatorSettings(expandable_segments=True)
SIZES = [1, 512, 513, 300_000, MIB - 512, MIB, MIB + 1, 3 * MIB, 9 * MIB, 10 * MIB, 19 * MIB, 20 * MIB, 20 * MIB + 1]
SIZES += [30 * MIB, 41 * MIB, 64 * MIB]


def spans(allocator: CachingAllocator) -> list[tuple[int, int]]:
    """Start in MiB from the lowest run, and size in MiB, of every mapped run."""
    views = allocator.segments()
    return [((view.address - views[0].address) // MIB, view.size_bytes // MIB) for view in views]


def test_small_requests_map_pages_of_2_mib() -> None:
    allocator = CachingAllocator(settings=EXPANDABLE)
    allocator.allocate(512)
    assert allocator.reserved_bytes == 2 * MIB
    for _ in range(3):
        allocator.allocate(MIB)
    assert allocator.reserved_bytes == 4 * MIB  # 512 B and three of 1 MiB: 1 MiB less than four
    assert spans(allocator) == [(0, 4)]


@pytest.mark.parametrize(
    ("sizes_mib", "mapped_mib"),
    [
        ([3], 20),
        ([3, 17], 20),
        ([3, 18], 40),  # the tail of 17 is kept, 1 more is mapped as a page of 20
        ([30], 40),
        ([30, 30], 60),
        ([30, 31], 80),  # ceil((31 − 10) / 20) pages
    ],
)
def test_a_range_grows_by_what_its_free_tail_lacks(sizes_mib: list[int], mapped_mib: int) -> None:
    allocator = CachingAllocator(settings=EXPANDABLE)
    blocks = [allocator.allocate(size * MIB) for size in sizes_mib]
    assert spans(allocator) == [(0, mapped_mib)]
    assert all(second.address == first.address + first.size_bytes for first, second in pairwise(blocks))


def test_the_large_pool_splits_to_the_last_512_bytes() -> None:
    allocator = CachingAllocator(settings=EXPANDABLE)
    block = allocator.allocate(20 * MIB - 512)
    assert block.size_bytes == 20 * MIB - 512
    assert [view.size_bytes for view in allocator.segments()[0].blocks] == [20 * MIB - 512, 512]


def test_the_free_tail_is_taken_last() -> None:
    allocator = CachingAllocator(settings=EXPANDABLE)
    first = allocator.allocate(15 * MIB)
    allocator.allocate(2 * MIB)  # a tail of 3 MiB is left, smaller than the first block
    allocator.free(first)
    assert allocator.allocate(3 * MIB).address == first.address


def test_each_stream_and_pool_has_a_range_of_its_own() -> None:
    allocator = CachingAllocator(settings=EXPANDABLE, total_bytes=8 * GIB)
    for stream in (0, 7):
        allocator.allocate(512, stream=stream)
        allocator.allocate(5 * MIB, stream=stream)
    assert sorted(view.size_bytes // MIB for view in allocator.segments()) == [2, 2, 20, 20]
    assert allocator.reserved_bytes == 44 * MIB


def test_only_whole_pages_inside_free_blocks_can_be_returned() -> None:
    allocator = CachingAllocator(settings=EXPANDABLE)
    held, idle = allocator.allocate(15 * MIB), allocator.allocate(70 * MIB)
    assert allocator.reserved_bytes == 100 * MIB
    assert allocator.returnable_bytes == 0  # 15 MiB of tail in a page that is in use
    allocator.free(idle)
    assert allocator.returnable_bytes == 80 * MIB
    assert allocator.idle_split_bytes == 5 * MIB
    assert allocator.empty_cache() == 80 * MIB
    assert allocator.reserved_bytes == 20 * MIB
    allocator.free(held)
    assert allocator.empty_cache() == 20 * MIB
    assert (allocator.reserved_bytes, allocator.segment_count) == (0, 0)


def test_a_hole_is_filled_before_the_range_grows() -> None:
    allocator = CachingAllocator(settings=EXPANDABLE)
    first, middle, last = (allocator.allocate(40 * MIB) for _ in range(3))
    allocator.free(middle)
    assert allocator.empty_cache() == 40 * MIB
    assert spans(allocator) == [(0, 40), (80, 40)]
    again = allocator.allocate(30 * MIB)
    assert again.address == middle.address
    assert spans(allocator) == [(0, 120)]
    assert last.address == first.address + 80 * MIB


def test_a_hole_that_is_too_small_is_passed_over() -> None:
    allocator = CachingAllocator(settings=EXPANDABLE)
    blocks = [allocator.allocate(40 * MIB) for _ in range(3)]
    allocator.free(blocks[1])
    allocator.empty_cache()
    assert allocator.allocate(50 * MIB).address == blocks[2].address + 40 * MIB


def test_under_pressure_idle_pages_move_to_where_they_are_needed() -> None:
    # Without expandable segments the same calls run out of memory: 60 MiB are idle in segments partly in use.
    allocator = CachingAllocator(settings=EXPANDABLE, limit_bytes=120 * MIB)
    blocks = [allocator.allocate(20 * MIB) for _ in range(6)]
    for block in blocks[::2]:
        allocator.free(block)
    assert allocator.allocate(60 * MIB).size_bytes == 60 * MIB
    assert (allocator.alloc_retries, allocator.reserved_bytes) == (1, 120 * MIB)


def test_out_of_memory_names_the_segment_torch_names() -> None:
    allocator = CachingAllocator(settings=EXPANDABLE, limit_bytes=30 * MIB)
    allocator.allocate(19 * MIB)
    with pytest.raises(ReplicaOutOfMemoryError) as caught:
        allocator.allocate(3 * MIB)
    assert (caught.value.segment_bytes, caught.value.reserved_bytes) == (20 * MIB, 20 * MIB)
    assert allocator.oom_count == 1


def test_the_fraction_counts_a_whole_segment() -> None:
    # alloc_block compares reserved + alloc_size, 20 MiB for 3, though the free tail of 17 MiB would do.
    fraction = AllocatorSettings(expandable_segments=True, per_process_memory_fraction=0.5)
    allocator = CachingAllocator(settings=fraction, total_bytes=78 * MIB)
    allocator.allocate(3 * MIB)
    allocator.allocate(17 * MIB)
    with pytest.raises(ReplicaOutOfMemoryError) as caught:
        allocator.allocate(3 * MIB)
    assert caught.value.fraction_limited


def test_a_range_spans_nine_eighths_of_the_card() -> None:
    allocator = CachingAllocator(settings=EXPANDABLE, total_bytes=80 * MIB)  # 100 MiB of addresses: 5 pages
    blocks = [allocator.allocate(25 * MIB) for _ in range(4)]
    assert allocator.allocate(5 * MIB).address != blocks[0].address + 100 * MIB
    with pytest.raises(ReplicaOutOfMemoryError):
        allocator.allocate(101 * MIB)


def test_a_snapshot_is_taken_over_with_its_holes() -> None:
    original = CachingAllocator(settings=EXPANDABLE)
    blocks = [original.allocate(size) for size in (40 * MIB, 35 * MIB, 50 * MIB, 512, MIB)]
    original.free(blocks[1])
    original.empty_cache()
    copy = CachingAllocator(settings=EXPANDABLE)
    adopted = copy.adopt(original.segments())
    assert copy.segments() == original.segments()
    assert (copy.live_bytes, copy.reserved_bytes) == (original.live_bytes, original.reserved_bytes)
    assert copy.allocate(30 * MIB).address == original.allocate(30 * MIB).address
    for block in (blocks[2], blocks[0]):
        original.free(block)
        copy.free(adopted[block.address])
    assert copy.segments() == original.segments()


def test_segments_of_the_other_kind_are_not_taken_over() -> None:
    view = SegmentView(0, 2 * MIB, 0, True, (BlockView(0, 2 * MIB, 0, FREE),), expandable=True)
    with pytest.raises(ValueError, match="expandable"):
        CachingAllocator().adopt([view])


operations = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), st.sampled_from(SIZES), st.sampled_from([0, 0, 0, 1])),
        st.tuples(st.just("free"), st.integers(0, 99), st.just(0)),
        st.tuples(st.just("share"), st.integers(0, 99), st.just(7)),
        st.tuples(st.just("empty_cache"), st.just(0), st.just(0)),
    ),
    max_size=80,
)


@settings(deadline=None, max_examples=300)
@given(
    operations=operations,
    limit=st.sampled_from([None, 60 * MIB, 150 * MIB]),
    total=st.sampled_from([64 * MIB, 200 * MIB]),
    configuration=st.builds(
        AllocatorSettings,
        expandable_segments=st.just(True),
        max_split_size_bytes=st.sampled_from([None, None, 32 * MIB]),
        roundup_power2_divisions=st.sampled_from([0, 0, 4]),
        per_process_memory_fraction=st.sampled_from([None, None, 0.5]),
    ),
)
def test_every_address_is_that_of_the_plain_form(
    operations: list[tuple[str, int, int]], limit: int | None, total: int, configuration: AllocatorSettings
) -> None:
    replica = CachingAllocator(limit_bytes=limit, total_bytes=total, settings=configuration)
    naive = NaiveExpandable(limit, total, configuration)
    live: dict[int, Block] = {}
    for owner, (kind, choice, stream) in enumerate(operations):
        if kind == "allocate":
            expected = naive.allocate(owner, choice, stream)
            if expected is None:
                with pytest.raises(ReplicaOutOfMemoryError):
                    replica.allocate(choice, stream=stream)
            else:
                live[owner] = replica.allocate(choice, stream=stream)
                assert live[owner].address == expected
        elif kind == "free" and live:
            chosen = list(live)[choice % len(live)]
            naive.free(chosen)
            replica.free(live.pop(chosen))
        elif kind == "share" and live:
            chosen = list(live)[choice % len(live)]
            naive.share(chosen)
            replica.record_stream(live[chosen], stream=stream)
        elif kind == "empty_cache":
            naive.empty_cache()
            replica.empty_cache()
        assert (replica.reserved_bytes, replica.alloc_retries) == (naive.reserved, naive.retries)
        check_state(replica)


def check_state(allocator: CachingAllocator) -> None:
    """Runs of pages without gaps or two free neighbours, and every statistic recounted."""
    views = allocator.segments()
    blocks = [block for view in views for block in view.blocks]
    for view in views:
        position = view.address
        for block in view.blocks:
            assert block.address == position
            position += block.size_bytes
        assert position == view.address + view.size_bytes
        assert not any(first.state == second.state == FREE for first, second in pairwise(view.blocks))
    assert allocator.reserved_bytes == sum(view.size_bytes for view in views)
    assert allocator.live_bytes == sum(block.size_bytes for block in blocks if block.state == LIVE)
    assert allocator.active_bytes == sum(block.size_bytes for block in blocks if block.state in {LIVE, WAITING})
    idle = sum(block.size_bytes for block in blocks if block.state == FREE)
    assert allocator.idle_split_bytes + allocator.returnable_bytes == idle
    assert allocator.idle_split_bytes >= 0
