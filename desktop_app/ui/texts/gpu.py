"""The words of the GPU page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.telemetry import Card, MigInstance, Reason
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.texts import cards, numbers, reasons

SHORT_NAME: Final = 22
_GROUPS: Final = {
    "activity": QT_TRANSLATE_NOOP("Gpu", "Activity"),
    "memory": QT_TRANSLATE_NOOP("Gpu", "Memory"),
    "power": QT_TRANSLATE_NOOP("Gpu", "Power and energy"),
    "temperatures": QT_TRANSLATE_NOOP("Gpu", "Temperatures and fan"),
    "clocks": QT_TRANSLATE_NOOP("Gpu", "Clocks"),
    "throttling": QT_TRANSLATE_NOOP("Gpu", "Throttling"),
    "link": QT_TRANSLATE_NOOP("Gpu", "PCIe and NVLink"),
    "health": QT_TRANSLATE_NOOP("Gpu", "Health"),
    "modes": QT_TRANSLATE_NOOP("Gpu", "Modes"),
    "identity": QT_TRANSLATE_NOOP("Gpu", "Identity"),
    "instances": QT_TRANSLATE_NOOP("Gpu", "MIG instances"),
}


def group(key: str) -> str:
    return QCoreApplication.translate("Gpu", _GROUPS[key])


def title() -> str:
    return QCoreApplication.translate("Gpu", "GPU")


def parts() -> tuple[str, str, str]:
    """The page's tabs."""
    return (
        QCoreApplication.translate("Gpu", "Fields"),
        QCoreApplication.translate("Gpu", "Cards"),
        QCoreApplication.translate("Gpu", "Comparison"),
    )


def parts_name() -> str:
    return QCoreApplication.translate("Gpu", "Parts of the GPU page")


def card_choice() -> str:
    return QCoreApplication.translate("Gpu", "Card on show")


# -- the list ---------------------------------------------------------------------------------------------------------


def search() -> str:
    return QCoreApplication.translate("Gpu", "Search fields")


def list_name() -> str:
    return QCoreApplication.translate("Gpu", "Fields of the card")


def only_there() -> str:
    return QCoreApplication.translate("Gpu", "Only what is there")


def only_there_help() -> str:
    return QCoreApplication.translate("Gpu", "Leave out what this card does not report")


def copy_all() -> str:
    return QCoreApplication.translate("Gpu", "Copy all")


def copy_all_help() -> str:
    return QCoreApplication.translate("Gpu", "Copy the rows on show as text; Ctrl+C copies the chosen one")


def nothing_found(query: str) -> str:
    return QCoreApplication.translate("Gpu", "No field has “{0}” in it.").format(query)


def counted(there: int, total: int) -> str:
    return QCoreApplication.translate("Gpu", "{0} of {1} reported").format(there, total)


def xid_name() -> str:
    return QCoreApplication.translate("Gpu", "Xid errors")


def xids(numbers_seen: Sequence[int], newest: str) -> str:
    """``79, 48 · last 14:32:08``; ``none``."""
    if not numbers_seen:
        return QCoreApplication.translate("Gpu", "none")
    listed = ", ".join(str(number) for number in numbers_seen)
    return QCoreApplication.translate("Gpu", "{0} · last {1}").format(listed, newest)


def instance_name(instance: MigInstance) -> str:
    """``1g.10gb · 3/0``: profile, GPU instance and compute instance, as ``nvidia-smi`` numbers them."""
    profile = instance.name or QCoreApplication.translate("Gpu", "instance")
    return f"{profile} · {instance.gpu_instance}/{instance.compute_instance}"


def used_of(used_bytes: float, total_bytes: float | None) -> str:
    if total_bytes is None:
        return numbers.size(used_bytes)
    return QCoreApplication.translate("Gpu", "{0} of {1}").format(numbers.size(used_bytes), numbers.size(total_bytes))


def unknown_of(reason: Reason | None, total_bytes: float | None) -> str:
    """``n/a · no permission · 9.80 GiB``."""
    missing = reasons.missing(reason)
    return missing if total_bytes is None else f"{missing} · {numbers.size(total_bytes)}"


# -- the history ------------------------------------------------------------------------------------------------------


def history_name(field: str) -> str:
    return QCoreApplication.translate("Gpu", "History of {0}").format(field)


def choose_a_field() -> str:
    return QCoreApplication.translate("Gpu", "Choose a field to see its history")


def no_history() -> str:
    return QCoreApplication.translate("Gpu", "It does not change, so it has no history.")


def nothing_measured() -> str:
    return QCoreApplication.translate("Gpu", "Nothing was measured in this span")


def lowest() -> str:
    return QCoreApplication.translate("Gpu", "lowest")


def mean() -> str:
    return QCoreApplication.translate("Gpu", "mean")


def highest() -> str:
    return QCoreApplication.translate("Gpu", "highest")


def change() -> str:
    return QCoreApplication.translate("Gpu", "change")


def about(value: str) -> str:
    return QCoreApplication.translate("Gpu", "≈ {0}").format(value)


# -- the cards --------------------------------------------------------------------------------------------------------


def index(card: Card) -> str:
    return QCoreApplication.translate("Gpu", "GPU {0}").format(card.nvml_index)


def card_name(card: Card) -> str:
    return card.name.removeprefix("NVIDIA ").removeprefix("AMD ")


def short_name(card: Card) -> str:
    """``GPU 0 · H100 80GB HBM3``, at most ``SHORT_NAME`` characters."""
    text = f"{index(card)} · {card_name(card)}"
    return text if len(text) <= SHORT_NAME else text[: SHORT_NAME - 1] + "…"


def where(card: Card) -> str:
    """``torch 1 · 3B:00.0``."""
    torch = numbers.DASH if card.torch_index is None else str(card.torch_index)
    bus = numbers.DASH if card.bus_id is None else cards.short_bus_id(card.bus_id)
    return QCoreApplication.translate("Gpu", "torch {0} · {1}").format(torch, bus)


def utilisation() -> str:
    return QCoreApplication.translate("Gpu", "Util")


def vram() -> str:
    return QCoreApplication.translate("Gpu", "VRAM")


def power() -> str:
    return QCoreApplication.translate("Gpu", "Power")


def temperature() -> str:
    return QCoreApplication.translate("Gpu", "Temp")


def of_limit(value: str, limit: str) -> str:
    return QCoreApplication.translate("Gpu", "{0} / {1}").format(value, limit)


def slowed_by_heat() -> str:
    return QCoreApplication.translate("Gpu", "slowed by heat")


def slowed_by_power() -> str:
    return QCoreApplication.translate("Gpu", "at its power limit")


def lost(reason: Reason, since: str) -> str:
    if not since:
        return reasons.short(reason)
    return QCoreApplication.translate("Gpu", "{0} · last seen {1}").format(reasons.short(reason), since)


def simulated() -> str:
    return QCoreApplication.translate("Gpu", "simulated")


def spoken(parts_of_card: Sequence[str]) -> str:
    """For screen readers."""
    return ", ".join(part for part in parts_of_card if part)
