"""The cause of an error of the own run: what the message says goes before where it happened."""

from __future__ import annotations

from dataclasses import replace

import pytest

from desktop_app.core.steps import Phase
from desktop_app.services.oom_cause import advise_smaller_model, likely_cause

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


@pytest.mark.parametrize("phase", [Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER])
def test_what_fits_at_no_batch_is_not_the_batch(phase: Phase) -> None:
    report = replace(make_oom(step=1), message=FULL, phase=phase, fits_no_batch=True)
    assert likely_cause(report) == "first_optimizer_step"
    assert likely_cause(replace(report, message=CROWDED)) == "neighbour"


def test_the_advice_names_what_is_needed_and_what_there_is() -> None:
    report = replace(make_oom(step=1), fits_no_batch=True, least_bytes=3 << 30, room_bytes=2 << 30)
    advice = advise_smaller_model(report) or ""
    assert "needs too much (3.00 GiB of 2.00 GiB)" in advice.replace("\u00a0", " ")
    assert "8-bit Adam" in advice
    assert "GiB" not in (advise_smaller_model(replace(report, room_bytes=4 << 30)) or "")
    assert advise_smaller_model(make_oom(step=1)) is None
