"""Axes: round limits that rest, round ticks, time figures, and heights that leave everything legible."""

from __future__ import annotations

import itertools
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desktop_app.ui.charts import texts
from desktop_app.ui.charts.arrangement import LANE_LINES, NEEDS, arrange
from desktop_app.ui.charts.scales import Axis, Limits, ceiling, figures_for, make_axis, scientific, ticks_within
from desktop_app.ui.charts.time_axis import (
    ALL,
    DEFAULT_SPAN_S,
    TimeWindow,
    View,
    browsed_ticks,
    grown_span_s,
    live_ticks,
    tick_distance_s,
)

FINITE = st.floats(-1e12, 1e12, allow_nan=False)


# -- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"), [(0.9, 1.0), (1.0, 1.0), (1.01, 1.2), (0.23, 0.25), (134.4, 150.0), (7, 8.0), (0, 1.0)]
)
def test_ceiling(value: float, expected: float) -> None:
    assert ceiling(value) == pytest.approx(expected)


@given(st.floats(1e-9, 1e12))
def test_ceiling_is_round_and_close(value: float) -> None:
    assert value * (1 - 1e-6) <= ceiling(value) <= 1.34 * value


def test_ticks_of_known_axes() -> None:
    assert ticks_within(0, 100, at_most=3) == (0, 50, 100)
    assert ticks_within(0, 6.84, at_most=4) == (0, 5)
    assert ticks_within(0, 6.84, at_most=5) == (0, 2, 4, 6)
    assert ticks_within(30, 110, at_most=3) == (50, 100)
    assert ticks_within(-1.0, 1.0, at_most=3) == (-1, 0, 1)


@given(FINITE, st.floats(1e-6, 1e12), st.integers(2, 8))
def test_ticks_lie_within_and_are_evenly_spread(low: float, span: float, at_most: int) -> None:
    ticks = ticks_within(low, low + span, at_most=at_most)
    slack = 1e-6 * max(span, abs(low))
    assert all(low - slack <= tick <= low + span + slack for tick in ticks)
    steps = {round((b - a) / span, 4) for a, b in itertools.pairwise(ticks)}
    assert len(steps) <= 2


def test_limits_rest_while_the_data_move_a_little() -> None:
    limits = Limits()
    ends = limits.follow(0.1, 0.66)
    assert ends == (0.0, 0.8)
    assert {limits.follow(0.1, high) for high in (0.61, 0.7, 0.79, 0.5)} == {ends}


def test_limits_grow_at_once_and_shrink_late() -> None:
    limits = Limits()
    limits.follow(0.1, 0.5)
    assert limits.follow(0.1, 3.0)[1] >= 3.0
    wide = limits.follow(0.1, 3.0)
    assert limits.follow(0.1, 2.0) == wide
    assert limits.follow(0.1, 0.5)[1] < wide[1]


def test_limits_begin_at_zero_unless_that_hides_the_data() -> None:
    assert Limits().follow(0.2, 0.7)[0] == 0.0
    low, high = Limits().follow(0.121, 0.139)
    assert 0 < low <= 0.121
    assert 0.139 <= high < 0.2


@given(FINITE, st.floats(0, 1e9))
def test_limits_hold_the_data_and_are_never_empty(low: float, span: float) -> None:
    bottom, top = Limits().follow(low, low + span)
    assert bottom <= low
    assert top >= low + span
    assert bottom < top


def test_constant_zero_has_an_axis() -> None:
    limits = Limits()
    assert limits.follow(0.0, 0.0) == (0.0, 1.0)
    assert limits.follow(0.0, 0.0) == (0.0, 1.0)


def test_axis_places_and_labels() -> None:
    axis = make_axis(0.0, 0.8, at_most=5)
    assert axis.labels == ("0.0", "0.2", "0.4", "0.6", "0.8")
    assert axis.share(0.2) == pytest.approx(0.25)
    assert Axis(40.0, 100.0).share(70.0) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("value", "text"),
    [(3e-3, "3e−3"), (2.9e-4, "2.9e−4"), (0.0, "0"), (0.3, "0.3"), (1.0, "1"), (0.05, "0.05")],
)
def test_scientific(value: float, text: str) -> None:
    assert scientific(value) == text


def test_figures_for_small_and_large_plots() -> None:
    assert figures_for(25, 13) == 2
    assert figures_for(45, 13) == 3
    assert figures_for(400, 13) == 6


# -- time -------------------------------------------------------------------------------------------------------------


def follow(window: TimeWindow, now_s: float, forecast_s: float | None = None) -> View:
    return window.follow(now_s, pixels=700, forecast_s=forecast_s)


def test_the_live_window_stands_still_while_time_goes_on() -> None:
    window = TimeWindow()
    views = [follow(window, 2000.0 + 0.1 * index) for index in range(100)]
    assert {(view.left, view.right) for view in views} == {(-DEFAULT_SPAN_S, 0.0)}
    anchors = [view.anchor_s for view in views]
    assert anchors == sorted(anchors)
    # It moves by whole pixels: 10 s are 8 of them.
    assert len(set(anchors)) == pytest.approx(8, abs=1)


def test_a_young_session_is_never_half_empty() -> None:
    window = TimeWindow()
    for now_s in (1.0, 30.0, 61.0, 100.0, 330.0, 722.0, 899.0):
        view = follow(window, now_s)
        assert -view.left >= min(now_s, DEFAULT_SPAN_S)
        assert -view.left <= max(60.0, 1.1 * now_s)


def test_spans_grow_in_steps() -> None:
    spans = [grown_span_s(float(second)) for second in range(1, 3600)]
    assert spans == sorted(spans)
    assert len(set(spans)) < 50
    assert grown_span_s(60.0) == 60.0


def test_everything_is_shown_without_end() -> None:
    window = TimeWindow(ALL)
    view = follow(window, 30 * 86_400.0)
    assert 30 * 86_400.0 <= -view.left <= 33.1 * 86_400.0


def test_a_forecast_gets_room_for_its_end() -> None:
    window = TimeWindow()
    assert follow(window, 2000.0).right == 0.0
    for eta_s in (10.0, 120.0, 250.0, 400.0):
        assert follow(window, 2000.0, eta_s).right >= eta_s
    # Beyond the largest room the line leaves at the edge, and the past keeps its place.
    far = follow(window, 2000.0, 5000.0)
    assert far.right == pytest.approx(0.15 * DEFAULT_SPAN_S)


def test_the_room_for_the_future_seldom_changes() -> None:
    window = TimeWindow()
    rights = {follow(window, 2000.0 + 0.1 * index, 250.0 - 0.1 * index).right for index in range(2000)}
    assert len(rights) <= 4


def test_leaving_the_live_view_changes_nothing_but_the_anchor() -> None:
    window = TimeWindow()
    live = follow(window, 2000.0)
    window.pan(-100.0)
    assert not window.live
    assert window.view == View(live.anchor_s, live.left - 100.0, live.right - 100.0, live=False)
    assert follow(window, 2050.0) == window.view
    assert window.now_x == pytest.approx(2050.0 - live.anchor_s)


def test_panning_back_to_now_is_live_again() -> None:
    window = TimeWindow()
    follow(window, 2000.0)
    window.pan(-100.0)
    window.pan(50.0)
    assert not window.live
    window.pan(60.0)
    assert window.live
    assert window.span_s == pytest.approx(DEFAULT_SPAN_S)


def test_zooming_live_keeps_now() -> None:
    window = TimeWindow()
    follow(window, 2000.0)
    window.zoom(0.5, at=-300.0)
    assert window.live
    assert window.view.left == pytest.approx(-DEFAULT_SPAN_S / 2)
    assert window.view.right == 0.0


def test_zooming_the_past_keeps_the_place_under_the_mouse() -> None:
    window = TimeWindow()
    follow(window, 5000.0)
    window.pan(-1000.0)
    before = window.view
    at = before.left + 0.25 * before.width
    window.zoom(0.5, at=at)
    assert window.view.width == pytest.approx(before.width / 2)
    assert (at - window.view.left) / window.view.width == pytest.approx(0.25)


@given(st.lists(st.tuples(st.sampled_from(["zoom", "pan", "live"]), st.floats(0.1, 10)), max_size=30))
def test_no_navigation_makes_an_impossible_window(moves: list[tuple[str, float]]) -> None:
    window = TimeWindow()
    follow(window, 7200.0)
    for move, amount in moves:
        if move == "zoom":
            window.zoom(amount, at=window.view.left + window.view.width / 3)
        elif move == "pan":
            window.pan((amount - 5) * 100)
        else:
            window.go_live()
        assert 1.0 <= window.view.width <= 2 * grown_span_s(7200.0)
        assert math.isfinite(window.view.left)


def test_exhaustion_a_minute_ahead_is_visible_beside_a_minute() -> None:
    window = TimeWindow(60.0)
    view = window.follow(7200.0, pixels=800.0, forecast_s=60.0)
    assert 60.0 < view.right <= 1.5 * -view.left


def test_live_figures_say_the_unit_once() -> None:
    words = texts.time_words()
    ticks = live_ticks(View(0.0, -720.0, 150.0, live=True), words, at_most=6)
    assert [(tick.x, tick.text) for tick in ticks] == [
        (-720.0, "12 min ago"),
        (-540.0, "9"),
        (-360.0, "6"),
        (-180.0, "3"),
        (0.0, "now"),
    ]
    ahead = live_ticks(View(0.0, -720.0, 200.0, live=True), words, at_most=6)
    assert ahead[-1].text == "+3"
    minute = live_ticks(View(0.0, -60.0, 0.0, live=True), words, at_most=5)
    assert [tick.text for tick in minute] == ["60 s ago", "45", "30", "15", "now"]


def test_browsed_figures_are_round_local_times() -> None:
    anchor = time.mktime((2026, 9, 21, 14, 13, 20, 0, 0, -1))
    ticks = browsed_ticks(View(0.0, -400.0, 0.0, live=False), lambda t_s: anchor + t_s, at_most=4)
    assert [tick.text for tick in ticks] == ["14:08", "14:10", "14:12"]
    assert ticks[0].x == pytest.approx(-320.0)


def test_days_are_dates() -> None:
    anchor = time.mktime((2026, 9, 21, 14, 0, 0, 0, 0, -1))
    ticks = browsed_ticks(View(0.0, -4 * 86_400.0, 0.0, live=False), lambda t_s: anchor + t_s, at_most=5)
    assert "09-21" in [tick.text for tick in ticks]


@given(st.floats(1.0, 1e9), st.integers(2, 12))
def test_figures_of_the_time_axis_are_never_crowded(width_s: float, at_most: int) -> None:
    assert width_s / tick_distance_s(width_s, at_most=at_most) <= at_most + 1e-9


# -- heights ----------------------------------------------------------------------------------------------------------

LINE = 13.0
SPACING = 8.0


@pytest.mark.parametrize("height", [300, 350, 420, 478, 520, 600, 718, 900, 1400])
@pytest.mark.parametrize("compact", [False, True])
def test_heights_fill_the_room_and_stay_legible(height: int, compact: bool) -> None:
    heights = arrange(height, line=LINE, spacing=SPACING, compact=compact)
    total = sum(heights.values()) + SPACING * (len(heights) - 1)
    assert total == height
    needs = {need.key: need.least for need in NEEDS}
    for key, pixels in heights.items():
        assert pixels == int(pixels)
        assert pixels >= needs.get(key, LANE_LINES) * LINE - 1


def test_who_is_hidden_first() -> None:
    high = arrange(718, line=LINE, spacing=SPACING, compact=False)
    assert list(high) == ["loss", "optimizer", "vram", "utilization", "temperature", "power", "events"]
    small = arrange(478, line=LINE, spacing=SPACING, compact=True)
    assert list(small) == ["loss", "vram", "utilization", "temperature", "power", "events"]
    smaller = arrange(330, line=LINE, spacing=SPACING, compact=True)
    assert list(smaller) == ["loss", "vram", "utilization", "events"]


def test_the_two_large_panels_are_large() -> None:
    heights = arrange(718, line=LINE, spacing=SPACING, compact=True)
    assert heights["loss"] > 1.8 * heights["power"]
    assert heights["vram"] > 1.8 * heights["power"]
