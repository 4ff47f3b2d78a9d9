"""The fast fields of one card: six calls made ready beforehand, several times a second."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.counters import BusyShare, ByteRate
from desktop_app.telemetry.nvml import MEMORY_V2, NvmlDoor
from desktop_app.telemetry.nvml_facts import CLOCK_MEMORY, CLOCK_SM, SystemMemory, Traits
from desktop_app.telemetry.nvml_gauge import FieldsGauge, Gauge
from desktop_app.telemetry.plausibility import (
    CLOCK_MHZ,
    IMPLAUSIBLE,
    PERCENT,
    POWER_W,
    TEMPERATURE_C,
    Range,
    is_count,
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
_IDS: Final = (_POWER_INSTANT, _POWER_AVERAGE, _PCIE_RX, _PCIE_TX, _THROTTLE_POWER, _THROTTLE_THERMAL)
_RX: Final = _IDS.index(_PCIE_RX)
_TX: Final = _IDS.index(_PCIE_TX)
# What the driver writes: nvmlUtilization_t, one number, nvmlTemperature_t, nvmlMemory_v2_t, nvmlMemory_t
_TWO: Final = "@II"
_ONE: Final = "@I"
_TEMPERATURE: Final = "@IIi"
_TEMPERATURE_V1: Final = struct.calcsize(_TEMPERATURE) | 1 << 24
_MEMORY: Final = "@IQQQQ"  # version, total, reserved, free, used
_OLD_MEMORY: Final = "@QQQ"  # total, free, used
_SENSOR_GPU: Final = 0
_MILLI: Final = 1e-3


class FastLane:
    """Reads ``FAST_FIELDS`` of one open card. Runs in: one thread at a time."""

    def __init__(self, door: NvmlDoor, handle: Any, *, owner: str, traits: Traits, system_memory: SystemMemory) -> None:
        def gauge(call: str, *arguments: int, layout: str, head: bytes = b"") -> Gauge:
            return Gauge(door, call, handle, *arguments, layout=layout, owner=owner, head=head)

        self._system_memory = system_memory if traits.shared_memory else None
        self._power_is_average = traits.power_is_average
        self._load = gauge("nvmlDeviceGetUtilizationRates", layout=_TWO)
        self._temperature = gauge(
            "nvmlDeviceGetTemperatureV", layout=_TEMPERATURE, head=struct.pack("@II", _TEMPERATURE_V1, _SENSOR_GPU)
        )
        self._older_temperature = gauge("nvmlDeviceGetTemperature", _SENSOR_GPU, layout=_ONE)
        self._sm_clock = gauge("nvmlDeviceGetClockInfo", CLOCK_SM, layout=_ONE)
        self._memory_clock = gauge("nvmlDeviceGetClockInfo", CLOCK_MEMORY, layout=_ONE)
        self._memory = (
            gauge("nvmlDeviceGetMemoryInfo_v2", layout=_MEMORY, head=struct.pack("@I", MEMORY_V2))
            if traits.memory_v2
            else gauge("nvmlDeviceGetMemoryInfo", layout=_OLD_MEMORY)
        )
        self._total_at = 1 if traits.memory_v2 else 0
        self._older_power = gauge("nvmlDeviceGetPowerUsage", layout=_ONE)
        self._fields = FieldsGauge(door, handle, _IDS, owner=owner)
        self._rx, self._tx = ByteRate(), ByteRate()
        self._capped, self._hot = BusyShare(), BusyShare()

    def read(self, t_s: float) -> dict[str, Reading]:
        """All of ``FAST_FIELDS``. ``t_s``: session time, for rates."""
        load = self._load.read()
        if isinstance(load, Reason):
            utilization = memory_utilization = Reading(None, load)
        else:
            utilization, memory_utilization = judge(load[0], PERCENT), judge(load[1], PERCENT)
        temperature = self._temperature.read()
        if temperature is Reason.NOT_SUPPORTED:
            temperature = self._older_temperature.read()
        instant, average, rx, tx, capped, hot = self._fields.read()
        readings = {
            "utilization_percent": utilization,
            "memory_utilization_percent": memory_utilization,
            "temperature_c": _last(temperature, TEMPERATURE_C),
            "sm_clock_mhz": _last(self._sm_clock.read(), CLOCK_MHZ),
            "memory_clock_mhz": _last(self._memory_clock.read(), CLOCK_MHZ),
            **self._power(instant, average),
        }
        if not utilization.value and not readings["temperature_c"].value:
            readings = without_all_zeros(readings)
        readings["memory_used_bytes"] = self._used_memory()
        readings["pcie_rx_bytes_per_s"] = _rate(self._rx, t_s, rx, bits=self._fields.bits[_RX])
        readings["pcie_tx_bytes_per_s"] = _rate(self._tx, t_s, tx, bits=self._fields.bits[_TX])
        readings["throttle_power_percent"] = _share(self._capped, t_s, capped)
        readings["throttle_thermal_percent"] = _share(self._hot, t_s, hot)
        return readings

    def _power(self, instant: Any, average: Any) -> Mapping[str, Reading]:
        """Draw of the moment and one-second average, never one for the other."""
        power = {"power_w": _milli(instant), "power_average_w": _milli(average)}
        older = "power_average_w" if self._power_is_average else "power_w"
        if power[older].reason is Reason.NOT_SUPPORTED:
            found = self._older_power.read()
            power[older] = _milli(found if isinstance(found, Reason) else found[0])
        return power

    def _used_memory(self) -> Reading:
        if self._system_memory is not None:
            return Reading(float(self._system_memory()[1]))
        found = self._memory.read()
        if isinstance(found, Reason):
            return Reading(None, found)
        return judge_used_memory(found[self._total_at], found[-1])


def _last(found: tuple[Any, ...] | Reason, allowed: Range) -> Reading:
    return Reading(None, found) if isinstance(found, Reason) else judge(found[-1], allowed)


def _milli(found: Any) -> Reading:
    return Reading(None, found) if isinstance(found, Reason) else judge(found, POWER_W, scale=_MILLI)


def _rate(rate: ByteRate, t_s: float, count: Any, *, bits: int) -> Reading:
    if isinstance(count, Reason):
        rate.forget()
        return Reading(None, count)
    return rate.update(t_s, count, bits=bits)


def _share(share: BusyShare, t_s: float, count_ns: Any) -> Reading:
    if isinstance(count_ns, Reason):
        share.forget()
        return Reading(None, count_ns)
    if not is_count(count_ns):
        share.forget()
        return IMPLAUSIBLE
    return share.update(t_s, count_ns)
