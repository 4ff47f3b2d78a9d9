"""A run that hangs ends no step, but card and computer go on: what they say is judged once a second."""

from __future__ import annotations

import pytest

from desktop_app.core.forecasts import Alert, AlertSeverity, Cause, Forecast
from desktop_app.core.steps import Surroundings
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import Forecaster
from desktop_app.forecast.worker import ForecasterThread

from .traces import BASE, steps

PATIENCE_S = 10.0
LAST_STEP = 60
SECONDS = 45


class Heard:
    def __init__(self) -> None:
        self.alerts: list[Alert] = []
        self.forecasts: list[Forecast] = []

    def note(self, _: object) -> None:
        """Cleared alerts are not of interest."""


def told_while_hanging(surroundings: list[Surroundings]) -> Heard:
    """Sixty steps, then only telemetry, through the thread's queue."""
    heard = Heard()
    thread = ForecasterThread(
        Forecaster(capacity_bytes=8 * GIB),
        on_forecast=heard.forecasts.append,
        on_alert=heard.alerts.append,
        on_cleared=heard.note,
    )
    for sample in steps([BASE] * LAST_STEP):
        thread.observe_step(sample)
    for around in surroundings:
        thread.observe_surroundings(around)
    thread.start()
    assert thread.stop(PATIENCE_S)
    return heard


def around(second: int, *, others_mib: float = 300.0, ram_taken_mib: float = 0.0) -> Surroundings:
    return Surroundings(
        t_s=0.1 * LAST_STEP + second,
        capacity_bytes=8 * GIB,
        others_bytes=int(others_mib * MIB),
        outside_bytes=300 * MIB,
        host_used_bytes=int(20 * GIB + ram_taken_mib * MIB),
        host_available_bytes=int(12 * GIB - ram_taken_mib * MIB),
        host_total_bytes=32 * GIB,
        own_rss_bytes=int(2 * GIB + ram_taken_mib * MIB),
        children=0,
        children_rss_bytes=0,
    )


def test_quiet_surroundings_of_a_hanging_run_are_no_alert() -> None:
    heard = told_while_hanging([around(second) for second in range(SECONDS)])
    assert heard.alerts == []
    assert heard.forecasts[-1].t_s == pytest.approx(0.1 * LAST_STEP + SECONDS - 1)


def test_a_neighbour_that_grows_while_no_step_ends_is_an_alert() -> None:
    """150 MiB/s: of 6 GiB beside the run's 1.5 GiB and its context there is nothing left after 41 s."""
    heard = told_while_hanging([around(second, others_mib=300 + 150 * second) for second in range(38)])
    first = heard.alerts[0]
    assert (first.cause, first.step) == (Cause.NEIGHBOUR, LAST_STEP)
    assert first.eta_s is not None
    full_t_s = 0.1 * LAST_STEP + (8 * GIB - 300 * MIB - 300 * MIB - BASE - 512 * MIB) / (150 * MIB)
    assert first.t_s + first.eta_s == pytest.approx(full_t_s, abs=2.0)
    assert full_t_s - first.t_s > 10.0


def test_ram_that_runs_out_while_no_step_ends_is_an_alert() -> None:
    """250 MiB/s of 12 GiB: gone after 49 s."""
    heard = told_while_hanging([around(second, ram_taken_mib=250 * second) for second in range(SECONDS)])
    assert {alert.cause for alert in heard.alerts} == {Cause.HOST_MEMORY}
    assert heard.alerts[0].severity in (AlertSeverity.LIKELY, AlertSeverity.IMMINENT)
    assert heard.alerts[0].t_s < 0.1 * LAST_STEP + 49
