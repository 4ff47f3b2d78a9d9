"""The fast fields of one card: six calls made ready beforehand, several times a second."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from desktop_app.core.telemetry import FAST_FIELDS, Reading, Reason
from desktop_app.telemetry.counters import BusyShare, ByteRate
from desktop_app.telemetry.nvml import MEMORY_V2, NvmlDoor
from desktop_app.telemetry.nvml_facts import CLOCK_MEMORY, CLOCK_SM, SystemMemory, Traits
from desktop_app.telemetry.nvml_gauge import Call, FieldsGauge, Panel
from desktop_app.telemetry.plausibility import (
    CLOCK_MHZ,
    PCIE_BYTES_PER_S,
    PERCENT,
    POWER_W,
    TEMPERATURE_C,
    Range,
    judge,
    judge_used_memory,
    without_all_zeros,
)

# Field ids of nvml.h. The throttle counters are the long-standing ones: the newer ids for heat (251 to 253, then 269 to
# 271, CLOCKS_EVENT_REASON_*) were renumbered between headers, so that one number means two things on two drivers.
_POWER_INSTANT: Final = 186
_POWER_AVERAGE: Final = 185
_PCIE_RX: Final = 198
_PCIE_TX: Final = 197
_THROTTLE_POWER: Final = 74
_THROTTLE_THERMAL: Final = 75
_FIELD_IDS: Final = {
    "power_w": _POWER_INSTANT,
    "power_average_w": _POWER_AVERAGE,
    "pcie_rx_bytes_per_s": _PCIE_RX,
    "pcie_tx_bytes_per_s": _PCIE_TX,
    "throttle_power_percent": _THROTTLE_POWER,
    "throttle_thermal_percent": _THROTTLE_THERMAL,
}
_TEMPERATURE_V1: Final = struct.calcsize("@IIi") | 1 << 24
_SENSOR_GPU: Final = 0
# What the driver writes: nvmlUtilization_t, nvmlTemperature_t, one number, nvmlMemory_v2_t (version, total, reserved,
# free, used), nvmlMemory_t (total, free, used)
_LOAD: Final = Call("nvmlDeviceGetUtilizationRates", "II")
_TEMPERATURE: Final = Call("nvmlDeviceGetTemperatureV", "IIi", head=struct.pack("@II", _TEMPERATURE_V1, _SENSOR_GPU))
_SM_CLOCK: Final = Call("nvmlDeviceGetClockInfo", "I", (CLOCK_SM,))
_MEMORY_CLOCK: Final = Call("nvmlDeviceGetClockInfo", "I", (CLOCK_MEMORY,))
_MEMORY: Final = Call("nvmlDeviceGetMemoryInfo_v2", "IQQQQ", head=struct.pack("@I", MEMORY_V2))
_OLDER_MEMORY: Final = Call("nvmlDeviceGetMemoryInfo", "QQQ")
_OLDER_TEMPERATURE: Final = Call("nvmlDeviceGetTemperature", "I", (_SENSOR_GPU,))
_OLDER_POWER: Final = Call("nvmlDeviceGetPowerUsage", "I")
# field → its call, which of the call's values, what it can be, and the unit
_SIMPLE: Final = {
    "utilization_percent": (_LOAD, 0, PERCENT, 1.0),
    "memory_utilization_percent": (_LOAD, 1, PERCENT, 1.0),
    "temperature_c": (_TEMPERATURE, 2, TEMPERATURE_C, 1.0),
    "sm_clock_mhz": (_SM_CLOCK, 0, CLOCK_MHZ, 1.0),
    "memory_clock_mhz": (_MEMORY_CLOCK, 0, CLOCK_MHZ, 1.0),
}
# The first two are judged by each other and by the power; without load and heat a card has no sensors.
_NEEDED: Final = frozenset({"utilization_percent", "memory_utilization_percent", "power_average_w", "temperature_c"})
_USED_MEMORY: Final = "memory_used_bytes"
_SENSED: Final = (*_SIMPLE, "power_w", "power_average_w")  # zeros in all of them: a card without sensors
_MILLI: Final = 1e-3
_AVERAGE: Final = "power_average_w"


def lane_fields(wanted: Sequence[str]) -> tuple[str, ...]:
    """The same fields, if a fast lane can be made of them: of ``FAST_FIELDS``, with both loads, the average power and
    the temperature, by which others are judged. Raises ``ValueError``."""
    if not _NEEDED <= set(wanted) <= set(FAST_FIELDS):
        raise ValueError(f"a fast lane is some of {FAST_FIELDS} with {sorted(_NEEDED)}, and not {tuple(wanted)}")
    return tuple(wanted)


class FastLane:
    """Reads ``FAST_FIELDS`` of one open card, or those ``fields`` of them that ``lane_fields`` allows.
    Runs in: one thread at a time."""

    def __init__(
        self,
        door: NvmlDoor,
        handle: Any,
        *,
        owner: str,
        traits: Traits,
        system_memory: SystemMemory,
        total_bytes: int | None = None,
        fields: Sequence[str] = FAST_FIELDS,
    ) -> None:
        def panel(*calls: Call) -> Panel:
            return Panel(door, handle, calls, owner=owner)

        fields = lane_fields(fields)
        self._system_memory = system_memory if traits.shared_memory else None
        self._reads_memory, self._total_bytes = _USED_MEMORY in fields, total_bytes
        simple = {field: _SIMPLE[field] for field in _SIMPLE if field in fields}
        counted = [field for field in _FIELD_IDS if field in fields]
        if counted == [_AVERAGE] and traits.power_is_average:  # alone it needs no field values
            counted, simple[_AVERAGE] = [], (_OLDER_POWER, 0, POWER_W, _MILLI)
        calls = list(dict.fromkeys(call for call, *_ in simple.values()))
        if self._reads_memory and self._system_memory is None:
            calls.append(_MEMORY if traits.memory_v2 else _OLDER_MEMORY)
        self._panel = panel(*calls)
        starts = self._panel.starts
        self._simple = [
            (field, calls.index(call), starts[calls.index(call)] + at, allowed, unit)
            for field, (call, at, allowed, unit) in simple.items()
        ]
        self._temperature = calls.index(_TEMPERATURE) if _TEMPERATURE in calls else None
        self._memory, self._total_at = len(calls) - 1, (starts[-1] if starts else 0) + (1 if traits.memory_v2 else 0)
        self._older_temperature, self._older_power = panel(_OLDER_TEMPERATURE), panel(_OLDER_POWER)
        self._power_of_older_call = _AVERAGE if traits.power_is_average else "power_w"
        self._fields = FieldsGauge(door, handle, [_FIELD_IDS[field] for field in counted], owner=owner)
        self._counted = [(field, *_counter(field)) for field in counted]

    def read(self, t_s: float) -> dict[str, Reading]:
        """All of its fields. ``t_s``: session time, for rates."""
        found, refused = self._panel.read()
        readings = {
            field: judge(found[at], allowed, scale=unit) if call not in refused else Reading(None, refused[call])
            for field, call, at, allowed, unit in self._simple
        }
        if refused and self._temperature is not None and refused.get(self._temperature) is Reason.NOT_SUPPORTED:
            readings["temperature_c"] = _only(self._older_temperature, TEMPERATURE_C)
        if self._counted:
            self._count(t_s, readings)
        older = readings.get(self._power_of_older_call)
        if older is not None and older.reason is Reason.NOT_SUPPORTED:  # the moment's draw is never the average
            readings[self._power_of_older_call] = _only(self._older_power, POWER_W, scale=_MILLI)
        if not (readings["utilization_percent"].value or readings["temperature_c"].value):
            readings |= without_all_zeros({field: readings[field] for field in _SENSED if field in readings})
        if self._reads_memory:
            readings[_USED_MEMORY] = self._used_memory(found, refused)
        return readings

    def _count(self, t_s: float, readings: dict[str, Reading]) -> None:
        """What comes as a field value."""
        gauge = self._fields
        for (field, turn, forget), count, bits in zip(self._counted, gauge.read(), gauge.bits, strict=True):
            if count.__class__ is Reason:
                forget()
                readings[field] = Reading(None, count)
            else:
                readings[field] = turn(t_s, count, bits)

    def _used_memory(self, found: tuple[Any, ...], refused: Mapping[int, Reason]) -> Reading:
        if self._system_memory is not None:
            return Reading(float(self._system_memory()[1]))
        if self._memory in refused:
            return Reading(None, refused[self._memory])
        return judge_used_memory(found[self._total_at], found[-1], most_bytes=self._total_bytes)


def _only(panel: Panel, allowed: Range, *, scale: float = 1.0) -> Reading:
    """The one number of a panel with one call."""
    found, refused = panel.read()
    return Reading(None, refused[0]) if refused else judge(found[-1], allowed, scale=scale)


def _counter(field: str) -> tuple[Callable[[float, Any, int], Reading], Callable[[], None]]:
    """(what makes a reading of a field value at a time, what happens when there is none)."""
    if field.startswith("pcie_"):
        rate = ByteRate(most_per_s=PCIE_BYTES_PER_S)
        return (lambda t_s, count, bits: rate.judge(t_s, count, bits=bits)), rate.forget
    if field.startswith("throttle_"):
        share = BusyShare()
        return (lambda t_s, count, _: share.judge(t_s, count)), share.forget
    return (lambda _, count, __: judge(count, POWER_W, scale=_MILLI)), lambda: None
