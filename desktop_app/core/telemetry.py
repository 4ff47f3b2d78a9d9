"""What the machine says: cards, readings with their reasons, processes. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Why a field has no value. Every missing value carries one."""

    NOT_READ_YET = "not_read_yet"
    NOT_SUPPORTED = "not_supported"
    NO_PERMISSION = "no_permission"
    MIG = "mig"
    WDDM = "wddm"
    UNIFIED_MEMORY = "unified_memory"
    GPU_LOST = "gpu_lost"
    DRIVER_MISMATCH = "driver_mismatch"
    NO_DRIVER = "no_driver"
    TIMED_OUT = "timed_out"
    IMPLAUSIBLE = "implausible"
    SUSPENDED = "suspended"  # nothing ran: the computer slept, or this program was stopped
    SIMULATED = "simulated"
    UNKNOWN_ERROR = "unknown_error"


class EnergySource(StrEnum):
    """Where ``energy_j`` comes from."""

    COUNTER = "counter"  # the driver's own counter
    INTEGRAL = "integral"  # power over time, gaps excluded
    MODEL = "model"  # the simulated card


@dataclass(frozen=True, slots=True)
class Reading:
    """One field of one card: a value, or ``None`` with the reason. Never 0 or the last value in its place."""

    value: float | None
    reason: Reason | None = None


# Columns of a card's history, in order. Units are in the names; a missing value is NaN there.
FAST_FIELDS: Final = (
    "utilization_percent",
    "memory_utilization_percent",
    "memory_used_bytes",
    "power_w",  # instant (NVML field 186)
    "power_average_w",  # one-second average (NVML field 185)
    "temperature_c",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "throttle_power_percent",  # share of the tick under a power cap, from cumulative ns
    "throttle_thermal_percent",
    "pcie_rx_bytes_per_s",
    "pcie_tx_bytes_per_s",
)
SLOW_FIELDS: Final = (
    "fan_percent",
    "performance_state",  # 0 = P0
    "power_limit_w",
    "energy_j",  # since the session began
    "encoder_percent",
    "decoder_percent",
    "ecc_uncorrected",
    "pcie_generation",
    "pcie_width",
    "bar1_used_bytes",
    "temperature_memory_c",
)
GPU_FIELDS: Final = FAST_FIELDS + SLOW_FIELDS
HOST_FIELDS: Final = (
    "cpu_percent",  # of all cores, 0 to 100
    "memory_used_bytes",
    "memory_available_bytes",
    "disk_read_bytes_per_s",
    "disk_write_bytes_per_s",
    "own_cpu_percent",  # this process, 100 = one core
    "own_rss_bytes",
    "memory_total_bytes",
    "children",  # processes started by this one, e.g. loader workers
    "children_rss_bytes",  # of all of them; what they share with this one is counted in each
    "commit_used_bytes",  # promised by the system; no value where it promises without end
    "commit_limit_bytes",
)


@dataclass(frozen=True, slots=True)
class Card:
    """Static facts of one card, read once. ``None`` is unknown, with its reason in ``reasons``.

    ``torch_index`` is the index CUDA gives it, known only once matched by UUID or bus id.
    """

    uuid: str
    name: str
    nvml_index: int
    bus_id: str | None
    simulated: bool
    total_bytes: int | None
    driver_reserved_bytes: int | None = None
    torch_index: int | None = None
    shared_memory: bool = False
    architecture: str | None = None
    compute_capability: tuple[int, int] | None = None
    sm_count: int | None = None
    power_limit_w: float | None = None
    power_max_w: float | None = None
    temperature_slowdown_c: float | None = None
    temperature_shutdown_c: float | None = None
    sm_clock_max_mhz: float | None = None
    driver_version: str | None = None
    cuda_driver_version: str | None = None
    vbios_version: str | None = None
    energy_source: EnergySource | None = None
    spills: bool = False  # its driver may move memory to RAM when it is full (WDDM, WSL), without an error
    reasons: Mapping[str, Reason] = field(default_factory=dict)

    @property
    def capacity_bytes(self) -> int | None:
        """NVML total minus what the driver keeps for itself: the brim."""
        if self.total_bytes is None:
            return None
        return self.total_bytes - (self.driver_reserved_bytes or 0)


@dataclass(frozen=True, slots=True)
class GpuSample:
    """All fields of one card at one tick; slow fields are present only on slow ticks."""

    t_s: float
    uuid: str
    readings: Mapping[str, Reading]
    late: bool = False


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """One process on a card. ``memory_bytes`` is ``None`` with a reason under WDDM, WSL and in some containers."""

    pid: int
    uuid: str
    name: str
    user: str | None
    command: str | None
    kind: str  # "compute", "graphics" or "both"
    memory_bytes: int | None
    memory_reason: Reason | None = None
    started_wall_s: float | None = None
    own: bool = False
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class SelfCost:
    """What the monitor itself costs, for the status bar and the report."""

    cpu_percent: float | None
    rss_bytes: int | None
    sampling_hz: float
    samples: int
    late: int
    tick_p95_ms: float | None = None
