"""Load as the mean of the driver's own samples since the last look, where looks are rare."""

from __future__ import annotations

import time
from typing import Any, Final

from desktop_app.core.telemetry import Reading
from desktop_app.telemetry.nvml import NvmlDoor
from desktop_app.telemetry.plausibility import PERCENT, is_moment

# nvmlSamplingType_t of nvml.h
GPU_SAMPLES: Final = 1
MEMORY_SAMPLES: Final = 2
_UNSIGNED_INT: Final = 1  # nvmlValueType_t
# The driver takes a sample each sixth of a second: looking less often than this misses some, and a load that beats in
# time with the looks would read as all or nothing.
RARE_S: Final = 0.5


class SampledLoad:
    """One card's buffer of one kind of samples."""

    def __init__(self, kind: int) -> None:
        self._kind = kind
        self._seen_us = 0

    def mean(self, now: Reading, *, door: NvmlDoor, handle: Any, owner: str) -> Reading:
        """The mean since the last look that was ``RARE_S`` or more ago, or ``now`` where the driver has no samples.

        A value that is missing now stays missing.
        """
        if now.value is None:
            return now
        answer = door.samples(handle, self._kind, since_us=self._seen_us, owner=owner)
        if answer.reason is not None or not answer.value or answer.value[0] != _UNSIGNED_INT:
            return now
        wall_s = time.time()
        found = [
            (int(sample.timeStamp), int(sample.sampleValue.uiVal))
            for sample in answer.value[1]
            if is_moment(int(sample.timeStamp), wall_s=wall_s)  # one of the future would hide all that follow
        ]
        loads = [load for time_us, load in found if time_us > self._seen_us and PERCENT.low <= load <= PERCENT.high]
        self._seen_us = max((time_us for time_us, _ in found), default=self._seen_us)
        return Reading(sum(loads) / len(loads)) if loads else now
