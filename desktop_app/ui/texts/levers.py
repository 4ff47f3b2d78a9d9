"""What would lower the peak, in a few words."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.forecasts import Lever
from desktop_app.training.config import RunConfig
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.texts import fields, numbers

_NAMES: Final = {
    "bf16": QT_TRANSLATE_NOOP("Levers", "bfloat16 autocast"),
    "sgd": QT_TRANSLATE_NOOP("Levers", "SGD in place of {optimizer}"),
    "no_foreach": QT_TRANSLATE_NOOP("Levers", "Update without foreach"),
}


def name(lever: Lever, config: RunConfig) -> str:
    """``Batch 64 → 48, accumulate``; levers without words of their own name the settings they change."""
    if set(lever.changes) == {"batch_size", "accumulation"}:
        return QCoreApplication.translate("Levers", "Batch {0} → {1}, accumulate").format(
            config.batch_size, lever.changes["batch_size"]
        )
    if lever.code in _NAMES:
        optimizer = fields.choice("optimizer", config.optimizer)
        return QCoreApplication.translate("Levers", _NAMES[lever.code]).replace("{optimizer}", optimizer)
    return ", ".join(_change(field, getattr(config, field), new) for field, new in lever.changes.items())


def _change(field: str, old: object, new: object) -> str:
    return f"{fields.name(field)} {_shown(field, old)} → {_shown(field, new)}"


def _shown(field: str, value: object) -> str:
    if isinstance(value, bool):
        return QCoreApplication.translate("Levers", "on") if value else QCoreApplication.translate("Levers", "off")
    return fields.not_set() if value is None else fields.choice(field, str(value))


def saved(lever: Lever) -> str:
    """``−0.34 GiB``."""
    return numbers.size(-lever.saved_bytes)


def no_help_against_leak() -> str:
    return QCoreApplication.translate("Levers", "None stops a leak. It only moves the day.")


def locked() -> str:
    return QCoreApplication.translate("Levers", "Can be chosen when the run has ended.")


def choose(lever: Lever, config: RunConfig) -> str:
    """The tooltip: what the peak would be."""
    return QCoreApplication.translate("Levers", "{0}: the peak would be {1}. Changes the form.").format(
        name(lever, config), numbers.size(lever.device_peak_bytes)
    )
