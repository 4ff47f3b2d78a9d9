"""Forecasts on their way into the store, from two threads."""

from __future__ import annotations

import math
import threading

from desktop_app.core.forecasts import Forecast
from desktop_app.core.store import Store
from desktop_app.services.forecast_feed import FORECAST_COLUMNS, ForecastFeed

from .doubles import PATIENCE_S


def forecast(step: int, eta_steps: float | None = None, *, t_s: float | None = None) -> Forecast:
    return Forecast(
        t_s=0.1 * step if t_s is None else t_s,
        step=step,
        device_bytes=1,
        capacity_bytes=2,
        p_oom={1: 0.0, 10: 0.25, 100: 0.5},
        p_oom_run=0.75,
        eta_steps=eta_steps,
        flood_high_bytes=7,
    )


def test_a_forecast_is_a_row_and_a_quiet_one_a_gap() -> None:
    store = Store()
    feed = ForecastFeed(store)
    feed.on_forecast(forecast(1, 40.0))
    feed.on_forecast(forecast(2))
    history = store.history("forecast")
    assert history.columns == FORECAST_COLUMNS
    rows = history.since(0)
    assert rows.column("eta_steps").tolist()[0] == 40.0
    assert math.isnan(rows.column("eta_steps").tolist()[1])
    assert rows.column("p_oom_100").tolist() == [0.5, 0.5]
    assert rows.column("p_oom_run").tolist() == [0.75, 0.75]
    assert history.bounds("flood_high_bytes", 0.0, 1.0) == (7.0, 7.0)
    assert history.bounds("flood_low_bytes", 0.0, 1.0) is None
    assert feed.newest.get() == forecast(2)


def test_an_overtaken_forecast_is_dropped() -> None:
    store = Store()
    feed = ForecastFeed(store)
    feed.on_forecast(forecast(5, t_s=1.0))
    feed.on_forecast(forecast(4, 3.0, t_s=0.9))
    feed.on_forecast(forecast(4, 3.0, t_s=1.0))
    assert feed.newest.get() == forecast(5, t_s=1.0)
    feed.on_forecast(forecast(5, 9.0, t_s=1.0))
    assert store.history("forecast").since(0).t_s.tolist() == [1.0, 1.0]


def test_two_threads_at_once_leave_rows_in_order() -> None:
    store = Store()
    feed = ForecastFeed(store)
    begin = threading.Barrier(2)

    def tell(first: int) -> None:
        begin.wait(PATIENCE_S)
        for step in range(first, 2000, 2):
            feed.on_forecast(forecast(step))

    threads = [threading.Thread(target=tell, args=(first,)) for first in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    times = store.history("forecast").since(0).t_s
    assert (times[1:] >= times[:-1]).all()
    assert feed.newest.get() == forecast(1999)


def test_the_forecast_after_a_step_is_the_last_that_said_something() -> None:
    feed = ForecastFeed(Store())
    for step, eta_steps, t_s in ((1, 50.0, 0.1), (1, 40.0, 0.2), (1, None, 0.3), (2, None, 0.4)):
        feed.on_forecast(forecast(step, eta_steps, t_s=t_s))
    assert feed.eta_steps_after(1) == 40.0
    assert feed.eta_steps_after(2) is None
    assert feed.eta_steps_after(99) is None


def test_the_forecast_after_a_step_that_was_not_forecast_is_the_one_before_it_less_the_steps_since() -> None:
    feed = ForecastFeed(Store())
    for step, eta_steps, t_s in ((95, 12.0, 0.1), (88, 60.0, 1.0), (91, 57.0, 1.1), (102, 44.0, 1.2)):
        feed.on_forecast(forecast(step, eta_steps, t_s=t_s))  # the first one is of the run before
    assert feed.eta_steps_after(96) == 52.0
    assert feed.eta_steps_after(300) is None


def test_a_new_run_has_no_forecast_and_may_start_at_step_one() -> None:
    feed = ForecastFeed(Store())
    feed.on_forecast(forecast(100, t_s=10.0))
    feed.begin_run()
    assert feed.newest.get() is None
    feed.on_forecast(forecast(1, t_s=10.0))
    assert feed.newest.get() == forecast(1, t_s=10.0)
