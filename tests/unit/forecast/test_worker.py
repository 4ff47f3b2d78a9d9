"""The forecaster's thread: order, backlog, synchronous alerts, ends and failing listeners."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from desktop_app.core.forecasts import Alert, AlertSeverity, Cause, Forecast
from desktop_app.core.steps import Surroundings
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast import worker as worker_module
from desktop_app.forecast.forecaster import Forecaster
from desktop_app.forecast.worker import ForecasterThread, is_calm

from .test_first_optimizer_step import before_optimizer
from .traces import line, memory, step, steps

PATIENCE_S = 5.0


class Listener:
    """Notes what it is told and by which thread; waits for a step to have been forecast."""

    def __init__(self) -> None:
        self.forecasts: list[Forecast] = []
        self.alerts: list[Alert] = []
        self.cleared: list[Alert] = []
        self.threads: set[str] = set()
        self._news = threading.Condition()

    def on_forecast(self, forecast: Forecast) -> None:
        with self._news:
            self.forecasts.append(forecast)
            self._news.notify_all()

    def on_alert(self, alert: Alert) -> None:
        self.alerts.append(alert)
        self.threads.add(threading.current_thread().name)

    def on_cleared(self, alert: Alert) -> None:
        self.cleared.append(alert)

    def wait_for(self, number: int) -> None:
        with self._news:
            assert self._news.wait_for(lambda: bool(self.forecasts) and self.forecasts[-1].step == number, PATIENCE_S)


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def thread(listener: Listener) -> Iterator[ForecasterThread]:
    subject = ForecasterThread(
        Forecaster(capacity_bytes=6 * GIB),
        on_forecast=listener.on_forecast,
        on_alert=listener.on_alert,
        on_cleared=listener.on_cleared,
    )
    yield subject
    assert subject.stop(PATIENCE_S)


def test_steps_become_forecasts_and_alerts(thread: ForecasterThread, listener: Listener) -> None:
    thread.start()
    for sample in steps(line(80, 10 * MIB), step_s=0.01):
        thread.observe_step(sample)
        listener.wait_for(sample.step)
    assert [forecast.step for forecast in listener.forecasts] == list(range(1, 81))
    assert [alert.cause for alert in listener.alerts] == [Cause.LEAK]
    assert listener.threads == {"forecaster"}


def test_backlog_is_one_forecast_and_loses_no_evidence(thread: ForecasterThread, listener: Listener) -> None:
    for sample in steps(line(100, 10 * MIB)):
        thread.observe_step(sample)
    thread.start()
    listener.wait_for(100)
    assert len(listener.forecasts) == 1
    assert listener.forecasts[0].evidence["grown_steps"] == 96.0  # steps 4 to 100


def test_phase_is_judged_before_the_call_returns(thread: ForecasterThread, listener: Listener) -> None:
    thread.start()
    raised = thread.observe_phase_now(before_optimizer(5 * GIB))
    assert [alert.cause for alert in raised] == [Cause.FIRST_OPTIMIZER_STEP]
    assert listener.alerts == list(raised)
    assert listener.threads == {threading.current_thread().name}
    thread.observe_step(step(1, memory(GIB)))
    thread.observe_step(step(2, memory(GIB)))
    listener.wait_for(2)
    assert [alert.alert_id for alert in listener.cleared] == [raised[0].alert_id]


def test_phase_comes_after_the_steps_before_it(thread: ForecasterThread, listener: Listener) -> None:
    """Not started: the steps wait in the inbox and are taken along by the trainer's own thread."""
    for sample in steps(line(50, 10 * MIB)):
        thread.observe_step(sample)
    thread.observe_phase_now(before_optimizer(GIB, number=51))
    assert [forecast.step for forecast in listener.forecasts] == [51]
    assert listener.forecasts[0].evidence["grown_steps"] == 46.0


def test_queued_phases_count_too(thread: ForecasterThread, listener: Listener) -> None:
    thread.observe_phase(before_optimizer(5 * GIB))
    thread.observe_step(step(1, memory(GIB)))
    thread.start()
    listener.wait_for(1)
    assert len(listener.alerts) == 1


def test_listener_that_fails_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    told = Listener()

    def fails(_: Alert) -> None:
        raise RuntimeError("no banner")

    thread = ForecasterThread(
        Forecaster(capacity_bytes=6 * GIB),
        on_forecast=told.on_forecast,
        on_alert=fails,
        on_cleared=told.on_cleared,
    )
    thread.start()
    with caplog.at_level(logging.ERROR):
        assert len(thread.observe_phase_now(before_optimizer(5 * GIB))) == 1
        thread.observe_step(step(1, memory(GIB)))
        told.wait_for(1)
    assert thread.stop(PATIENCE_S)
    assert "no banner" in caplog.text


def test_full_inbox_drops_the_oldest_and_counts(
    thread: ForecasterThread, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "INBOX_STEPS", 10)
    for sample in steps(line(25, 10 * MIB)):
        thread.observe_step(sample)
    assert thread.dropped == 15
    thread.start()
    listener.wait_for(25)


def test_stop_finishes_what_is_queued_and_may_come_twice(thread: ForecasterThread, listener: Listener) -> None:
    for sample in steps(line(30, 10 * MIB)):
        thread.observe_step(sample)
    thread.start()
    assert thread.stop(PATIENCE_S)
    assert thread.stop(PATIENCE_S)
    assert listener.forecasts[-1].step == 30


def test_stop_before_start_returns_at_once(thread: ForecasterThread) -> None:
    assert thread.stop()


def test_surroundings_are_told_while_no_step_ends(thread: ForecasterThread, listener: Listener) -> None:
    """The sampler only queues them; the forecast follows in the forecaster's thread."""
    thread.start()
    thread.observe_step(step(1, memory(GIB)))
    listener.wait_for(1)
    before = listener.forecasts[-1]
    thread.observe_surroundings(Surroundings(t_s=60.0, others_bytes=2 * GIB))
    assert thread.stop(PATIENCE_S)
    after = listener.forecasts[-1]
    assert (after.t_s, after.step) == (60.0, 1)
    assert after.device_bytes == before.device_bytes + 2 * GIB


def test_surroundings_in_a_backlog_count_before_the_steps_after_them(
    thread: ForecasterThread, listener: Listener
) -> None:
    thread.observe_surroundings(Surroundings(t_s=0.0, others_bytes=5 * GIB))
    thread.observe_surroundings(Surroundings(t_s=0.05, others_bytes=3 * GIB))
    thread.observe_step(step(1, memory(GIB)))
    thread.start()
    listener.wait_for(1)
    assert listener.forecasts[-1].device_bytes == 3 * GIB + GIB + 512 * MIB


def test_fast_steps_are_evidence_but_not_each_a_forecast(
    thread: ForecasterThread, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At one forecast in two seconds the first is made at once and the last when the thread ends."""
    monkeypatch.setattr(worker_module, "FORECASTS_PER_S", 0.5)
    thread.start()
    for sample in steps(line(60, 10 * MIB)):
        thread.observe_step(sample)
        if sample.step == 1:
            listener.wait_for(1)
    assert thread.stop(PATIENCE_S)
    assert [forecast.step for forecast in listener.forecasts] == [1, 60]
    assert listener.forecasts[-1].evidence["grown_steps"] == 56.0


def test_what_the_trainer_asks_now_does_not_wait(
    thread: ForecasterThread, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "FORECASTS_PER_S", 0.01)
    thread.start()
    thread.observe_step(step(1, memory(GIB)))
    listener.wait_for(1)
    thread.observe_step(step(2, memory(GIB)))
    assert len(thread.observe_phase_now(before_optimizer(5 * GIB, number=3))) == 1
    assert [forecast.step for forecast in listener.forecasts] == [1, 3]


def test_slow_steps_wait_for_one_another_while_all_is_calm(
    thread: ForecasterThread, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flat run: after the first forecast the next waits for two steps' time, here for the end."""
    monkeypatch.setattr(worker_module, "FORECASTS_PER_S", 1e6)
    monkeypatch.setattr(worker_module, "CALM_PER_S", 0.1)
    thread.start()
    for sample in steps(np.full(12, float(GIB)), step_s=20.0):
        thread.observe_step(sample)
        if sample.step == 1:
            listener.wait_for(1)
    assert thread.stop(PATIENCE_S)
    assert [forecast.step for forecast in listener.forecasts] == [1, 12]


def test_what_is_calm() -> None:
    def forecast(severity: AlertSeverity | None, p_within_100: float) -> Forecast:
        return replace(Forecaster(capacity_bytes=GIB).forecast(), severity=severity, p_oom={100: p_within_100})

    assert is_calm(forecast(None, 0.0))
    assert is_calm(forecast(AlertSeverity.LIKELY, 0.01))  # a leak that is far off
    assert not is_calm(forecast(AlertSeverity.WATCH, 0.0))  # what may become an alert with the next step
    assert not is_calm(forecast(AlertSeverity.LIKELY, 0.2))
