"""Memory that climbs through an epoch and falls back at its end (OOM-04) is judged against that end."""

from __future__ import annotations

import numpy as np
import pytest

from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import Forecaster
from desktop_app.forecast.ramps import OrdinaryChange, RampWatch

from .traces import BASE, DEMAND, Floats, Replay, replay, steps

EPOCH = 600
RISE = 6 * MIB  # per step


def ramp(slope: float = RISE, *, count: int = EPOCH) -> Floats:
    return BASE + slope * np.arange(count)


def room_for(ramp_steps: float) -> int:
    """The card on which a ramp of ``RISE`` a step is full after so many steps."""
    return int(BASE + DEMAND + RISE * ramp_steps)


def run(troughs: Floats, *, capacity: int, per_epoch: int | None) -> Replay:
    forecaster = Forecaster(capacity_bytes=capacity, steps_per_epoch=per_epoch)
    return replay(steps(troughs, steps_per_epoch=per_epoch), forecaster, capacity=capacity, every=5)


@pytest.mark.parametrize("tightness", [1.06, 1.5])
def test_ramps_that_fit_are_quiet_for_four_epochs(tightness: float) -> None:
    told = run(np.tile(ramp(), 4), capacity=room_for(tightness * EPOCH), per_epoch=EPOCH)
    assert told.raised == []
    assert told.oom_step is None


def test_a_ramp_that_crosses_before_the_end_is_flagged_early() -> None:
    told = run(ramp(), capacity=room_for(0.9 * EPOCH), per_epoch=EPOCH)
    assert told.first is not None
    assert told.first.step <= 60
    assert told.lead_steps() > 400


@pytest.mark.parametrize("per_epoch", [EPOCH, None])
def test_a_steeper_ramp_after_one_that_fell_back_is_flagged_before_it_crosses(per_epoch: int | None) -> None:
    """The first ramp ends a twentieth below the brim; the second, a fifth steeper, crosses it at 88 % of the epoch."""
    troughs = np.concatenate([ramp(), ramp(1.2 * RISE)])
    told = run(troughs, capacity=room_for(1.05 * EPOCH), per_epoch=per_epoch)
    assert told.oom_step is not None
    assert told.oom_step == pytest.approx(EPOCH + 0.875 * EPOCH, abs=3)
    assert len(told.raised) > len(told.cleared)  # of the first ramp, or of the second
    warned = next(forecast for forecast in told.forecasts if forecast.step > EPOCH + 40 and forecast.severity)
    assert warned.step <= EPOCH + 80


def test_a_flatter_ramp_after_one_that_fell_back_is_quiet() -> None:
    troughs = np.concatenate([ramp(), ramp(0.9 * RISE), ramp(RISE)])
    told = run(troughs, capacity=room_for(1.1 * EPOCH), per_epoch=None)
    assert all(alert.step < EPOCH for alert in told.raised)
    assert told.forecasts[-1].severity is None


def test_bottoms_that_rise_from_epoch_to_epoch_are_compared() -> None:
    """Each epoch begins 200 MiB above the one before and climbs by 600 MiB: the tenth does not fit."""
    troughs = np.concatenate([ramp(4 * MIB, count=150) + epoch * 200 * MIB for epoch in range(12)])
    told = run(troughs, capacity=int(BASE + DEMAND + 600 * MIB + 8.5 * 200 * MIB), per_epoch=150)
    assert told.oom_step is not None
    assert told.first is not None
    assert told.first.step <= 5 * 150
    assert told.cleared == []


def test_the_period_is_learnt_from_falls_alike() -> None:
    ordinary, watch = OrdinaryChange(), RampWatch()
    for index, trough in enumerate(np.tile(ramp(count=50), 3), start=1):
        watch.fell(index, trough, ordinary.add(trough))
    assert watch.regular_steps == 50
    for index, trough in enumerate(np.concatenate([ramp(count=200), ramp(count=10)]), start=151):
        watch.fell(index, trough, ordinary.add(trough))
    assert watch.regular_steps is None  # 50, 50, 200: whoever expects the next at 50 is wrong


def test_a_run_of_one_gib_above_its_ramp_is_no_leak_in_any_epoch() -> None:
    told = run(np.tile(ramp(2 * MIB), 2), capacity=room_for(0) + 2 * GIB, per_epoch=EPOCH)
    assert told.raised == []
