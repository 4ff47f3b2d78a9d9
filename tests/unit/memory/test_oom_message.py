"""torch's own words. The sentences were compared with the string table of libc10_cuda.so, torch 2.13.0 (CUDA 13)."""

from __future__ import annotations

import pytest

from desktop_app.core.units import GIB, MIB
from desktop_app.memory.allocator import CachingAllocator, ReplicaOutOfMemoryError
from desktop_app.memory.oom_message import format_oom_message

ADVICE = (
    " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid"
    " fragmentation.  See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html"
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
)


def test_the_whole_message() -> None:
    # The numbers of a message in a public repository: 9.64 GiB card, 2.60 GiB in this process.
    message = format_oom_message(
        50 * MIB,
        total_bytes=round(9.64 * GIB),
        free_bytes=round(22.12 * MIB),
        allocated_bytes=round(2.31 * GIB),
        reserved_bytes=round(2.31 * GIB) + round(34.15 * MIB),
        process_bytes=round(2.60 * GIB),
        other_processes={932170: round(6.88 * GIB)},
    )
    assert message == (
        "CUDA out of memory. Tried to allocate 50.00 MiB. GPU 0 has a total capacity of 9.64 GiB of which 22.12 MiB is "
        "free. Process 932170 has 6.88 GiB memory in use. Including non-PyTorch memory, this process has 2.60 GiB "
        "memory in use. Of the allocated memory 2.31 GiB is allocated by PyTorch, and 34.15 MiB is reserved by PyTorch "
        "but unallocated." + ADVICE
    )


def test_the_fraction_is_named_before_the_allocated_memory() -> None:
    message = format_oom_message(
        8 * GIB,
        total_bytes=round(47.37 * GIB),
        free_bytes=round(46.57 * GIB),
        allocated_bytes=round(245.48 * MIB),
        reserved_bytes=262 * MIB,
        process_bytes=772 * MIB,
        allowed_bytes=round(800.55 * MIB),
    )
    assert (
        "this process has 772.00 MiB memory in use. 800.55 MiB allowed; Of the allocated memory 245.48 MiB is "
        "allocated by PyTorch, and 16.52 MiB is reserved by PyTorch but unallocated."
    ) in message


def test_without_nvml_the_processes_are_left_out() -> None:
    message = format_oom_message(
        2 * MIB, total_bytes=6 * GIB, free_bytes=0, allocated_bytes=5 * GIB, reserved_bytes=5 * GIB, gpu_index=3
    )
    assert message.startswith(
        "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 3 has a total capacity of 6.00 GiB of which 0 bytes is "
        "free. Of the allocated memory 5.00 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but"
    )


def test_an_overflowed_size_has_a_sentence_of_its_own() -> None:
    message = format_oom_message(1 << 60, total_bytes=1, free_bytes=0, allocated_bytes=0, reserved_bytes=0)
    assert message == "CUDA out of memory. Tried to allocate more than 1EB memory."


def test_the_error_of_the_replica_gives_the_numbers() -> None:
    allocator = CachingAllocator(limit_bytes=100 * MIB)
    allocator.allocate(90 * MIB)
    with pytest.raises(ReplicaOutOfMemoryError, match="segment of 20971520 bytes: 94371840 are reserved") as caught:
        allocator.allocate(5 * MIB)
    error = caught.value
    message = format_oom_message(
        error.segment_bytes,
        total_bytes=400 * MIB,
        free_bytes=10 * MIB,
        allocated_bytes=error.live_bytes,
        reserved_bytes=error.reserved_bytes,
        process_bytes=390 * MIB,
    )
    assert "Tried to allocate 20.00 MiB." in message
    assert "90.00 MiB is allocated by PyTorch, and 0 bytes is reserved" in message


def test_free_blocks_of_private_pools_count_as_allocated() -> None:
    # malloc in CUDACachingAllocator.cpp: what is idle in graph pools is added to allocated and taken from the rest.
    allocator = CachingAllocator(limit_bytes=100 * MIB)
    allocator.begin_capture((1, 0))
    allocator.free(allocator.allocate(40 * MIB))
    allocator.end_capture()
    allocator.allocate(50 * MIB)
    with pytest.raises(ReplicaOutOfMemoryError) as caught:
        allocator.allocate(30 * MIB)
    error = caught.value
    assert (error.live_bytes, error.reserved_bytes, error.private_pool_bytes) == (50 * MIB, 90 * MIB, 40 * MIB)
    message = format_oom_message(
        error.segment_bytes,
        total_bytes=400 * MIB,
        free_bytes=10 * MIB,
        allocated_bytes=error.live_bytes,
        reserved_bytes=error.reserved_bytes,
        private_pool_bytes=error.private_pool_bytes,
    )
    assert (
        "Of the allocated memory 90.00 MiB is allocated by PyTorch, with 40.00 MiB allocated in private pools (e.g., "
        "CUDA Graphs), and 0 bytes is reserved by PyTorch but unallocated."
    ) in message
