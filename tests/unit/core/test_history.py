"""A history against a list of rows: what is kept, what a curve shows of it, and what readers see meanwhile."""

from __future__ import annotations

import itertools
import math
import random
import threading
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.curve import bin_width_s
from desktop_app.core.store import History, Rows

Row = tuple[float, float | str | None]  # seconds since the row before, and a value, "gap", or None: not measured

STEPS_S = (0.0, 0.125, 0.2, 0.2, 0.2, 0.2, 1.0, 30.0)
VALUES = st.one_of(st.floats(-1e9, 1e9, width=32), st.sampled_from([0.0, 1.0, math.nan, math.inf, None, "gap"]))
WAIT_S = 30.0


def random_rows(seed: int, n: int, missing: float) -> list[Row]:
    """``n`` rows of which a share of ``missing`` is one kind or another of missing: longer than a list is drawn."""
    rng = random.Random(seed)
    kinds: tuple[float | str | None, ...] = (math.nan, math.inf, None, None, "gap")
    value = 0.0
    rows: list[Row] = []
    for _ in range(n):
        value += float(np.float32(rng.gauss(0, 1)))
        value = float(np.float32(value))
        rows.append((rng.choice(STEPS_S), rng.choice(kinds) if rng.random() < missing else value))
    return rows


ROWS = st.one_of(
    st.lists(st.tuples(st.sampled_from(STEPS_S), VALUES), max_size=60),
    st.builds(random_rows, st.integers(0, 10**6), st.integers(0, 600), st.sampled_from([0.0, 0.05, 0.5])),
)


@st.composite
def windows(draw: st.DrawFn) -> tuple[list[Row], tuple[float, float]]:
    """Rows, and a window that begins and ends anywhere: at the moment of a row too."""
    rows = draw(ROWS)
    times = list(itertools.accumulate(step_s for step_s, _ in rows)) or [0.0]
    edge = st.one_of(st.sampled_from(times), st.floats(-5, times[-1] + 5))
    t0_s, t1_s = sorted((draw(edge), draw(edge)))
    return rows, (t0_s, t1_s)


@dataclass
class Model:
    """Rows as written: times, and values with ``None`` for not measured."""

    t_s: list[float]
    values: list[float | None]

    def finite(self, t0_s: float, t1_s: float) -> list[float]:
        pairs = zip(self.t_s, self.values, strict=True)
        return [v for t, v in pairs if t0_s <= t <= t1_s and v is not None and math.isfinite(v)]


def written(rows: list[Row], *, capacity: int) -> tuple[History, Model]:
    """A history of two columns; the second counts rows, so that only "gap" rows are wholly missing."""
    history, model, t_s = History(("a", "row"), capacity=capacity), Model([], []), 0.0
    for number, (step_s, value) in enumerate(rows):
        t_s += step_s
        if isinstance(value, str):
            history.append_gap(t_s)
            value = math.nan
        else:
            history.append(t_s, {"a": value, "row": number})
        model.t_s.append(t_s)
        model.values.append(value)
    return history, model


def as_nan(values: list[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def long_history(n: int, *, capacity: int = 1024, interval_s: float = 0.2) -> tuple[History, np.ndarray]:
    history = History(("a",), capacity=capacity)
    values = np.random.default_rng(0).normal(size=n)
    for i in range(n):
        history.append(i * interval_s, values[i : i + 1])
    return history, values


@settings(deadline=None, max_examples=150)
@given(rows=ROWS, capacity=st.integers(8, 40), version=st.integers(0, 300), n=st.integers(0, 50))
def test_rows_are_those_of_a_list(rows: list[Row], capacity: int, version: int, n: int) -> None:
    history, model = written(rows, capacity=capacity)
    assert history.version == len(rows)
    version = min(version, len(rows))
    start = max(version, len(rows) - capacity)
    new = history.since(version)
    assert (new.version, new.missed) == (len(rows), start - version)
    assert new.t_s.tolist() == model.t_s[start:]
    assert np.array_equal(new.column("a"), as_nan(model.values[start:]), equal_nan=True)
    newest = min(n, capacity, len(rows))
    tail = history.tail(n, ["a"])
    assert tail.values.shape == (1, newest)
    assert np.array_equal(tail.values[0], as_nan(model.values[len(rows) - newest :]), equal_nan=True)


@settings(deadline=None, max_examples=300)
@given(window=windows(), capacity=st.integers(8, 200), pixels=st.integers(1, 60))
def test_a_curve_keeps_its_promises(window: tuple[list[Row], tuple[float, float]], capacity: int, pixels: int) -> None:
    rows, (t0_s, t1_s) = window
    history, model = written(rows, capacity=capacity)
    curve = history.curve("a", t0_s, t1_s, pixels=pixels)
    assert len(curve.x) == len(curve.y) <= 2 * pixels + 4
    assert (np.diff(curve.x) >= 0).all()
    assert not np.isinf(curve.y).any()
    assert curve.has_gaps == np.isnan(curve.y).any()
    drawn = curve.y[np.isfinite(curve.y)].tolist()
    assert set(drawn) <= set(model.finite(-math.inf, math.inf))  # all of them are float32: nothing is invented
    seen = model.finite(t0_s, t1_s)
    if seen:
        assert min(drawn) <= min(seen)
        assert max(drawn) >= max(seen)


@settings(deadline=None, max_examples=150)
@given(window=windows(), capacity=st.integers(8, 800))
def test_bounds_are_never_narrower_than_the_truth(window: tuple[list[Row], tuple[float, float]], capacity: int) -> None:
    rows, (t0_s, t1_s) = window
    history, model = written(rows, capacity=capacity)
    bounds, seen = history.bounds("a", t0_s, t1_s), model.finite(t0_s, t1_s)
    if capacity >= len(rows):
        assert bounds == ((min(seen), max(seen)) if seen else None)
    elif seen:
        assert bounds is not None
        assert bounds[0] <= min(seen)
        assert bounds[1] >= max(seen)


@settings(deadline=None, max_examples=150)
@given(rows=ROWS.filter(lambda rows: len(rows) <= 60), t_s=st.floats(-1, 100))
def test_a_value_is_that_of_the_newest_measured_row_at_or_before(rows: list[Row], t_s: float) -> None:
    history, model = written(rows, capacity=64)
    measured = [v for t, v in zip(model.t_s, model.values, strict=True) if t <= t_s and v is not None]
    expected = measured[-1] if measured and math.isfinite(measured[-1]) else None
    assert history.value_at("a", t_s) == expected


@pytest.mark.parametrize("byte_count", [2**40 + 1, 80 * 2**30 - 1, 2**53 - 1])
def test_bytes_are_kept_exactly(byte_count: int) -> None:
    history = History(("used_bytes",), capacity=8)
    history.append(1.0, [byte_count])
    assert history.since(0).values[0, 0] == byte_count
    assert history.value_at("used_bytes", 1.0) == byte_count


def test_time_may_stand_still_and_never_goes_back() -> None:
    history = History(("a",), capacity=8)
    history.append(1.0, [1])
    history.append(1.0, [2])
    for wrong in (0.999, math.nan, math.inf):
        with pytest.raises(ValueError, match="cannot follow one at 1"):
            history.append(wrong, [3])
    assert history.version == 2
    assert history.tail(9).values.tolist() == [[1, 2]]
    assert history.value_at("a", 1.0) == 2


def test_times_before_zero_are_times() -> None:
    history = History(("a",), capacity=8)
    history.append(-2.0, [1])
    history.append(-1.0, [2])
    assert history.curve("a", -5, 0, pixels=10).x.tolist() == [-2, -1]


def test_values_come_by_name_or_in_order() -> None:
    history = History(("a", "b", "c"), capacity=8)
    history.append(0.0, (1, None, 3))
    history.append(1.0, {"c": 6, "a": 4})
    history.append(2.0, np.array([7.0, 8.0, 9.0]))
    expected = [[1, 4, 7], [math.nan, math.nan, 8], [3, 6, 9]]
    assert np.array_equal(history.since(0).values, expected, equal_nan=True)
    with pytest.raises(ValueError, match=r"no such columns: \['d'\]"):
        history.append(3.0, {"a": 1, "d": 2})
    with pytest.raises(ValueError, match="2 values for 3 columns"):
        history.append(3.0, (1, 2))


@pytest.mark.parametrize(("columns", "capacity"), [((), 8), (("a", "a"), 8), (("a",), 7)])
def test_a_history_has_columns_and_room(columns: tuple[str, ...], capacity: int) -> None:
    with pytest.raises(ValueError, match="a history needs"):
        History(columns, capacity=capacity)


def test_nothing_yet() -> None:
    history = History(("a", "b"), capacity=8)
    assert history.version == 0
    assert history.latest() is None
    assert history.since(0).values.shape == (2, 0)
    assert history.tail(5).t_s.size == 0
    assert history.curve("a", 0, 1, pixels=100).x.size == 0
    assert history.curve("a", -math.inf, math.inf, pixels=100).x.size == 0
    assert history.bounds("a", 0, 1) is None
    assert history.value_at("a", 0) is None


def test_the_latest_row_comes_by_name() -> None:
    history = History(("a", "b"), capacity=8)
    history.append(1.5, {"a": 2})
    latest = history.latest()
    assert latest is not None
    assert list(latest) == ["t_s", "a", "b"]
    assert (latest["t_s"], latest["a"]) == (1.5, 2.0)
    assert math.isnan(latest["b"])


def test_what_a_reader_holds_is_its_own() -> None:
    history = History(("a",), capacity=8)
    history.append(0.0, [1])
    rows, tail, curve = history.since(0), history.tail(1), history.curve("a", 0, 1, pixels=10)
    for number in range(1, 20):
        history.append(number, [-number])
    assert rows.values.tolist() == tail.values.tolist() == [[1]]
    assert curve.y.tolist() == [1]


@pytest.mark.parametrize("version", [-1, 2])
def test_a_version_not_reached_is_a_mistake(version: int) -> None:
    history = History(("a",), capacity=8)
    history.append(0.0, [1])
    with pytest.raises(ValueError, match="not within 0 to 1"):
        history.since(version)


@pytest.mark.parametrize(("t0_s", "t1_s", "pixels"), [(1, 0, 10), (math.nan, 1, 10), (0, math.nan, 10), (0, 1, 0)])
def test_what_is_no_window_is_a_mistake(t0_s: float, t1_s: float, pixels: int) -> None:
    with pytest.raises(ValueError, match="not a window"):
        History(("a",), capacity=8).curve("a", t0_s, t1_s, pixels=pixels)


def test_unknown_columns_are_a_mistake() -> None:
    history = History(("a",), capacity=8)
    with pytest.raises(KeyError, match="b"):
        history.curve("b", 0, 1, pixels=1)
    with pytest.raises(KeyError, match="b"):
        history.tail(1, ["b"])


def test_the_whole_history_by_infinite_edges_up_to_the_newest_row() -> None:
    history, values = long_history(5000)
    for number in range(5000, 5080):
        history.append(number * 0.2, [9.0 + number])
        curve = history.curve("a", -math.inf, math.inf, pixels=100)
        assert (curve.x[0], curve.y.min()) == (0.0, np.float32(values.min()))
        assert curve.x[-1] == number * 0.2
        assert curve.y[-1] == 9.0 + number


@pytest.mark.parametrize("span_s", [90.0, 400.0, 1500.0])
def test_points_stand_still_while_rows_arrive_and_the_window_follows(span_s: float) -> None:
    history, _ = long_history(9000)
    rng, pixels = np.random.default_rng(3), 200
    margin_s = 2 * bin_width_s(span_s, pixels)
    before = history.curve("a", 1800.0 - span_s, 1800.0, pixels=pixels)
    for number in range(9000, 9040):
        history.append(number * 0.2, rng.normal(size=1))
        t1_s = number * 0.2
        after = history.curve("a", t1_s - span_s, t1_s, pixels=pixels)
        left, right = t1_s - span_s + margin_s, 1800.0 - max(margin_s, 64 * 0.2)
        assert _between(before.x, before.y, left, right) == _between(after.x, after.y, left, right)


def test_many_rows_just_outside_a_window_do_not_make_it_coarser() -> None:
    history = History(("a",), capacity=512)
    for number in range(200):
        history.append(128.0 + number * 0.25, [0.0])
    for number in range(60):
        history.append(180.0 + number * 17.0, [float(number)])
    curve = history.curve("a", 179.0, 1199.0, pixels=20)
    assert len(set(curve.y)) > 30


def _between(x: np.ndarray, y: np.ndarray, left: float, right: float) -> list[tuple[float, float]]:
    inside = (x >= left) & (x <= right)
    return list(zip(x[inside].tolist(), y[inside].tolist(), strict=True))


@pytest.mark.parametrize("pixels", [20, 100, 500, 1500])
@pytest.mark.parametrize(("hole_s", "gap_rows"), [(1800.0, 1), (30_000.0, 1), (1800.0, 400)])
def test_a_gap_shows_at_every_zoom_long_after_its_rows_are_gone(pixels: int, hole_s: float, gap_rows: int) -> None:
    history = History(("a",), capacity=64)
    for number in range(3000):
        history.append(number * 0.2, [1.0])
    for number in range(gap_rows):
        history.append_gap(600.0 + number * hole_s / gap_rows)
    for number in range(5000):
        history.append(600.0 + hole_s + number * 0.2, [2.0])
    span_s = 1600.0 + hole_s
    curve = history.curve("a", 0.0, span_s, pixels=pixels)
    assert len(curve.x) <= 2 * pixels + 4
    assert curve.has_gaps
    cut = np.flatnonzero(np.isnan(curve.y))
    assert curve.y[cut[0] - 1] == 1.0
    assert curve.y[cut[-1] + 1] == 2.0
    assert curve.x[cut[0] - 1] <= 600.0
    assert curve.x[cut[-1] + 1] >= 600.0 + hole_s
    assert history.value_at("a", 600.0 + hole_s * 0.75) is None
    assert history.value_at("a", 599.0) == 1.0


def test_a_gap_at_the_very_beginning_and_at_the_end() -> None:
    history = History(("a",), capacity=8)
    history.append_gap(0.0)
    history.append(50.0, [1.0])
    for number in range(40):
        history.append(51.0 + number, [float(number)])
    history.append_gap(100.0)
    history.append_gap(101.0)
    curve = history.curve("a", 0.0, 101.0, pixels=1000)
    assert np.isnan(curve.y[0])
    assert history.value_at("a", 101.0) is None
    assert history.bounds("a", 0.0, 101.0) == (0.0, 39.0)


def test_gaps_at_every_other_row_do_not_outgrow_the_pyramid() -> None:
    history = History(("a",), capacity=64)
    for number in range(4000):
        history.append(number * 0.2, [float(number % 7)] if number % 2 else [math.nan])
    bounds = history.bounds("a", 0.0, 1000.0)
    assert bounds == (0.0, 6.0)
    assert len(history.curve("a", 0.0, 1000.0, pixels=50).x) <= 104


def test_a_field_read_on_slow_ticks_only_is_one_line() -> None:
    history = History(("fast", "slow"), capacity=256)
    for number in range(2000):
        history.append(number * 0.2, {"fast": 1.0} | ({"slow": float(number)} if number % 5 == 0 else {}))
    recent = history.curve("slow", 379.9, 390.1, pixels=300)
    assert not recent.has_gaps
    assert recent.y.tolist() == [float(n) for n in range(1895, 1960, 5)]
    assert not history.curve("slow", 0.0, 400.0, pixels=300).has_gaps
    assert history.value_at("slow", 390.9) == 1950.0


def test_a_field_that_fails_alone_is_a_gap_of_its_own() -> None:
    history = History(("fast", "slow"), capacity=256)
    for number in range(2000):
        failed = 800 <= number < 1200
        history.append(number * 0.2, (1.0, math.nan if failed else 2.0))
    assert history.curve("slow", 0.0, 400.0, pixels=100).has_gaps
    assert not history.curve("fast", 0.0, 400.0, pixels=100).has_gaps
    assert history.value_at("slow", 200.0) is None


def test_memory_stops_growing() -> None:
    history, _ = long_history(40_000, capacity=64)
    held = history.nbytes
    rng = np.random.default_rng(5)
    for number in range(40_000, 60_000):
        history.append(number * 0.2, rng.normal(size=1))
    assert history.nbytes == held


def test_readers_see_whole_rows_and_versions_that_only_grow() -> None:
    history = History(("a", "minus_a"), capacity=512)
    total, started = 6000, threading.Barrier(4)
    faults: list[str] = []

    def write() -> None:
        started.wait(WAIT_S)
        for number in range(total):
            history.append(number, (number, -number))

    def pull() -> None:
        started.wait(WAIT_S)
        version, next_row = 0, 0
        while version < total:
            rows: Rows = history.since(version)
            expected = np.arange(next_row + rows.missed, rows.version)
            if rows.version < version or rows.values[0].tolist() != expected.tolist():
                faults.append(f"rows after {version}: {rows.values[0]}")
            if (rows.values[0] != -rows.values[1]).any() or rows.t_s.tolist() != rows.values[0].tolist():
                faults.append("a torn row")
            version = next_row = rows.version

    def look() -> None:
        started.wait(WAIT_S)
        while history.version < total:
            curve = history.curve("a", 0.0, total, pixels=50)
            if not (curve.x == curve.y).all() or (np.diff(curve.x) < 0).any():
                faults.append(f"curve {curve}")

    threads = [threading.Thread(target=target, daemon=True) for target in (write, pull, pull, look)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert not any(thread.is_alive() for thread in threads)
    assert not faults, faults[:3]


def test_a_long_history_costs_few_points_at_any_zoom() -> None:
    history, _ = long_history(30_000, capacity=256)
    for span_s, pixels in itertools.product((1.0, 60.0, 900.0, 6000.0, 1e6), (1, 7, 750)):
        curve = history.curve("a", 6000.0 - span_s, 6000.0, pixels=pixels)
        assert 1 <= len(curve.x) <= 2 * pixels + 4
