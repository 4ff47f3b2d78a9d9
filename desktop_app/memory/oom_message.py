"""The out-of-memory error of the replica, and torch's own wording of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from desktop_app.core.units import format_torch_size

# Larger requests never reach the driver: torch takes them for an overflowed size.
ONE_EXABYTE: Final = 1 << 60

# String table of libc10_cuda.so, torch 2.13.0 (the double space is torch's).
_ADVICE: Final = (
    "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid"
    " fragmentation.  See documentation for Memory Management  "
    "(https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
)


class ReplicaOutOfMemoryError(MemoryError):
    """The driver, or the memory fraction, refused a segment even after all free segments were given back.

    ``requested_bytes`` is the caller's size, ``segment_bytes`` torch's "Tried to allocate". ``fraction_limited``
    says that ``allowed_bytes`` (fraction × total) was in the way, not ``limit_bytes``. All bytes, at that moment.
    """

    def __init__(
        self,
        requested_bytes: int,
        *,
        segment_bytes: int,
        live_bytes: int,
        reserved_bytes: int,
        limit_bytes: int | None,
        allowed_bytes: int | None = None,
        fraction_limited: bool = False,
        private_pool_bytes: int = 0,
    ) -> None:
        super().__init__(
            f"no room for a segment of {segment_bytes} bytes: {reserved_bytes} are reserved, {live_bytes} of them live,"
            f" {allowed_bytes if fraction_limited else limit_bytes} allowed"
        )
        self.requested_bytes = requested_bytes
        self.segment_bytes = segment_bytes
        self.live_bytes = live_bytes
        self.reserved_bytes = reserved_bytes
        self.limit_bytes = limit_bytes
        self.allowed_bytes = allowed_bytes
        self.fraction_limited = fraction_limited
        self.private_pool_bytes = private_pool_bytes


def format_oom_message(
    segment_bytes: int,
    *,
    total_bytes: int,
    free_bytes: int,
    allocated_bytes: int,
    reserved_bytes: int,
    gpu_index: int = 0,
    process_bytes: int | None = None,
    other_processes: Mapping[int, int] | None = None,
    allowed_bytes: int | None = None,
    private_pool_bytes: int = 0,
) -> str:
    """The text of ``torch.OutOfMemoryError`` as torch 2.13 writes it, sizes in bytes.

    ``segment_bytes`` is what was asked of the driver (``ReplicaOutOfMemoryError.segment_bytes``). ``free_bytes`` is
    what the driver has left, for any process; ``process_bytes`` what it books on this process, context included
    (``None``: NVML cannot say, and torch leaves the sentence out); ``other_processes`` maps pid to bytes.
    ``allowed_bytes`` is given only when a memory fraction is set; ``private_pool_bytes`` are the free blocks of private
    pools, which torch counts as allocated. Source: CUDACachingAllocator.cpp, ``malloc`` and
    ``reportProcessMemoryInfo``.
    """
    if segment_bytes >= ONE_EXABYTE:
        return "CUDA out of memory. Tried to allocate more than 1EB memory."
    allowed = "" if allowed_bytes is None else f"{format_torch_size(allowed_bytes)} allowed; "
    private = ""
    if private_pool_bytes:
        private = f"with {format_torch_size(private_pool_bytes)} allocated in private pools (e.g., CUDA Graphs), "
    held_bytes = allocated_bytes + private_pool_bytes
    return (
        f"CUDA out of memory. Tried to allocate {format_torch_size(segment_bytes)}. GPU {gpu_index} has a total"
        f" capacity of {format_torch_size(total_bytes)} of which {format_torch_size(free_bytes)} is free. "
        f"{_processes(process_bytes, other_processes or {})}{allowed}"
        f"Of the allocated memory {format_torch_size(held_bytes)} is allocated by PyTorch, {private}and"
        f" {format_torch_size(reserved_bytes - held_bytes)} is reserved by PyTorch but unallocated. {_ADVICE}"
    )


def _processes(process_bytes: int | None, other_processes: Mapping[int, int]) -> str:
    sentences = [
        f"Process {pid} has {format_torch_size(used)} memory in use. " for pid, used in other_processes.items()
    ]
    if process_bytes is not None:
        own = format_torch_size(process_bytes)
        sentences.append(f"Including non-PyTorch memory, this process has {own} memory in use. ")
    return "".join(sentences)
