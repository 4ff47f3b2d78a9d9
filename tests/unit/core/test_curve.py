"""What a panel draws: few points, none of the extremes lost, nothing that moves but the window."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_app.core.curve import bin_width_s, draw
from desktop_app.core.missing import NOT_MEASURED


@given(span_s=st.floats(1e-3, 1e8), pixels=st.integers(1, 8000))
def test_a_bin_is_one_to_two_pixels_wide(span_s: float, pixels: int) -> None:
    width_s = bin_width_s(span_s, pixels)
    assert math.frexp(width_s)[0] == 0.5  # a power of two
    assert span_s / pixels < width_s <= 2.00001 * span_s / pixels


def test_rounding_of_a_round_span_does_not_change_the_bins() -> None:
    assert bin_width_s(750.0, 750) == bin_width_s(750.0 - 1e-10, 750) == bin_width_s(750.0 + 1e-10, 750) == 2.0


@pytest.mark.parametrize("span_s", [0.0, 5e-324, 1e-12, 1e30])
def test_a_bin_of_no_sensible_span_still_has_a_width(span_s: float) -> None:
    assert 2**-30 < bin_width_s(span_s, 3) <= 2**61


def test_few_points_are_drawn_as_they_are_with_one_beyond_either_edge() -> None:
    x = np.arange(10.0)
    curve = draw(x, x * 2, t0_s=2.5, t1_s=5.0, pixels=4)
    assert curve.x.tolist() == [2, 3, 4, 5, 6]
    assert curve.y.tolist() == [4, 6, 8, 10, 12]
    assert not curve.has_gaps


def test_many_points_give_the_extremes_of_each_bin_in_the_order_they_came() -> None:
    x = np.arange(16.0)
    y = np.array([0, 5, 1, 2, 9, 3, 3, 7, 4, 4, 4, 4, 1, 2, 3, 0], dtype=np.float64)
    curve = draw(x, y, t0_s=4.0, t1_s=14.9, pixels=3)  # 3.6 s a pixel, so bins of 4 s from 4 s to 16 s
    assert curve.x.tolist() == [3, 4, 5, 8, 8, 14, 15]
    assert curve.y.tolist() == [2, 9, 3, 4, 4, 3, 0]


def test_the_same_rows_give_the_same_points_while_the_window_moves() -> None:
    x = np.arange(4000.0) / 4
    y = np.random.default_rng(1).normal(size=4000)
    width_s = bin_width_s(300.0, 100)
    first = draw(x, y, t0_s=100.0, t1_s=400.0, pixels=100)
    for shift_s in np.arange(0.25, 40.0, 0.25):
        later = draw(x, y, t0_s=100.0 + shift_s, t1_s=400.0 + shift_s, pixels=100)
        left, right = 100.0 + shift_s + width_s, 400.0 - width_s
        one, other = (first.x >= left) & (first.x <= right), (later.x >= left) & (later.x <= right)
        assert first.x[one].tolist() == later.x[other].tolist()
        assert first.y[one].tolist() == later.y[other].tolist()


def test_points_that_were_not_measured_are_left_out_and_gaps_are_not() -> None:
    x = np.arange(6.0)
    y = np.array([1, NOT_MEASURED, 2, math.nan, NOT_MEASURED, 3])
    curve = draw(x, y, t0_s=0.0, t1_s=5.0, pixels=10)
    assert curve.x.tolist() == [0, 2, 3, 5]
    assert np.array_equal(curve.y, [1, 2, math.nan, 3], equal_nan=True)
    assert curve.has_gaps


def test_one_row_that_stands_for_a_long_gap_cuts_the_line() -> None:
    x = np.concatenate((np.arange(0, 100, 0.25), [100.0], np.arange(200, 300, 0.25)))
    y = np.where(x == 100.0, np.nan, 1.0)
    curve = draw(x, y, t0_s=0.0, t1_s=300.0, pixels=100)
    assert curve.has_gaps
    cut = np.flatnonzero(np.isnan(curve.y))
    assert set(curve.x[cut]) == {150.0}
    assert curve.x[cut[0] - 1] < 100.0
    assert curve.x[cut[-1] + 1] >= 200.0


def test_a_gap_narrower_than_a_bin_is_not_drawn() -> None:
    x = np.arange(0, 300, 0.25)
    curve = draw(x, np.where(x == 100.0, np.nan, 1.0), t0_s=0.0, t1_s=300.0, pixels=100)
    assert not curve.has_gaps


def test_rows_much_closer_at_some_time_give_the_same_extremes() -> None:
    rng = np.random.default_rng(2)
    x = np.sort(np.concatenate((rng.uniform(0, 1, 5000), rng.uniform(0, 100, 300))))
    y = rng.normal(size=len(x))
    curve = draw(x, y, t0_s=0.0, t1_s=100.0, pixels=100)
    width_s = bin_width_s(100.0, 100)
    for number in range(int(100 / width_s)):
        inside = (x >= number * width_s) & (x < (number + 1) * width_s)
        drawn = (curve.x >= number * width_s) & (curve.x < (number + 1) * width_s)
        if inside.any():
            assert (y[inside].min(), y[inside].max()) == (curve.y[drawn].min(), curve.y[drawn].max())
        assert drawn.sum() <= 2


@pytest.mark.parametrize(("t0_s", "t1_s", "expected"), [(20.0, 30.0, [9]), (-9.0, -5.0, [0]), (4.0, 4.0, [3, 4, 5])])
def test_a_window_without_width_or_without_points(t0_s: float, t1_s: float, expected: list[float]) -> None:
    x = np.arange(10.0)
    assert draw(x, x, t0_s=t0_s, t1_s=t1_s, pixels=5).x.tolist() == expected


def test_more_points_at_one_moment_than_pixels() -> None:
    x = np.concatenate(([0.0], np.full(50, 1.0), [2.0]))
    y = np.arange(52.0)
    curve = draw(x, y, t0_s=1.0, t1_s=1.0, pixels=3)
    assert curve.x.tolist() == [0, 1, 1, 2]
    assert curve.y.tolist() == [0, 1, 50, 51]
