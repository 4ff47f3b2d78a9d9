"""What the machine says: cards, readings with their reasons, processes. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple


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
    ASLEEP = "asleep"  # the card sleeps to save power, and reading it would wake it
    SIMULATED = "simulated"
    UNKNOWN_ERROR = "unknown_error"


class EnergySource(StrEnum):
    """Where ``energy_j`` comes from."""

    COUNTER = "counter"  # the driver's own counter
    INTEGRAL = "integral"  # power over time, gaps excluded
    MODEL = "model"  # the simulated card


class Reading(NamedTuple):  # a tuple: a hundred are made in a tick, and a frozen dataclass takes twice as long
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
# What few look at all day: read with the slow fields, kept in a history of its own (``details:<uuid>``), so that the
# dozens of fields of sixteen cards do not cost five rows a second.
DETAIL_FIELDS: Final = (
    "sm_activity_percent",  # GPM, mean over the time since the last reading; Hopper and newer
    "sm_occupancy_percent",  # GPM: share of the warp slots that were used
    "tensor_activity_percent",  # GPM: any tensor pipe
    "dram_activity_percent",  # GPM: bandwidth of the memory
    "fp16_activity_percent",  # GPM
    "fp32_activity_percent",  # GPM
    "fp64_activity_percent",  # GPM
    "graphics_clock_mhz",
    "video_clock_mhz",
    "throttle_sync_boost_percent",  # share of the time since the last reading, from cumulative ns
    "throttle_board_limit_percent",
    "throttle_low_utilization_percent",
    "throttle_reliability_percent",
    "throttle_reasons",  # the bits of nvmlClocksEventReasons at this moment
    "temperature_margin_c",  # to the highest temperature of normal operation; 0 is at the limit
    "power_module_w",  # Grace Hopper: the whole module
    "jpeg_percent",
    "optical_flow_percent",
    "encoder_sessions",
    "pcie_replays",  # since the driver was loaded
    "nvlink_rx_bytes_per_s",  # all links together
    "nvlink_tx_bytes_per_s",
    "nvlinks_active",
    "ecc_corrected",  # since the driver was loaded
    "ecc_corrected_total",  # over the life of the card
    "ecc_uncorrected_total",
    "remapped_rows_corrected",
    "remapped_rows_uncorrected",
    "remapping_pending",  # 1: a reset of the card will remap rows
    "remapping_failed",  # 1: no spare row was left
    "retired_pages",  # before Ampere: pages that are no longer used
    "mps_clients",  # processes of the multi-process service
)
ALL_GPU_FIELDS: Final = GPU_FIELDS + DETAIL_FIELDS
# What a MIG instance is asked for with the slow fields; loads are those of the whole card's fields of these names.
INSTANCE_FIELDS: Final = (
    "memory_used_bytes",
    "utilization_percent",
    "memory_utilization_percent",
    "sm_activity_percent",
    "sm_occupancy_percent",
    "tensor_activity_percent",
    "dram_activity_percent",
    "fp16_activity_percent",
    "fp32_activity_percent",
    "fp64_activity_percent",
)
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
class MigInstance:
    """One slice of a card in MIG mode. CUDA knows it by ``uuid`` (``MIG-…``)."""

    uuid: str
    name: str  # its profile, such as ``1g.10gb``; empty when the driver does not say
    gpu_instance: int
    compute_instance: int
    total_bytes: int | None = None
    sm_count: int | None = None
    reasons: Mapping[str, Reason] = field(default_factory=dict)


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
    power_min_w: float | None = None
    power_default_w: float | None = None
    temperature_memory_max_c: float | None = None
    temperature_operating_max_c: float | None = None
    memory_clock_max_mhz: float | None = None
    memory_bus_bits: int | None = None
    bar1_total_bytes: int | None = None
    pcie_generation_max: int | None = None
    pcie_width_max: int | None = None
    compute_mode: str | None = None  # "default", "exclusive_process" or "prohibited"
    persistence_mode: str | None = None  # "on" or "off"
    ecc_mode: str | None = None  # "on" or "off"
    mig_mode: str | None = None  # "on" or "off"
    driver_model: str | None = None  # "wddm", "tcc" or "mcdm"; Windows only
    display_active: str | None = None  # "on" or "off": a screen hangs on it
    numa_node: int | None = None
    instances: tuple[MigInstance, ...] = ()
    spills: bool = False  # its driver may move memory to RAM when it is full (WDDM, WSL), without an error
    vendor: str = "NVIDIA"  # as the catalogue writes it; a driver of another maker says so
    reasons: Mapping[str, Reason] = field(default_factory=dict)

    @property
    def capacity_bytes(self) -> int | None:
        """NVML total minus what the driver keeps for itself: the brim."""
        if self.total_bytes is None:
            return None
        return self.total_bytes - (self.driver_reserved_bytes or 0)


class GpuSample(NamedTuple):
    """All fields of one card at one tick; slow fields and details are present only on slow ticks."""

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
    sm_percent: float | None = None  # share of the card's SM time, mean over the last second or so
    sm_reason: Reason | None = None
    memory_bus_percent: float | None = None
    cpu_percent: float | None = None  # of the processor, 100 = one core
    rss_bytes: int | None = None
    gpu_instance: int | None = None  # the MIG slice it runs in
    container: str | None = None  # "docker", "podman", "kubernetes", …, or "other"; None: none, or not to be seen
    foreign: bool = False  # a pid of the host, seen from inside a container: not a process of this system


@dataclass(frozen=True, slots=True)
class InstanceSample:
    """``INSTANCE_FIELDS`` of one MIG instance at one slow tick. The activities are those of its GPU instance, which
    several compute instances may share."""

    uuid: str
    readings: Mapping[str, Reading]


@dataclass(frozen=True, slots=True)
class CardError:
    """An error that the driver pushed (Xid) at ``t_s``. ``uuid`` None: the driver did not say which card."""

    t_s: float
    uuid: str | None
    xid: int


@dataclass(frozen=True, slots=True)
class SelfCost:
    """What the monitor itself costs, for the status bar and the report."""

    cpu_percent: float | None
    rss_bytes: int | None
    sampling_hz: float
    samples: int
    late: int
    tick_p95_ms: float | None = None
