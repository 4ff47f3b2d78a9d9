"""The forecaster's thread: steps, phases and surroundings come in, forecasts and alerts go out."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

from desktop_app.core.forecasts import Alert, AlertSeverity, Forecast
from desktop_app.core.steps import PhaseSample, StepSample, Surroundings
from desktop_app.forecast.forecaster import Forecaster, Update

Sample = StepSample | PhaseSample | Surroundings
_T = TypeVar("_T")
_log = logging.getLogger(__name__)

INBOX_STEPS: Final = 4096  # over three minutes at 20 steps/s; a thread that far behind is stuck
# A forecast takes half a millisecond: one for each of 300 steps/s would cost the training in the same process far more
# than 1 %. Steps in between are evidence all the same, and what the trainer asks for now does not wait.
FORECASTS_PER_S: Final = 50.0
# Where memory will not be out for long, every second step is: at 20 steps/s two forecasts in three cost what one does.
CALM_STEPS: Final = 2
CALM_PER_S: Final = 10.0  # at least, so that what is shown is never older than a tenth of a second
_NEAR_P: Final = 0.05  # of running out within 100 steps


class ForecasterThread(threading.Thread):
    """Owns a forecaster. Callbacks come in this thread, those of ``observe_phase_now`` in its caller's.

    Runs in: forecaster thread. A backlog is taken in whole, with one forecast for its newest step, and so are steps
    that end faster than ``FORECASTS_PER_S``, or every two while the forecast ``is_calm``. A callback that raises is
    logged and does not end the thread.
    """

    def __init__(
        self,
        forecaster: Forecaster,
        *,
        on_forecast: Callable[[Forecast], None],
        on_alert: Callable[[Alert], None],
        on_cleared: Callable[[Alert], None],
    ) -> None:
        super().__init__(name="forecaster", daemon=True)
        self.forecaster: Final = forecaster
        self.dropped = 0  # steps that the inbox had no room for
        self._on_forecast = on_forecast
        self._on_alert = on_alert
        self._on_cleared = on_cleared
        self._inbox: deque[Sample] = deque()
        self._wake = threading.Condition()
        self._taking = threading.Lock()  # held from taking samples out of the inbox until the forecaster has them
        self._stopping = False
        self._worked_s = -math.inf
        self._step_s = 0.0  # of the newest step

    def observe_step(self, sample: StepSample) -> None:
        """Queue a step; returns at once. Runs in: trainer thread."""
        self._post(sample)

    def observe_phase(self, sample: PhaseSample) -> None:
        """Queue a phase; returns at once. Runs in: trainer thread."""
        self._post(sample)

    def observe_surroundings(self, sample: Surroundings) -> None:
        """Queue what telemetry says; returns at once. Runs in: sampler thread."""
        self._post(sample)

    def observe_phase_now(self, sample: PhaseSample) -> tuple[Alert, ...]:
        """Judge a phase before it begins; its alerts have been told, and are given back, when this returns.

        Runs in: trainer thread.
        """
        with self._taking:
            updates = self._absorb(self._take_all())
            now = self.forecaster.update_phase(sample)
        self._tell([*updates, now])
        return now.changes.raised

    def stop(self, timeout_s: float = 1.0) -> bool:
        """End the thread after what is queued; true when it has ended within ``timeout_s``."""
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        if self.is_alive():
            self.join(timeout_s)
        return not self.is_alive()

    def run(self) -> None:
        """Forecast until stopped."""
        while self._wait():
            try:
                self._work()
            except Exception:
                _log.exception("Forecast failed; the run goes on without it")

    def _post(self, sample: Sample) -> None:
        with self._wake:
            if len(self._inbox) >= INBOX_STEPS:
                self._inbox.popleft()
                self.dropped += 1
            self._inbox.append(sample)
            self._wake.notify()

    def _wait(self) -> bool:
        """Block until there is work; false when there is none and none will come."""
        with self._wake:
            self._wake.wait_for(lambda: self._stopping or bool(self._inbox))
            rest_s = self._worked_s + self._pause_s() - time.monotonic()
            if rest_s > 0:
                self._wake.wait_for(lambda: self._stopping, rest_s)
            self._worked_s = time.monotonic()
            return bool(self._inbox)

    def _pause_s(self) -> float:
        """From forecast to forecast, at least."""
        shortest = 1.0 / FORECASTS_PER_S
        if not is_calm(self.forecaster.forecast()):
            return shortest
        return max(shortest, min(CALM_STEPS * self._step_s, 1.0 / CALM_PER_S))

    def _work(self) -> None:
        with self._taking:
            samples = self._take_all()
            if not samples:  # the trainer's own thread was faster
                return
            updates = self._absorb(samples[:-1])
            updates.append(self._update(samples[-1]))
        self._tell(updates)

    def _take_all(self) -> list[Sample]:
        with self._wake:
            samples = list(self._inbox)
            self._inbox.clear()
        return samples

    def _absorb(self, samples: list[Sample]) -> list[Update]:
        """Take a backlog: steps as evidence only, phases and surroundings with all they say."""
        updates = []
        for sample in samples:
            if isinstance(sample, StepSample):
                self.forecaster.absorb_step(sample)
            else:
                updates.append(self._update(sample))
        return updates

    def _update(self, sample: Sample) -> Update:
        if isinstance(sample, StepSample):
            self._step_s = sample.step_s
            return self.forecaster.update_step(sample)
        if isinstance(sample, PhaseSample):
            return self.forecaster.update_phase(sample)
        return self.forecaster.update_surroundings(sample)

    def _tell(self, updates: list[Update]) -> None:
        """Call back without any lock held. A forecast that the other thread has overtaken is not told any more."""
        for update in updates:
            for alert in update.changes.raised:
                _call(self._on_alert, alert)
            for alert in update.changes.cleared:
                _call(self._on_cleared, alert)
        if updates[-1].forecast is self.forecaster.forecast():
            _call(self._on_forecast, updates[-1].forecast)


def is_calm(forecast: Forecast) -> bool:
    """Memory will hardly be out within 100 steps, and nothing is being watched that may turn out to be worse."""
    return forecast.severity is not AlertSeverity.WATCH and forecast.p_oom.get(100, 0.0) < _NEAR_P


def _call(callback: Callable[[_T], None], value: _T) -> None:
    try:
        callback(value)
    except Exception:
        _log.exception("A listener of the forecast failed")
