"""A ring holds what a deque of the same length would, always in one piece."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.ring import MirroredRing


@settings(deadline=None)
@given(
    capacity=st.one_of(st.integers(1, 9), st.sampled_from([64, 65, 130, 300])),
    values=st.lists(st.floats(allow_nan=False), max_size=40).flatmap(
        lambda values: st.integers(1, 9).map(lambda times: values * times)
    ),
)
def test_a_ring_equals_a_deque(capacity: int, values: list[float]) -> None:
    ring: MirroredRing[np.float64] = MirroredRing(2, capacity, np.float64)
    model: deque[float] = deque(maxlen=capacity)
    for total, value in enumerate(values, start=1):
        ring.append(np.array((value, -value)))
        model.append(value)
        assert ring.total == total
        assert ring.first == total - len(model)
        held = ring.view(ring.first, ring.total)
        assert held[0].tolist() == list(model)
        assert held[1].tolist() == [-value for value in model]
    for n in range(len(model) + 1):
        assert ring.newest(n)[0].tolist() == list(model)[len(model) - n :]


def test_a_view_is_contiguous_and_copies_nothing() -> None:
    ring: MirroredRing[np.float64] = MirroredRing(3, 4, np.float64)
    for value in range(7):
        ring.append(np.full(3, value))
    series = ring.view(3, 7)[1]
    assert series.tolist() == [3, 4, 5, 6]
    assert series.flags.c_contiguous
    assert series.base is not None


@pytest.mark.parametrize(("start", "stop"), [(0, 4), (3, 8), (6, 5), (-1, 5)])
def test_what_is_not_held_cannot_be_viewed(start: int, stop: int) -> None:
    ring: MirroredRing[np.float64] = MirroredRing(1, 4, np.float64)
    for value in range(7):
        ring.append(np.array([value]))
    with pytest.raises(ValueError, match="not all within 3 to 7"):
        ring.view(start, stop)


@pytest.mark.parametrize(("series", "capacity"), [(0, 4), (1, 0)])
def test_a_ring_has_room(series: int, capacity: int) -> None:
    with pytest.raises(ValueError, match="at least one series and one entry"):
        MirroredRing(series, capacity, np.float64)


def test_memory_grows_with_the_entries_up_to_the_capacity() -> None:
    ring: MirroredRing[np.float64] = MirroredRing(1, 1000, np.float64)
    sizes = []
    for value in range(3000):
        ring.append(np.array([value]))
        sizes.append(ring.nbytes)
    assert sizes[0] == 2 * 64 * 8
    assert sizes[200] == 2 * 256 * 8
    assert set(sizes[1000:]) == {2 * 1000 * 8}
    assert ring.view(2000, 3000)[0].tolist() == list(range(2000, 3000))
