"""Words of the process table."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.telemetry import ProcessSample
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.texts import numbers, reasons

_COLUMNS: Final = (
    QT_TRANSLATE_NOOP("Processes", "Process"),
    QT_TRANSLATE_NOOP("Processes", "PID"),
    QT_TRANSLATE_NOOP("Processes", "VRAM"),
)
_KINDS: Final = {
    "compute": QT_TRANSLATE_NOOP("Processes", "compute"),
    "graphics": QT_TRANSLATE_NOOP("Processes", "graphics"),
    "both": QT_TRANSLATE_NOOP("Processes", "both"),
}


def column(index: int) -> str:
    return QCoreApplication.translate("Processes", _COLUMNS[index])


def kind(code: str) -> str:
    return QCoreApplication.translate("Processes", _KINDS[code]) if code in _KINDS else code


def memory(process: ProcessSample) -> str:
    """The size, or why it is not known."""
    if process.memory_bytes is None:
        return reasons.short(process.memory_reason)
    return numbers.size(process.memory_bytes)


def cell(process: ProcessSample, index: int) -> str:
    return (process.name, str(process.pid), memory(process))[index]


def details(process: ProcessSample) -> str:
    """The tooltip: command, user, start, and the reason for what is missing."""
    lines = [process.command or process.name, kind(process.kind)]
    if process.own:
        lines.append(QCoreApplication.translate("Processes", "This program"))
    if process.simulated:
        lines.append(QCoreApplication.translate("Processes", "On a simulated card"))
    if process.user is not None:
        lines.append(QCoreApplication.translate("Processes", "User: {0}").format(process.user))
    if process.started_wall_s is not None:
        started = numbers.wall_date(process.started_wall_s)
        lines.append(QCoreApplication.translate("Processes", "Started: {0}").format(started))
    if process.memory_bytes is None:
        lines.append(reasons.sentence(process.memory_reason))
    return "\n".join(lines)
