"""One sentence for each field whose name does not say what it means."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.ui.i18n import QT_TRANSLATE_NOOP

_HELP: Final = {
    "utilization_percent": QT_TRANSLATE_NOOP(
        "FieldHelp",
        "The share of time in which at least one kernel ran, not how much of the card it used: a kernel on one SM of a "
        "hundred counts in full. SM activity, and power against its limit, say more.",
    ),
    "sm_activity_percent": QT_TRANSLATE_NOOP(
        "FieldHelp",
        "How many SMs had work, over all SMs and all of the time. Below 80 % a card has room for larger batches.",
    ),
    "sm_occupancy_percent": QT_TRANSLATE_NOOP(
        "FieldHelp", "How many of the warps that the SMs can hold were there. A low value is no fault by itself."
    ),
    "tensor_activity_percent": QT_TRANSLATE_NOOP(
        "FieldHelp",
        "The share of time in which the tensor cores worked. Zero in a training means that it computes in FP32 "
        "without TF32.",
    ),
    "dram_activity_percent": QT_TRANSLATE_NOOP(
        "FieldHelp", "The share of time in which the memory moved data. Near 80 % the memory is what limits."
    ),
    "memory_utilization_percent": QT_TRANSLATE_NOOP(
        "FieldHelp", "The share of time in which memory was read or written. It does not say how full it is."
    ),
    "memory_used_bytes": QT_TRANSLATE_NOOP(
        "FieldHelp", "What all processes together have taken, with what their allocators keep for later."
    ),
    "driver_reserved_bytes": QT_TRANSLATE_NOOP(
        "FieldHelp", "What the driver keeps for itself. It is not part of what can be filled."
    ),
    "bar1_used_bytes": QT_TRANSLATE_NOOP(
        "FieldHelp", "The window through which the processor and other cards reach this card's memory."
    ),
    "power_w": QT_TRANSLATE_NOOP("FieldHelp", "Power at this moment, as the driver measures it."),
    "power_limit_w": QT_TRANSLATE_NOOP(
        "FieldHelp", "What the card may draw. At its limit it lowers its clocks until it is below."
    ),
    "energy_j": QT_TRANSLATE_NOOP("FieldHelp", "Since this session began."),
    "temperature_margin_c": QT_TRANSLATE_NOOP(
        "FieldHelp", "How many degrees are left before the card slows down; 0 is at the limit."
    ),
    "performance_state": QT_TRANSLATE_NOOP(
        "FieldHelp", "P0 is the fastest, P15 the slowest. Idle cards rest at P8 or above."
    ),
    "throttle_reasons": QT_TRANSLATE_NOOP(
        "FieldHelp", "What keeps the clocks from being higher at this moment, as the driver says."
    ),
    "throttle_power_percent": QT_TRANSLATE_NOOP(
        "FieldHelp", "The share of time in which the power limit kept the clocks lower."
    ),
    "throttle_thermal_percent": QT_TRANSLATE_NOOP(
        "FieldHelp", "The share of time in which heat kept the clocks lower. Look at fans, dust and the air around it."
    ),
    "throttle_sync_boost_percent": QT_TRANSLATE_NOOP(
        "FieldHelp", "The share of time in which the card waited for the clocks of its sync boost group."
    ),
    "throttle_low_utilization_percent": QT_TRANSLATE_NOOP(
        "FieldHelp", "The share of time in which the clocks were lower because there was little to do."
    ),
    "pcie_generation": QT_TRANSLATE_NOOP(
        "FieldHelp", "An idle card lowers it to save power; judge it while the card works."
    ),
    "pcie_width": QT_TRANSLATE_NOOP(
        "FieldHelp", "Fewer than the card has means a slot with fewer lanes, a riser, or a bad contact."
    ),
    "pcie_replays": QT_TRANSLATE_NOOP(
        "FieldHelp", "Packets sent again since the driver was loaded. A number that grows points to the slot or riser."
    ),
    "ecc_corrected": QT_TRANSLATE_NOOP(
        "FieldHelp", "Memory errors that were put right since the driver was loaded. Now and then one is normal."
    ),
    "ecc_uncorrected": QT_TRANSLATE_NOOP(
        "FieldHelp",
        "Memory errors that could not be put right. Results may be wrong, and the process is usually ended.",
    ),
    "remapped_rows_uncorrected": QT_TRANSLATE_NOOP(
        "FieldHelp", "Rows of memory that were replaced by spare ones after an error."
    ),
    "remapping_pending": QT_TRANSLATE_NOOP(
        "FieldHelp", "Yes: a row has failed and will be replaced when the card is reset."
    ),
    "remapping_failed": QT_TRANSLATE_NOOP("FieldHelp", "Yes: no spare row is left. The card should be replaced."),
    "retired_pages": QT_TRANSLATE_NOOP("FieldHelp", "Pages of memory that are no longer used after errors."),
    "xid": QT_TRANSLATE_NOOP(
        "FieldHelp", "Errors that the driver reported in this session. NVIDIA lists what each number means."
    ),
    "spills": QT_TRANSLATE_NOOP(
        "FieldHelp",
        "Yes: when the memory is full the driver moves some of it to RAM without an error, and the training slows.",
    ),
    "energy_source": QT_TRANSLATE_NOOP(
        "FieldHelp", "The driver's counter misses nothing; power over time leaves gaps out."
    ),
    "persistence_mode": QT_TRANSLATE_NOOP(
        "FieldHelp", "On: the driver stays loaded while nobody uses the card, so that the next start is quick."
    ),
    "compute_mode": QT_TRANSLATE_NOOP("FieldHelp", "Who may use the card at the same time."),
}


def text(key: str) -> str:
    """The sentence about a field or fact; empty where its name says enough."""
    return QCoreApplication.translate("FieldHelp", _HELP[key]) if key in _HELP else ""
