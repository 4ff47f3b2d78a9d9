"""All fields and facts of a card in the groups in which an engineer looks for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

XID: Final = "xid"  # pushed errors, which are no field


@dataclass(frozen=True, slots=True)
class FieldGroup:
    """``keys``: readings by their field, facts of ``Card`` with ``fact:`` before them, in order."""

    key: str
    keys: tuple[str, ...]


FACT: Final = "fact:"
GROUPS: Final = (
    FieldGroup(
        "activity",
        (
            "utilization_percent",
            "sm_activity_percent",
            "sm_occupancy_percent",
            "tensor_activity_percent",
            "fp16_activity_percent",
            "fp32_activity_percent",
            "fp64_activity_percent",
            "dram_activity_percent",
            "memory_utilization_percent",
            "encoder_percent",
            "encoder_sessions",
            "decoder_percent",
            "jpeg_percent",
            "optical_flow_percent",
            "mps_clients",
        ),
    ),
    FieldGroup(
        "memory",
        (
            "memory_used_bytes",
            "fact:total_bytes",
            "fact:driver_reserved_bytes",
            "bar1_used_bytes",
            "fact:bar1_total_bytes",
            "fact:memory_bus_bits",
            "fact:shared_memory",
            "fact:spills",
        ),
    ),
    FieldGroup(
        "power",
        (
            "power_w",
            "power_average_w",
            "power_module_w",
            "power_limit_w",
            "fact:power_limit_w",
            "fact:power_default_w",
            "fact:power_min_w",
            "fact:power_max_w",
            "energy_j",
            "fact:energy_source",
        ),
    ),
    FieldGroup(
        "temperatures",
        (
            "temperature_c",
            "temperature_margin_c",
            "fact:temperature_operating_max_c",
            "fact:temperature_slowdown_c",
            "fact:temperature_shutdown_c",
            "temperature_memory_c",
            "fact:temperature_memory_max_c",
            "fan_percent",
        ),
    ),
    FieldGroup(
        "clocks",
        (
            "performance_state",
            "sm_clock_mhz",
            "fact:sm_clock_max_mhz",
            "memory_clock_mhz",
            "fact:memory_clock_max_mhz",
            "graphics_clock_mhz",
            "video_clock_mhz",
        ),
    ),
    FieldGroup(
        "throttling",
        (
            "throttle_reasons",
            "throttle_power_percent",
            "throttle_thermal_percent",
            "throttle_reliability_percent",
            "throttle_board_limit_percent",
            "throttle_sync_boost_percent",
            "throttle_low_utilization_percent",
        ),
    ),
    FieldGroup(
        "link",
        (
            "pcie_generation",
            "fact:pcie_generation_max",
            "pcie_width",
            "fact:pcie_width_max",
            "pcie_rx_bytes_per_s",
            "pcie_tx_bytes_per_s",
            "pcie_replays",
            "nvlinks_active",
            "nvlink_rx_bytes_per_s",
            "nvlink_tx_bytes_per_s",
        ),
    ),
    FieldGroup(
        "health",
        (
            XID,
            "ecc_uncorrected",
            "ecc_corrected",
            "ecc_uncorrected_total",
            "ecc_corrected_total",
            "remapped_rows_uncorrected",
            "remapped_rows_corrected",
            "remapping_pending",
            "remapping_failed",
            "retired_pages",
        ),
    ),
    FieldGroup(
        "modes",
        (
            "fact:compute_mode",
            "fact:persistence_mode",
            "fact:ecc_mode",
            "fact:mig_mode",
            "fact:driver_model",
            "fact:display_active",
        ),
    ),
    FieldGroup(
        "identity",
        (
            "fact:name",
            "fact:vendor",
            "fact:uuid",
            "fact:nvml_index",
            "fact:torch_index",
            "fact:bus_id",
            "fact:numa_node",
            "fact:simulated",
            "fact:architecture",
            "fact:compute_capability",
            "fact:sm_count",
            "fact:vbios_version",
            "fact:driver_version",
            "fact:cuda_driver_version",
        ),
    ),
)
