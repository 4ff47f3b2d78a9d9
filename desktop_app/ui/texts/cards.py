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
}
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
}
FACT_NAMES: Final = tuple(_FACTS)
_SUFFIX_UNITS: Final = {"percent": "%", "w": "W", "c": "°C", "mhz": "MHz"}
_JOULES_PER_KWH: Final = 3.6e6


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
    return _with_unit(field, reading.value)


def _with_unit(field: str, value: float) -> str:
    if field == "energy_j":
        return numbers.with_unit(value / _JOULES_PER_KWH, "kWh", 3)
    if field == "performance_state":
        return f"P{value:.0f}"
    if field.endswith("_bytes_per_s"):
        return QCoreApplication.translate("Cards", "{0}/s").format(numbers.size(value))
    if field.endswith("_bytes"):
        return numbers.size(value)
    unit = _SUFFIX_UNITS.get(field.rpartition("_")[2])
    return numbers.integer(value) if unit is None else numbers.with_unit(value, unit)


def fact_value(card: Card, field: str) -> str:
    """A static fact of a card, or ``n/a`` with its reason."""
    value = getattr(card, field)
    if value is None:
        return reasons.missing(card.reasons.get(field, Reason.NOT_SUPPORTED))
    if field == "compute_capability":
        return f"{value[0]}.{value[1]}"
    if isinstance(value, str):
        return value
    return _with_unit(field, float(value))


def missing_reason(card: Card, field: str) -> str:
    """The tooltip of a fact that is missing; empty when it is there."""
    if getattr(card, field) is not None:
        return ""
    return reasons.sentence(card.reasons.get(field, Reason.NOT_SUPPORTED))
