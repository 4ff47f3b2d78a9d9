"""The cause of an error of the own run: what the message says goes before where it happened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from desktop_app.core.steps import Phase
from desktop_app.services.oom_cause import likely_cause

from .doubles import make_oom

# Forms of torch 2.x messages, with the figures of the cards they name.
FULL = (
    "CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 84.00 MiB is "
    "free. Including non-PyTorch memory, this process has 7.91 GiB memory in use. Of the allocated memory 7.30 GiB is "
    "allocated by PyTorch, and 40.00 MiB is reserved by PyTorch but unallocated."
)
FRAGMENTED = FULL.replace("7.30 GiB is", "4.80 GiB is").replace("40.00 MiB is reserved", "2.60 GiB is reserved")
CROWDED = (
    "CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 24.00 GiB of which 100.00 MiB is "
    "free. Process 4242 has 9.00 GiB memory in use. Including non-PyTorch memory, this process has 14.90 GiB memory in "
    "use. Of the allocated memory 14.30 GiB is allocated by PyTorch, and 40.00 MiB is "
    "reserved by PyTorch but unallocated."
)


@pytest.mark.parametrize(
    ("message", "step", "phase", "cause"),
    [
        (FULL, 1, Phase.FORWARD, "batch_shape"),
        (FULL, 1, Phase.OPTIMIZER, "first_optimizer_step"),
        (FULL, 90, Phase.OPTIMIZER, None),
        (FULL, 90, Phase.BACKWARD, None),
        (FULL, 90, Phase.VALIDATION, "validation"),
        (FULL, 90, Phase.SAVE, "checkpoint_save"),
        (FRAGMENTED, 90, Phase.FORWARD, "fragmentation"),
        (CROWDED, 1, Phase.FORWARD, "neighbour"),
        (
            "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            3,
            Phase.FORWARD,
            "outside_allocator",
        ),
        ("words that nobody knows", 1, Phase.BACKWARD, "batch_shape"),
    ],
)
def test_the_likely_cause(message: str, step: int, phase: Phase, cause: str | None) -> None:
    assert likely_cause(replace(make_oom(step=step), message=message, phase=phase)) == cause
