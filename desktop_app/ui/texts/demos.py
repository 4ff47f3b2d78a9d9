"""Titles and descriptions of the demonstrations."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.ui.i18n import QT_TRANSLATE_NOOP

# By the names of ``services.scenarios``: (title, description).
_DEMOS: Final = {
    "cats-dogs": (
        QT_TRANSLATE_NOOP("Demos", "A healthy training"),
        QT_TRANSLATE_NOOP("Demos", "Cats and dogs. Nothing is wrong, and nothing is said."),
    ),
    "first-optimizer-step": (
        QT_TRANSLATE_NOOP("Demos", "The first optimizer step"),
        QT_TRANSLATE_NOOP("Demos", "The passes fit, the state of Adam does not. Said before the call."),
    ),
    "batch-shape": (
        QT_TRANSLATE_NOOP("Demos", "The largest batch comes last"),
        QT_TRANSLATE_NOOP("Demos", "The data are sorted by size; the last batches of the epoch do not fit."),
    ),
    "leak": (
        QT_TRANSLATE_NOOP("Demos", "A leak"),
        QT_TRANSLATE_NOOP("Demos", "Every loss is kept with its graph. The warning comes long before the end."),
    ),
    "fragmentation": (
        QT_TRANSLATE_NOOP("Demos", "Memory in small pieces"),
        QT_TRANSLATE_NOOP(
            "Demos", "Small tensors stay between large ones: half of the memory is free, and none of it fits."
        ),
    ),
    "neighbour": (
        QT_TRANSLATE_NOOP("Demos", "Another process"),
        QT_TRANSLATE_NOOP(
            "Demos", "A second training (simulated) grows on the same card and takes what this run needs again."
        ),
    ),
    "validation": (
        QT_TRANSLATE_NOOP("Demos", "Validation keeps its outputs"),
        QT_TRANSLATE_NOOP("Demos", "Predictions are kept with their graph, more with every epoch."),
    ),
    "checkpoint-save": (
        QT_TRANSLATE_NOOP("Demos", "Copies made for saving"),
        QT_TRANSLATE_NOOP("Demos", "A copy of the weights stays on the card with every checkpoint."),
    ),
    "resume": (
        QT_TRANSLATE_NOOP("Demos", "Resuming"),
        QT_TRANSLATE_NOOP("Demos", "The loaded checkpoint stays on the card: a fresh run would fit."),
    ),
    "outside-allocator": (
        QT_TRANSLATE_NOOP("Demos", "Memory outside the allocator"),
        QT_TRANSLATE_NOOP("Demos", "One more kernel is compiled and loaded in every step; PyTorch does not count it."),
    ),
    "host-memory": (
        QT_TRANSLATE_NOOP("Demos", "Main memory"),
        QT_TRANSLATE_NOOP("Demos", "The loader keeps every decoded picture in the RAM of a simulated small computer."),
    ),
    "spill": (
        QT_TRANSLATE_NOOP("Demos", "Spilling under Windows"),
        QT_TRANSLATE_NOOP("Demos", "The driver moves memory to RAM when the card is full: no error, far slower steps."),
    ),
    "too-big": (
        QT_TRANSLATE_NOOP("Demos", "Too big from the start"),
        QT_TRANSLATE_NOOP("Demos", "The estimate says so before the first step, with the batch that fits."),
    ),
}


def title(name: str) -> str:
    """A few words; a demonstration without words keeps its name."""
    return QCoreApplication.translate("Demos", _DEMOS[name][0]) if name in _DEMOS else name


def description(name: str) -> str:
    """What goes wrong and when one sees it; empty where nobody has written it."""
    return QCoreApplication.translate("Demos", _DEMOS[name][1]) if name in _DEMOS else ""
