"""Every entry of every level against minima and maxima worked out row by row."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from desktop_app.core.missing import NOT_MEASURED, Floats
from desktop_app.core.pyramid import BLOCK, Level, Pyramid

SPECIAL = st.sampled_from([math.nan, NOT_MEASURED])
VALUES = st.one_of(st.floats(-1e6, 1e6, width=32), st.integers(-3, 3).map(float), SPECIAL)


def filled(values: Floats, *, capacity: int = 4096) -> Pyramid:
    """A pyramid over whole blocks of ``values`` (columns, rows), one row a second."""
    pyramid = Pyramid(len(values), capacity=capacity)
    for start in range(0, values.shape[1] - BLOCK + 1, BLOCK):
        pyramid.add(np.arange(start, start + BLOCK, dtype=np.float64), values[:, start : start + BLOCK])
    return pyramid


def naive_extremes(values: Floats) -> tuple[float, float]:
    """Lowest and highest finite value in the order they first came; the kind of missing when there is none."""
    finite = [(value, place) for place, value in enumerate(values.tolist()) if math.isfinite(value)]
    if not finite:
        missing = math.nan if np.isnan(values).any() else NOT_MEASURED
        return missing, missing
    lowest = min(finite)
    highest = min(finite, key=lambda pair: (-pair[0], pair[1]))
    first, second = sorted((lowest, highest), key=lambda pair: pair[1])
    return first[0], second[0]


def entries(level: Level, column: int) -> list[tuple[float, float]]:
    _, y = level.points(column, level.first, level.total)
    return [(float(first), float(second)) for first, second in y.reshape(-1, 2)]


def same(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> bool:
    return bool(np.array_equal(np.array(one), np.array(other), equal_nan=True))


@settings(deadline=None, max_examples=60)
@given(data=st.data(), blocks=st.integers(1, 70), columns=st.integers(1, 3))
def test_every_entry_is_the_naive_one(data: st.DataObject, blocks: int, columns: int) -> None:
    values = data.draw(arrays(np.float64, (columns, blocks * BLOCK), elements=VALUES, fill=st.just(0.0)))
    pyramid = filled(values)
    for k, level in enumerate(pyramid.levels):
        size = BLOCK ** (k + 1)
        assert level.total == blocks * BLOCK // size
        for column in range(columns):
            expected = [naive_extremes(values[column, i * size : (i + 1) * size]) for i in range(level.total)]
            assert same(entries(level, column), expected)
    assert len(pyramid.levels) == max(k for k in range(1, 5) if BLOCK**k <= blocks * BLOCK)


def test_an_entry_spans_its_rows() -> None:
    pyramid = filled(np.arange(128.0)[np.newaxis])
    x, y = pyramid.levels[1].points(0, 0, 2)
    assert x.tolist() == [0, 63, 64, 127]
    assert y.tolist() == [0, 63, 64, 127]


@pytest.mark.parametrize(
    ("t0_s", "t1_s", "expected"),
    [(7.0, 8.0, (0, 2)), (7.5, 7.5, (1, 1)), (8.0, 15.0, (1, 2)), (-5.0, -1.0, (0, 0)), (50.0, 60.0, (4, 4))],
)
def test_an_entry_belongs_to_a_window_that_touches_its_span(
    t0_s: float, t1_s: float, expected: tuple[int, int]
) -> None:
    level = filled(np.zeros((1, 32))).levels[0]
    assert level.overlap(t0_s, t1_s) == expected


def test_a_falling_entry_has_its_maximum_first() -> None:
    pyramid = filled(-np.arange(8.0)[np.newaxis])
    assert entries(pyramid.levels[0], 0) == [(0.0, -7.0)]


def test_memory_is_bounded_and_every_row_is_covered() -> None:
    values = np.zeros((1, 8 * 4096))
    values[0, 3] = -5.0
    values[0, -3] = 5.0
    pyramid = filled(values, capacity=16)
    assert all(level.total - level.first <= 16 for level in pyramid.levels)
    assert pyramid.levels[-1].first == 0
    pieces, newest = pyramid.points(0, 0.0, 1e9, limit=32, reach=0)
    y = np.concatenate([piece[1] for piece in pieces])
    assert newest
    assert (y.min(), y.max()) == (-5.0, 5.0)
    assert len(y) <= 64 + 2 * BLOCK * len(pyramid.levels)


def test_open_entries_follow_from_finer_levels() -> None:
    pyramid = filled(np.arange(8.0 * 21)[np.newaxis])  # 21 blocks: two entries of level 1, five blocks left over
    pieces, newest = pyramid.points(0, 0.0, 200.0, limit=4, reach=0)
    x = np.concatenate([piece[0] for piece in pieces])
    assert newest
    assert x.tolist() == [0, 63, 64, 127, *(t for block in range(16, 21) for t in (8 * block, 8 * block + 7))]


def test_a_window_in_the_past_takes_its_neighbours_only() -> None:
    pyramid = filled(np.arange(8.0 * 100)[np.newaxis])
    pieces, newest = pyramid.points(0, 80.0, 95.0, limit=100, reach=1)
    assert not newest
    assert pieces[0][0].tolist() == [72, 79, 80, 87, 88, 95, 96, 103]


def test_a_gap_cuts_as_many_levels_as_asked() -> None:
    pyramid = Pyramid(1)
    seconds = np.arange(float(BLOCK))
    for block in range(10):
        pyramid.add(seconds + 8 * block, np.full((1, BLOCK), 1.0))
    pyramid.add_gap(80.0, 1000.0, height=3)
    for block in range(10):
        pyramid.add(seconds + 1000 + 8 * block, np.full((1, BLOCK), 2.0))
    gap, one, two = (math.nan, math.nan), (1.0, 1.0), (2.0, 2.0)
    assert same(entries(pyramid.levels[0], 0), [one] * 10 + [gap] + [two] * 10)
    assert same(entries(pyramid.levels[1], 0), [one, one, gap, two])
    assert same(entries(pyramid.levels[2], 0), [one, gap])
    assert pyramid.levels[2].points(0, 1, 2)[0].tolist() == [540.0, 540.0]
