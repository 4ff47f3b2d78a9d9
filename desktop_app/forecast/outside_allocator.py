"""Cause ``outside_allocator``: this process takes memory of the card past its allocator.

Context, handles, compiled kernels, cuDNN's plans, communication buffers, CUDA graphs.
"""

from __future__ import annotations

from typing import ClassVar

from desktop_app.core.forecasts import Cause
from desktop_app.core.steps import StepSample, Surroundings
from desktop_app.forecast.cause_model import View
from desktop_app.forecast.headroom import HeadroomCause


class OutsideAllocatorCause(HeadroomCause):
    """Follows what the steps say of it, and telemetry where they do not."""

    cause = Cause.OUTSIDE_ALLOCATOR
    action: ClassVar[str] = "free_outside"
    figure: ClassVar[str] = "outside_bytes"
    turn: ClassVar[int] = 1

    def __init__(self) -> None:
        super().__init__()
        self._told_by_steps = False

    def take_step(self, sample: StepSample, view: View) -> None:
        """Take a step: what it needed, and what lay outside at its end."""
        super().take_step(sample, view)
        if sample.memory is not None and sample.memory.outside_bytes > 0:
            self._told_by_steps = True
            self.note(sample.t_s, float(sample.memory.outside_bytes), view)

    def take_surroundings(self, sample: Surroundings, view: View) -> None:
        """Take telemetry's figure, unless the steps have a better one."""
        if sample.outside_bytes is not None and not self._told_by_steps:
            self.note(sample.t_s, float(sample.outside_bytes), view)
