# ruff: noqa: E501 - the messages are quoted as they were printed
"""Other people's out-of-memory messages, one of each wording, with the figures that a reader takes from them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_app.core.units import GIB, KIB, MIB
from desktop_app.memory.oom_message import format_oom_message
from desktop_app.memory.oom_reading import Backend, Wording, parse_size, read_oom
from desktop_app.memory.oom_verdict import Full, OomAction, OomCause, judge_oom

EXPANDABLE = (
    "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid "
    "fragmentation.  See documentation for Memory Management"
)


def test_torch_1_3_says_cached_and_means_the_gap() -> None:
    reading = read_oom(
        "RuntimeError: CUDA out of memory. Tried to allocate 352.00 MiB (GPU 0; 7.92 GiB total capacity; 1.67 GiB already "
        "allocated; 156.00 MiB free; 120.00 MiB cached)"
    )
    assert reading is not None
    assert (reading.backend, reading.wording, reading.device) == (Backend.CUDA, Wording.ALLOCATOR, 0)
    assert reading.tried_bytes == 352 * MIB
    assert reading.unallocated_bytes == 120 * MIB
    assert reading.outside_bytes == round(7.92 * GIB) - 156 * MIB - round(1.67 * GIB) - 120 * MIB
    verdict = judge_oom(reading)
    assert verdict.cause is OomCause.OTHER_PROCESSES
    assert verdict.actions[0] is OomAction.END_OTHER_PROCESSES
    assert verdict.shares["outside"] == reading.outside_bytes


def test_reserved_far_above_allocated_is_fragmentation() -> None:
    reading = read_oom(
        "RuntimeError: CUDA out of memory. Tried to allocate 2.93 GiB (GPU 0; 23.80 GiB total capacity; 12.04 GiB already "
        "allocated; 2.82 GiB free; 19.69 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try "
        "setting max_split_size_mb to avoid fragmentation."
    )
    assert reading is not None
    assert reading.unallocated_bytes == pytest.approx(7.65 * GIB, abs=0.01 * GIB)
    verdict = judge_oom(reading)
    assert verdict.cause is OomCause.FRAGMENTATION
    assert verdict.actions[0] is OomAction.EXPANDABLE_SEGMENTS


@pytest.mark.parametrize("word", ["capacty", "capacity"])
def test_the_misspelt_wording_of_torch_2_1_and_the_right_one(word: str) -> None:
    reading = read_oom(
        f"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.70 GiB. GPU 0 has a total {word} of 6.00 GiB "
        "of which 0 bytes is free. Of the allocated memory 2.93 GiB is allocated by PyTorch, and 2.30 GiB is reserved by "
        f"PyTorch but unallocated. {EXPANDABLE}"
    )
    assert reading is not None
    assert (reading.free_bytes, reading.total_bytes) == (0, 6 * GIB)
    assert reading.reserved_bytes == pytest.approx(5.23 * GIB, abs=2)
    assert judge_oom(reading).cause is OomCause.FRAGMENTATION


def test_processes_are_told_apart() -> None:
    reading = read_oom(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 1 has a total capacity of 23.64 GiB "
        "of which 200.00 MiB is free. Process 1234 has 10.00 GiB memory in use. Process 77 has 2.00 GiB memory in use. "
        "Including non-PyTorch memory, this process has 11.40 GiB memory in use. Of the allocated memory 10.50 GiB is "
        f"allocated by PyTorch, and 300.00 MiB is reserved by PyTorch but unallocated. {EXPANDABLE}"
    )
    assert reading is not None
    assert reading.device == 1
    assert reading.others == {1234: 10 * GIB, 77: 2 * GIB}
    assert reading.process_bytes == round(11.4 * GIB)
    assert judge_oom(reading).cause is OomCause.OTHER_PROCESSES
    assert judge_oom(reading).shares["others"] == 12 * GIB


def test_a_fraction_is_the_limit_not_the_card() -> None:
    reading = read_oom(
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 255.98 GiB of "
        "which 244.65 GiB is free. 1.05 GiB allowed; Of the allocated memory 1017.01 MiB is allocated by PyTorch, with "
        "17.00 MiB allocated in private pools (e.g., HIP Graphs), and 54.99 MiB is reserved by PyTorch but unallocated."
    )
    assert reading is not None
    assert reading.backend is Backend.HIP
    assert reading.allowed_bytes == round(1.05 * GIB)
    assert reading.private_pool_bytes == 17 * MIB
    assert reading.unallocated_bytes == round(54.99 * MIB)
    assert (judge_oom(reading).cause, judge_oom(reading).full) == (OomCause.MEMORY_FRACTION, Full.LIMIT)


def test_2_to_the_64_is_no_figure() -> None:
    reading = read_oom(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 30.00 GiB. GPU 0 has a total capacty of 15.99 "
        "GiB of which 0 bytes is free. Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use. Of "
        "the allocated memory 30.00 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated."
    )
    assert reading is not None
    assert reading.nonsense
    assert reading.process_bytes is None
    assert judge_oom(reading).cause is OomCause.SYSTEM_MEMORY_FALLBACK


def test_an_impossible_size_is_a_bug_not_a_shortage() -> None:
    for text in (
        "CUDA out of memory. Tried to allocate more than 1EB memory.",
        "CUDA out of memory. Tried to allocate 16.00 EiB (GPU 0; 7.80 GiB total capacity; 1.00 GiB already allocated; "
        "5.00 GiB free; 1.20 GiB reserved in total by PyTorch)",
    ):
        reading = read_oom(text)
        assert reading is not None
        assert judge_oom(reading).actions == (OomAction.CHECK_SHAPES,)


def test_refused_with_plenty_free_is_not_answered_by_a_smaller_batch() -> None:
    reading = read_oom(
        "CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total capacity; 8.57 MiB already allocated; "
        "9.28 GiB free; 4.68 MiB cached)"
    )
    assert reading is not None
    verdict = judge_oom(reading)
    assert verdict.cause is OomCause.REFUSED_DESPITE_FREE
    assert OomAction.REDUCE_BATCH not in verdict.actions


@pytest.mark.parametrize("unit", ["GB", "GiB"])
def test_mps_before_and_after_its_units_changed(unit: str) -> None:
    reading = read_oom(
        f"RuntimeError: MPS backend out of memory (MPS allocated: 9.57 {unit}, other allocations: 17.35 {unit}, max allowed: "
        f"27.20 {unit}). Tried to allocate 292.50 {unit.replace('G', 'M')} on private pool. Use "
        "PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure)."
    )
    assert reading is not None
    assert reading.backend is Backend.MPS
    assert reading.total_bytes == round(27.20 * GIB)
    assert reading.tried_bytes == round(292.5 * MIB)
    assert judge_oom(reading).shares["outside"] == pytest.approx(17.35 * GIB, abs=2)
    assert judge_oom(reading).cause is OomCause.OUTSIDE_ALLOCATOR


def test_xpu_npu_and_the_async_backend() -> None:
    xpu = read_oom(
        "RuntimeError: Current platform can NOT allocate memory block with size larger than 4GB! XPU out of memory. Tried to "
        "allocate 6.85 GiB (GPU  0; 15.56 GiB total capacity; 0 bytes already allocated; 0 bytes reserved in total by PyTorch)"
    )
    npu = read_oom(
        "NPU out of memory. Tried to allocate 72.00 MiB (NPU 3; 61.27 GiB total capacity; 56.05 GiB already allocated; 56.05 "
        "GiB current active; 5.04 MiB free; 58.39 GiB reserved in total by PyTorch)If reserved memory is >> allocated memory"
    )
    pooled = read_oom(
        "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 15.16 GiB\n"
        "Requested               : 512.00 KiB\nDevice limit            : 15.99 GiB\nFree (according to CUDA): 0 bytes\n"
        "PyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB"
    )
    assert xpu is not None
    assert npu is not None
    assert pooled is not None
    assert judge_oom(xpu).cause is OomCause.BLOCK_LIMIT
    assert (npu.backend, npu.device, npu.free_bytes) == (Backend.NPU, 3, round(5.04 * MIB))
    assert (pooled.backend, pooled.tried_bytes, pooled.free_bytes) == (Backend.CUDA_ASYNC, 512 * KIB, 0)
    assert pooled.nonsense
    assert pooled.allowed_bytes is None


@pytest.mark.parametrize(
    ("text", "wording", "cause"),
    [
        ("RuntimeError: CUDA error: out of memory\nCUDA kernel errors", Wording.DRIVER, OomCause.OUTSIDE_ALLOCATOR),
        ("cuda runtime error (2) : out of memory at x.cu:58", Wording.DRIVER, OomCause.OUTSIDE_ALLOCATOR),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", Wording.LIBRARY, OomCause.OUTSIDE_ALLOCATOR),
        ("CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate`", Wording.LIBRARY, OomCause.OUTSIDE_ALLOCATOR),
        ("CUDA ran out of memory outside PyTorch's allocator. If", Wording.OUTSIDE, OomCause.OUTSIDE_ALLOCATOR),
        (
            "expandable_segments: memory mapping failed with OOM on device 0",
            Wording.MAPPING,
            OomCause.TRAINING_TOO_LARGE,
        ),
        (
            "[enforce fail at alloc_cpu.cpp:118] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 2048 bytes.",
            Wording.HOST,
            OomCause.HOST_MEMORY,
        ),
        (
            "RuntimeError: DataLoader worker (pid 31) is killed by signal: Bus error. It is possible that dataloader's workers "
            "are out of shared memory.",
            Wording.SHARED_MEMORY,
            OomCause.SHARED_MEMORY,
        ),
        (
            "RuntimeError: DataLoader worker (pid 9) is killed by signal: Killed.",
            Wording.WORKER_KILLED,
            OomCause.HOST_MEMORY,
        ),
        (
            "CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction "
            "limit. Requested size: 20.00 MiB",
            Wording.PREEMPTIVE,
            OomCause.MEMORY_FRACTION,
        ),
    ],
)
def test_messages_with_few_figures(text: str, wording: Wording, cause: OomCause) -> None:
    reading = read_oom(text)
    assert reading is not None
    assert reading.wording is wording
    assert judge_oom(reading).cause is cause


def test_intels_extension_may_leave_its_device_out() -> None:
    reading = read_oom(
        "RuntimeError: Current platform can NOT allocate memory block with size larger than 4GB! Tried to allocate 6.85 GiB "
        "(GPU  0; 15.56 GiB total capacity; 0 bytes already allocated; 0 bytes reserved in total by PyTorch)"
    )
    assert reading is not None
    assert (reading.backend, reading.device, reading.block_limit) == (Backend.XPU, 0, True)
    assert (reading.tried_bytes, reading.total_bytes) == (round(6.85 * GIB), round(15.56 * GIB))
    assert judge_oom(reading).cause is OomCause.BLOCK_LIMIT


@pytest.mark.parametrize("limit", ["15.99 GiB", "80.00 GiB"])
def test_the_drivers_own_pool_takes_no_settings_of_the_native_allocator(limit: str) -> None:
    reading = read_oom(
        "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 15.16 GiB\n"
        f"Requested               : 512.00 MiB\nDevice limit            : {limit}\nFree (according to CUDA): 0 bytes\n"
        "PyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB"
    )
    assert reading is not None
    assert judge_oom(reading).actions == (OomAction.REDUCE_BATCH,)


def test_a_worker_that_is_gone_is_said_with_doubt() -> None:
    alone = "RuntimeError: DataLoader worker (pid(s) 4711, 4712) exited unexpectedly"
    reading = read_oom(alone)
    assert reading is not None
    assert (reading.wording, judge_oom(reading).full) == (Wording.WORKER_EXITED, Full.PERHAPS_HOST)
    killed = read_oom(f"{alone}\nslurmstepd: error: Detected 1 oom_kill event in StepId=88.0.")
    assert killed is not None
    assert judge_oom(killed).full is Full.HOST


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd: error: Detected 1 oom_kill event in StepId=3114512.batch. Some of the step tasks have been OOM Killed.",
        "slurmstepd: error: Detected 2 oom-kill event(s) in step 51.batch cgroup.",
        "srun: error: node7: task 3: Out Of Memory",
        "slurmstepd: error: Exceeded job memory limit at some point.",
        "kernel: Out of memory: Killed process 3021 (python) total-vm:91034212kB",
    ],
)
def test_the_kernels_and_slurms_words_are_main_memory(line: str) -> None:
    reading = read_oom(line)
    assert reading is not None
    assert (reading.backend, reading.wording) == (Backend.HOST, Wording.WORKER_KILLED)
    assert judge_oom(reading).cause is OomCause.HOST_MEMORY


def test_the_last_of_several_counts_and_line_breaks_do_not() -> None:
    first = (
        "CUDA out of memory. Tried to allocate 1.00 GiB (GPU 0; 7.00 GiB total capacity; 6.00 GiB already allocated; "
    )
    text = (
        first
        + "10.00 MiB free; 6.10 GiB reserved in total by PyTorch)\n"
        + first.replace("1.00", "2.00").replace(" ", "\n")
    )
    reading = read_oom(text)
    assert reading is not None
    assert reading.tried_bytes == 2 * GIB


@pytest.mark.parametrize(
    "text", ["", "all is well", "loss 0.3\nout of memory is not what this log says", "memory 12 GiB free"]
)
def test_other_text_is_no_message(text: str) -> None:
    assert read_oom(text) is None


@given(st.text(max_size=300), st.sampled_from(["CUDA", "HIP", "NPU", "MPS backend"]))
def test_any_text_around_and_inside_is_survived(text: str, who: str) -> None:
    reading = read_oom(f"{text} {who} out of memory. Tried to allocate 20.00 MiB {text}")
    assert reading is not None
    judge_oom(reading)


@given(
    segment=st.integers(1, 1 << 40),
    free=st.integers(0, 1 << 40),
    allocated=st.integers(0, 1 << 40),
    idle=st.integers(0, 1 << 38),
)
def test_our_own_message_is_read_back(segment: int, free: int, allocated: int, idle: int) -> None:
    total = free + allocated + idle + GIB
    text = format_oom_message(
        segment,
        total_bytes=total,
        free_bytes=free,
        allocated_bytes=allocated,
        reserved_bytes=allocated + idle,
        process_bytes=allocated + idle + GIB,
    )
    reading = read_oom(text)
    assert reading is not None
    for read, true in (
        (reading.tried_bytes, segment),
        (reading.free_bytes, free),
        (reading.allocated_bytes, allocated),
    ):
        assert read == pytest.approx(true, rel=0.006, abs=6)


def test_sizes() -> None:
    assert parse_size("0", "bytes") == 0
    assert parse_size("20.00", "MiB") == 20 * MIB
    assert parse_size("459.07", "MB") == round(459.07 * MIB)
    assert parse_size("17179869184.00", "GiB") is None
