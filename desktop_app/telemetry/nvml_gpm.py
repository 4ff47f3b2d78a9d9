"""GPM: how busy the parts of a card were on average, by the driver's own counters (Hopper and newer)."""

from __future__ import annotations

from typing import Any, Final

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.backend import missing
from desktop_app.telemetry.nvml import Answer, NvmlDoor
from desktop_app.telemetry.plausibility import PERCENT

# nvmlGpmMetricId_t of nvml.h: percent, 0 to 100
_METRICS: Final = {
    "sm_activity_percent": 2,
    "sm_occupancy_percent": 3,
    "tensor_activity_percent": 5,
    "dram_activity_percent": 10,
    "fp64_activity_percent": 11,
    "fp32_activity_percent": 12,
    "fp16_activity_percent": 13,
}
_IDS: Final = tuple(_METRICS.values())
GPM_FIELDS: Final = tuple(_METRICS)


class GpmReader:
    """Two samples that take turns: what lies between them is the mean since the last reading.

    Of a whole card, or with ``gpu_instance`` of one GPU instance of it. Runs in: one thread at a time.
    """

    def __init__(self, door: NvmlDoor, handle: Any, *, owner: str, gpu_instance: int | None = None) -> None:
        self._door = door
        self._handle = handle
        self._owner = owner
        self._instance = gpu_instance
        self._supported: bool | None = None  # asked once
        self._before: Any = None  # the sample of the last reading
        self._spare: Any = None
        self._has_before = False

    def read(self) -> dict[str, Reading]:
        """All of ``GPM_FIELDS``."""
        reason = self._unsupported() or self._take_sample()
        if reason is not None:
            self._has_before = False  # a gap: the next reading starts anew
            return missing(GPM_FIELDS, reason)
        first, self._has_before = not self._has_before, True
        self._before, self._spare = self._spare, self._before
        if first:
            return missing(GPM_FIELDS, Reason.NOT_READ_YET)
        answers = self._door.gpm_metrics(self._spare, self._before, _IDS, owner=self._owner)
        return {field: answers[metric_id].judged(PERCENT) for field, metric_id in _METRICS.items()}

    def close(self) -> None:
        """Give both samples back to the driver, before it is shut down."""
        for sample in (self._before, self._spare):
            if sample is not None:
                self._door.attempt("nvmlGpmSampleFree", sample)
        self._before = self._spare = None
        self._has_before = False

    def _unsupported(self) -> Reason | None:
        if self._supported is None:
            answer = self._door.query("nvmlGpmQueryDeviceSupport", self._handle, owner=self._owner)
            supported = answer.part("isSupportedDevice")
            if supported.reason is not None:
                return supported.reason
            self._supported = bool(supported.value)
        return None if self._supported else Reason.NOT_SUPPORTED

    def _take_sample(self) -> Reason | None:
        """Fill the spare sample with now, or say why not."""
        if self._spare is None:
            made = self._door.query("nvmlGpmSampleAlloc")
            if made.reason is not None:
                return made.reason
            self._spare = made.value
        return self._taken().reason

    def _taken(self) -> Answer:
        if self._instance is None:
            return self._door.ask("nvmlGpmSampleGet", self._handle, self._spare, owner=self._owner)
        return self._door.ask(
            "nvmlGpmMigSampleGet", self._handle, self._instance, self._spare, about=(self._instance,), owner=self._owner
        )
