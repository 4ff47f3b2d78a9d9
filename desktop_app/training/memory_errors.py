"""Recognise an out-of-memory error of a card by its text, and read the numbers in it."""

from __future__ import annotations

import re
from typing import Final

from desktop_app.core.units import GIB, KIB, MIB

# Texts that mean: the card is full. Wrappers re-raise as RuntimeError and libraries have errors of their own, so the
# class alone does not tell. cuDNN says NOT_SUPPORTED when no algorithm's workspace could be had.
_DEVICE_TEXTS: Final = (
    "out of memory",
    "memory mapping failed with oom",
    "cublas_status_alloc_failed",
    "cudnn_status_alloc_failed",
    "cudnn_status_not_supported",
    "would exceed allowed memory",
    "exceed per_process_memory_fraction",
)
# The host's RAM is full: another illness with another cure.
_HOST_TEXTS: Final = ("defaultcpuallocator", "c10 out of memory")
_REQUESTED: Final = re.compile(r"(?:tried to allocate|requested(?: size)?\s*:)\s*([\d.]+)\s*(bytes|[kmg]i?b)", re.I)
_UNITS: Final = {"bytes": 1, "kib": KIB, "mib": MIB, "gib": GIB, "kb": KIB, "mb": MIB, "gb": GIB}


def is_device_out_of_memory(error: BaseException) -> bool:
    """Whether the error says that a card is full."""
    import torch

    if isinstance(error, torch.OutOfMemoryError):
        return not is_host_out_of_memory(error)
    words = str(error).lower()
    return (
        isinstance(error, RuntimeError)
        and any(text in words for text in _DEVICE_TEXTS)
        and not is_host_out_of_memory(error)
    )


def is_host_out_of_memory(error: BaseException) -> bool:
    """Whether the error says that the host's RAM is full."""
    words = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(text in words for text in _HOST_TEXTS)
    )


def requested_bytes(message: str) -> int | None:
    """What was asked for, as the message rounds it (the allocator's segment, not the tensor); ``None`` if unsaid."""
    found = _REQUESTED.search(message)
    if found is None:
        return None
    return round(float(found[1]) * _UNITS[found[2].lower()])
