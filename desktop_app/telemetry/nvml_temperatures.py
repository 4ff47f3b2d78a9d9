"""A card's temperature and the temperatures at which something happens."""

from __future__ import annotations

from typing import Any, Final

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.fact_sheet import FactSheet
from desktop_app.telemetry.nvml import NvmlDoor
from desktop_app.telemetry.nvml_gauge import FieldsGauge
from desktop_app.telemetry.plausibility import MARGIN_C, TEMPERATURE_C, judge

SENSOR_GPU: Final = 0
# nvmlTemperatureThresholds_t, and the field that gives the same as a margin
_THRESHOLDS: Final = {
    "temperature_slowdown_c": (1, 194),
    "temperature_shutdown_c": (0, 193),
    "temperature_operating_max_c": (3, 196),
}
_THRESHOLD_MEMORY: Final = 2  # its margin (195) is of the GPU's temperature, and says nothing of the memory's


def temperature(door: NvmlDoor, handle: Any, uuid: str) -> Reading:
    """°C by the newer call, or by the older one that leaves with CUDA 14."""
    answer = door.query("nvmlDeviceGetTemperatureV", handle, SENSOR_GPU, owner=uuid)
    if answer.reason is Reason.NOT_SUPPORTED:
        answer = door.query("nvmlDeviceGetTemperature", handle, SENSOR_GPU, owner=uuid)
    return answer.judged(TEMPERATURE_C)


def read_limits(facts: FactSheet, door: NvmlDoor, handle: Any, uuid: str) -> dict[str, Any]:
    """Facts of a ``Card`` in °C: read, or from the margin that newer data-centre drivers give instead."""
    limits = {name: _threshold(door, handle, uuid, number) for name, (number, _) in _THRESHOLDS.items()}
    if any(limit.value is None for limit in limits.values()):
        by_margin = _by_margin(door, handle, uuid)
        limits = {
            name: by_margin[name] if limit.value is None and by_margin[name].value is not None else limit
            for name, limit in limits.items()
        }
    limits["temperature_memory_max_c"] = _threshold(door, handle, uuid, _THRESHOLD_MEMORY)
    return {name: facts.number(name, limit) for name, limit in limits.items()}


def _threshold(door: NvmlDoor, handle: Any, uuid: str, number: int) -> Reading:
    return door.query("nvmlDeviceGetTemperatureThreshold", handle, number, owner=uuid).judged(TEMPERATURE_C)


def _by_margin(door: NvmlDoor, handle: Any, uuid: str) -> dict[str, Reading]:
    """Thresholds as temperature now + margin now - limit: T.Limit counts down to 0 at the highest operating
    temperature, and the limits of slowdown and shutdown lie below 0 (nvidia-smi -q -d TEMPERATURE)."""
    now = temperature(door, handle, uuid)
    margin = door.query("nvmlDeviceGetMarginTemperature", handle, owner=uuid).judged(MARGIN_C)
    limits = FieldsGauge(door, handle, [field_id for _, field_id in _THRESHOLDS.values()], owner=uuid).answers()
    return {
        name: _limit_temperature(now, margin, limits[field_id].judged(MARGIN_C))
        for name, (_, field_id) in _THRESHOLDS.items()
    }


def _limit_temperature(now: Reading, margin: Reading, limit: Reading) -> Reading:
    for reading in (now, margin, limit):
        if reading.value is None:
            return reading
    return judge((now.value or 0.0) + (margin.value or 0.0) - (limit.value or 0.0), TEMPERATURE_C)
