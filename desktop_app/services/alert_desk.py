"""Alerts on their way from the forecast to the window, the recorder and the user's rule."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Final

from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.forecasts import Alert, AlertSeverity
from desktop_app.core.store import Cell
from desktop_app.services.alert_rule import Rule

__all__ = ["AlertDesk", "Rule"]

_log = logging.getLogger(__name__)

_WEIGHTS: Final[Mapping[AlertSeverity, int]] = {severity: rank for rank, severity in enumerate(AlertSeverity)}


class AlertDesk:
    """Keeps all alerts of a run, newest last. Called from the forecaster's and the trainer's thread."""

    def __init__(self, events: EventQueue) -> None:
        self._events = events
        self._lock = threading.Lock()
        self._raised: list[Alert] = []
        self._rule: Rule | None = None
        self._acted: dict[int, int] = {}  # alert -> weight of the severity that the rule has acted upon
        self.alerts: Cell[tuple[Alert, ...]] = Cell(())
        self.ignored: Cell[frozenset[int]] = Cell(frozenset())

    def begin_run(self, rule: Rule) -> None:
        """Forget the alerts of the run before, and act by ``rule`` from now on."""
        with self._lock:
            self._raised.clear()
            self._acted.clear()
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
            rule = self._rule if self._is_to_act(alert) else None
        _log.warning("Alert %s (%s) at step %d", alert.cause.value, alert.severity.value, alert.step)
        self._post(EventKind.ALERT, Level.WARNING, alert)
        done = None if rule is None else rule.act(alert)
        if done is not None:
            params = {"cause": alert.cause.value, "alert_id": alert.alert_id, "step": alert.step}
            self._events.post(Event(alert.t_s, EventKind.CHANGE, Level.INFO, f"rule.{done}", params))

    def _is_to_act(self, alert: Alert) -> bool:
        """A rule acts once on an alert, and once more when it gets more severe; never on one that the user ignores."""
        weight = _WEIGHTS[alert.severity]
        if alert.alert_id in self.ignored.get() or weight <= self._acted.get(alert.alert_id, -1):
            return False
        self._acted[alert.alert_id] = weight
        return True

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
        """The cause of the most severe alert that is not over, of several the newest."""
        open_alerts = [alert for alert in self.alerts.get() if alert.cleared_t_s is None]
        worst = max(reversed(open_alerts), key=lambda alert: _WEIGHTS[alert.severity], default=None)
        return None if worst is None else worst.cause.value

    def raised(self) -> tuple[Alert, ...]:
        """Every announcement of this run in order, raises of severity included: for the report."""
        with self._lock:
            return tuple(self._raised)

    def _post(self, kind: EventKind, level: Level, alert: Alert) -> None:
        t_s = alert.t_s if kind is EventKind.ALERT or alert.cleared_t_s is None else alert.cleared_t_s
        params = {name: value for name, value in asdict(alert).items() if name != "t_s"}
        self._events.post(Event(t_s=t_s, kind=kind, level=level, code=f"forecast.{alert.cause.value}", params=params))
