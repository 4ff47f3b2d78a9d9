"""One monotonic clock with one wall-clock anchor."""

from __future__ import annotations

import dataclasses
import time

import pytest

from desktop_app.core.clock import SessionClock


def test_time_begins_with_the_session_and_follows_the_monotonic_clock() -> None:
    ticks = iter((100.0, 100.25, 103.5))
    clock = SessionClock(monotonic=lambda: next(ticks), anchor_wall_s=1_700_000_000.0, origin_s=100.0)
    assert [clock.now_s() for _ in range(3)] == [0.0, 0.25, 3.5]


def test_wall_time_is_the_anchor_plus_session_time() -> None:
    clock = SessionClock(monotonic=lambda: 0.0, anchor_wall_s=1_700_000_000.0, origin_s=0.0)
    assert clock.wall_s(0.0) == 1_700_000_000.0
    assert clock.wall_s(90.5) == 1_700_000_090.5


def test_a_new_clock_starts_near_zero_at_the_present_wall_time() -> None:
    before_s = time.time()
    clock = SessionClock()
    assert 0.0 <= clock.now_s() < 10.0
    assert before_s <= clock.anchor_wall_s <= time.time()
    assert clock.now_s() <= clock.now_s()


def test_a_clock_cannot_be_set() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        SessionClock().anchor_wall_s = 0.0  # type: ignore[misc]
