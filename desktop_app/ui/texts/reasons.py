"""Why a value is missing."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.telemetry import Reason
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP

_SHORT: Final = {
    Reason.NOT_READ_YET: QT_TRANSLATE_NOOP("Reasons", "not read yet"),
    Reason.NOT_SUPPORTED: QT_TRANSLATE_NOOP("Reasons", "not supported"),
    Reason.NO_PERMISSION: QT_TRANSLATE_NOOP("Reasons", "no permission"),
    Reason.MIG: QT_TRANSLATE_NOOP("Reasons", "not in MIG mode"),
    Reason.WDDM: QT_TRANSLATE_NOOP("Reasons", "hidden by Windows"),
    Reason.UNIFIED_MEMORY: QT_TRANSLATE_NOOP("Reasons", "shared memory"),
    Reason.GPU_LOST: QT_TRANSLATE_NOOP("Reasons", "GPU lost"),
    Reason.DRIVER_MISMATCH: QT_TRANSLATE_NOOP("Reasons", "driver mismatch"),
    Reason.NO_DRIVER: QT_TRANSLATE_NOOP("Reasons", "no driver"),
    Reason.TIMED_OUT: QT_TRANSLATE_NOOP("Reasons", "timed out"),
    Reason.IMPLAUSIBLE: QT_TRANSLATE_NOOP("Reasons", "implausible value"),
    Reason.SUSPENDED: QT_TRANSLATE_NOOP("Reasons", "nothing ran"),
    Reason.ASLEEP: QT_TRANSLATE_NOOP("Reasons", "card sleeps"),
    Reason.SIMULATED: QT_TRANSLATE_NOOP("Reasons", "simulated card"),
    Reason.UNKNOWN_ERROR: QT_TRANSLATE_NOOP("Reasons", "driver error"),
}
_LONG: Final = {
    Reason.NOT_READ_YET: QT_TRANSLATE_NOOP("Reasons", "No reading has come yet."),
    Reason.NOT_SUPPORTED: QT_TRANSLATE_NOOP("Reasons", "This card does not report it."),
    Reason.NO_PERMISSION: QT_TRANSLATE_NOOP("Reasons", "The driver gives it to administrators only."),
    Reason.MIG: QT_TRANSLATE_NOOP("Reasons", "The card is split into MIG instances; the driver gives no value then."),
    Reason.WDDM: QT_TRANSLATE_NOOP("Reasons", "Windows manages the memory of this card and hides the value."),
    Reason.UNIFIED_MEMORY: QT_TRANSLATE_NOOP("Reasons", "Card and processor share one memory."),
    Reason.GPU_LOST: QT_TRANSLATE_NOOP(
        "Reasons", "The card has fallen off the bus. A restart of the machine usually brings it back."
    ),
    Reason.DRIVER_MISMATCH: QT_TRANSLATE_NOOP(
        "Reasons", "The driver was updated while it ran. Restart the machine to load the new one."
    ),
    Reason.NO_DRIVER: QT_TRANSLATE_NOOP("Reasons", "No NVIDIA driver was found."),
    Reason.TIMED_OUT: QT_TRANSLATE_NOOP("Reasons", "The driver did not answer in time."),
    Reason.IMPLAUSIBLE: QT_TRANSLATE_NOOP("Reasons", "The driver gave a value that cannot be true."),
    Reason.SUSPENDED: QT_TRANSLATE_NOOP("Reasons", "Nothing ran: the computer slept, or the program was stopped."),
    Reason.ASLEEP: QT_TRANSLATE_NOOP(
        "Reasons", "The card sleeps to save power; reading it would wake it. It is read again when something uses it."
    ),
    Reason.SIMULATED: QT_TRANSLATE_NOOP("Reasons", "A simulated card has no such value."),
    Reason.UNKNOWN_ERROR: QT_TRANSLATE_NOOP("Reasons", "The driver answered with an error."),
}


def short(reason: Reason | None) -> str:
    """Two or three words for a table cell, such as ``not supported``."""
    return QCoreApplication.translate("Reasons", _SHORT[reason or Reason.NOT_READ_YET])


def sentence(reason: Reason | None) -> str:
    """One sentence that says what it means and, where there is something, what to do."""
    return QCoreApplication.translate("Reasons", _LONG[reason or Reason.NOT_READ_YET])


def missing(reason: Reason | None) -> str:
    """``n/a · not supported``."""
    return QCoreApplication.translate("Reasons", "n/a · {0}").format(short(reason))
