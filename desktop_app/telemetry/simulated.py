"""The simulated card: any part of the catalogue, driven by a real training through ``CardLoad``."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from desktop_app.core.clock import SessionClock
from desktop_app.core.load import CardLoad
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
from desktop_app.telemetry.backend import missing
from desktop_app.telemetry.card_model import AMBIENT_C, KERNEL_SHARE, CardModel, CardPhysics, CardState
from desktop_app.telemetry.catalogue import CatalogueCard
from desktop_app.telemetry.processes import ProcessDirectory

# Where no capture gives the thresholds: 93 °C slows the T4 and is the maximum of several GeForce cards; every capture
# puts shutdown 3 °C or more above slowdown.
_SLOWDOWN_C: Final = 93.0
_SHUTDOWN_MARGIN_C: Final = 3.0
# Stand-ins inside the model where the catalogue is blank; the fields that would show them stay without a value.
_UNKNOWN_TDP_W: Final = 100.0
_UNKNOWN_BOOST_MHZ: Final = 1500.0
_CLOCK_STEP_MHZ: Final = 15.0  # granularity of NVIDIA clocks from Volta on
# Reads and writes of memory keep it busy for less than half the time in the captures of busy GeForce cards.
_MEMORY_TO_COMPUTE: Final = 0.45
_UTILIZATION_NOISE_PERCENT: Final = 0.8
_POWER_NOISE_SHARE: Final = 0.005
_OTHERS_PID: Final = 4_194_305  # above the highest pid that Linux gives
_IDLE_PSTATE: Final = 8.0
_IDLE_PCIE_GENERATION: Final = 1.0  # the link slows down with the clocks
_ECC_SEGMENTS: Final = frozenset({"datacenter"})
_FANLESS_SEGMENTS: Final = frozenset({"datacenter", "embedded", "cloud accelerator"})
# nvmlClocksEventReasons
_GPU_IDLE: Final = 0x1
_POWER_CAP: Final = 0x4
_SLOWED_BY_HEAT: Final = 0x20
_CONSUMER_SEGMENTS: Final = frozenset({"consumer", "laptop"})


class SimulatedBackend:
    """One simulated card behind the ``Backend`` border. Runs in: sampler thread.

    Utilisation comes from the training's duty, memory from what it holds, the rest from ``CardModel``. ``seed`` fixes
    the small noise of the sensors. Fields that the real card lacks are ``not_supported``; fields without a model, or
    whose figure the catalogue lacks, are ``simulated``.
    """

    def __init__(
        self,
        part: CatalogueCard,
        *,
        load: CardLoad,
        clock: SessionClock,
        seed: int = 0,
        ambient_c: float = AMBIENT_C,
        power_limit_w: float | None = None,
    ) -> None:
        if part.total_bytes is None:
            raise ValueError(f"{part.name} has no known memory")
        self._part = part
        self._load = load
        self._clock = clock
        self._limit_w = power_limit_w or part.tdp_w
        self._model = CardModel(physics_of(part, ambient_c=ambient_c, power_limit_w=power_limit_w))
        self._noise = random.Random(seed)
        self._advanced_s = clock.now_s()
        self._card = _describe(part, self._limit_w)
        self._processes = ProcessDirectory()

    @property
    def name(self) -> str:
        return "simulated"

    def open(self) -> tuple[Card, ...]:
        """The one card, labelled simulated."""
        return (self._card,)

    def close(self) -> None:
        """Nothing is held."""

    def read_fast(self, card: Card) -> Mapping[str, Reading]:
        """All of ``FAST_FIELDS`` after advancing the model to now."""
        del card
        now_s = self._clock.now_s()
        self._load.move_neighbour(now_s, capacity_bytes=self._card.capacity_bytes or 0)
        state = self._model.advance(self._load.take_duty(now_s), now_s - self._advanced_s)
        self._advanced_s = max(self._advanced_s, now_s)
        readings = missing(FAST_FIELDS, Reason.SIMULATED)
        readings.update(self._activity(state))
        readings["memory_used_bytes"] = Reading(float(self._used_bytes()))
        readings["temperature_c"] = Reading(float(round(state.temperature_c)))
        if self._part.tdp_w is not None:
            readings["power_w"] = Reading(self._sensed_power_w(state))
            readings["power_average_w"] = Reading(round(state.power_average_w, 3))
        if self._part.boost_clock_mhz is not None:
            readings["sm_clock_mhz"] = Reading(_CLOCK_STEP_MHZ * round(state.clock_mhz / _CLOCK_STEP_MHZ))
        return readings

    def read_slow(self, card: Card) -> Mapping[str, Reading]:
        """All of ``SLOW_FIELDS`` and ``DETAIL_FIELDS`` of the moment of the last fast reading."""
        del card
        part, state = self._part, self._model.state
        readings = missing(SLOW_FIELDS + DETAIL_FIELDS, Reason.SIMULATED)
        readings["performance_state"] = Reading(_IDLE_PSTATE if state.idle else _busy_pstate(part))
        readings["fan_percent"] = _or_unsupported(
            round(100.0 * state.fan_share), supported=part.segment not in _FANLESS_SEGMENTS
        )
        if part.tdp_w is not None:
            readings["power_limit_w"] = Reading(self._limit_w)
            readings["energy_j"] = Reading(state.energy_j)
        readings.update(self._details(state))
        if part.segment not in _ECC_SEGMENTS:
            readings["ecc_uncorrected"] = Reading(None, Reason.NOT_SUPPORTED)
        if not (part.memory_type or "").startswith("HBM"):
            readings["temperature_memory_c"] = Reading(None, Reason.NOT_SUPPORTED)
        if part.pcie_link is not None:
            generation, width = part.pcie_link
            readings["pcie_generation"] = Reading(_IDLE_PCIE_GENERATION if state.idle else float(generation))
            readings["pcie_width"] = Reading(float(width))
        return readings

    def processes(self, card: Card) -> tuple[ProcessSample, ...]:
        """This training, and one process that stands for all others: the neighbour of a demonstration, or a desktop."""
        samples = []
        neighbour = self._load.neighbour_name
        if self._load.process_bytes:
            samples.append(self._own_process(card.uuid))
        if self._load.others_bytes:
            samples.append(
                ProcessSample(
                    pid=_OTHERS_PID,
                    uuid=card.uuid,
                    name=neighbour or "desktop",
                    user=None,
                    command=None,
                    kind="compute" if neighbour else "graphics",
                    memory_bytes=self._load.others_bytes,
                    simulated=True,
                    sm_reason=Reason.SIMULATED,
                )
            )
        return tuple(samples)

    def _own_process(self, uuid: str) -> ProcessSample:
        return replace(
            self._processes.sample(os.getpid(), uuid=uuid, kind="compute"),
            memory_bytes=self._load.process_bytes,
            own=True,
            simulated=True,
            sm_reason=Reason.SIMULATED,
        )

    def _activity(self, state: CardState) -> dict[str, Reading]:
        busy_percent = 100.0 * KERNEL_SHARE * state.duty
        if busy_percent > 0:
            busy_percent += self._noise.gauss(0.0, _UTILIZATION_NOISE_PERCENT)
        memory_percent = _MEMORY_TO_COMPUTE * busy_percent
        return {
            "utilization_percent": Reading(_whole_percent(busy_percent)),
            "memory_utilization_percent": Reading(_whole_percent(memory_percent)),
            "throttle_power_percent": Reading(100.0 * state.throttle_power_share),
            "throttle_thermal_percent": Reading(100.0 * state.throttle_thermal_share),
        }

    def _details(self, state: CardState) -> dict[str, Reading]:
        """What the model knows; the rest of ``DETAIL_FIELDS`` it does not, and a real card of the part might."""
        slowdown_c = self._card.temperature_slowdown_c or _SLOWDOWN_C
        reasons = (_GPU_IDLE if state.idle else 0) | (_POWER_CAP if state.throttle_power_share > 0 else 0)
        reasons |= _SLOWED_BY_HEAT if state.throttle_thermal_share > 0 else 0
        details = {
            "temperature_margin_c": Reading(float(round(slowdown_c - state.temperature_c))),
            "throttle_reasons": Reading(float(reasons)),
        }
        if self._part.boost_clock_mhz is not None:  # SM and graphics clock are one on cards of today
            details["graphics_clock_mhz"] = Reading(_CLOCK_STEP_MHZ * round(state.clock_mhz / _CLOCK_STEP_MHZ))
        return details

    def _sensed_power_w(self, state: CardState) -> float:
        return round(state.power_w * (1.0 + self._noise.gauss(0.0, _POWER_NOISE_SHARE)), 3)

    def _used_bytes(self) -> int:
        return min(self._load.used_bytes, self._card.capacity_bytes or 0)


def physics_of(part: CatalogueCard, *, ambient_c: float = AMBIENT_C, power_limit_w: float | None = None) -> CardPhysics:
    """The model's constants for a part of the catalogue."""
    tdp_w = part.tdp_w or _UNKNOWN_TDP_W
    return CardPhysics(
        tdp_w=tdp_w,
        power_limit_w=power_limit_w or tdp_w,
        boost_clock_mhz=part.boost_clock_mhz or _UNKNOWN_BOOST_MHZ,
        slowdown_c=part.temperature_slowdown_c or _SLOWDOWN_C,
        ambient_c=ambient_c,
        fan=part.segment not in _FANLESS_SEGMENTS,
    )


def _describe(part: CatalogueCard, limit_w: float | None) -> Card:
    slowdown_c = part.temperature_slowdown_c or _SLOWDOWN_C
    figures = {
        "sm_count": part.sm_count,
        "power_limit_w": limit_w,
        "power_max_w": part.power_max_w or part.tdp_w,
        "sm_clock_max_mhz": part.boost_clock_mhz,
        "architecture": part.architecture,
        "compute_capability": part.cuda_capability,
    }
    absent = ("bus_id", "torch_index", "driver_version", "cuda_driver_version", "vbios_version")
    return Card(
        uuid=f"SIM-{part.card_id}",
        name=part.name,
        nvml_index=0,
        bus_id=None,
        simulated=True,
        total_bytes=part.total_bytes,
        driver_reserved_bytes=part.driver_reserved_bytes,
        shared_memory=part.shared_memory,
        spills=part.spills,
        vendor=part.vendor,
        architecture=part.architecture,
        compute_capability=part.cuda_capability,
        sm_count=part.sm_count,
        power_limit_w=limit_w,
        power_max_w=part.power_max_w or part.tdp_w,
        temperature_slowdown_c=slowdown_c,
        temperature_shutdown_c=part.temperature_shutdown_c or slowdown_c + _SHUTDOWN_MARGIN_C,
        sm_clock_max_mhz=part.boost_clock_mhz,
        energy_source=EnergySource.MODEL if part.tdp_w is not None else None,
        reasons=dict.fromkeys((*absent, *(key for key, value in figures.items() if value is None)), Reason.SIMULATED),
    )


def _busy_pstate(part: CatalogueCard) -> float:
    """CUDA work runs in P2 on GeForce, in P0 elsewhere."""
    return 2.0 if part.segment in _CONSUMER_SEGMENTS else 0.0


def _or_unsupported(value: float, *, supported: bool) -> Reading:
    return Reading(float(value)) if supported else Reading(None, Reason.NOT_SUPPORTED)


def _whole_percent(percent: float) -> float:
    return float(min(100, max(0, round(percent))))
