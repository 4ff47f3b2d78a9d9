"""Words for alerts: what will happen and when, on what evidence, and what to do."""

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


def sentence(outlook: Outlook) -> str:
    """``Out of memory likely at step 1,840, in about 3 min 20 s (2:50 to 4:10, 8 of 10)``."""
    watching = outlook.severity is AlertSeverity.WATCH
    if outlook.cause is Cause.FIRST_OPTIMIZER_STEP:
        if watching:
            return QCoreApplication.translate("Outlook", "The first optimizer step may run out of memory")
        return QCoreApplication.translate("Outlook", "Out of memory likely in the first optimizer step")
    if watching:
        return QCoreApplication.translate("Outlook", "Memory grows from step to step. Watching")
    text = _where(outlook)
    if outlook.eta_low_s is None or outlook.eta_high_s is None or (outlook.eta_s or 0.0) <= _NOW_S:
        return text
    interval = numbers.time_range(outlook.eta_low_s, outlook.eta_high_s)
    return QCoreApplication.translate("Outlook", "{0}  ({1}, 8 of 10)").format(text, interval)


def _where(outlook: Outlook) -> str:
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


def evidence(outlook: Outlook) -> str:
    """The numbers behind it and the usual cause, in one line."""
    if outlook.cause is Cause.FIRST_OPTIMIZER_STEP:
        return _first_step_evidence(outlook.evidence)
    return _leak_evidence(outlook.evidence)


def _first_step_evidence(facts: Mapping[str, float]) -> str:
    demand, room, peak = facts.get("demand_bytes"), facts.get("room_bytes"), facts.get("estimated_peak_bytes")
    if demand is not None and room is not None:
        return QCoreApplication.translate(
            "Outlook", "The optimizer makes its state in this step: it needs {0}, and {1} are free."
        ).format(numbers.size(demand), numbers.size(room))
    if peak is not None:
        return QCoreApplication.translate(
            "Outlook", "The optimizer makes its state in this step; the estimate puts the peak at {0}."
        ).format(numbers.size(peak))
    return QCoreApplication.translate("Outlook", "The optimizer makes its state in this step.")


def _leak_evidence(facts: Mapping[str, float]) -> str:
    slope, steps = facts.get("slope_bytes_per_step"), facts.get("grown_steps")
    usual = QCoreApplication.translate("Outlook", "Typical cause: a loss kept with its graph.")
    if slope is None or steps is None:
        unknown = QCoreApplication.translate("Outlook", "Memory that is never freed.")
        return numbers.sentences(unknown, usual)
    if "batch_samples" in facts:
        growth = QCoreApplication.translate(
            "Outlook", "Memory that is never freed: +{0} a step for {1} steps, batch shape unchanged."
        )
    else:
        growth = QCoreApplication.translate("Outlook", "Memory that is never freed: +{0} a step for {1} steps.")
    return numbers.sentences(growth.format(numbers.small_size(slope), numbers.integer(steps)), usual)


_CAUSES: Final = {
    Cause.FIRST_OPTIMIZER_STEP: QT_TRANSLATE_NOOP("Outlook", "First optimizer step"),
    Cause.LEAK: QT_TRANSLATE_NOOP("Outlook", "Memory never freed"),
}
_SEVERITIES: Final = {
    AlertSeverity.WATCH: QT_TRANSLATE_NOOP("Outlook", "watching"),
    AlertSeverity.LIKELY: QT_TRANSLATE_NOOP("Outlook", "likely"),
    AlertSeverity.IMMINENT: QT_TRANSLATE_NOOP("Outlook", "imminent"),
}
_ADVICE: Final = {
    Cause.FIRST_OPTIMIZER_STEP: QT_TRANSLATE_NOOP(
        "Outlook",
        "Adam and AdamW keep two numbers for every parameter and make them in the first step. A smaller network, SGD, "
        "or an update without foreach needs less. A smaller batch helps only when activations are the larger part.",
    ),
    Cause.LEAK: QT_TRANSLATE_NOOP(
        "Outlook",
        "Something keeps a tensor of every step. Look for a list or a running total that takes the loss itself: "
        "total += loss keeps the whole graph, total += loss.item() keeps a number. "
        "Smaller batches only move the day.",
    ),
}


def cause_name(cause: Cause | str) -> str:
    """``Memory never freed``; an unknown cause keeps its code."""
    try:
        return QCoreApplication.translate("Outlook", _CAUSES[Cause(cause)])
    except ValueError:
        return str(cause)


def severity_name(severity: AlertSeverity) -> str:
    """``likely``."""
    return QCoreApplication.translate("Outlook", _SEVERITIES[severity])


def advice(cause: Cause) -> str:
    """What to look for and what to change."""
    return QCoreApplication.translate("Outlook", _ADVICE[cause])
