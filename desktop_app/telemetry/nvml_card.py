"""One open NVIDIA card: its fast and slow fields."""

from __future__ import annotations

from collections.abc import Mapping
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
from desktop_app.telemetry.counters import BusyShare, ByteRate, EnergyCounter, EnergyIntegral
from desktop_app.telemetry.nvml import Answer, NvmlDoor, memory_answer
from desktop_app.telemetry.nvml_details import DETAIL_IDS, NvmlDetails
from desktop_app.telemetry.nvml_facts import CLOCK_MEMORY, CLOCK_SM, SystemMemory, Traits
from desktop_app.telemetry.nvml_gpm import GPM_FIELDS
from desktop_app.telemetry.nvml_instances import NvmlInstances
from desktop_app.telemetry.nvml_processes import CardProcesses
from desktop_app.telemetry.nvml_temperatures import temperature
from desktop_app.telemetry.plausibility import (
    BYTES,
    CLOCK_MHZ,
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
    without_all_zeros,
)
from desktop_app.telemetry.processes import ProcessDirectory
from desktop_app.telemetry.sampled_load import GPU_SAMPLES, MEMORY_SAMPLES, SampledLoad
from desktop_app.telemetry.stuck_load import StuckLoad

# Field ids of nvml.h. The throttle counters are the long-standing ones: the newer ids for heat (251 to 253, then 269 to
# 271, CLOCKS_EVENT_REASON_*) were renumbered between headers, so that one number means two things on two drivers.
_POWER_AVERAGE: Final = 185
_POWER_INSTANT: Final = 186
_PCIE_TX: Final = 197
_PCIE_RX: Final = 198
_THROTTLE_POWER: Final = 74
_THROTTLE_THERMAL: Final = 75
_MEMORY_TEMPERATURE: Final = 82
_SLOW_IDS: Final = (_MEMORY_TEMPERATURE, *DETAIL_IDS)
_FAST_IDS: Final = (_POWER_INSTANT, _POWER_AVERAGE, _PCIE_RX, _PCIE_TX, _THROTTLE_POWER, _THROTTLE_THERMAL)
_RATES: Final = {"pcie_rx_bytes_per_s": _PCIE_RX, "pcie_tx_bytes_per_s": _PCIE_TX}
_SHARES: Final = {"throttle_power_percent": _THROTTLE_POWER, "throttle_thermal_percent": _THROTTLE_THERMAL}
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
    ) -> None:
        self._door = door
        self._handle = handle
        self.card = card
        self._traits = traits
        self._system_memory = system_memory
        self._details = NvmlDetails(door, handle, owner=card.uuid)
        self._instances = NvmlInstances(door, handle, card) if traits.mig else None
        self._processes = CardProcesses(door, directory=directory)
        self._utilization = Reading(None, Reason.NOT_READ_YET)
        self._rates = {field: ByteRate() for field in _RATES}
        self._shares = {field: BusyShare() for field in _SHARES}
        self._counter = EnergyCounter()
        self._integral = EnergyIntegral()
        self._stuck = StuckLoad(power_limit_w=card.power_limit_w)
        self._sampled = {
            "utilization_percent": SampledLoad(GPU_SAMPLES),
            "memory_utilization_percent": SampledLoad(MEMORY_SAMPLES),
        }

    def reopened(self, handle: Any, card: Card, traits: Traits) -> None:
        """The same card after the driver came back: energy goes on, rates start anew."""
        self._handle, self.card, self._traits = handle, card, traits
        self._processes.reopened()
        for rate in self._rates.values():
            rate.forget()
        for share in self._shares.values():
            share.forget()
        self._details = NvmlDetails(self._door, handle, owner=card.uuid)
        self._instances = NvmlInstances(self._door, handle, card) if traits.mig else None
        self._integral.update(0.0, None)

    def read_fast(self, t_s: float) -> Mapping[str, Reading]:
        """All of ``FAST_FIELDS``. ``t_s``: session time, for rates."""
        readings = missing(FAST_FIELDS, Reason.NOT_READ_YET)
        utilization = self._query("nvmlDeviceGetUtilizationRates")
        readings["utilization_percent"] = utilization.part("gpu").judged(PERCENT)
        readings["memory_utilization_percent"] = utilization.part("memory").judged(PERCENT)
        readings["temperature_c"] = temperature(self._door, self._handle, self.card.uuid)
        readings["sm_clock_mhz"] = self._query("nvmlDeviceGetClockInfo", CLOCK_SM).judged(CLOCK_MHZ)
        readings["memory_clock_mhz"] = self._query("nvmlDeviceGetClockInfo", CLOCK_MEMORY).judged(CLOCK_MHZ)
        fields = self._door.fields(self._handle, _FAST_IDS, owner=self.card.uuid)
        readings.update(self._power(fields))
        readings = without_all_zeros(readings)
        for field, sampled in self._sampled.items():
            readings[field] = sampled.mean(
                t_s, readings[field], door=self._door, handle=self._handle, owner=self.card.uuid
            )
        readings["memory_used_bytes"] = self._used_memory()
        readings.update(self._moved(t_s, fields))
        power = readings["power_w"] if readings["power_w"].value is not None else readings["power_average_w"]
        self._integral.update(t_s, power.value)
        readings["utilization_percent"] = self._stuck.judge(
            t_s,
            readings["utilization_percent"],
            memory_percent=readings["memory_utilization_percent"],
            power_w=power,
        )
        self._utilization = readings["utilization_percent"]
        return self._in_mig(readings)

    def read_slow(self, t_s: float) -> Mapping[str, Reading]:
        """All of ``SLOW_FIELDS`` and ``DETAIL_FIELDS``. ``t_s``: session time, for rates."""
        fields = self._door.fields(self._handle, _SLOW_IDS, owner=self.card.uuid)
        readings = missing(SLOW_FIELDS, Reason.NOT_READ_YET)
        readings["fan_percent"] = self._query("nvmlDeviceGetFanSpeed").judged(FAN_PERCENT)
        readings["performance_state"] = self._query("nvmlDeviceGetPerformanceState").judged(PERFORMANCE_STATE)
        readings["power_limit_w"] = self._query("nvmlDeviceGetEnforcedPowerLimit").judged(POWER_W, scale=_MILLI)
        readings["energy_j"] = self._energy()
        readings["encoder_percent"] = self._query("nvmlDeviceGetEncoderUtilization").item(0).judged(PERCENT)
        readings["decoder_percent"] = self._query("nvmlDeviceGetDecoderUtilization").item(0).judged(PERCENT)
        ecc = self._query("nvmlDeviceGetTotalEccErrors", _ECC_UNCORRECTED, _ECC_VOLATILE)
        readings["ecc_uncorrected"] = ecc.judged(COUNT)
        readings["pcie_generation"] = self._query("nvmlDeviceGetCurrPcieLinkGeneration").judged(PCIE_GENERATION)
        readings["pcie_width"] = self._query("nvmlDeviceGetCurrPcieLinkWidth").judged(PCIE_WIDTH)
        readings["bar1_used_bytes"] = self._query("nvmlDeviceGetBAR1MemoryInfo").part("bar1Used").judged(BYTES)
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

    def _used_memory(self) -> Reading:
        if self._traits.shared_memory:
            return Reading(float(self._system_memory()[1]))
        answer = memory_answer(self._door, self._handle, self.card.uuid, v2=self._traits.memory_v2)
        if answer.reason is not None:
            return Reading(None, answer.reason)
        return judge_used_memory(int(answer.value.total), int(answer.value.used))

    def _power(self, fields: Mapping[int, Answer]) -> dict[str, Reading]:
        """Draw of the moment and one-second average, never one for the other."""
        power = {
            "power_w": fields[_POWER_INSTANT].judged(POWER_W, scale=_MILLI),
            "power_average_w": fields[_POWER_AVERAGE].judged(POWER_W, scale=_MILLI),
        }
        older = "power_average_w" if self._traits.power_is_average else "power_w"
        if power[older].reason is Reason.NOT_SUPPORTED:
            power[older] = self._query("nvmlDeviceGetPowerUsage").judged(POWER_W, scale=_MILLI)
        return power

    def _moved(self, t_s: float, fields: Mapping[int, Answer]) -> dict[str, Reading]:
        readings: dict[str, Reading] = {}
        for field, field_id in _RATES.items():
            answer, rate = fields[field_id], self._rates[field]
            if answer.reason is not None:
                rate.forget()
                readings[field] = Reading(None, answer.reason)
            else:
                readings[field] = rate.update(t_s, int(answer.value), bits=answer.bits)
        for field, field_id in _SHARES.items():
            counted, share = fields[field_id].judged(COUNT), self._shares[field]
            if counted.value is None:
                share.forget()
                readings[field] = counted
            else:
                readings[field] = share.update(t_s, int(counted.value))
        return readings

    def _energy(self) -> Reading:
        if self.card.energy_source is EnergySource.COUNTER:
            counted = self._query("nvmlDeviceGetTotalEnergyConsumption").judged(ENERGY_MJ, scale=_MILLI)
            return counted if counted.value is None else Reading(self._counter.update(counted.value))
        total_j = self._integral.total_j
        return Reading(None, Reason.NOT_READ_YET) if total_j is None else Reading(total_j)

    def _in_mig(self, readings: dict[str, Reading]) -> dict[str, Reading]:
        if self._traits.mig:
            for field in _NOT_IN_MIG & readings.keys():
                if readings[field].reason in _MIG_REFUSALS:
                    readings[field] = Reading(None, Reason.MIG)
        return readings
