"""The names that tools give to the details of a card (``DETAIL_FIELDS``), beside those of ``logs.fields``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from desktop_app.telemetry.logs.values import Quantity, Rule
from desktop_app.telemetry.plausibility import (
    CLOCK_MHZ,
    COUNT,
    MARGIN_C,
    PERCENT,
    POWER_W,
    REASON_BITS,
    YES_OR_NO,
    Range,
)

_RATE: Final = Range(0, 1e13)  # eighteen links of NVLink 5: 9e11 bytes per second in each direction


def _percent(field: str) -> Rule:
    return Rule(field, Quantity.PERCENT, PERCENT, "%")


def _count(field: str) -> Rule:
    return Rule(field, Quantity.COUNT, COUNT)


def _flag(field: str) -> Rule:
    return Rule(field, Quantity.FLAG, YES_OR_NO)


GRAPHICS_CLOCK: Final = Rule("graphics_clock_mhz", Quantity.CLOCK, CLOCK_MHZ, "mhz")
VIDEO_CLOCK: Final = Rule("video_clock_mhz", Quantity.CLOCK, CLOCK_MHZ, "mhz")
MARGIN: Final = Rule("temperature_margin_c", Quantity.TEMPERATURE, MARGIN_C, "c")
MODULE_POWER: Final = Rule("power_module_w", Quantity.POWER, POWER_W, "w")
REASONS: Final = Rule("throttle_reasons", Quantity.BITS, REASON_BITS)
JPEG: Final = _percent("jpeg_percent")
OPTICAL_FLOW: Final = _percent("optical_flow_percent")
SESSIONS: Final = _count("encoder_sessions")
REPLAYS: Final = _count("pcie_replays")
CORRECTED: Final = _count("ecc_corrected")
CORRECTED_TOTAL: Final = _count("ecc_corrected_total")
UNCORRECTED_TOTAL: Final = _count("ecc_uncorrected_total")
ROWS_CORRECTED: Final = _count("remapped_rows_corrected")
ROWS_UNCORRECTED: Final = _count("remapped_rows_uncorrected")
PENDING: Final = _flag("remapping_pending")
FAILED: Final = _flag("remapping_failed")
NVLINK_RX: Final = Rule("nvlink_rx_bytes_per_s", Quantity.RATE, _RATE, "b/s")
NVLINK_TX: Final = Rule("nvlink_tx_bytes_per_s", Quantity.RATE, _RATE, "b/s")
ACTIVITIES: Final = tuple(
    _percent(field)
    for field in (
        "sm_activity_percent",
        "sm_occupancy_percent",
        "tensor_activity_percent",
        "dram_activity_percent",
        "fp16_activity_percent",
        "fp32_activity_percent",
        "fp64_activity_percent",
    )
)
# The rest of what nobody but we writes.
OURS: Final = (
    _percent("throttle_sync_boost_percent"),
    _percent("throttle_board_limit_percent"),
    _percent("throttle_low_utilization_percent"),
    _percent("throttle_reliability_percent"),
    _count("nvlinks_active"),
    _count("retired_pages"),
    _count("mps_clients"),
)

# nvidia-smi --help-query-gpu, --help-query-remapped-rows
QUERY: Final[Mapping[str, Rule]] = {
    "clocks.current.graphics": GRAPHICS_CLOCK,
    "clocks.gr": GRAPHICS_CLOCK,
    "clocks.current.video": VIDEO_CLOCK,
    "clocks.video": VIDEO_CLOCK,
    "temperature.gpu.tlimit": MARGIN,
    "module.power.draw.instant": MODULE_POWER,
    "clocks_event_reasons.active": REASONS,
    "clocks_throttle_reasons.active": REASONS,
    "utilization.jpeg": JPEG,
    "utilization.ofa": OPTICAL_FLOW,
    "encoder.stats.sessioncount": SESSIONS,
    "ecc.errors.corrected.volatile.total": CORRECTED,
    "ecc.errors.corrected.aggregate.total": CORRECTED_TOTAL,
    "ecc.errors.uncorrected.aggregate.total": UNCORRECTED_TOTAL,
    "remapped_rows.correctable": ROWS_CORRECTED,
    "remapped_rows.uncorrectable": ROWS_UNCORRECTED,
    "remapped_rows.pending": PENDING,
    "remapped_rows.failure": FAILED,
}
# nvidia-smi -q -x, under <gpu>
XML: Final[Mapping[str, Rule]] = {
    "clocks/graphics_clock": GRAPHICS_CLOCK,
    "clocks/video_clock": VIDEO_CLOCK,
    "temperature/gpu_temp_tlimit": MARGIN,
    "module_power_readings/instant_power_draw": MODULE_POWER,
    "utilization/jpeg_util": JPEG,
    "utilization/ofa_util": OPTICAL_FLOW,
    "encoder_stats/session_count": SESSIONS,
    "pci/replay_counter": REPLAYS,
    "ecc_errors/volatile/single_bit/total": CORRECTED,
    "ecc_errors/aggregate/single_bit/total": CORRECTED_TOTAL,
    "ecc_errors/aggregate/double_bit/total": UNCORRECTED_TOTAL,
    "remapped_rows/remapped_row_corr": ROWS_CORRECTED,
    "remapped_rows/remapped_row_unc": ROWS_UNCORRECTED,
    "remapped_rows/remapped_row_pending": PENDING,
    "remapped_rows/remapped_row_failure": FAILED,
}
# nvidia-smi -q, in small letters
TEXT: Final[Mapping[str, Rule]] = {
    "clocks/graphics": GRAPHICS_CLOCK,
    "clocks/video": VIDEO_CLOCK,
    "temperature/gpu t.limit temp": MARGIN,
    "module power readings/instantaneous power draw": MODULE_POWER,
    "utilization/jpeg": JPEG,
    "utilization/ofa": OPTICAL_FLOW,
    "encoder stats/active sessions": SESSIONS,
    "pci/replays since reset": REPLAYS,
    "ecc errors/volatile/single bit/total": CORRECTED,
    "ecc errors/aggregate/single bit/total": CORRECTED_TOTAL,
    "ecc errors/aggregate/double bit/total": UNCORRECTED_TOTAL,
    "remapped rows/correctable error": ROWS_CORRECTED,
    "remapped rows/uncorrectable error": ROWS_UNCORRECTED,
    "remapped rows/pending": PENDING,
    "remapped rows/remapping failure occurred": FAILED,
}
# nvidia_gpu_exporter, in base units
EXPORTED: Final[Mapping[str, Rule]] = {
    "nvidia_smi_temperature_gpu_tlimit": MARGIN,
    "nvidia_smi_clocks_event_reasons_active": REASONS,
    "nvidia_smi_clocks_throttle_reasons_active": REASONS,
    "nvidia_smi_encoder_stats_session_count": SESSIONS,
    "nvidia_smi_ecc_errors_corrected_volatile_total": CORRECTED,
    "nvidia_smi_ecc_errors_corrected_aggregate_total": CORRECTED_TOTAL,
    "nvidia_smi_ecc_errors_uncorrected_aggregate_total": UNCORRECTED_TOTAL,
    "nvidia_smi_remapped_rows_correctable": ROWS_CORRECTED,
    "nvidia_smi_remapped_rows_uncorrectable": ROWS_UNCORRECTED,
}
# Its single reasons, 0 or 1 each, and the bit of each (nvml.h, nvmlClocksEventReason…). The only one that nvidia-smi
# does not give by itself is that of the display's clock (0x100).
EXPORTED_BITS: Final[Mapping[str, int]] = {
    f"nvidia_smi_clocks_{kind}_reasons_{name}": bit
    for kind in ("event", "throttle")
    for name, bit in (
        ("gpu_idle", 0x1),
        ("applications_clocks_setting", 0x2),
        ("sw_power_cap", 0x4),
        ("hw_slowdown", 0x8),
        ("sync_boost", 0x10),
        ("sw_thermal_slowdown", 0x20),
        ("hw_thermal_slowdown", 0x40),
        ("hw_power_brake_slowdown", 0x80),
    )
}
ALL_EXPORTED_BITS: Final = sum(set(EXPORTED_BITS.values()))
RULES: Final = {rule.field: rule for rule in (*QUERY.values(), *XML.values(), NVLINK_RX, NVLINK_TX, *ACTIVITIES, *OURS)}
# Counts that newer drivers give in parts, by place and kind: "ecc_errors/volatile/sram_correctable", in the text
# "ecc errors/aggregate/dram uncorrectable".
_ECC_PART: Final = re.compile(
    r"ecc.errors/(volatile|aggregate)/(?:sram|dram)[_ ](correctable|uncorrectable)(?:[_ ](?:parity|secded|sec-ded))?"
)
_ECC_FIELDS: Final = {
    ("volatile", "correctable"): "ecc_corrected",
    ("volatile", "uncorrectable"): "ecc_uncorrected",
    ("aggregate", "correctable"): "ecc_corrected_total",
    ("aggregate", "uncorrectable"): "ecc_uncorrected_total",
}
_RETIRED: Final = re.compile(
    r"retired_pages/(?:multiple_single_bit_retirement|double_bit_retirement)/retired_count"
    r"|retired pages/(?:single|double) bit ecc|retired_pages\.(?:single_bit_ecc|double_bit)\.count"
)


def summed_field(path: str) -> str | None:
    """The field of which this cell is a part: all parts together are its value."""
    found = _ECC_PART.fullmatch(path)
    if found is not None:
        return _ECC_FIELDS[found[1], found[2]]
    return "retired_pages" if _RETIRED.fullmatch(path) else None
