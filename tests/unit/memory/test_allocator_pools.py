"""Private pools of graphs and of ``torch.cuda.MemPool``, and the refusal before the driver is asked."""

from __future__ import annotations

import pytest

from desktop_app.core.units import MIB
from desktop_app.memory.allocator import AllocatorSettings, CachingAllocator, ReplicaOutOfMemoryError

GRAPH = (0, 1)
OTHER = (3, 0)


def test_a_private_pool_shares_no_block_with_the_default_one() -> None:
    allocator = CachingAllocator()
    allocator.free(allocator.allocate(30 * MIB))
    allocator.begin_capture(GRAPH)
    inside = allocator.allocate(30 * MIB)
    allocator.free(inside)
    assert allocator.allocate(30 * MIB).address == inside.address
    allocator.end_capture()
    assert allocator.allocate(30 * MIB).address != inside.address
    assert allocator.reserved_bytes == 60 * MIB
    assert {view.pool for view in allocator.segments()} == {(0, 0), GRAPH}


def test_captures_nest_and_the_innermost_serves() -> None:
    allocator = CachingAllocator()
    allocator.begin_capture(GRAPH)
    allocator.begin_capture(OTHER)
    allocator.allocate(30 * MIB)
    allocator.end_capture()
    allocator.allocate(31 * MIB)
    allocator.end_capture()
    allocator.allocate(33 * MIB)
    assert {view.pool: view.size_bytes // MIB for view in allocator.segments()} == {OTHER: 30, GRAPH: 32, (0, 0): 34}


def test_a_held_pool_keeps_its_idle_memory() -> None:
    allocator = CachingAllocator()
    allocator.begin_capture(GRAPH)
    allocator.free(allocator.allocate(30 * MIB))
    allocator.end_capture()
    allocator.free(allocator.allocate(10 * MIB))
    assert (allocator.returnable_bytes, allocator.idle_split_bytes) == (10 * MIB, 0)
    assert allocator.empty_cache() == 10 * MIB
    allocator.release_pool(GRAPH)
    assert allocator.returnable_bytes == 30 * MIB
    assert allocator.empty_cache() == 30 * MIB


def test_a_pool_used_again_is_held_twice() -> None:
    allocator = CachingAllocator()
    for _ in range(2):
        allocator.begin_capture(GRAPH)
        allocator.end_capture()
    allocator.release_pool(GRAPH)
    allocator.release_pool(GRAPH)
    with pytest.raises(ValueError, match="nothing holds"):
        allocator.release_pool(GRAPH)


def test_while_a_graph_is_captured_nothing_is_given_back() -> None:
    allocator = CachingAllocator(limit_bytes=50 * MIB)
    allocator.free(allocator.allocate(30 * MIB))
    allocator.begin_capture(GRAPH)
    with pytest.raises(ReplicaOutOfMemoryError):
        allocator.allocate(30 * MIB)
    assert (allocator.reserved_bytes, allocator.alloc_retries) == (30 * MIB, 0)
    assert allocator.empty_cache() == 0
    allocator.end_capture()
    allocator.begin_capture(OTHER)
    assert allocator.allocate(20 * MIB).size_bytes == 20 * MIB


def test_a_pool_that_does_not_split_hands_out_whole_blocks() -> None:
    allocator = CachingAllocator()
    allocator.begin_capture(GRAPH, splits=False)
    assert allocator.allocate(3 * MIB).size_bytes == 20 * MIB
    assert allocator.allocate(512).size_bytes == 2 * MIB


def test_a_pool_may_serve_when_memory_runs_out() -> None:
    allocator = CachingAllocator(limit_bytes=60 * MIB)
    allocator.begin_capture(GRAPH, serves_on_oom=True)
    lent = allocator.allocate(40 * MIB)
    allocator.free(lent)
    allocator.end_capture()
    allocator.free(allocator.allocate(20 * MIB))
    block = allocator.allocate(30 * MIB)
    assert block.address == lent.address
    assert (allocator.reserved_bytes, allocator.alloc_retries) == (60 * MIB, 0)  # before the cache is given back
    allocator.free(block)
    assert allocator.segments()[0].blocks[0].size_bytes in {20 * MIB, 40 * MIB}


def test_wrong_calls_are_refused() -> None:
    allocator = CachingAllocator()
    with pytest.raises(ValueError, match="not private"):
        allocator.begin_capture((0, 0))
    with pytest.raises(ValueError, match="nothing is captured"):
        allocator.end_capture()
    allocator.begin_capture(GRAPH)
    with pytest.raises(ValueError, match="already recording"):
        allocator.begin_capture(GRAPH)


def test_private_pools_are_taken_over_from_a_snapshot() -> None:
    original = CachingAllocator()
    original.begin_capture(GRAPH)
    block = original.allocate(30 * MIB)
    copy = CachingAllocator()
    adopted = copy.adopt(original.segments())
    assert copy.segments() == original.segments()
    copy.free(adopted[block.address])
    assert copy.empty_cache() == 0  # the graph may still be there
    copy.release_pool(GRAPH)
    assert copy.empty_cache() == 30 * MIB


def test_private_pools_have_expandable_segments_too() -> None:
    allocator = CachingAllocator(settings=AllocatorSettings(expandable_segments=True))
    allocator.allocate(30 * MIB)
    allocator.begin_capture(GRAPH)
    allocator.free(allocator.allocate(30 * MIB))
    allocator.end_capture()
    assert allocator.reserved_bytes == 80 * MIB
    assert allocator.empty_cache() == 0
    allocator.release_pool(GRAPH)
    assert allocator.empty_cache() == 40 * MIB


def test_throwing_early_gives_nothing_back() -> None:
    # github.com/pytorch/pytorch/pull/179473: rejected before the driver is asked, without the retries.
    settings = AllocatorSettings(per_process_memory_fraction=0.5, throw_on_cudamalloc_oom=True)
    allocator = CachingAllocator(settings=settings, total_bytes=100 * MIB)
    allocator.free(allocator.allocate(30 * MIB))
    with pytest.raises(ReplicaOutOfMemoryError) as caught:
        allocator.allocate(40 * MIB)
    assert caught.value.fraction_limited
    assert (allocator.reserved_bytes, allocator.alloc_retries, allocator.rejections) == (30 * MIB, 0, 1)
    patient = CachingAllocator(settings=AllocatorSettings(per_process_memory_fraction=0.5), total_bytes=100 * MIB)
    patient.free(patient.allocate(30 * MIB))
    assert patient.allocate(40 * MIB).size_bytes == 40 * MIB


def test_throwing_early_needs_a_fraction() -> None:
    allocator = CachingAllocator(limit_bytes=50 * MIB, settings=AllocatorSettings(throw_on_cudamalloc_oom=True))
    allocator.free(allocator.allocate(30 * MIB))
    assert allocator.allocate(40 * MIB).size_bytes == 40 * MIB
