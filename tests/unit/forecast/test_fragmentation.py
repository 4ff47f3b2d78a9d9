"""Cause ``fragmentation``, on what the allocator's replica truly does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from desktop_app.core.forecasts import Alert, AlertSeverity, Cause
from desktop_app.core.steps import StepSample
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import Forecaster

from .fragmenting import Training
from .traces import BASE, memory, step


def alerts(training: Training, *, limit_mib: float, steps: int = 300) -> list[Alert]:
    """Every alert of a training, as if live."""
    forecaster = Forecaster(capacity_bytes=int(limit_mib * MIB))
    raised: list[Alert] = []
    for sample in training.samples(steps):
        raised += forecaster.update_step(sample).changes.raised
    return raised


@pytest.mark.parametrize(("seed", "limit_mib"), [(0, 4300.0), (0, 4800.0), (1, 4300.0), (2, 4300.0)])
def test_blocks_that_move_into_large_segments(seed: int, limit_mib: float) -> None:
    """What is live stays level, and a request of a size like those before finds no place in the end."""
    training = Training(seed, limit_mib=limit_mib, renewed=2)
    raised = alerts(training, limit_mib=limit_mib)
    assert training.oom_step is not None
    assert {alert.cause for alert in raised} == {Cause.FRAGMENTATION}
    first = raised[0]
    assert training.oom_step - first.step >= 10
    assert first.action == "expandable_segments"
    free_mib = limit_mib - training.allocator.live_bytes / MIB
    assert free_mib > 1000  # several times the largest request
    assert first.evidence["idle_split_bytes"] > 0.4 * first.evidence["headroom_bytes"]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_full_cache_of_varied_lengths_is_no_alarm(seed: int) -> None:
    """What is reserved grows to the brim; when the driver refuses, whole segments go back. No more is wrong."""
    training = Training(seed, limit_mib=3900.0)
    assert alerts(training, limit_mib=3900.0) == []
    assert training.oom_step is None
    assert training.allocator.alloc_retries >= 2
    assert training.allocator.reserved_bytes > 0.9 * 3900 * MIB


@pytest.mark.parametrize("seed", [0, 1])
def test_fragments_beside_much_room_are_no_alarm(seed: int) -> None:
    training = Training(seed, limit_mib=24_000.0, renewed=2)
    assert alerts(training, limit_mib=24_000.0, steps=250) == []
    assert training.allocator.idle_split_bytes > 1500 * MIB


def made_up(reserved: float, idle: float, number: int, *, retries: int = 0) -> StepSample:
    """A step whose live memory is as ever."""
    stats = replace(
        memory(BASE, retries=retries),
        reserved_bytes=int(reserved),
        reserved_peak_bytes=int(reserved),
        idle_split_bytes=int(idle),
    )
    return step(number, stats, step_s=0.5)


def test_a_line_is_foreseen_with_its_time() -> None:
    """Each step reserves 20 MiB more, all of which stays in pieces: full at step 329."""
    forecaster = Forecaster(capacity_bytes=8 * GIB)
    raised: list[Alert] = []
    errors: list[float] = []
    for number in range(1, 329):
        grown = 20.0 * MIB * max(number - 5, 0)
        update = forecaster.update_step(made_up(1.5 * GIB + grown, 50 * MIB + grown, number))
        raised += update.changes.raised
        if 200 <= number <= 310 and update.forecast.eta_steps:
            errors.append(abs(update.forecast.eta_steps - (329 - number)) / (329 - number))
    assert {alert.cause for alert in raised} == {Cause.FRAGMENTATION}
    assert 329 - raised[0].step >= 60
    assert len(errors) > 100
    assert float(np.median(errors)) < 0.2


def test_growth_of_a_cache_that_stops() -> None:
    """What is reserved grows and levels off, with whole segments idle: no pieces."""
    forecaster = Forecaster(capacity_bytes=8 * GIB)
    for number in range(1, 400):
        reserved = 1.5 * GIB + 6.2 * GIB * (1.0 - np.exp(-number / 60.0))
        assert forecaster.update_step(made_up(reserved, 60 * MIB, number)).changes.raised == ()


def test_refusals_that_come_often_make_it_imminent() -> None:
    forecaster = Forecaster(capacity_bytes=4 * GIB)
    raised: list[Alert] = []
    for number in range(1, 80):
        idle = 100 * MIB + 40.0 * MIB * min(number, 50)
        sample = made_up(3.8 * GIB, idle, number, retries=max(0, (number - 40) // 8))
        raised += forecaster.update_step(sample).changes.raised
    assert raised[-1].cause is Cause.FRAGMENTATION
    assert raised[-1].severity is AlertSeverity.IMMINENT
    assert raised[-1].evidence["alloc_retries"] >= 2.0


def test_pieces_that_become_more_in_a_cache_that_is_full_already() -> None:
    """Nothing is asked for and nothing refused; when they have not become more for long, it fits as it seems."""
    forecaster = Forecaster(capacity_bytes=4 * GIB)
    raised: list[Alert] = []
    cleared: list[Alert] = []
    for number in range(1, 900):
        update = forecaster.update_step(made_up(3.8 * GIB, 100 * MIB + 40.0 * MIB * min(number, 50), number))
        raised += update.changes.raised
        cleared += update.changes.cleared
    assert [alert.cause for alert in raised] == [Cause.FRAGMENTATION]
    assert raised[0].step <= 50
    assert [alert.cause for alert in cleared] == [Cause.FRAGMENTATION]


@pytest.mark.parametrize(("share", "alarms"), [(0.28, False), (0.33, True)])
def test_pieces_of_a_third_of_the_room_above_the_peak_are_a_danger(share: float, alarms: bool) -> None:
    """4 GiB, of which a step takes 1.5: healthy runs have pieces of up to 0.3 of the other 2.5 (decision 018)."""
    forecaster = Forecaster(capacity_bytes=4 * GIB)
    raised: list[Alert] = []
    for number in range(1, 120):
        idle = 100 * MIB + share * 2.5 * GIB * min(max(number - 10, 0), 40) / 40
        raised += forecaster.update_step(made_up(3.8 * GIB, idle, number)).changes.raised
    assert [alert.cause for alert in raised] == ([Cause.FRAGMENTATION] if alarms else [])


def test_pieces_that_are_as_many_as_ever_in_a_full_cache() -> None:
    """1.2 to 1.8 GiB of them, up and down, since the beginning."""
    forecaster, rng = Forecaster(capacity_bytes=4 * GIB), np.random.default_rng(3)
    for number in range(1, 400):
        idle = float(rng.uniform(1.2, 1.8)) * GIB
        assert forecaster.update_step(made_up(3.8 * GIB, idle, number)).changes.raised == ()


def test_a_run_that_goes_back_begins_anew() -> None:
    """Another process with an empty allocator: what had grown is forgotten."""
    forecaster = Forecaster(capacity_bytes=8 * GIB)
    for number in range(1, 200):
        grown = 20.0 * MIB * number
        forecaster.update_step(made_up(1.5 * GIB + grown, grown, number))
    for number in range(150, 260):
        forecast = forecaster.update_step(made_up(1.5 * GIB, 50 * MIB, number)).forecast
    assert forecast.cause is None
