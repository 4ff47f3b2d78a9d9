"""Reads other people's out-of-memory messages: CUDA, HIP, XPU, NPU, MPS, host memory, torch 0.4 to 2.14. Torch-free.

The wordings are those of PyTorch's sources (c10/cuda/CUDACachingAllocator.cpp, CUDAMallocAsyncAllocator.cpp,
aten/src/ATen/mps/MPSAllocator.mm, c10/xpu) and of torch_npu. Matched is the text, never the exception's class: wrappers
raise it again as something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

_UNITS: Final = {"bytes": 0, "byte": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}
_SIZE: Final = r"(\d+(?:[.,]\d+)?)\s?(bytes?|[KMGTPE]i?B|B)\b"
# Larger than any memory: 2^64 − 1 and its like are NVML's "not available", as under WSL2.
_NONSENSE_BYTES: Final = 1 << 60
_LEAD: Final = 120  # Intel's extension says what the platform cannot do before it says that memory ran out
_MAX_TEXT: Final = 1 << 20  # characters looked at: a log's end is enough


class Backend(StrEnum):
    """Who ran out."""

    CUDA = "cuda"
    CUDA_ASYNC = "cuda_async"  # backend:cudaMallocAsync
    HIP = "hip"
    XPU = "xpu"
    NPU = "npu"
    MPS = "mps"
    HOST = "host"


class Wording(StrEnum):
    """The family of a message, which decides what its figures mean."""

    ALLOCATOR = "allocator"  # the caching allocator's own line, with figures
    OVERFLOW = "overflow"  # more than 1 EB: a negative size
    PREEMPTIVE = "preemptive"  # rejected before the driver was asked
    DRIVER = "driver"  # CUDA error: out of memory
    LIBRARY = "library"  # cuBLAS or cuDNN could not be set up
    OUTSIDE = "outside"  # CUDA ran out outside PyTorch's allocator
    MAPPING = "mapping"  # expandable segments could not be mapped
    HOST = "host"  # DefaultCPUAllocator, MemoryError
    SHARED_MEMORY = "shared_memory"  # a loader's worker and /dev/shm
    WORKER_KILLED = "worker_killed"  # by the kernel, for want of host memory
    WORKER_EXITED = "worker_exited"  # and nobody says why
    SECOND_BACKWARD = "second_backward"  # no memory error: its hint (retain_graph) leads to one


@dataclass(frozen=True, slots=True, kw_only=True)
class OomReading:
    """The figures of one message, in bytes; ``None`` where it does not say. ``total_bytes`` is the limit for MPS.

    ``reserved_bytes`` includes what is allocated; for torch 1.3 and older it is allocated plus "cached".
    ``others`` are other processes by pid. ``nonsense`` says that a figure was left out because no memory is that large.
    """

    backend: Backend
    wording: Wording
    device: int | None = None
    tried_bytes: int | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    allowed_bytes: int | None = None
    private_pool_bytes: int | None = None
    process_bytes: int | None = None
    others: Mapping[int, int] = field(default_factory=dict)
    block_limit: bool = False  # XPU: no single block above 4 GB
    nonsense: bool = False
    line: str = ""

    @property
    def unallocated_bytes(self) -> int | None:
        """Idle in the allocator's cache: split blocks, since whole segments had been given back already."""
        if self.reserved_bytes is None or self.allocated_bytes is None:
            return None
        return max(0, self.reserved_bytes - self.allocated_bytes - (self.private_pool_bytes or 0))

    @property
    def outside_bytes(self) -> int | None:
        """On the card but not in this allocator: context, libraries and other processes."""
        known = (self.total_bytes, self.free_bytes, self.reserved_bytes)
        if None in known or self.backend is Backend.MPS:
            return None
        assert self.total_bytes is not None
        assert self.free_bytes is not None
        assert self.reserved_bytes is not None
        return max(0, self.total_bytes - self.free_bytes - self.reserved_bytes)

    @property
    def other_processes_bytes(self) -> int | None:
        """What other processes hold, where the message tells them from this one."""
        if self.others:
            return sum(self.others.values())
        if self.process_bytes is not None and self.outside_bytes is not None and self.reserved_bytes is not None:
            return max(0, self.outside_bytes - max(0, self.process_bytes - self.reserved_bytes))
        return None


def read_oom(text: str) -> OomReading | None:
    """The last out-of-memory message in a text of any length; ``None`` where there is none."""
    text = text[-_MAX_TEXT:]
    flat = re.sub(r"\s+", " ", text)
    end = len(flat)
    for start, backend in reversed(_starts(flat)):
        reading = _allocator_reading(flat[start:end], backend, before=flat[max(0, start - _LEAD) : start])
        if reading is not None:
            return reading
        end = start
    return _without_figures(flat)


def _starts(text: str) -> list[tuple[int, Backend]]:
    found = [
        (match.start(), _BACKENDS[match[1].lower()])
        for match in re.finditer(r"\b(CUDA|HIP|XPU|NPU|MPS backend) out of memory", text, re.IGNORECASE)
    ]
    found += [
        (match.start(), Backend.CUDA_ASYNC) for match in re.finditer(r"Allocation on device \d+ would exceed", text)
    ]
    found += [  # Intel's extension, which may leave out the name of its device
        (match.start(), Backend.XPU)
        for match in re.finditer(r"can ?not allocate memory block with size larger than 4 ?GB", text, re.IGNORECASE)
    ]
    return sorted(found)


_BACKENDS: Final = {
    "cuda": Backend.CUDA,
    "hip": Backend.HIP,
    "xpu": Backend.XPU,
    "npu": Backend.NPU,
    "mps backend": Backend.MPS,
}

# Figures by their words. The first group is the number, the second the unit.
_FIGURES: Final[Mapping[str, tuple[str, ...]]] = {
    "tried_bytes": (rf"Tried to allocate {_SIZE}", rf"Requested(?: size)?\s?: {_SIZE}"),
    "total_bytes": (
        rf"{_SIZE} total capacity",
        rf"total capaci?ty of {_SIZE}",
        rf"max allowed: {_SIZE}",
        rf"Device limit\s?: {_SIZE}",
    ),
    "free_bytes": (
        rf"{_SIZE} free(?! \(according)",
        rf"of which {_SIZE} is free",
        rf"Free \(according to CUDA\)\s?: {_SIZE}",
    ),
    "allocated_bytes": (
        rf"{_SIZE} already allocated",
        rf"{_SIZE} is allocated by PyTorch",
        rf"MPS allocated: {_SIZE}",
        rf"Currently allocated\s?: {_SIZE}",
    ),
    "allowed_bytes": (rf"{_SIZE} allowed;", rf"PyTorch limit \(set by user-supplied memory fraction\)\s?: {_SIZE}"),
    "private_pool_bytes": (rf"with {_SIZE} allocated in private pools",),
    "process_bytes": (rf"this process has {_SIZE} memory in use",),
    "reserved_total": (rf"{_SIZE} reserved in total",),
    "cached": (rf"{_SIZE} cached",),
    "unallocated": (rf"{_SIZE} is reserved by PyTorch but unallocated",),
    "other_allocations": (rf"other allocations: {_SIZE}",),
}


def _allocator_reading(part: str, backend: Backend, *, before: str) -> OomReading | None:
    if re.search(r"more than 1EB", part):
        return OomReading(backend=backend, wording=Wording.OVERFLOW, device=_device(part), line=_line(part))
    preemptive = "preemptively rejected" in part
    figures, nonsense = _figures(part)
    tried = figures.get("tried_bytes")
    if tried is None and "tried_bytes" not in nonsense:
        return None
    if tried is None:
        return OomReading(
            backend=backend, wording=Wording.OVERFLOW, device=_device(part), nonsense=True, line=_line(part)
        )
    allocated = figures.get("allocated_bytes")
    reserved = figures.get("reserved_total")
    for extra in ("cached", "unallocated"):
        if reserved is None and allocated is not None and figures.get(extra) is not None:
            reserved = allocated + figures[extra] + (figures.get("private_pool_bytes") or 0)
    others = {int(match[1]): size for match, size in _processes(part) if size is not None}
    free = figures.get("free_bytes")
    if backend is Backend.MPS:
        others = {}
        reserved = allocated
    process = figures.get("process_bytes")
    if backend is Backend.MPS and figures.get("other_allocations") is not None:
        process = (allocated or 0) + figures["other_allocations"]
    return OomReading(
        backend=backend,
        wording=Wording.PREEMPTIVE if preemptive else Wording.ALLOCATOR,
        device=_device(part),
        tried_bytes=tried,
        total_bytes=figures.get("total_bytes"),
        free_bytes=free,
        allocated_bytes=allocated,
        reserved_bytes=reserved,
        allowed_bytes=figures.get("allowed_bytes"),
        private_pool_bytes=figures.get("private_pool_bytes"),
        process_bytes=process,
        others=others,
        block_limit="memory block with size larger than 4GB" in before + part,
        nonsense=bool(nonsense),
        line=_line(part),
    )


def _figures(part: str) -> tuple[dict[str, int], set[str]]:
    """Bytes by name, and the names of those that no memory is large enough for."""
    figures: dict[str, int] = {}
    nonsense: set[str] = set()
    for name, patterns in _FIGURES.items():
        for pattern in patterns:
            match = re.search(pattern, part, re.IGNORECASE)
            if match is None:
                continue
            size = parse_size(match[1], match[2])
            if size is None:
                nonsense.add(name)
            else:
                figures[name] = size
            break
    return figures, nonsense


def parse_size(number: str, unit: str) -> int | None:
    """Bytes of "1.05", "GiB". All units are powers of 1024, as torch means them; ``None`` for what no memory holds."""
    exponent = _UNITS[unit.lower() if unit.lower() in _UNITS else unit[0].lower()]
    size = round(float(number.replace(",", ".")) * 1024**exponent)
    return size if size < _NONSENSE_BYTES else None


def _processes(part: str) -> list[tuple[re.Match[str], int | None]]:
    matches = re.finditer(rf"Process (\d+) has {_SIZE} memory in use", part)
    return [(match, parse_size(match[2], match[3])) for match in matches]


def _device(part: str) -> int | None:
    match = re.search(r"\b(?:GPU|NPU|device|tile)\s+(\d+)", part)
    return int(match[1]) if match else None


def _line(part: str) -> str:
    return part.strip()[:600]


# What says nothing but that it happened, in the order in which it is looked for.
_BARE: Final[tuple[tuple[str, Backend, Wording], ...]] = (
    (r"ran out of memory outside PyTorch's allocator", Backend.CUDA, Wording.OUTSIDE),
    (r"expandable_segments: memory mapping failed", Backend.CUDA, Wording.MAPPING),
    (r"DefaultCPUAllocator: (?:can't|not enough|cannot)|C10 Out of Memory", Backend.HOST, Wording.HOST),
    (
        r"unable to (?:write to|open|mmap|allocate shared memory).{0,60}shm|insufficient shared memory",
        Backend.HOST,
        Wording.SHARED_MEMORY,
    ),
    (r"DataLoader worker.{0,60}killed by signal: (?:Bus error)", Backend.HOST, Wording.SHARED_MEMORY),
    (
        # The kernel's own words, and Slurm's ("Detected 1 oom_kill event", "task 3: Out Of Memory").
        r"DataLoader worker.{0,60}killed by signal: Killed|oom[-_]kill|Out of memory: Killed|OOM Killed"
        r"|task \d+: Out Of Memory|Exceeded (?:job|step) memory limit",
        Backend.HOST,
        Wording.WORKER_KILLED,
    ),
    (r"CU(?:BLAS|DNN)_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED)", Backend.CUDA, Wording.LIBRARY),
    (r"(?:HIP|hip) error:? ?out of memory|hipErrorOutOfMemory", Backend.HIP, Wording.DRIVER),
    (
        r"CUDA error:? ?out of memory|cuda runtime error \(2\)|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation",
        Backend.CUDA,
        Wording.DRIVER,
    ),
    (r"\bMemoryError\b|Cannot allocate memory|std::bad_alloc", Backend.HOST, Wording.HOST),
    (r"DataLoader worker.{0,60}exited unexpectedly", Backend.HOST, Wording.WORKER_EXITED),
    (r"(?:backward|through) (?:through )?the graph (?:a )?second time", Backend.HOST, Wording.SECOND_BACKWARD),
)


def _without_figures(text: str) -> OomReading | None:
    for pattern, backend, wording in _BARE:
        matches = list(re.finditer(pattern, text, re.IGNORECASE))
        if not matches:
            continue
        part = text[max(0, matches[-1].start() - 40) : matches[-1].end() + 200]
        tried = re.search(r"(?:tried to allocate|Trying to allocate) (\d+) ?(?:bytes)?", part, re.IGNORECASE)
        size = parse_size(tried[1], "bytes") if tried else None
        return OomReading(backend=backend, wording=wording, device=_device(part), tried_bytes=size, line=_line(part))
    return None
