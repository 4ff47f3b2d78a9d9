"""Alerts on their way from the forecast to the window, the recorder and the user's rule."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.forecasts import Alert, AlertSeverity
from desktop_app.core.store import Cell

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rule:
    """What to do by itself when an alert is raised: names of ``RunConfig.on_alert``."""

    on_alert: str
    pause: Callable[[], None]
    save_checkpoint: Callable[[], None]

    def act(self) -> None:
        """Ask for what the rule says; the trainer does it before its next micro-step."""
        if self.on_alert == "save_and_pause":
            self.save_checkpoint()
        if self.on_alert in ("pause", "save_and_pause"):
            self.pause()


class AlertDesk:
    """Keeps all alerts of a run, newest last. Called from the forecaster's and the trainer's thread."""

    def __init__(self, events: EventQueue) -> None:
        self._events = events
        self._lock = threading.Lock()
        self._raised: list[Alert] = []
        self._rule: Rule | None = None
        self.alerts: Cell[tuple[Alert, ...]] = Cell(())
        self.ignored: Cell[frozenset[int]] = Cell(frozenset())

    def begin_run(self, rule: Rule) -> None:
        """Forget the alerts of the run before, and act by ``rule`` from now on."""
        with self._lock:
            self._raised.clear()
            self._rule = rule
            self.alerts.set(())
            self.ignored.set(frozenset())

    def on_alert(self, alert: Alert) -> None:
        """A new alert, or a raised severity of a known one. ``WATCH`` is shown, never announced."""
        with self._lock:
            others = [known for known in self.alerts.get() if known.alert_id != alert.alert_id]
            self.alerts.set((*others, alert))
            if alert.severity is AlertSeverity.WATCH:
                return
            self._raised.append(alert)
            rule = None if alert.alert_id in self.ignored.get() else self._rule
        _log.warning("Alert %s (%s) at step %d", alert.cause.value, alert.severity.value, alert.step)
        self._post(EventKind.ALERT, Level.WARNING, alert)
        if rule is not None:
            rule.act()

    def on_cleared(self, alert: Alert) -> None:
        """An alert is over; it stays in the list."""
        with self._lock:
            self.alerts.set(
                tuple(
                    replace(known, cleared_t_s=alert.cleared_t_s) if known.alert_id == alert.alert_id else known
                    for known in self.alerts.get()
                )
            )
        if alert.severity is not AlertSeverity.WATCH:
            self._post(EventKind.ALERT_CLEARED, Level.INFO, alert)

    def ignore(self, alert_id: int) -> None:
        """The user has seen it: nothing is done by itself any more when it becomes more severe."""
        with self._lock:
            self.ignored.set(self.ignored.get() | {alert_id})

    def open_cause(self) -> str | None:
        """The cause of the newest alert that is not over."""
        open_alerts = [alert for alert in self.alerts.get() if alert.cleared_t_s is None]
        return open_alerts[-1].cause.value if open_alerts else None

    def raised(self) -> tuple[Alert, ...]:
        """Every announcement of this run in order, raises of severity included: for the report."""
        with self._lock:
            return tuple(self._raised)

    def _post(self, kind: EventKind, level: Level, alert: Alert) -> None:
        t_s = alert.t_s if kind is EventKind.ALERT or alert.cleared_t_s is None else alert.cleared_t_s
        params = {name: value for name, value in asdict(alert).items() if name != "t_s"}
        self._events.post(Event(t_s=t_s, kind=kind, level=level, code=f"forecast.{alert.cause.value}", params=params))
