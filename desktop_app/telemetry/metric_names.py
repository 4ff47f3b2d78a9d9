"""What our readings are called outside: names, units and kinds of the metrics of a card. Data only.

``DCGM``: the names of dcgm-exporter, in its units (etc/default-counters.csv, dcgm_fields.h of DCGM 4), for the fields
that mean the same. ``OWN``: every field of ours under ``floodmark_gpu_``, in the base units of Prometheus.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from desktop_app.core.units import MIB

GAUGE: Final = "gauge"
COUNTER: Final = "counter"


@dataclass(frozen=True, slots=True)
class CardMetric:
    """One metric of a card: ``field`` times ``factor`` divided by ``divisor`` (one of them is 1: no digit is lost)."""

    name: str
    field: str
    help: str
    kind: str = GAUGE
    factor: float = 1.0
    divisor: float = 1.0

    def exported(self, value: float) -> float:
        """A value of our field in the unit of the metric."""
        return value * self.factor / self.divisor


def _ratio(name: str, field: str, text: str) -> CardMetric:
    return CardMetric(name, field, text, divisor=100.0)


_DEV: Final = "DCGM_FI_DEV_"
_PROF: Final = "DCGM_FI_PROF_"
DCGM: Final = (
    CardMetric(f"{_DEV}SM_CLOCK", "sm_clock_mhz", "SM clock frequency (in MHz)."),
    CardMetric(f"{_DEV}MEM_CLOCK", "memory_clock_mhz", "Memory clock frequency (in MHz)."),
    CardMetric(f"{_DEV}VIDEO_CLOCK", "video_clock_mhz", "Video clock frequency (in MHz)."),
    CardMetric(f"{_DEV}CLOCKS_EVENT_REASONS", "throttle_reasons", "Why clocks are held back now (bits)."),
    CardMetric(f"{_DEV}GPU_TEMP", "temperature_c", "GPU temperature (in C)."),
    CardMetric(f"{_DEV}MEMORY_TEMP", "temperature_memory_c", "Memory temperature (in C)."),
    CardMetric(f"{_DEV}POWER_USAGE_INSTANT", "power_w", "Power draw of the moment (in W)."),
    CardMetric(f"{_DEV}ENFORCED_POWER_LIMIT", "power_limit_w", "Power limit in force (in W)."),
    CardMetric(f"{_DEV}FAN_SPEED", "fan_percent", "Fan speed (in %)."),
    CardMetric(f"{_DEV}PSTATE", "performance_state", "Performance state, 0 is the fastest."),
    CardMetric(f"{_DEV}GPU_UTIL", "utilization_percent", "GPU utilization (in %)."),
    CardMetric(f"{_DEV}MEM_COPY_UTIL", "memory_utilization_percent", "Memory utilization (in %)."),
    CardMetric(f"{_DEV}ENC_UTIL", "encoder_percent", "Encoder utilization (in %)."),
    CardMetric(f"{_DEV}DEC_UTIL", "decoder_percent", "Decoder utilization (in %)."),
    CardMetric(f"{_DEV}BAR1_USED", "bar1_used_bytes", "BAR1 memory used (in MiB).", divisor=MIB),
    CardMetric(f"{_DEV}PCIE_LINK_GEN", "pcie_generation", "PCIe generation now."),
    CardMetric(f"{_DEV}PCIE_LINK_WIDTH", "pcie_width", "PCIe lanes now."),
    CardMetric(f"{_DEV}PCIE_REPLAY_COUNTER", "pcie_replays", "Total number of PCIe retries.", COUNTER),
    CardMetric(f"{_DEV}ECC_SBE_VOL_TOTAL", "ecc_corrected", "Corrected ECC errors since the driver's load.", COUNTER),
    CardMetric(f"{_DEV}ECC_DBE_VOL_TOTAL", "ecc_uncorrected", "Uncorrected ECC errors since driver load.", COUNTER),
    CardMetric(f"{_DEV}ECC_SBE_AGG_TOTAL", "ecc_corrected_total", "Corrected ECC errors of the card's life.", COUNTER),
    CardMetric(f"{_DEV}ECC_DBE_AGG_TOTAL", "ecc_uncorrected_total", "Uncorrected ECC errors of its life.", COUNTER),
    CardMetric(f"{_DEV}CORRECTABLE_REMAPPED_ROWS", "remapped_rows_corrected", "Rows remapped after errors.", COUNTER),
    CardMetric(
        f"{_DEV}UNCORRECTABLE_REMAPPED_ROWS", "remapped_rows_uncorrected", "Rows remapped after losses.", COUNTER
    ),
    CardMetric(f"{_DEV}ROW_REMAP_PENDING", "remapping_pending", "Whether a reset of the card will remap rows."),
    CardMetric(f"{_DEV}ROW_REMAP_FAILURE", "remapping_failed", "Whether remapping of rows has failed."),
    _ratio(f"{_PROF}SM_ACTIVE", "sm_activity_percent", "Share of cycles an SM had a warp (0 to 1)."),
    _ratio(f"{_PROF}SM_OCCUPANCY", "sm_occupancy_percent", "Share of the warp slots in use (0 to 1)."),
    _ratio(f"{_PROF}PIPE_TENSOR_ACTIVE", "tensor_activity_percent", "Share of cycles of the tensor pipe (0 to 1)."),
    _ratio(f"{_PROF}DRAM_ACTIVE", "dram_activity_percent", "Share of cycles of the memory interface (0 to 1)."),
    _ratio(f"{_PROF}PIPE_FP16_ACTIVE", "fp16_activity_percent", "Share of cycles of the FP16 pipe (0 to 1)."),
    _ratio(f"{_PROF}PIPE_FP32_ACTIVE", "fp32_activity_percent", "Share of cycles of the FP32 pipe (0 to 1)."),
    _ratio(f"{_PROF}PIPE_FP64_ACTIVE", "fp64_activity_percent", "Share of cycles of the FP64 pipe (0 to 1)."),
    CardMetric(f"{_PROF}PCIE_RX_BYTES", "pcie_rx_bytes_per_s", "Bytes a second received over PCIe."),
    CardMetric(f"{_PROF}PCIE_TX_BYTES", "pcie_tx_bytes_per_s", "Bytes a second sent over PCIe."),
    CardMetric(f"{_PROF}NVLINK_RX_BYTES", "nvlink_rx_bytes_per_s", "Bytes a second received over NVLink."),
    CardMetric(f"{_PROF}NVLINK_TX_BYTES", "nvlink_tx_bytes_per_s", "Bytes a second sent over NVLink."),
)
# "The draw" of a card: of the moment or an average, by its generation (telemetry.logs.generations).
DCGM_POWER: Final = f"{_DEV}POWER_USAGE"
DCGM_ENERGY: Final = f"{_DEV}TOTAL_ENERGY_CONSUMPTION"
DCGM_XID: Final = f"{_DEV}XID_ERRORS"
DCGM_USED: Final = f"{_DEV}FB_USED"
DCGM_FREE: Final = f"{_DEV}FB_FREE"
DCGM_RESERVED: Final = f"{_DEV}FB_RESERVED"
DCGM_TOTAL: Final = f"{_DEV}FB_TOTAL"


def _own(field: str, text: str) -> CardMetric:
    """The name says the base unit: ratio, watts, celsius, hertz, bytes. Prometheus wants no percent and no MHz."""
    for ending, unit, factor, divisor in (
        ("_percent", "_ratio", 1.0, 100.0),
        ("_mhz", "_hertz", 1e6, 1.0),
        ("_bytes_per_s", "_bytes_per_second", 1.0, 1.0),
        ("_w", "_watts", 1.0, 1.0),
        ("_c", "_celsius", 1.0, 1.0),
    ):
        if field.endswith(ending):
            name = field.removesuffix(ending) + unit
            return CardMetric(f"floodmark_gpu_{name}", field, text, factor=factor, divisor=divisor)
    return CardMetric(f"floodmark_gpu_{field}", field, text)


def _count(name: str, field: str, text: str) -> CardMetric:
    return CardMetric(f"floodmark_gpu_{name}_total", field, text, COUNTER)


OWN: Final = (
    _own("utilization_percent", "Share of time with at least one kernel."),
    _own("memory_utilization_percent", "Share of time in which memory was read or written."),
    _own("memory_used_bytes", "Memory in use on the whole card."),
    _own("power_w", "Power draw of the moment."),
    _own("power_average_w", "Power draw, mean of about a second."),
    _own("temperature_c", "Temperature of the chip."),
    _own("sm_clock_mhz", "Clock of the multiprocessors."),
    _own("memory_clock_mhz", "Clock of the memory."),
    _own("throttle_power_percent", "Share of time held back by power."),
    _own("throttle_thermal_percent", "Share of time held back by heat."),
    _own("pcie_rx_bytes_per_s", "Received over PCIe."),
    _own("pcie_tx_bytes_per_s", "Sent over PCIe."),
    _own("fan_percent", "Fan speed against its highest."),
    _own("performance_state", "Performance state, 0 is the fastest."),
    _own("power_limit_w", "Power limit in force."),
    CardMetric("floodmark_gpu_energy_joules_total", "energy_j", "Energy since this session began.", COUNTER),
    _own("encoder_percent", "Use of the video encoder."),
    _own("decoder_percent", "Use of the video decoder."),
    _count("ecc_uncorrected", "ecc_uncorrected", "Uncorrected ECC errors since the driver was loaded."),
    _own("pcie_generation", "PCIe generation now."),
    _own("pcie_width", "PCIe lanes now."),
    _own("bar1_used_bytes", "BAR1 memory in use."),
    _own("temperature_memory_c", "Temperature of the memory."),
    _own("sm_activity_percent", "Share of cycles a multiprocessor had work."),
    _own("sm_occupancy_percent", "Share of the warp slots in use."),
    _own("tensor_activity_percent", "Share of cycles of the tensor pipes."),
    _own("dram_activity_percent", "Share of the memory's bandwidth in use."),
    _own("fp16_activity_percent", "Share of cycles of the FP16 pipe."),
    _own("fp32_activity_percent", "Share of cycles of the FP32 pipe."),
    _own("fp64_activity_percent", "Share of cycles of the FP64 pipe."),
    _own("graphics_clock_mhz", "Clock of the graphics part."),
    _own("video_clock_mhz", "Clock of the video part."),
    _own("throttle_sync_boost_percent", "Share of time held back for another card."),
    _own("throttle_board_limit_percent", "Share of time held back by the board."),
    _own("throttle_low_utilization_percent", "Share of time with a low clock for want of work."),
    _own("throttle_reliability_percent", "Share of time held back for reliability."),
    _own("throttle_reasons", "Why clocks are held back now, as the driver's bits."),
    _own("temperature_margin_c", "Degrees left to the limit of normal operation."),
    _own("power_module_w", "Power draw of the whole module."),
    _own("jpeg_percent", "Use of the JPEG decoder."),
    _own("optical_flow_percent", "Use of the optical flow engine."),
    _own("encoder_sessions", "Sessions of the video encoder."),
    _count("pcie_replays", "pcie_replays", "PCIe retries since the driver was loaded."),
    _own("nvlink_rx_bytes_per_s", "Received over all NVLinks."),
    _own("nvlink_tx_bytes_per_s", "Sent over all NVLinks."),
    _own("nvlinks_active", "NVLinks that are up."),
    _count("ecc_corrected", "ecc_corrected", "Corrected ECC errors since the driver was loaded."),
    _count("ecc_corrected_life", "ecc_corrected_total", "Corrected ECC errors of the card's life."),
    _count("ecc_uncorrected_life", "ecc_uncorrected_total", "Uncorrected ECC errors of the card's life."),
    _own("remapped_rows_corrected", "Rows of memory replaced after corrected errors."),
    _own("remapped_rows_uncorrected", "Rows of memory replaced after uncorrected errors."),
    _own("remapping_pending", "1: a reset of the card will replace rows."),
    _own("remapping_failed", "1: no spare row was left."),
    _own("retired_pages", "Pages of memory that are no longer used."),
    _own("mps_clients", "Processes of the multi-process service."),
)
OWN_TOTAL: Final = "floodmark_gpu_memory_total_bytes"
OWN_CAPACITY: Final = "floodmark_gpu_memory_capacity_bytes"
OWN_XID: Final = "floodmark_gpu_last_xid"
OWN_READABLE: Final = "floodmark_gpu_readable"
