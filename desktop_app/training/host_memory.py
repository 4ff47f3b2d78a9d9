"""The RAM behind tensors on the CPU: give it back when a training has ended."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys


def return_free_memory() -> None:
    """Hand free heap pages back to the system.

    After a training of many megabyte-sized tensors glibc keeps nearly all of their memory (6.1 of 6.1 GiB measured
    after the leak demonstration), and the next run would be told that the RAM is full. Other systems' allocators
    return it by themselves.
    """
    gc.collect()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
