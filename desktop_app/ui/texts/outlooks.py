"""Words for alerts: what will happen, and when. ``texts.evidence`` has the numbers, ``texts.advice`` what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from PySide6.QtCore import QCoreApplication

from desktop_app.core.forecasts import Alert, AlertSeverity, Cause, Forecast
from desktop_app.ui.i18n import QT_TRANSLATE_NOOP
from desktop_app.ui.texts import numbers

# Closer than this the words say "now"; a step takes longer to read about.
_NOW_S: Final = 2.0
# Causes that do not end in an out-of-memory error of the card: nothing of theirs belongs on its curve.
BESIDE_THE_CARD: Final = frozenset({Cause.HOST_MEMORY, Cause.SPILL})


@dataclass(frozen=True, slots=True)
class Outlook:
    """What an alert says with the newest numbers there are."""

    cause: Cause
    severity: AlertSeverity
    step: int | None  # where memory runs out
    eta_s: float | None
    eta_low_s: float | None
    eta_high_s: float | None
    evidence: Mapping[str, float]


def outlook_of(alert: Alert, forecast: Forecast | None = None) -> Outlook:
    """The alert, with times and evidence of a forecast of the same cause that is at least as new."""
    if forecast is not None and forecast.cause is alert.cause and forecast.step >= alert.step:
        source: Alert | Forecast = forecast
    else:
        source = alert
    step = None if source.eta_steps is None else round(source.step + source.eta_steps)
    return Outlook(
        cause=alert.cause,
        severity=alert.severity,
        step=step,
        eta_s=source.eta_s,
        eta_low_s=source.eta_low_s,
        eta_high_s=source.eta_high_s,
        evidence=source.evidence or alert.evidence,
    )


def watched(forecast: Forecast | None) -> Outlook | None:
    """What a forecast watches, which is no alert; ``None`` when it is calm, or says more than that."""
    if forecast is None or forecast.cause is None or forecast.severity is not AlertSeverity.WATCH:
        return None
    return Outlook(
        cause=forecast.cause,
        severity=AlertSeverity.WATCH,
        step=None,
        eta_s=forecast.eta_s,
        eta_low_s=forecast.eta_low_s,
        eta_high_s=forecast.eta_high_s,
        evidence=forecast.evidence,
    )


def sentence(outlook: Outlook) -> str:
    """``Out of memory likely at step 1,840, in about 3 min 20 s (2:50 to 4:10, 8 of 10)``."""
    if outlook.severity is AlertSeverity.WATCH:
        return QCoreApplication.translate("Outlook", _WATCHING[outlook.cause])
    if outlook.cause in (Cause.FIRST_OPTIMIZER_STEP, Cause.SPILL):
        return QCoreApplication.translate("Outlook", _HAPPENINGS[outlook.cause])
    text = _where(outlook)
    if outlook.eta_low_s is None or outlook.eta_high_s is None or (outlook.eta_s or 0.0) <= _NOW_S:
        return text
    if outlook.eta_high_s <= outlook.eta_low_s:
        return text
    interval = numbers.time_range(outlook.eta_low_s, outlook.eta_high_s)
    return QCoreApplication.translate("Outlook", "{0}  ({1}, 8 of 10)").format(text, interval)


def _where(outlook: Outlook) -> str:
    """What happens at which step, in how long."""
    if outlook.cause in _HAPPENINGS:
        return _happening_where(outlook, QCoreApplication.translate("Outlook", _HAPPENINGS[outlook.cause]))
    if outlook.step is None:
        return QCoreApplication.translate("Outlook", "Out of memory likely")
    step = numbers.integer(outlook.step)
    if outlook.eta_s is None:
        return QCoreApplication.translate("Outlook", "Out of memory likely at step {0}").format(step)
    if outlook.eta_s <= _NOW_S:
        return QCoreApplication.translate("Outlook", "Out of memory likely at step {0}, any moment now").format(step)
    return QCoreApplication.translate("Outlook", "Out of memory likely at step {0}, in about {1}").format(
        step, numbers.about(outlook.eta_s)
    )


def _happening_where(outlook: Outlook, what: str) -> str:
    if outlook.step is None:
        return what
    step = numbers.integer(outlook.step)
    if outlook.eta_s is None:
        return QCoreApplication.translate("Outlook", "{0}: step {1}").format(what, step)
    if outlook.eta_s <= _NOW_S:
        return QCoreApplication.translate("Outlook", "{0}: step {1}, any moment now").format(what, step)
    return QCoreApplication.translate("Outlook", "{0}: step {1}, in about {2}").format(
        what, step, numbers.about(outlook.eta_s)
    )


# What happens, for causes that are tied to one thing; the others are a time when memory is full.
_HAPPENINGS: Final = {
    Cause.FIRST_OPTIMIZER_STEP: QT_TRANSLATE_NOOP("Outlook", "Out of memory likely in the first optimizer step"),
    Cause.BATCH_SHAPE: QT_TRANSLATE_NOOP("Outlook", "Out of memory likely with a larger batch"),
    Cause.VALIDATION: QT_TRANSLATE_NOOP("Outlook", "Out of memory likely in the validation"),
    Cause.CHECKPOINT_SAVE: QT_TRANSLATE_NOOP("Outlook", "Out of memory likely while a checkpoint is saved"),
    Cause.RESUME: QT_TRANSLATE_NOOP("Outlook", "Out of memory likely after resuming"),
    Cause.HOST_MEMORY: QT_TRANSLATE_NOOP("Outlook", "The computer's main memory (RAM) is likely to be full"),
    Cause.SPILL: QT_TRANSLATE_NOOP("Outlook", "The card is full and spills into main memory: no error, but far slower"),
}
_WATCHING: Final = {
    Cause.FIRST_OPTIMIZER_STEP: QT_TRANSLATE_NOOP("Outlook", "The first optimizer step may run out of memory"),
    Cause.BATCH_SHAPE: QT_TRANSLATE_NOOP("Outlook", "A larger batch may run out of memory"),
    Cause.LEAK: QT_TRANSLATE_NOOP("Outlook", "Memory grows from step to step. Watching"),
    Cause.FRAGMENTATION: QT_TRANSLATE_NOOP("Outlook", "Free memory breaks into small pieces. Watching"),
    Cause.NEIGHBOUR: QT_TRANSLATE_NOOP("Outlook", "Another process takes more and more of the card. Watching"),
    Cause.VALIDATION: QT_TRANSLATE_NOOP("Outlook", "The validation may run out of memory"),
    Cause.CHECKPOINT_SAVE: QT_TRANSLATE_NOOP("Outlook", "Saving a checkpoint may run out of memory"),
    Cause.RESUME: QT_TRANSLATE_NOOP("Outlook", "Resuming has left little room. Watching"),
    Cause.OUTSIDE_ALLOCATOR: QT_TRANSLATE_NOOP("Outlook", "Memory outside PyTorch's allocator grows. Watching"),
    Cause.HOST_MEMORY: QT_TRANSLATE_NOOP("Outlook", "The computer's main memory (RAM) fills up. Watching"),
    Cause.SPILL: QT_TRANSLATE_NOOP("Outlook", "The card is about to spill into main memory. Watching"),
}
_CAUSES: Final = {
    Cause.FIRST_OPTIMIZER_STEP: QT_TRANSLATE_NOOP("Outlook", "First optimizer step"),
    Cause.BATCH_SHAPE: QT_TRANSLATE_NOOP("Outlook", "A larger batch"),
    Cause.LEAK: QT_TRANSLATE_NOOP("Outlook", "Memory never freed"),
    Cause.FRAGMENTATION: QT_TRANSLATE_NOOP("Outlook", "Memory in small pieces"),
    Cause.NEIGHBOUR: QT_TRANSLATE_NOOP("Outlook", "Another process on the card"),
    Cause.VALIDATION: QT_TRANSLATE_NOOP("Outlook", "Validation"),
    Cause.CHECKPOINT_SAVE: QT_TRANSLATE_NOOP("Outlook", "Saving a checkpoint"),
    Cause.RESUME: QT_TRANSLATE_NOOP("Outlook", "Resuming from a checkpoint"),
    Cause.OUTSIDE_ALLOCATOR: QT_TRANSLATE_NOOP("Outlook", "Memory outside the allocator"),
    Cause.HOST_MEMORY: QT_TRANSLATE_NOOP("Outlook", "Main memory (RAM)"),
    Cause.SPILL: QT_TRANSLATE_NOOP("Outlook", "Spilling into RAM"),
}
# For the lane of events, where a word is all there is room for.
_SHORT_CAUSES: Final = {
    Cause.FIRST_OPTIMIZER_STEP: QT_TRANSLATE_NOOP("Outlook", "first step"),
    Cause.BATCH_SHAPE: QT_TRANSLATE_NOOP("Outlook", "larger batch"),
    Cause.LEAK: QT_TRANSLATE_NOOP("Outlook", "leak"),
    Cause.FRAGMENTATION: QT_TRANSLATE_NOOP("Outlook", "small pieces"),
    Cause.NEIGHBOUR: QT_TRANSLATE_NOOP("Outlook", "other process"),
    Cause.VALIDATION: QT_TRANSLATE_NOOP("Outlook", "validation"),
    Cause.CHECKPOINT_SAVE: QT_TRANSLATE_NOOP("Outlook", "saving"),
    Cause.RESUME: QT_TRANSLATE_NOOP("Outlook", "resuming"),
    Cause.OUTSIDE_ALLOCATOR: QT_TRANSLATE_NOOP("Outlook", "outside PyTorch"),
    Cause.HOST_MEMORY: QT_TRANSLATE_NOOP("Outlook", "RAM"),
    Cause.SPILL: QT_TRANSLATE_NOOP("Outlook", "spilling"),
}
_SEVERITIES: Final = {
    AlertSeverity.WATCH: QT_TRANSLATE_NOOP("Outlook", "watching"),
    AlertSeverity.LIKELY: QT_TRANSLATE_NOOP("Outlook", "likely"),
    AlertSeverity.IMMINENT: QT_TRANSLATE_NOOP("Outlook", "imminent"),
}


def cause_name(cause: Cause | str) -> str:
    """``Memory never freed``; an unknown cause keeps its code."""
    try:
        return QCoreApplication.translate("Outlook", _CAUSES[Cause(cause)])
    except ValueError:
        return str(cause)


def short_cause(cause: Cause | str) -> str:
    """One or two words; an unknown cause keeps its code."""
    try:
        return QCoreApplication.translate("Outlook", _SHORT_CAUSES[Cause(cause)])
    except ValueError:
        return str(cause)


def severity_name(severity: AlertSeverity) -> str:
    """``likely``."""
    return QCoreApplication.translate("Outlook", _SEVERITIES[severity])
