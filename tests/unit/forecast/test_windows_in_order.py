"""Windows that are kept in order, against sorting and slicing the whole series."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

from desktop_app.core.steps import MemoryStats, StepSample
from desktop_app.core.units import MIB
from desktop_app.forecast.evidence import RECENT_STEPS, START_UP_STEPS, Evidence
from desktop_app.forecast.robust import RollingMost, RollingOrder, deviation, median, theil_sen_slope
from desktop_app.forecast.troughs import LEVEL_POINTS, TroughSeries


@pytest.mark.parametrize("kept", [1, 7, 16])
def test_an_order_is_that_of_the_newest_values(kept: int) -> None:
    values = np.random.default_rng(0).integers(0, 9, 100).astype(float).tolist()  # with many ties
    order = RollingOrder(kept)
    for end, value in enumerate(values, start=1):
        order.add(value)
        newest = values[max(end - kept, 0) : end]
        assert order.ordered == sorted(newest)
        assert order.median() == statistics.median(newest)


@pytest.mark.parametrize("kept", [1, 7, 16])
def test_the_most_is_that_of_the_newest_values(kept: int) -> None:
    values = np.random.default_rng(1).integers(0, 9, 100).astype(float).tolist()
    most = RollingMost(kept)
    assert most.most == 0.0
    for end, value in enumerate(values, start=1):
        most.add(value)
        assert most.most == max(values[max(end - kept, 0) : end])


@pytest.mark.parametrize("points", [1, 2, 13, 256, 257, 600])
def test_medians_and_deviations_are_those_of_the_standard_library(points: int) -> None:
    values = np.random.default_rng(points).normal(0.0, 5.0, points)
    assert median(values) == statistics.median(values.tolist())
    assert deviation(values) == pytest.approx(statistics.pstdev(values.tolist()), abs=1e-12)


@pytest.mark.parametrize("points", [12, 32, 33, 128])
def test_slopes_of_consecutive_steps_are_those_of_any_steps(points: int) -> None:
    values = np.random.default_rng(points).normal(0.0, 5.0, points)
    steps = np.arange(points, dtype=np.float64)
    assert theil_sen_slope(steps, values) == pytest.approx(2.0 * theil_sen_slope(2.0 * steps, values))


def test_series_of_any_length_keep_their_newest_points() -> None:
    troughs = np.random.default_rng(0).integers(1, 5, 900).astype(float)
    series = TroughSeries()
    for at, trough in enumerate(troughs):
        series.append(at, float(trough), 8, 0.0)
        if at % 37 == 0 or at % LEVEL_POINTS in (0, 1, LEVEL_POINTS - 1):
            begin = max(at + 1 - LEVEL_POINTS, 0)
            window = series.levels[0].window()
            np.testing.assert_array_equal(window.steps, np.arange(begin, at + 1))
            np.testing.assert_array_equal(window.troughs, troughs[begin : at + 1])
            assert series.levels[0].flat == (len(set(troughs[begin : at + 1])) == 1)
            assert series.levels[0].of_one_batch


def test_evidence_over_many_steps_is_that_of_the_newest() -> None:
    rng = np.random.default_rng(0)
    evidence, rows = Evidence(), []
    t_s = 0.0
    for step in range(1, 1500):
        t_s += float(rng.uniform(0.1, 0.3))
        live, reserved = (int(rng.integers(1, 50)) * MIB for _ in range(2))
        peak = live + int(rng.integers(0, 50)) * MIB
        stats = MemoryStats(live, peak, reserved, reserved, 0, 0, 0, 0, {})
        evidence.add(StepSample(t_s, step, 1, None, None, 1e-3, None, 0.2, 8, stats))
        if step > START_UP_STEPS:
            rows.append((step, t_s, live, peak, reserved))
        if step % 61 or not rows:
            continue
        steps, times, lives, peaks, reserveds = (
            np.array(column, float) for column in zip(*rows[-RECENT_STEPS:], strict=True)
        )
        np.testing.assert_array_equal(evidence.column("step"), steps)
        np.testing.assert_array_equal(evidence.column("live_after_bytes"), lives)
        assert list(evidence.demands) == sorted((peaks - lives).tolist())
        assert evidence.reserved_peak_bytes == reserveds.max()
        assert evidence.live_peak_bytes == peaks.max()
        assert evidence.trough_bytes == lives[-1]
        assert evidence.trough_slope() == theil_sen_slope(steps, lives)
        assert evidence.seconds_per_step() == pytest.approx((times[-1] - times[0]) / (steps[-1] - steps[0]), rel=0.05)
