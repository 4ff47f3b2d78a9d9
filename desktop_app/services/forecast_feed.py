"""Forecasts on their way into the store. They come from two threads: the forecaster's and sometimes the trainer's."""

from __future__ import annotations

import threading
from typing import Final

from desktop_app.core.forecasts import Forecast
from desktop_app.core.store import Cell, Store

# Columns of the history "forecast", in order. NaN where there is nothing to fear.
FORECAST_COLUMNS: Final = (
    "step",
    "eta_steps",
    "eta_s",
    "p_oom_100",
    "p_oom_run",
    "flood_low_bytes",
    "flood_high_bytes",
)
_NAN: Final = float("nan")
_NEAR_STEPS: Final = 32  # at 300 steps/s six are between two forecasts; a busy machine has more


class ForecastFeed:
    """The newest forecast and their history. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._history = store.declare("forecast", FORECAST_COLUMNS)
        self._lock = threading.Lock()
        self.newest: Cell[Forecast | None] = Cell(None)

    def begin_run(self) -> None:
        """Forget the forecast of the run before."""
        with self._lock:
            self.newest.set(None)

    def on_forecast(self, forecast: Forecast) -> None:
        """Take a forecast; one that a newer one has overtaken on its way is of no use any more."""
        with self._lock:
            newest = self.newest.get()
            if newest is not None and (forecast.t_s, forecast.step) < (newest.t_s, newest.step):
                return
            self.newest.set(forecast)
            self._history.append(forecast.t_s, _row(forecast))

    def eta_steps_after(self, step: int) -> float | None:
        """Steps to exhaustion as forecast last after ``step``; ``None`` when quiet or no longer kept.

        Fast steps are not all forecast: then the newest forecast before it counts, less the steps since.
        """
        rows = self._history.tail(self._history.capacity, ("step", "eta_steps"))
        steps, etas = rows.column("step"), rows.column("eta_steps")
        near = (steps <= step) & (steps > step - _NEAR_STEPS)
        if not near.any():
            return None
        newest = float(steps[near][-1])  # the last that was told, not the largest: a run before this had such steps too
        known = etas[(steps == newest) & (etas == etas)]
        return max(0.0, float(known[-1]) - (step - newest)) if known.size else None


def _row(forecast: Forecast) -> tuple[float, ...]:
    values = (
        forecast.step,
        forecast.eta_steps,
        forecast.eta_s,
        forecast.p_oom.get(100),
        forecast.p_oom_run,
        forecast.flood_low_bytes,
        forecast.flood_high_bytes,
    )
    return tuple(_NAN if value is None else float(value) for value in values)
