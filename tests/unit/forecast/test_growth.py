"""Lines, windows, ramps and stairs, with values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import Forecaster
from desktop_app.forecast.growth import bytes_per_sample, fit_line
from desktop_app.forecast.ramps import OrdinaryChange, RampWatch
from desktop_app.forecast.robust import median, suffix_slopes, theil_sen_slope
from desktop_app.forecast.stairs import Stairs, StairWatch
from desktop_app.forecast.troughs import TroughSeries

from .traces import Floats, line, steps


def test_theil_sen_by_hand() -> None:
    # Slopes of the pairs of (0, 0), (1, 1), (2, 5), (3, 3): 1, 2.5, 1, 4, 1, -2; sorted -2, 1, 1, 1, 2.5, 4.
    assert theil_sen_slope(np.array([0.0, 1, 2, 3]), np.array([0.0, 1, 5, 3])) == 1.0


@pytest.mark.parametrize(("values", "middle"), [([3.0], 3.0), ([4.0, 1.0], 2.5), ([9.0, 1.0, 5.0], 5.0)])
def test_median(values: list[float], middle: float) -> None:
    assert median(np.array(values)) == middle


def test_slopes_of_all_suffixes_are_those_of_polyfit() -> None:
    at = np.arange(50.0)
    values = 1e9 + 3e6 * at + np.random.default_rng(8).normal(0.0, 1e7, 50)
    slopes, significances = suffix_slopes(at, values, (50, 20, 12))
    for size, slope, significance in zip((50, 20, 12), slopes, significances, strict=True):
        (fitted, _), covariance = np.polyfit(at[-size:], values[-size:], 1, cov=True)
        assert slope == pytest.approx(fitted)
        assert significance == pytest.approx(fitted / np.sqrt(covariance[0, 0]))


def test_step_that_was_seen_says_nothing_and_an_earlier_one_begins_anew() -> None:
    forecaster = Forecaster(capacity_bytes=6 * GIB)
    samples = list(steps(line(60, 10 * MIB)))
    for sample in samples:
        forecaster.absorb_step(sample)
        forecast = forecaster.observe_step(sample)
    assert forecast.evidence["slope_bytes_per_step"] == pytest.approx(10 * MIB)
    assert forecaster.observe_step(samples[20]).evidence == {}


def test_a_quarter_of_outliers_does_not_move_the_slope() -> None:
    values: Floats = 10.0 * MIB * np.arange(40)
    values[::4] -= 800 * MIB
    assert fit_line(np.arange(40.0), values).slope == pytest.approx(10 * MIB, rel=0.02)


def test_exact_line() -> None:
    fit = fit_line(np.arange(1.0, 33.0), 7 * MIB + 2.0 * MIB * np.arange(1.0, 33.0))
    assert fit.slope == pytest.approx(2 * MIB)
    assert fit.level_bytes == pytest.approx(71 * MIB)  # 7 + 2 · 32
    assert fit.grown_bytes == pytest.approx(62 * MIB)
    assert fit.straight
    assert not fit.levels_off_within(1e15)


def test_both_kinds_of_noise_are_told_apart() -> None:
    rng = np.random.default_rng(3)
    steps = np.arange(128.0)
    still = fit_line(steps, 1000.0 * steps + rng.normal(0.0, 5000.0, 128))
    walk = fit_line(steps, 1000.0 * steps + np.cumsum(rng.normal(0.0, 5000.0, 128)))
    assert still.noise_bytes == pytest.approx(5000.0, rel=0.2)
    assert still.wander_bytes < 1200.0
    assert 2500.0 < walk.wander_bytes < 10_000.0


def test_one_jump_is_no_line() -> None:
    values = np.where(np.arange(64) < 32, 0.0, 400.0 * MIB)
    assert fit_line(np.arange(64.0), values).significance < 2.0


def test_halves_that_slow_down_tell_where_growth_ends() -> None:
    """Each half grows by half of the one before: as much again as the late half is still to come, 100 + 50 + 25 …"""
    steps = np.arange(41.0)
    values = 200.0 * MIB * (1.0 - 0.5 ** (steps / 20.0))  # 100 MiB, then 50 MiB; 50 MiB to come
    fit = fit_line(steps, values)
    assert fit.levels_off_within(200 * MIB)
    assert not fit.levels_off_within(20 * MIB)


def test_batch_size_that_explains_a_trough() -> None:
    batches = np.array([64.0, 32, 64, 16, 64, 48, 64, 8, 64, 32, 16, 64])
    assert bytes_per_sample(3.0 * batches + 1000.0 * np.arange(12), batches) == pytest.approx(3.0)
    assert bytes_per_sample(np.arange(12.0), np.full(12, 64.0)) == 0.0


def test_series_covers_a_long_run_in_bounded_space() -> None:
    series = TroughSeries()
    for number in range(1, 20_001):
        series.append(number, float(number), 64, 0.0)
    levels = [level for level in series.levels if level.searchable]
    assert [level.window().points for level in levels] == [128, 128, 128, 128, 78]  # 20,000 / 4^4
    assert levels[0].window_sizes == (128, 96, 72, 54, 40, 30, 22, 16, 12)
    assert levels[1].window_sizes == (128, 96, 72, 54, 40)  # shorter ones are finer below
    longest = levels[-1].window()
    assert longest.span_steps == 77 * 256
    assert np.all(np.diff(longest.steps) == 256)
    assert np.array_equal(longest.steps, longest.troughs)  # a point is where its block was lowest: at its first step
    assert levels[0].window().steps[-1] == 20_000


def test_ramp_ends_where_it_falls_back() -> None:
    watch, ordinary = RampWatch(), OrdinaryChange()
    fell = []
    for number in range(1, 61):
        trough = 100.0 * MIB + 5.0 * MIB * ((number - 1) % 20)
        fell.append(watch.fell(number, trough, ordinary.add(trough)))
    assert [number for number, did in enumerate(fell, start=1) if did] == [21, 41]
    assert [ramp.rise_bytes for ramp in watch.ramps] == [95.0 * MIB, 95.0 * MIB]
    assert watch.usual_rise_bytes == 95.0 * MIB
    assert (watch.first_step, watch.bottom_bytes) == (41, 100.0 * MIB)


def test_noise_is_no_ramp() -> None:
    rng = np.random.default_rng(5)
    watch, ordinary = RampWatch(), OrdinaryChange()
    troughs = rng.normal(1e9, 5e7, 500)
    assert not any(watch.fell(number, float(t), ordinary.add(float(t))) for number, t in enumerate(troughs))


def climb(risers: dict[int, float], *, until: int) -> Stairs | None:
    watch, ordinary = StairWatch(), OrdinaryChange()
    level = 0.0
    for number in range(1, until + 1):
        level += risers.get(number, 0.0)
        watch.add(number, ordinary.add(level))
    return watch.stairs(until)


def test_stairs_by_hand() -> None:
    stairs = climb({100: 400.0 * MIB, 200: 400.0 * MIB, 300: 400.0 * MIB}, until=350)
    assert stairs is not None
    assert (stairs.jump_bytes, stairs.distance_steps, stairs.risers) == (400.0 * MIB, 100.0, 3)
    # Room for two more jumps: the third, at step 600, is too much.
    assert stairs.steps_until_full(900.0 * MIB) == 250.0


@pytest.mark.parametrize(
    "risers",
    [
        {100: 400.0 * MIB},
        {100: 400.0 * MIB, 200: 40.0 * MIB, 300: 400.0 * MIB},  # unlike in size
        {100: 400.0 * MIB, 130: 400.0 * MIB, 300: 400.0 * MIB},  # unlike in distance
        {100: 400.0 * MIB, 101: 400.0 * MIB, 102: 400.0 * MIB},  # a line, not stairs
        {30: 400.0 * MIB, 60: 400.0 * MIB, 90: 400.0 * MIB},  # overdue since long
        {100: 400.0 * MIB, 200: -400.0 * MIB, 300: 400.0 * MIB},  # up and down
    ],
)
def test_no_stairs(risers: dict[int, float]) -> None:
    assert climb(risers, until=350) is None
