"""Desktop notifications: one line of title, one of text."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from desktop_app.core.forecasts import Alert, AlertSeverity, Forecast
from desktop_app.core.steps import OomReport, RunState, RunStatus
from desktop_app.ui.texts import errors, evidence, numbers, outlooks, verdicts


@dataclass(frozen=True, slots=True)
class Announcement:
    """What is said outside the window. ``loud``: something is wrong, not merely over."""

    title: str
    text: str
    loud: bool = True


def of_alert(alert: Alert, forecast: Forecast | None) -> Announcement:
    """The banner's words."""
    outlook = outlooks.outlook_of(alert, forecast)
    title = outlooks.sentence(outlook)
    if alert.severity is AlertSeverity.IMMINENT:
        title = QCoreApplication.translate("Announcements", "Imminent: {0}").format(title)
    return Announcement(_plain(title), _plain(evidence.line(outlook)))


def of_rescue(status: RunStatus, report: OomReport) -> Announcement:
    return Announcement(_plain(verdicts.rescued(report, status)), _plain(verdicts.rescued_help(report)))


def of_end(status: RunStatus) -> Announcement | None:
    """How a run has ended; nothing for one that was stopped, for whoever did it knows."""
    if status.state is RunState.OUT_OF_MEMORY and status.oom is not None:
        return Announcement(_plain(verdicts.out_of_memory(status.oom)), _plain(verdicts.out_of_memory_help(status.oom)))
    if status.state is RunState.FAILED:
        return Announcement(_plain(verdicts.failed()), _plain(errors.text(status.error_code, status.error_message)))
    if status.state is RunState.FINISHED:
        return Announcement(_plain(verdicts.finished(status)), _plain(verdicts.progress(status)), loud=False)
    return None


def _plain(text: str) -> str:
    """Without our no-break spaces, which some desktops draw as boxes."""
    return text.replace(numbers.NBSP, " ")
