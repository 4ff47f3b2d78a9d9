"""What stands around an alert in the list: when it came and what has become of it."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from desktop_app.core.forecasts import Alert
from desktop_app.core.steps import RunState, RunStatus
from desktop_app.ui.texts import numbers, outlooks


def when(alert: Alert, wall_s: float) -> str:
    """``14:32:08 · step 1,632``."""
    return QCoreApplication.translate("Alerts", "{0} · step {1}").format(
        numbers.wall_time(wall_s), numbers.integer(alert.step)
    )


def state(alert: Alert, *, ignored: bool) -> str:
    """How it ended, or that it is ignored; empty for an open one that is shown."""
    if alert.cleared_t_s is not None:
        after = numbers.duration(alert.cleared_t_s - alert.t_s)
        return QCoreApplication.translate("Alerts", "Over after {0}").format(after)
    if ignored:
        return QCoreApplication.translate("Alerts", "Ignored")
    return outlooks.severity_name(alert.severity)


def after_the_run(run: RunStatus) -> str:
    """What an alert that was open to the end has become: it came true, or the run was over before."""
    if run.state is RunState.OUT_OF_MEMORY:
        step = run.step if run.oom is None else run.oom.step
        return QCoreApplication.translate("Alerts", "Memory ran out at step {0}.").format(numbers.integer(step))
    return QCoreApplication.translate("Alerts", "The run ended before it came to that.")


def details() -> str:
    """The button that shows all figures."""
    return QCoreApplication.translate("Alerts", "Details")


def cleared(count: int) -> str:
    """The fold over the alerts that are over: ``Over  3``."""
    return QCoreApplication.translate("Alerts", "Over  {0}").format(numbers.integer(count))
