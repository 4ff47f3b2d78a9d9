"""Batches that are larger than the ones before: flagged before they come, and silence where there is room."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import BatchShape, Phase, PhaseSample
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import Forecaster

from .shaped_runs import BASE, SAMPLES, demand_of, forward, run_lengths
from .traces import memory, step


def lengths(count: int, low: int = 40, high: int = 300, seed: int = 1) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.random.default_rng(seed).integers(low, high, count)


@pytest.mark.parametrize("squared", [0.0, 48.0])
@pytest.mark.parametrize("seed", range(3))
def test_one_long_batch_is_flagged_before_its_call(squared: float, seed: int) -> None:
    """The longest of all comes at step 200, three times as long as any before, and misses the room by 5 %."""
    texts = lengths(201, seed=seed)
    texts[199] = 900
    capacity = 0.95 * (BASE + demand_of(900 * SAMPLES, squared=squared))
    told = run_lengths(texts, Forecaster(capacity_bytes=int(capacity)), capacity=capacity, squared=squared)
    assert told.oom_step == 200
    (alert,) = told.raised
    assert told.before_call == [alert]
    assert (alert.cause, alert.step) == (Cause.BATCH_SHAPE, 200)
    assert (alert.eta_steps, alert.action) == (0.0, "split_batch")
    assert alert.evidence["batch_tokens"] == 900 * SAMPLES
    expected = demand_of(900 * SAMPLES, squared=squared)
    assert alert.evidence["demand_bytes"] == pytest.approx(expected, rel=0.08)


@pytest.mark.parametrize("squared", [0.0, 48.0])
@pytest.mark.parametrize("seed", range(3))
def test_one_long_batch_that_fits_is_silent(squared: float, seed: int) -> None:
    texts = lengths(210, seed=seed)
    texts[199] = 900
    capacity = 1.2 * (BASE + demand_of(900 * SAMPLES, squared=squared))
    told = run_lengths(texts, Forecaster(capacity_bytes=int(capacity)), capacity=capacity, squared=squared)
    assert told.oom_step is None
    assert told.raised == []


@pytest.mark.parametrize("seed", range(2))
def test_variable_lengths_with_room_are_silent(seed: int) -> None:
    texts = lengths(300, high=512, seed=seed)
    capacity = 1.15 * (BASE + demand_of(512 * SAMPLES))
    told = run_lengths(texts, Forecaster(capacity_bytes=int(capacity)), capacity=capacity, steps_per_epoch=100)
    assert told.raised == []


def test_longest_batch_known_from_the_loader_is_flagged_long_before_with_its_step() -> None:
    texts = lengths(400)
    texts[299] = 900
    capacity = 0.95 * (BASE + demand_of(900 * SAMPLES))
    forecaster = Forecaster(capacity_bytes=int(capacity), total_steps=400, steps_per_epoch=400)
    forecaster.set_environment(longest_batch=BatchShape(SAMPLES, 900 * SAMPLES), longest_batch_step=300)
    told = run_lengths(texts, forecaster, capacity=capacity)
    assert told.oom_step == 300
    first = told.raised[0]
    assert first.cause is Cause.BATCH_SHAPE
    assert first.severity is AlertSeverity.LIKELY
    assert first.step <= 24
    assert first.eta_steps is not None
    assert first.step + first.eta_steps == pytest.approx(299, abs=1)
    assert told.raised[-1].severity is AlertSeverity.IMMINENT
    assert {alert.alert_id for alert in told.raised} == {first.alert_id}


def test_longest_batch_of_which_only_one_shape_is_known_to_go_by() -> None:
    """All batches alike, then one four times as long: its demand lies between all fixed and all in proportion."""
    forecaster = Forecaster(capacity_bytes=3 * GIB)
    forecaster.set_environment(longest_batch=BatchShape(SAMPLES, 800 * SAMPLES), longest_batch_step=101)
    told = run_lengths([200] * 100 + [800], forecaster, capacity=3 * GIB)
    assert told.oom_step == 101
    assert told.raised[0].step <= 12


@pytest.mark.parametrize(("model_mib", "flagged"), [(50, True), (1500, False), (None, False)])
def test_a_small_model_leaves_nearly_all_of_the_demand_to_the_batch(model_mib: int | None, flagged: bool) -> None:
    """All batches alike, then one of three times the samples. The step demands 1 GiB, so that will be 3 GiB where all
    of it grows with the batch; there are 2.8 GiB. Of a large model, or an unknown one, much may be gradients."""
    told = Forecaster(capacity_bytes=int(4.8 * GIB))
    told.set_environment(longest_batch=BatchShape(96), longest_batch_step=40)
    if model_mib is not None:
        built = memory(model_mib * MIB, demand=0)
        told.update_phase(PhaseSample(0.0, 0, Phase.BUILD, built, ended=True))
    alerts = [
        alert
        for number in range(1, 40)
        for alert in told.update_step(step(number, memory(2 * GIB, demand=GIB), batch=32)).changes.raised
    ]
    assert [alert.cause for alert in alerts[:1]] == ([Cause.BATCH_SHAPE] if flagged else [])


def test_longest_batch_that_fits_is_silent() -> None:
    texts = lengths(300)
    texts[199] = 900
    capacity = 1.15 * (BASE + demand_of(900 * SAMPLES))
    forecaster = Forecaster(capacity_bytes=int(capacity))
    forecaster.set_environment(longest_batch=BatchShape(SAMPLES, 900 * SAMPLES), longest_batch_step=200)
    assert run_lengths(texts, forecaster, capacity=capacity).raised == []


def test_giant_image_among_small_ones() -> None:
    """OOM-57: 8 images of 224² pixels per batch, then one of 12000 × 9000 among them."""
    forecaster = Forecaster(capacity_bytes=12 * GIB)
    per_pixel, pixels = 2000, 8 * 224 * 224
    stats = memory(GIB, demand=200 * MIB + per_pixel * pixels)
    for number in range(1, 30):
        sample = replace(step(number, stats, batch=8), batch_pixels=pixels)
        assert forecaster.update_step(sample).changes.raised == ()
    giant = BatchShape(8, pixels=7 * 224 * 224 + 12000 * 9000)
    (alert,) = forecaster.update_phase(forward(30, stats, giant)).changes.raised
    assert alert.cause is Cause.BATCH_SHAPE
    assert alert.severity is AlertSeverity.IMMINENT
    assert alert.evidence["batch_pixels"] == giant.pixels


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["normal", "even", "gamma"])
def test_loader_sorted_by_length_is_flagged_before_the_end_of_its_epoch(kind: str, seed: int) -> None:
    """OOM-55: the last tenth of the epoch does not fit."""
    rng = np.random.default_rng(seed)
    drawn = {
        "normal": rng.normal(300, 80, 600).clip(20),
        "even": rng.uniform(20, 800, 600),
        "gamma": rng.gamma(2, 100, 600) + 20,
    }
    texts = np.sort(drawn[kind])
    capacity = BASE + demand_of(float(texts[540]) * SAMPLES)
    forecaster = Forecaster(capacity_bytes=int(capacity), steps_per_epoch=600)
    told = run_lengths(texts, forecaster, capacity=capacity, steps_per_epoch=600, look_ahead=False)
    assert told.oom_step is not None
    first = told.raised[0]
    assert first.cause is Cause.BATCH_SHAPE
    assert told.oom_step - first.step >= 10
    assert first.evidence["explained_share"] == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("known", [True, False])
def test_sorted_loader_with_room_is_silent_in_every_epoch(known: bool, seed: int) -> None:
    texts = np.sort(np.random.default_rng(seed).normal(300, 80, 300).clip(20))
    capacity = 1.2 * (BASE + demand_of(float(texts[-1]) * SAMPLES))
    forecaster = Forecaster(capacity_bytes=int(capacity), steps_per_epoch=300 if known else None)
    epochs = np.tile(texts, 3)
    told = run_lengths(epochs, forecaster, capacity=capacity, steps_per_epoch=300, look_ahead=False)
    assert told.oom_step is None
    assert told.raised == []


@pytest.mark.parametrize("seed", range(2))
def test_lengths_by_chance_that_nobody_foresees_raise_no_alarm_while_they_fit(seed: int) -> None:
    """Heavy tails, no look-ahead, no tokens told: a guess about unseen data is no alarm."""
    texts = np.random.default_rng(seed).pareto(2.5, 500) * 100 + 50
    capacity = 1.05 * (BASE + demand_of(float(texts.max()) * SAMPLES))
    told = run_lengths(
        texts, Forecaster(capacity_bytes=int(capacity)), capacity=capacity, look_ahead=False, tells_tokens=False
    )
    assert told.raised == []


def test_larger_batches_by_samples_advise_fewer_of_them() -> None:
    forecaster = Forecaster(capacity_bytes=4 * GIB)
    stats = memory(GIB)
    for number in range(1, 40):
        size = 8 + number % 4
        stats = memory(GIB, demand=100 * MIB * size)
        assert forecaster.update_step(step(number, stats, batch=size)).changes.raised == ()
    (alert,) = forecaster.update_phase(forward(40, stats, BatchShape(48))).changes.raised
    assert alert.action == "reduce_batch"
    assert alert.evidence["demand_bytes"] == pytest.approx(4800 * MIB, rel=0.05)


def test_memory_stays_bounded_over_many_shapes() -> None:
    forecaster = Forecaster(capacity_bytes=1000 * GIB)
    rng = np.random.default_rng(0)
    texts = rng.integers(10, 4000, 900)
    run_lengths(texts[:450], forecaster, capacity=1000 * GIB, look_ahead=False)
    tracemalloc.start()
    try:
        run_lengths(texts[450:], forecaster, capacity=1000 * GIB, look_ahead=False)
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 256 * 1024
