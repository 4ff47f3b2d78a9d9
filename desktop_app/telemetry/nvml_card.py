"""One open NVIDIA card: its fast and slow fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from desktop_app.core.telemetry import (
    FAST_FIELDS,
    SLOW_FIELDS,
    Card,
    EnergySource,
    InstanceSample,
    ProcessSample,
    Reading,
    Reason,
)
from desktop_app.telemetry.backend import missing
from desktop_app.telemetry.counters import EnergyCounter, EnergyIntegral
from desktop_app.telemetry.nvml import Answer, NvmlDoor
from desktop_app.telemetry.nvml_details import DETAIL_IDS, NvmlDetails
from desktop_app.telemetry.nvml_facts import SystemMemory, Traits
from desktop_app.telemetry.nvml_fast import FastLane
from desktop_app.telemetry.nvml_gauge import FieldsGauge
from desktop_app.telemetry.nvml_gpm import GPM_FIELDS
from desktop_app.telemetry.nvml_instances import NvmlInstances
from desktop_app.telemetry.nvml_processes import CardProcesses
from desktop_app.telemetry.plausibility import (
    COUNT,
    ENERGY_MJ,
    FAN_PERCENT,
    PCIE_GENERATION,
    PCIE_WIDTH,
    PERCENT,
    PERFORMANCE_STATE,
    POWER_W,
    TEMPERATURE_C,
    judge_used_memory,
)
from desktop_app.telemetry.processes import ProcessDirectory
from desktop_app.telemetry.sampled_load import GPU_SAMPLES, MEMORY_SAMPLES, RARE_S, SampledLoad
from desktop_app.telemetry.stuck_load import StuckLoad

_MEMORY_TEMPERATURE: Final = 82
_SLOW_IDS: Final = (_MEMORY_TEMPERATURE, *DETAIL_IDS)
_ECC_UNCORRECTED: Final = 1
_ECC_VOLATILE: Final = 0  # since the driver was loaded
_MILLI: Final = 1e-3
# What a card split into MIG instances does not report as a whole.
_NOT_IN_MIG: Final = frozenset(
    {
        "utilization_percent",
        "memory_utilization_percent",
        "encoder_percent",
        "decoder_percent",
        "jpeg_percent",
        "optical_flow_percent",
        "encoder_sessions",
        *GPM_FIELDS,
    }
)
# How the driver refuses it; a card that is lost says that instead.
_MIG_REFUSALS: Final = frozenset({Reason.NOT_SUPPORTED, Reason.UNKNOWN_ERROR})


class NvmlCard:
    """Reads one card through the door. Runs in: sampler thread."""

    def __init__(
        self,
        door: NvmlDoor,
        handle: Any,
        card: Card,
        traits: Traits,
        *,
        system_memory: SystemMemory,
        directory: ProcessDirectory,
        fast_fields: Sequence[str] = FAST_FIELDS,
    ) -> None:
        self._door = door
        self._handle = handle
        self.card = card
        self._traits = traits
        self._system_memory = system_memory
        self._fast_fields = fast_fields
        self._make_ready()
        self._processes = CardProcesses(door, directory=directory)
        self._utilization = Reading(None, Reason.NOT_READ_YET)
        self._counter = EnergyCounter()
        self._integral = EnergyIntegral()
        self._looked_s: float | None = None  # when its fast fields were read last
        self._stuck = StuckLoad(power_limit_w=card.power_limit_w)
        self._sampled = {
            "utilization_percent": SampledLoad(GPU_SAMPLES),
            "memory_utilization_percent": SampledLoad(MEMORY_SAMPLES),
        }

    def reopened(self, handle: Any, card: Card, traits: Traits) -> None:
        """The same card after the driver came back: energy goes on, rates start anew."""
        self._handle, self.card, self._traits = handle, card, traits
        self._processes.reopened()
        self._make_ready()
        self._integral.update(0.0, None)

    def _make_ready(self) -> None:
        """Everything that holds the driver's handle. Rates start anew with it."""
        door, handle, owner = self._door, self._handle, self.card.uuid
        self._fast = FastLane(
            door,
            handle,
            owner=owner,
            traits=self._traits,
            system_memory=self._system_memory,
            total_bytes=self.card.total_bytes,
            fields=self._fast_fields,
        )
        self._slow_fields = FieldsGauge(door, handle, _SLOW_IDS, owner=owner)
        self._details = NvmlDetails(door, handle, owner=owner)
        self._instances = (
            NvmlInstances(door, handle, self.card, gpm=self._traits.gpm_in_mig) if self._traits.mig else None
        )

    def read_fast(self, t_s: float) -> Mapping[str, Reading]:
        """All of ``fast_fields``. ``t_s``: session time, for rates."""
        readings = self._fast.read(t_s)
        looked_s, self._looked_s = self._looked_s, t_s
        if looked_s is not None and t_s - looked_s >= RARE_S:
            for field, sampled in self._sampled.items():
                readings[field] = sampled.mean(
                    readings[field], door=self._door, handle=self._handle, owner=self.card.uuid
                )
        power = readings["power_average_w"]
        if "power_w" in readings and readings["power_w"].value is not None:
            power = readings["power_w"]
        self._integral.update(t_s, power.value)
        readings["utilization_percent"] = self._utilization = self._stuck.judge(
            t_s,
            readings["utilization_percent"],
            memory_percent=readings["memory_utilization_percent"],
            power_w=power,
        )
        return self._in_mig(readings)

    def read_slow(self, t_s: float) -> Mapping[str, Reading]:
        """All of ``SLOW_FIELDS`` and ``DETAIL_FIELDS``. ``t_s``: session time, for rates."""
        fields = self._slow_fields.answers()
        readings = missing(SLOW_FIELDS, Reason.NOT_READ_YET)
        readings["fan_percent"] = self._query("nvmlDeviceGetFanSpeed").judged(FAN_PERCENT)
        readings["performance_state"] = self._query("nvmlDeviceGetPerformanceState").judged(PERFORMANCE_STATE)
        readings["power_limit_w"] = self._query("nvmlDeviceGetEnforcedPowerLimit").judged(POWER_W, scale=_MILLI)
        readings["energy_j"] = self._energy(t_s)
        readings["encoder_percent"] = self._query("nvmlDeviceGetEncoderUtilization").item(0).judged(PERCENT)
        readings["decoder_percent"] = self._query("nvmlDeviceGetDecoderUtilization").item(0).judged(PERCENT)
        ecc = self._query("nvmlDeviceGetTotalEccErrors", _ECC_UNCORRECTED, _ECC_VOLATILE)
        readings["ecc_uncorrected"] = ecc.judged(COUNT)
        readings["pcie_generation"] = self._query("nvmlDeviceGetCurrPcieLinkGeneration").judged(PCIE_GENERATION)
        readings["pcie_width"] = self._query("nvmlDeviceGetCurrPcieLinkWidth").judged(PCIE_WIDTH)
        readings["bar1_used_bytes"] = self._used_bar1(self._query("nvmlDeviceGetBAR1MemoryInfo"))
        readings["temperature_memory_c"] = fields[_MEMORY_TEMPERATURE].judged(TEMPERATURE_C)
        readings.update(self._details.read(t_s, fields))
        return self._in_mig(readings)

    def instances(self) -> tuple[InstanceSample, ...]:
        """Its MIG instances; none where it is not split."""
        return () if self._instances is None else self._instances.read()

    @property
    def is_split_anew(self) -> bool:
        """Whether its MIG instances are no longer those of ``card``."""
        return self._instances is not None and self._instances.changed

    def close(self) -> None:
        """Give back what the driver holds for this card, before it is shut down."""
        self._details.close()
        if self._instances is not None:
            self._instances.close()

    def processes(self) -> tuple[ProcessSample, ...]:
        """Compute and graphics processes, one entry a pid. Empty when the list cannot be read."""
        return self._processes.read(self._handle, self.card, self._traits, utilization=self._utilization)

    def _query(self, call: str, *arguments: int) -> Answer:
        return self._door.query(call, self._handle, *arguments, owner=self.card.uuid)

    @staticmethod
    def _used_bar1(answer: Answer) -> Reading:
        if answer.reason is not None:
            return Reading(None, answer.reason)
        return judge_used_memory(int(answer.value.bar1Total), int(answer.value.bar1Used))

    def _energy(self, t_s: float) -> Reading:
        if self.card.energy_source is EnergySource.COUNTER:
            counted = self._query("nvmlDeviceGetTotalEnergyConsumption").judged(ENERGY_MJ, scale=_MILLI)
            return counted if counted.value is None else self._counter.update(t_s, counted.value)
        total_j = self._integral.total_j
        return Reading(None, Reason.NOT_READ_YET) if total_j is None else Reading(total_j)

    def _in_mig(self, readings: dict[str, Reading]) -> dict[str, Reading]:
        if self._traits.mig:
            for field in _NOT_IN_MIG & readings.keys():
                if readings[field].reason in _MIG_REFUSALS:
                    readings[field] = Reading(None, Reason.MIG)
        return readings
