"""From what causes say to what people are told: one alert per cause, raised late enough to be true, not flapping."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from desktop_app.core.forecasts import Alert, AlertSeverity, Cause
from desktop_app.forecast.outlook import SEVERITIES, Outlook

RAISE_AFTER: Final = 2  # samples in a row that call for an alert; urgent ones need no second
CLEAR_BELOW_P: Final = 0.2  # an alert is raised at 0.5: the gap keeps one that hovers from flapping
CLEAR_AFTER_STEPS: Final = 40  # as long as a leak may take to be flagged: a restarted fit must not clear it
# Causes that telemetry speaks of once a second: a second look at the same figures is no second sample, and they are
# over after a time, as no step may end any more.
_SURROUNDING: Final = frozenset({Cause.NEIGHBOUR, Cause.OUTSIDE_ALLOCATOR, Cause.HOST_MEMORY, Cause.SPILL})
_AGAIN_AFTER_S: Final = 0.5
CLEAR_AFTER_S: Final = 20.0
_MAX_PATIENCE: Final = 64


@dataclass(frozen=True, slots=True)
class Changes:
    """What one sample changed: alerts raised (or raised in severity) and alerts that are over."""

    raised: tuple[Alert, ...] = ()
    cleared: tuple[Alert, ...] = ()


@dataclass(slots=True)
class _CauseState:
    """Memory about one cause. ``patience`` doubles with every alert that turned out to be nothing."""

    alert: Alert | None = None
    calls: int = 0
    called_t_s: float = -math.inf
    patience: int = RAISE_AFTER
    quiet_since: tuple[float, int] | None = None  # (t, step)


class Policy:
    """Decides about alerts; ``WATCH`` is none. The forecaster's lock guards it."""

    def __init__(self) -> None:
        self._states: dict[Cause, _CauseState] = {}
        self._last_id = 0

    @property
    def open_alerts(self) -> tuple[Alert, ...]:
        """Alerts that are not over, in the order of their raising."""
        if not self._states:
            return ()
        open_alerts = [state.alert for state in self._states.values() if state.alert is not None]
        return tuple(sorted(open_alerts, key=lambda alert: alert.alert_id))

    def is_open(self, cause: Cause) -> bool:
        """An alert about the cause is out."""
        state = self._states.get(cause)
        return state is not None and state.alert is not None

    def update(
        self,
        t_s: float,
        step: int,
        outlooks: Mapping[Cause, Outlook],
        pace_s: float | None,
        *,
        superseded: Collection[Cause] = (),
        of_surroundings: bool = False,
    ) -> Changes:
        """Judge the outlooks of one sample at ``t_s``; ``pace_s`` turns steps into seconds.

        Alerts about causes that are ``superseded`` by another are over at once. ``of_surroundings``: telemetry has
        spoken, which is nothing new about the steps.
        """
        raised: list[Alert] = []
        cleared: list[Alert] = []
        for cause in dict.fromkeys([*self._states, *outlooks]):
            state = self._states.setdefault(cause, _CauseState())
            outlook = outlooks.get(cause)
            if outlook is not None and self._is_news(state, outlook, t_s, of_surroundings=of_surroundings):
                alert = self._raise(state, outlook, t_s, step, pace_s)
                if alert is not None:
                    raised.append(alert)
            if cause in superseded and state.alert is not None:
                cleared.append(replace(state.alert, cleared_t_s=t_s))
                self._states[cause] = _CauseState()
                continue
            over = self._clear(state, outlook, t_s, step)
            if over is not None:
                cleared.append(over)
        return Changes(tuple(raised), tuple(cleared))

    def _is_news(self, state: _CauseState, outlook: Outlook, t_s: float, *, of_surroundings: bool) -> bool:
        """The sample says something about the cause that the one before did not."""
        if outlook.urgent:
            return True
        if outlook.cause in _SURROUNDING:
            return state.calls == 0 or abs(t_s - state.called_t_s) >= _AGAIN_AFTER_S
        return not of_surroundings

    def _raise(self, state: _CauseState, outlook: Outlook, t_s: float, step: int, pace_s: float | None) -> Alert | None:
        known = state.alert.severity if state.alert is not None else AlertSeverity.WATCH
        if outlook.severity is None or SEVERITIES.index(outlook.severity) <= SEVERITIES.index(known):
            state.calls = 0
            return None
        state.calls += 1
        state.called_t_s = t_s
        needed = 1 if outlook.urgent else RAISE_AFTER if state.alert is not None else state.patience
        if state.calls < needed:
            return None
        state.calls = 0
        if state.alert is None:
            self._last_id += 1
        alert_id = state.alert.alert_id if state.alert is not None else self._last_id
        state.alert = _to_alert(alert_id, outlook, outlook.severity, t_s, step, pace_s)
        return state.alert

    def _clear(self, state: _CauseState, outlook: Outlook | None, t_s: float, step: int) -> Alert | None:
        if state.alert is None:
            return None
        if outlook is not None and outlook.p_run >= CLEAR_BELOW_P:
            state.quiet_since = None
            return None
        if state.quiet_since is None:
            state.quiet_since = t_s, step
        since_t_s, since_step = state.quiet_since
        wait = 0 if state.alert.cause in _OVER_AT_ONCE else CLEAR_AFTER_STEPS
        long_enough = state.alert.cause in _SURROUNDING and t_s - since_t_s >= CLEAR_AFTER_S
        if step - since_step < wait and not long_enough:
            return None
        over = replace(state.alert, cleared_t_s=t_s)
        patience = min(2 * state.patience, _MAX_PATIENCE)
        self._states[over.cause] = _CauseState(patience=patience)
        return over


# A call that has returned is over; there is nothing to wait for.
_OVER_AT_ONCE: Final = frozenset({Cause.FIRST_OPTIMIZER_STEP})


def _to_alert(
    alert_id: int, outlook: Outlook, severity: AlertSeverity, t_s: float, step: int, pace_s: float | None
) -> Alert:
    to_go = outlook.to_go
    pace_s = pace_s if outlook.pace_s is None else outlook.pace_s
    return Alert(
        alert_id=alert_id,
        t_s=t_s,
        step=step,
        cause=outlook.cause,
        severity=severity,
        eta_steps=to_go.median if to_go is not None else None,
        eta_steps_low=to_go.low if to_go is not None else None,
        eta_steps_high=to_go.high if to_go is not None else None,
        eta_s=in_seconds(to_go.median, pace_s) if to_go is not None else None,
        eta_low_s=in_seconds(to_go.low, pace_s) if to_go is not None else None,
        eta_high_s=in_seconds(to_go.high, pace_s) if to_go is not None else None,
        evidence=dict(outlook.evidence),
        action=outlook.action,
    )


def in_seconds(steps: float, pace_s: float | None) -> float | None:
    """Steps as seconds; 0 steps are 0 s at any pace, others need one."""
    if steps == 0.0:
        return 0.0
    return None if pace_s is None else steps * pace_s
