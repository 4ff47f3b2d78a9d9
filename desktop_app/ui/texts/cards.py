"""Cards and what they report: names, mappings, fields with their units."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.telemetry import Card, Reading, Reason
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.texts import numbers, reasons

_READINGS: Final = {
    "utilization_percent": QT_TRANSLATE_NOOP("Cards", "Utilisation"),
    "memory_utilization_percent": QT_TRANSLATE_NOOP("Cards", "Memory bus"),
    "memory_used_bytes": QT_TRANSLATE_NOOP("Cards", "VRAM used"),
    "power_w": QT_TRANSLATE_NOOP("Cards", "Power"),
    "power_average_w": QT_TRANSLATE_NOOP("Cards", "Power, 1 s mean"),
    "temperature_c": QT_TRANSLATE_NOOP("Cards", "Temperature"),
    "sm_clock_mhz": QT_TRANSLATE_NOOP("Cards", "SM clock"),
    "memory_clock_mhz": QT_TRANSLATE_NOOP("Cards", "Memory clock"),
    "throttle_power_percent": QT_TRANSLATE_NOOP("Cards", "Slowed by power"),
    "throttle_thermal_percent": QT_TRANSLATE_NOOP("Cards", "Slowed by heat"),
    "pcie_rx_bytes_per_s": QT_TRANSLATE_NOOP("Cards", "PCIe in"),
    "pcie_tx_bytes_per_s": QT_TRANSLATE_NOOP("Cards", "PCIe out"),
    "fan_percent": QT_TRANSLATE_NOOP("Cards", "Fan"),
    "performance_state": QT_TRANSLATE_NOOP("Cards", "Performance state"),
    "power_limit_w": QT_TRANSLATE_NOOP("Cards", "Power limit"),
    "energy_j": QT_TRANSLATE_NOOP("Cards", "Energy"),
    "encoder_percent": QT_TRANSLATE_NOOP("Cards", "Encoder"),
    "decoder_percent": QT_TRANSLATE_NOOP("Cards", "Decoder"),
    "ecc_uncorrected": QT_TRANSLATE_NOOP("Cards", "ECC errors"),
    "pcie_generation": QT_TRANSLATE_NOOP("Cards", "PCIe generation"),
    "pcie_width": QT_TRANSLATE_NOOP("Cards", "PCIe lanes"),
    "bar1_used_bytes": QT_TRANSLATE_NOOP("Cards", "BAR1 used"),
    "temperature_memory_c": QT_TRANSLATE_NOOP("Cards", "Memory temperature"),
    "sm_activity_percent": QT_TRANSLATE_NOOP("Cards", "SM activity"),
    "sm_occupancy_percent": QT_TRANSLATE_NOOP("Cards", "SM occupancy"),
    "tensor_activity_percent": QT_TRANSLATE_NOOP("Cards", "Tensor activity"),
    "dram_activity_percent": QT_TRANSLATE_NOOP("Cards", "Memory bandwidth"),
    "fp16_activity_percent": QT_TRANSLATE_NOOP("Cards", "FP16 activity"),
    "fp32_activity_percent": QT_TRANSLATE_NOOP("Cards", "FP32 activity"),
    "fp64_activity_percent": QT_TRANSLATE_NOOP("Cards", "FP64 activity"),
    "graphics_clock_mhz": QT_TRANSLATE_NOOP("Cards", "Graphics clock"),
    "video_clock_mhz": QT_TRANSLATE_NOOP("Cards", "Video clock"),
    "throttle_sync_boost_percent": QT_TRANSLATE_NOOP("Cards", "Slowed by sync boost"),
    "throttle_board_limit_percent": QT_TRANSLATE_NOOP("Cards", "Slowed by the board limit"),
    "throttle_low_utilization_percent": QT_TRANSLATE_NOOP("Cards", "Slowed for want of work"),
    "throttle_reliability_percent": QT_TRANSLATE_NOOP("Cards", "Slowed by the voltage limit"),
    "throttle_reasons": QT_TRANSLATE_NOOP("Cards", "Held back by"),
    "temperature_margin_c": QT_TRANSLATE_NOOP("Cards", "Room to the limit"),
    "power_module_w": QT_TRANSLATE_NOOP("Cards", "Power of the module"),
    "jpeg_percent": QT_TRANSLATE_NOOP("Cards", "JPEG engine"),
    "optical_flow_percent": QT_TRANSLATE_NOOP("Cards", "Optical flow engine"),
    "encoder_sessions": QT_TRANSLATE_NOOP("Cards", "Encoder sessions"),
    "pcie_replays": QT_TRANSLATE_NOOP("Cards", "PCIe replays"),
    "nvlink_rx_bytes_per_s": QT_TRANSLATE_NOOP("Cards", "NVLink in"),
    "nvlink_tx_bytes_per_s": QT_TRANSLATE_NOOP("Cards", "NVLink out"),
    "nvlinks_active": QT_TRANSLATE_NOOP("Cards", "NVLinks active"),
    "ecc_corrected": QT_TRANSLATE_NOOP("Cards", "ECC corrections"),
    "ecc_corrected_total": QT_TRANSLATE_NOOP("Cards", "ECC corrections, ever"),
    "ecc_uncorrected_total": QT_TRANSLATE_NOOP("Cards", "ECC errors, ever"),
    "remapped_rows_corrected": QT_TRANSLATE_NOOP("Cards", "Rows remapped as a caution"),
    "remapped_rows_uncorrected": QT_TRANSLATE_NOOP("Cards", "Rows remapped after errors"),
    "remapping_pending": QT_TRANSLATE_NOOP("Cards", "Remapping waits for a reset"),
    "remapping_failed": QT_TRANSLATE_NOOP("Cards", "Remapping failed"),
    "retired_pages": QT_TRANSLATE_NOOP("Cards", "Retired pages"),
    "mps_clients": QT_TRANSLATE_NOOP("Cards", "MPS clients"),
}
# What the panel at the side shows; the GPU page shows all of ``_FACTS``.
SHORT_FACTS: Final = (
    "total_bytes",
    "driver_reserved_bytes",
    "architecture",
    "compute_capability",
    "sm_count",
    "power_max_w",
    "temperature_slowdown_c",
    "temperature_shutdown_c",
    "sm_clock_max_mhz",
    "driver_version",
    "cuda_driver_version",
    "vbios_version",
    "uuid",
)
_FACTS: Final = {
    "total_bytes": QT_TRANSLATE_NOOP("Cards", "VRAM in all"),
    "driver_reserved_bytes": QT_TRANSLATE_NOOP("Cards", "Kept by the driver"),
    "architecture": QT_TRANSLATE_NOOP("Cards", "Architecture"),
    "compute_capability": QT_TRANSLATE_NOOP("Cards", "Compute capability"),
    "sm_count": QT_TRANSLATE_NOOP("Cards", "SMs"),
    "power_max_w": QT_TRANSLATE_NOOP("Cards", "Highest power limit"),
    "temperature_slowdown_c": QT_TRANSLATE_NOOP("Cards", "Slows at"),
    "temperature_shutdown_c": QT_TRANSLATE_NOOP("Cards", "Shuts down at"),
    "sm_clock_max_mhz": QT_TRANSLATE_NOOP("Cards", "Highest SM clock"),
    "driver_version": QT_TRANSLATE_NOOP("Cards", "Driver"),
    "cuda_driver_version": QT_TRANSLATE_NOOP("Cards", "CUDA of the driver"),
    "vbios_version": QT_TRANSLATE_NOOP("Cards", "VBIOS"),
    "uuid": QT_TRANSLATE_NOOP("Cards", "UUID"),
    "name": QT_TRANSLATE_NOOP("Cards", "Name"),
    "vendor": QT_TRANSLATE_NOOP("Cards", "Maker"),
    "nvml_index": QT_TRANSLATE_NOOP("Cards", "Index in NVML"),
    "torch_index": QT_TRANSLATE_NOOP("Cards", "Index in torch"),
    "bus_id": QT_TRANSLATE_NOOP("Cards", "Bus"),
    "numa_node": QT_TRANSLATE_NOOP("Cards", "NUMA node"),
    "simulated": QT_TRANSLATE_NOOP("Cards", "Simulated"),
    "shared_memory": QT_TRANSLATE_NOOP("Cards", "Memory shared with the processor"),
    "spills": QT_TRANSLATE_NOOP("Cards", "Spills into RAM"),
    "memory_bus_bits": QT_TRANSLATE_NOOP("Cards", "Width of the memory bus"),
    "bar1_total_bytes": QT_TRANSLATE_NOOP("Cards", "BAR1 in all"),
    "power_limit_w": QT_TRANSLATE_NOOP("Cards", "Power limit at the start"),
    "power_default_w": QT_TRANSLATE_NOOP("Cards", "Power limit of the maker"),
    "power_min_w": QT_TRANSLATE_NOOP("Cards", "Lowest power limit"),
    "energy_source": QT_TRANSLATE_NOOP("Cards", "Energy is"),
    "temperature_memory_max_c": QT_TRANSLATE_NOOP("Cards", "Memory slows at"),
    "temperature_operating_max_c": QT_TRANSLATE_NOOP("Cards", "Meant to stay below"),
    "memory_clock_max_mhz": QT_TRANSLATE_NOOP("Cards", "Highest memory clock"),
    "pcie_generation_max": QT_TRANSLATE_NOOP("Cards", "Highest PCIe generation"),
    "pcie_width_max": QT_TRANSLATE_NOOP("Cards", "Most PCIe lanes"),
    "compute_mode": QT_TRANSLATE_NOOP("Cards", "Compute mode"),
    "persistence_mode": QT_TRANSLATE_NOOP("Cards", "Persistence"),
    "ecc_mode": QT_TRANSLATE_NOOP("Cards", "ECC"),
    "mig_mode": QT_TRANSLATE_NOOP("Cards", "MIG"),
    "driver_model": QT_TRANSLATE_NOOP("Cards", "Driver model"),
    "display_active": QT_TRANSLATE_NOOP("Cards", "A screen hangs on it"),
}
FACT_NAMES: Final = tuple(_FACTS)
_SUFFIX_UNITS: Final = {"percent": "%", "w": "W", "c": "°C", "mhz": "MHz", "bits": "bit"}
_JOULES_PER_KWH: Final = 3.6e6
_YES_NO: Final = frozenset({"remapping_pending", "remapping_failed"})
_WORDS: Final = {
    "on": QT_TRANSLATE_NOOP("Cards", "on"),
    "off": QT_TRANSLATE_NOOP("Cards", "off"),
    "default": QT_TRANSLATE_NOOP("Cards", "shared by processes"),
    "exclusive_process": QT_TRANSLATE_NOOP("Cards", "one process at a time"),
    "prohibited": QT_TRANSLATE_NOOP("Cards", "no process may compute"),
    "wddm": "WDDM",
    "tcc": "TCC",
    "mcdm": "MCDM",
    "counter": QT_TRANSLATE_NOOP("Cards", "the driver's counter"),
    "integral": QT_TRANSLATE_NOOP("Cards", "power over time"),
    "model": QT_TRANSLATE_NOOP("Cards", "the model's"),
}
# The bits of nvmlClocksEventReasons (nvml.h), in the order in which they matter to somebody who waits for a training.
THROTTLE_BITS: Final = {
    0x40: QT_TRANSLATE_NOOP("Cards", "heat (hardware)"),
    0x20: QT_TRANSLATE_NOOP("Cards", "heat"),
    0x80: QT_TRANSLATE_NOOP("Cards", "power brake"),
    0x08: QT_TRANSLATE_NOOP("Cards", "hardware slowdown"),
    0x04: QT_TRANSLATE_NOOP("Cards", "power limit"),
    0x10: QT_TRANSLATE_NOOP("Cards", "sync boost"),
    0x02: QT_TRANSLATE_NOOP("Cards", "clocks that were set"),
    0x100: QT_TRANSLATE_NOOP("Cards", "clock of the screen"),
    0x01: QT_TRANSLATE_NOOP("Cards", "nothing to do"),
}
# Those that something should be done about; a power limit alone is how most cards are meant to run.
SLOWDOWN_BITS: Final = 0x40 | 0x20 | 0x80 | 0x08


def none() -> str:
    return QCoreApplication.translate("Cards", "No card")


def chip(card: Card, lost: Reason | None) -> str:
    """``GPU 0 · GeForce GTX 1660 · 6.00 GiB``, or why it does not answer."""
    index = card.nvml_index
    name = card.name.removeprefix("NVIDIA ")
    if lost is not None:
        tail = reasons.short(lost)
    elif card.capacity_bytes is None:
        tail = QCoreApplication.translate("Cards", "memory unknown")
    else:
        tail = numbers.size(card.capacity_bytes)
    return QCoreApplication.translate("Cards", "GPU {0} · {1} · {2}").format(index, name, tail)


def mapping(card: Card) -> str:
    """``torch 1 ↔ NVML 0 ↔ 01:00.0``: which number means this card where."""
    torch = numbers.DASH if card.torch_index is None else str(card.torch_index)
    bus = numbers.DASH if card.bus_id is None else short_bus_id(card.bus_id)
    return QCoreApplication.translate("Cards", "torch {0} ↔ NVML {1} ↔ {2}").format(torch, card.nvml_index, bus)


def short_bus_id(bus_id: str) -> str:
    """Without the domain where it is zero, as ``nvidia-smi`` shows it: ``01:00.0``."""
    domain, _, rest = bus_id.partition(":")
    return rest if rest and set(domain) == {"0"} else bus_id


def reading_name(field: str) -> str:
    return QCoreApplication.translate("Cards", _READINGS[field]) if field in _READINGS else field


def fact_name(field: str) -> str:
    return QCoreApplication.translate("Cards", _FACTS[field]) if field in _FACTS else field


def reading_value(field: str, reading: Reading | None) -> str:
    """The value with its unit, or ``n/a`` with the reason."""
    if reading is None or reading.value is None:
        return reasons.missing(None if reading is None else reading.reason)
    return with_unit(field, reading.value)


def with_unit(field: str, value: float) -> str:
    """A value of a field as the window writes it."""
    if field == "energy_j":
        return numbers.with_unit(value / _JOULES_PER_KWH, "kWh", 3)
    if field == "performance_state":
        return f"P{value:.0f}"
    if field == "throttle_reasons":
        return throttle_words(round(value))
    if field in _YES_NO:
        return yes_no(value=value != 0)
    if field.endswith("_bytes_per_s"):
        return QCoreApplication.translate("Cards", "{0}/s").format(numbers.size(value))
    if field.endswith("_bytes"):
        return numbers.size(value)
    unit = _SUFFIX_UNITS.get(field.rpartition("_")[2])
    return numbers.integer(value) if unit is None else numbers.with_unit(value, unit)


def throttle_words(bits: int) -> str:
    """``heat, power limit``; ``nothing`` where no bit is set. Bits that nobody has named stay numbers."""
    words = [QCoreApplication.translate("Cards", text) for bit, text in THROTTLE_BITS.items() if bits & bit]
    rest = bits & ~sum(THROTTLE_BITS)
    if rest:
        words.append(hex(rest))
    return ", ".join(words) or QCoreApplication.translate("Cards", "nothing")


def yes_no(*, value: bool) -> str:
    return QCoreApplication.translate("Cards", "yes") if value else QCoreApplication.translate("Cards", "no")


def fact_value(card: Card, field: str) -> str:
    """A static fact of a card, or ``n/a`` with its reason."""
    value = getattr(card, field)
    if value is None:
        return reasons.missing(_why_missing(card, field))
    if field == "compute_capability":
        return f"{value[0]}.{value[1]}"
    if isinstance(value, bool):
        return yes_no(value=value)
    if isinstance(value, str):
        return QCoreApplication.translate("Cards", _WORDS[value]) if value in _WORDS else str(value)
    return with_unit(field, float(value))


def known_field(field: str) -> bool:
    """Whether a reading has a name."""
    return field in _READINGS


def missing_reason(card: Card, field: str) -> str:
    """The tooltip of a fact that is missing; empty when it is there."""
    if getattr(card, field) is not None:
        return ""
    return reasons.sentence(_why_missing(card, field))


def _why_missing(card: Card, field: str) -> Reason:
    """A simulated card cannot be asked; a real one that gave no reason does not know of it."""
    return card.reasons.get(field, Reason.SIMULATED if card.simulated else Reason.NOT_SUPPORTED)
