"""What must hold after any sequence of calls, and agreement with the plain form of the rules after each of them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.units import MIB
from desktop_app.memory.allocator import AllocatorSettings, Block, CachingAllocator, ReplicaOutOfMemoryError
from desktop_app.memory.allocator_settings import round_request, segment_bytes
from desktop_app.memory.segments import FREE, LIVE, WAITING

from .naive_allocator import NaiveAllocator

# Few sizes, so that blocks are used again, around every limit of the rules.
SIZES = [1, 512, 513, 300_000, MIB - 512, MIB, MIB + 1, 3 * MIB, 9 * MIB, 10 * MIB - 512, 10 * MIB, 11 * MIB]
SIZES += [19 * MIB, 20 * MIB, 21 * MIB - 1, 30 * MIB, 41 * MIB, 64 * MIB]

calm = settings(deadline=None)  # a loaded machine is no failure

# (kind, size or choice among the live blocks, stream)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), st.sampled_from(SIZES), st.sampled_from([0, 0, 0, 1])),
        st.tuples(st.just("free"), st.integers(0, 99), st.just(0)),
        st.tuples(st.just("share"), st.integers(0, 99), st.just(7)),
        st.tuples(st.sampled_from(["synchronize", "empty_cache"]), st.just(0), st.just(0)),
    ),
    max_size=80,
)
configurations = st.builds(
    AllocatorSettings,
    max_split_size_bytes=st.sampled_from([None, None, 20 * MIB, 32 * MIB]),
    garbage_collection_threshold=st.sampled_from([0.0, 0.3, 0.7]),
    roundup_power2_divisions=st.sampled_from([0, 0, 4, 8]),
    per_process_memory_fraction=st.sampled_from([None, 0.5]),
)
limits = st.sampled_from([None, 60 * MIB, 150 * MIB])


class Driver:
    """Carries out drawn operations on one allocator, and counts what it runs out of."""

    def __init__(self, allocator: CachingAllocator) -> None:
        self.allocator = allocator
        self.live: list[Block] = []
        self.errors: list[ReplicaOutOfMemoryError] = []

    def do(self, kind: str, choice: int, stream: int) -> None:
        if kind == "allocate":
            try:
                self.live.append(self.allocator.allocate(choice, stream=stream))
            except ReplicaOutOfMemoryError as error:
                self.errors.append(error)
        elif kind == "free" and self.live:
            self.allocator.free(self.live.pop(choice % len(self.live)))
        elif kind == "share" and self.live:
            self.allocator.record_stream(self.live[choice % len(self.live)], stream=stream)
        elif kind == "synchronize":
            self.allocator.synchronize()
        elif kind == "empty_cache":
            self.allocator.empty_cache()


def check_counts(allocator: CachingAllocator) -> None:
    """Every statistic against a recount of the snapshot."""
    views = allocator.segments()
    blocks = [block for view in views for block in view.blocks]
    whole = [view for view in views if len(view.blocks) == 1 and view.blocks[0].state == FREE]
    idle = sum(block.size_bytes for block in blocks if block.state == FREE)
    assert allocator.segment_count == len(views)
    assert allocator.reserved_bytes == sum(view.size_bytes for view in views)
    assert allocator.live_bytes == sum(block.size_bytes for block in blocks if block.state == LIVE)
    assert allocator.active_bytes == sum(block.size_bytes for block in blocks if block.state in {LIVE, WAITING})
    assert allocator.requested_bytes == sum(block.requested_bytes for block in blocks if block.state in {LIVE, WAITING})
    assert allocator.returnable_bytes == sum(view.size_bytes for view in whole)
    assert allocator.idle_split_bytes == idle - allocator.returnable_bytes


def check_layout(allocator: CachingAllocator) -> None:
    """Blocks fill their segment without overlap, no two free ones are neighbours, segments are apart."""
    views = allocator.segments()
    for view in views:
        position = view.address
        for block in view.blocks:
            assert block.address == position
            assert block.size_bytes > 0
            assert block.size_bytes % 512 == 0
            assert block.requested_bytes <= block.size_bytes or block.state == FREE
            position += block.size_bytes
        assert position == view.address + view.size_bytes
        assert not any(first.state == second.state == FREE for first, second in pairwise(view.blocks))
    assert all(first.address + first.size_bytes <= second.address for first, second in pairwise(views))


@calm
@given(operations=operations, configuration=configurations, limit=limits)
def test_invariants_hold_after_every_call(
    operations: list[tuple[str, int, int]], configuration: AllocatorSettings, limit: int | None
) -> None:
    allocator = CachingAllocator(limit_bytes=limit, total_bytes=200 * MIB, settings=configuration)
    driver = Driver(allocator)
    for operation in operations:
        driver.do(*operation)
        check_counts(allocator)
        check_layout(allocator)
        assert allocator.requested_bytes <= allocator.active_bytes
        assert allocator.live_bytes <= allocator.active_bytes <= allocator.reserved_bytes
        assert limit is None or allocator.reserved_bytes <= limit
        assert allocator.live_bytes <= allocator.live_peak_bytes
        assert allocator.reserved_bytes <= allocator.reserved_peak_bytes
    assert allocator.oom_count == len(driver.errors)


@calm
@given(operations=operations, configuration=configurations, limit=limits)
def test_everything_freed_and_emptied_leaves_nothing(
    operations: list[tuple[str, int, int]], configuration: AllocatorSettings, limit: int | None
) -> None:
    allocator = CachingAllocator(limit_bytes=limit, total_bytes=200 * MIB, settings=configuration)
    driver = Driver(allocator)
    for operation in operations:
        driver.do(*operation)
    for block in driver.live:
        allocator.free(block)
    reserved_bytes = allocator.reserved_bytes
    assert allocator.empty_cache() == reserved_bytes
    assert (allocator.live_bytes, allocator.active_bytes, allocator.requested_bytes) == (0, 0, 0)
    assert (allocator.reserved_bytes, allocator.returnable_bytes, allocator.segment_count) == (0, 0, 0)


@calm
@given(operations=operations, limit=st.sampled_from([40 * MIB, 60 * MIB, 150 * MIB]))
def test_it_runs_out_only_when_nothing_fits(operations: list[tuple[str, int, int]], limit: int) -> None:
    allocator = CachingAllocator(limit_bytes=limit)
    driver = Driver(allocator)
    for kind, choice, stream in operations:
        if kind == "share":  # a block that waits may fit once it has been waited for; torch does not look again
            continue
        known = len(driver.errors)
        driver.do(kind, choice, stream)
        if len(driver.errors) > known:
            size = round_request(choice)
            small = size <= 1 * MIB
            mine = [view for view in allocator.segments() if view.stream == stream and view.small == small]
            assert not [
                block for view in mine for block in view.blocks if block.state == FREE and block.size_bytes >= size
            ]
            assert allocator.returnable_bytes == 0
            assert allocator.reserved_bytes + segment_bytes(size) > limit


@calm
@given(operations=operations, configuration=configurations, limit=limits)
def test_the_same_calls_give_the_same_state(
    operations: list[tuple[str, int, int]], configuration: AllocatorSettings, limit: int | None
) -> None:
    allocators = [CachingAllocator(limit_bytes=limit, total_bytes=200 * MIB, settings=configuration) for _ in range(2)]
    for allocator in allocators:
        driver = Driver(allocator)
        for operation in operations:
            driver.do(*operation)
    assert allocators[0].segments() == allocators[1].segments()


@settings(calm, max_examples=200)
@given(operations=operations, configuration=configurations, limit=limits)
def test_every_address_is_that_of_the_plain_form(
    operations: list[tuple[str, int, int]], configuration: AllocatorSettings, limit: int | None
) -> None:
    replica = CachingAllocator(limit_bytes=limit, total_bytes=200 * MIB, settings=configuration)
    naive = NaiveAllocator(limit, 200 * MIB, configuration)
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
