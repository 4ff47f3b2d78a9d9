"""The likely cause of an out-of-memory error of the own run, where no alert had named one, and what then helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from desktop_app.core.forecasts import Cause
from desktop_app.core.steps import OomReport, Phase
from desktop_app.core.units import format_bytes
from desktop_app.memory.oom_reading import read_oom
from desktop_app.memory.oom_verdict import OomCause, judge_oom

# What the message itself says; of a training that is too large the phase says more.
_BY_MESSAGE: Final[Mapping[OomCause, str]] = {
    OomCause.OTHER_PROCESSES: Cause.NEIGHBOUR.value,
    OomCause.FRAGMENTATION: Cause.FRAGMENTATION.value,
    OomCause.OUTSIDE_ALLOCATOR: Cause.OUTSIDE_ALLOCATOR.value,
    OomCause.SYSTEM_MEMORY_FALLBACK: Cause.SPILL.value,
    OomCause.HOST_MEMORY: Cause.HOST_MEMORY.value,
}
_BY_PHASE: Final[Mapping[Phase, str]] = {
    Phase.VALIDATION: Cause.VALIDATION.value,
    Phase.SAVE: Cause.CHECKPOINT_SAVE.value,
}
_FIRST_STEP: Final[Mapping[Phase, str]] = {
    Phase.FORWARD: Cause.BATCH_SHAPE.value,
    Phase.BACKWARD: Cause.BATCH_SHAPE.value,
    Phase.OPTIMIZER: Cause.FIRST_OPTIMIZER_STEP.value,
}


def likely_cause(report: OomReport) -> str | None:
    """A ``Cause`` value from the message, else from the phase; ``None`` where neither tells.

    The first step of all makes the optimizer's state, and holds nothing but one batch before; later ones had fitted
    before, and only an alert knows what has changed since. Where no batch fits the first step, it is not the batch.
    """
    reading = read_oom(report.message)
    named = None if reading is None else _BY_MESSAGE.get(judge_oom(reading).cause)
    if named is not None:
        return named
    if report.step == 1 and report.phase in _FIRST_STEP:
        return Cause.FIRST_OPTIMIZER_STEP.value if report.fits_no_batch else _FIRST_STEP[report.phase]
    return _BY_PHASE.get(report.phase)


def advise_smaller_model(report: OomReport) -> str | None:
    """One line for a run that no batch would have made fit; ``None`` for others."""
    if not report.fits_no_batch:
        return None
    needs = ""
    if report.least_bytes is not None and report.room_bytes is not None and report.least_bytes > report.room_bytes:
        needs = f" ({format_bytes(report.least_bytes)} of {format_bytes(report.room_bytes)})"
    return (
        f"at any batch size the model with its gradients and the optimizer's state needs too much{needs}: take a "
        "smaller network, SGD or an 8-bit Adam, foreach = false, or a larger card"
    )
