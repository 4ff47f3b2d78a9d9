"""One open AMD card: its fast and slow fields and its process list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from desktop_app.core.telemetry import (
    DETAIL_FIELDS,
    FAST_FIELDS,
    SLOW_FIELDS,
    Card,
    EnergySource,
    ProcessSample,
    Reading,
    Reason,
)
from desktop_app.telemetry.amdsmi import AmdSmiDoor, number, part, text
from desktop_app.telemetry.amdsmi_facts import MICRO, Sensors, clock, energy_j, generation, heat, memory_type
from desktop_app.telemetry.backend import missing
from desktop_app.telemetry.counters import EnergyCounter, EnergyIntegral
from desktop_app.telemetry.plausibility import (
    BYTES,
    CLOCK_MHZ,
    COUNT,
    FAN_PERCENT,
    PCIE_WIDTH,
    PERCENT,
    POWER_W,
    Range,
    judge_used_memory,
)
from desktop_app.telemetry.processes import ProcessDirectory

_MARGIN_C: Final = Range(-100, 150)
# Counters of how often the firmware held the clock back, by its own count of looks (amdsmi_gpu_metrics_t, from MI300).
# amdsmi_get_violation_status sleeps 100 ms to take the difference; here it is taken between two readings.
_LOOKS: Final = "accumulation_counter"
_HELD: Final = {
    "throttle_power_percent": ("ppt_residency_acc",),
    "throttle_thermal_percent": (
        "socket_thm_residency_acc",
        "hbm_thm_residency_acc",
        "vr_thm_residency_acc",
        "prochot_residency_acc",
    ),
}


class AmdCard:
    """Reads one card through the door. Runs in: one thread at a time."""

    def __init__(
        self, door: AmdSmiDoor, handle: Any, card: Card, sensors: Sensors, *, directory: ProcessDirectory
    ) -> None:
        self._door = door
        self._directory = directory
        self._counter = EnergyCounter()
        self._integral = EnergyIntegral()
        self.reopened(handle, card, sensors)

    def reopened(self, handle: Any, card: Card, sensors: Sensors) -> None:
        """The same card after the driver came back: energy goes on, shares start anew."""
        self._handle, self.card, self._sensors = handle, card, sensors
        self._held_before: Mapping[str, int] = {}
        self._integral.update(0.0, None)

    def read_fast(self, t_s: float) -> Mapping[str, Reading]:
        """All of ``FAST_FIELDS``. The bytes that go over PCIe are not told apart by direction: not supported."""
        readings = missing(FAST_FIELDS, Reason.NOT_SUPPORTED)
        activity = self._ask("amdsmi_get_gpu_activity")
        readings["utilization_percent"] = number(part(activity, "gfx_activity"), PERCENT)
        readings["memory_utilization_percent"] = number(part(activity, "umc_activity"), PERCENT)
        readings["memory_used_bytes"] = self._used_memory()
        readings.update(self._power())
        readings["temperature_c"] = self._heat(self._sensors.main)
        readings["sm_clock_mhz"] = self._clock("GFX")
        readings["memory_clock_mhz"] = self._clock("MEM")
        readings.update(self._held_back())
        power = readings["power_w"] if readings["power_w"].value is not None else readings["power_average_w"]
        self._integral.update(t_s, power.value)
        return readings

    def read_slow(self, t_s: float) -> Mapping[str, Reading]:
        """All of ``SLOW_FIELDS`` and ``DETAIL_FIELDS``. One engine decodes and encodes: neither is told apart."""
        readings = missing(SLOW_FIELDS + DETAIL_FIELDS, Reason.NOT_SUPPORTED)
        readings["fan_percent"] = self._fan()
        readings["power_limit_w"] = number(
            part(self._ask("amdsmi_get_power_cap_info"), "power_cap"), POWER_W, bits=64, scale=MICRO
        )
        readings["energy_j"] = self._energy(t_s)
        errors = self._ask("amdsmi_get_gpu_total_ecc_count")
        readings["ecc_uncorrected"] = number(part(errors, "uncorrectable_count"), COUNT, bits=64)
        readings["ecc_corrected"] = number(part(errors, "correctable_count"), COUNT, bits=64)
        pcie = part(self._ask("amdsmi_get_pcie_info"), "pcie_metric")
        readings["pcie_generation"] = generation(part(pcie, "pcie_speed"))
        readings["pcie_width"] = number(part(pcie, "pcie_width"), PCIE_WIDTH)
        readings["pcie_replays"] = number(part(pcie, "pcie_replay_count"), COUNT, bits=64)
        readings["temperature_memory_c"] = self._heat("VRAM")
        readings["temperature_margin_c"] = self._margin()
        readings["graphics_clock_mhz"] = self._clock("GFX")
        readings["video_clock_mhz"] = self._clock("VCLK0")
        pages = self._ask("amdsmi_get_gpu_bad_page_info")
        if isinstance(pages, Reason):
            readings["retired_pages"] = Reading(None, pages)
        elif isinstance(pages, Sequence) and not isinstance(pages, str):
            readings["retired_pages"] = Reading(float(len(pages)))
        return readings

    def processes(self) -> tuple[ProcessSample, ...]:
        """Processes on the card, one entry a pid. Empty when the list cannot be read."""
        listed = self._ask("amdsmi_get_gpu_process_list")
        if isinstance(listed, Reason) or not isinstance(listed, Sequence):
            return ()
        found = {int(entry["pid"]): entry for entry in listed if _has_pid(entry)}
        return tuple(self._process(pid, entry) for pid, entry in sorted(found.items()))

    def _ask(self, call: str, *arguments: object) -> object:
        return self._door.query(call, self._handle, *arguments, owner=self.card.uuid)

    def _heat(self, sensor: str) -> Reading:
        return heat(self._door, self._handle, self.card.uuid, sensor, "CURRENT")

    def _clock(self, kind: str) -> Reading:
        answer = clock(self._door, self._handle, self.card.uuid, kind)
        now = part(answer, "clk")
        return number(part(answer, "cur_clk") if isinstance(now, Reason) else now, CLOCK_MHZ)  # cur_clk: before 24.5

    def _used_memory(self) -> Reading:
        used = number(self._ask("amdsmi_get_gpu_memory_usage", memory_type(self._door)), BYTES, bits=64)
        if used.value is None or self.card.total_bytes is None:
            return used
        return judge_used_memory(self.card.total_bytes, int(used.value))

    def _power(self) -> dict[str, Reading]:
        """Of the moment and average: a family has the one or the other, and never one for the other.

        ``socket_power`` (from 25.x) is the one that there is, without saying which: it is not taken.
        """
        answer = self._ask("amdsmi_get_power_info")
        return {
            "power_w": number(part(answer, "current_socket_power"), POWER_W),
            "power_average_w": number(part(answer, "average_socket_power"), POWER_W),
        }

    def _held_back(self) -> dict[str, Reading]:
        answer = self._ask("amdsmi_get_gpu_metrics_info")
        if isinstance(answer, Reason):
            return missing(_HELD, answer)
        names = [_LOOKS, *(name for parts in _HELD.values() for name in parts)]
        now = {}
        for name in names:
            counted = number(part(answer, name), COUNT, bits=64)
            if counted.value is not None:
                now[name] = int(counted.value)
        before, self._held_before = self._held_before, now
        if _LOOKS not in now:
            return missing(_HELD, Reason.NOT_SUPPORTED)
        looks = now[_LOOKS] - before.get(_LOOKS, now[_LOOKS])
        shares = {}
        for field, parts in _HELD.items():
            known = [now[name] - before[name] for name in parts if name in now and name in before]
            if not any(name in now for name in parts):
                shares[field] = Reading(None, Reason.NOT_SUPPORTED)
            elif looks <= 0 or not known or min(known) < 0:
                shares[field] = Reading(None, Reason.NOT_READ_YET)
            else:
                shares[field] = Reading(min(100.0, 100.0 * max(known) / looks))
        return shares

    def _fan(self) -> Reading:
        speed = number(self._ask("amdsmi_get_gpu_fan_speed", 0), COUNT, bits=32)
        most = number(self._ask("amdsmi_get_gpu_fan_speed_max", 0), Range(0, 1e6, zero=False), bits=32)
        if speed.value is None or most.value is None:
            return Reading(None, speed.reason or most.reason)
        return number(100.0 * speed.value / most.value, FAN_PERCENT, bits=64)

    def _margin(self) -> Reading:
        hot = self._heat("HOTSPOT")
        if hot.value is None or self._sensors.hot_limit_c is None:
            return Reading(None, hot.reason or Reason.NOT_SUPPORTED)
        return number(self._sensors.hot_limit_c - hot.value, _MARGIN_C)

    def _energy(self, t_s: float) -> Reading:
        if self.card.energy_source is EnergySource.COUNTER:
            counted = energy_j(self._ask("amdsmi_get_energy_count"))
            return counted if counted.value is None else self._counter.update(t_s, counted.value)
        total_j = self._integral.total_j
        return Reading(None, Reason.NOT_READ_YET) if total_j is None else Reading(total_j)

    def _process(self, pid: int, entry: Mapping[str, object]) -> ProcessSample:
        memory = self._process_memory(entry)
        units = self._share_of_units(entry)
        known = self._directory.sample(pid, uuid=self.card.uuid, kind="compute")  # the library does not say which kind
        return replace(
            known,
            name=known.name or text(entry.get("name")) or "",
            memory_bytes=None if memory.value is None else int(memory.value),
            memory_reason=memory.reason,
            sm_percent=units.value,
            sm_reason=units.reason,
        )

    def _process_memory(self, entry: Mapping[str, object]) -> Reading:
        """What it has of the card's own memory; "mem" counts the computer's with it."""
        own = number(part(entry, "memory_usage", "vram_mem"), BYTES, bits=64)
        if own.value is None:
            return own
        most = self.card.total_bytes
        return Reading(None, Reason.IMPLAUSIBLE) if most is not None and own.value > most else own

    def _share_of_units(self, entry: Mapping[str, object]) -> Reading:
        """Of the compute units, how many it has waves on (from 26.0)."""
        busy = number(part(entry, "cu_occupancy"), COUNT, bits=32)
        if busy.value is None or not self.card.sm_count:
            return Reading(None, busy.reason or Reason.NOT_SUPPORTED)
        return number(100.0 * busy.value / self.card.sm_count, PERCENT, bits=64)


def _has_pid(entry: object) -> bool:
    pid = entry.get("pid") if isinstance(entry, Mapping) else None
    return isinstance(pid, int) and 0 < pid < 2**31
