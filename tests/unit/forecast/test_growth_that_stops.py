"""Growth that ends by itself before the brim is no alarm; what only slows down, and does not end in time, is one."""

from __future__ import annotations

import numpy as np
import pytest

from desktop_app.core.forecasts import Cause
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import Forecaster
from desktop_app.forecast.ramps import Change
from desktop_app.forecast.stairs import StairWatch

from .traces import BASE, DEMAND, Floats, Replay, replay, steps

CAPACITY = 6 * GIB
ROOM = CAPACITY - BASE - DEMAND
COUNT = np.arange(300)


def run(troughs: Floats) -> Replay:
    return replay(steps(troughs), Forecaster(capacity_bytes=CAPACITY), capacity=CAPACITY)


def cache(rise: float, constant: float, lump: int) -> Floats:
    """Of what has been seen: new things become rare, and each is kept in lumps of one size."""
    full: Floats = BASE + rise * (1.0 - np.exp(-COUNT / constant)) // lump * lump
    return full


@pytest.mark.parametrize("lump_mib", [2, 20])
@pytest.mark.parametrize(("share", "constant"), [(0.15, 90.0), (0.3, 30.0), (0.3, 60.0), (0.45, 15.0), (0.45, 60.0)])
def test_a_cache_that_fills(share: float, constant: float, lump_mib: int) -> None:
    assert run(cache(share * ROOM, constant, lump_mib * MIB)).raised == []


@pytest.mark.parametrize("constant", [60.0, 120.0])
def test_a_cache_that_wants_far_more_than_there_is(constant: float) -> None:
    """It slows down as well, but by the time of the brim it has come to a third of its way."""
    told = run(cache(3.0 * ROOM, constant, 20 * MIB))
    assert told.first is not None
    assert told.first.cause is Cause.LEAK
    assert told.lead_steps() >= 10


@pytest.mark.parametrize("distance", [4, 7])
def test_the_same_lumps_at_one_distance(distance: int) -> None:
    told = run(BASE + 40.0 * MIB * (np.arange(400) // distance))
    assert told.first is not None
    assert told.first.cause is Cause.LEAK
    assert told.first.step <= 60
    assert told.cleared == []


@pytest.mark.parametrize(("share", "length"), [(0.35, 12), (0.4, 16), (0.45, 20)])
def test_a_steep_first_rise_that_ends_before_half_of_the_room(share: float, length: int) -> None:
    """So steep that there is no time for 30 steps of evidence: believed as far as it has come."""
    assert run(BASE + share * ROOM * np.minimum(COUNT, length) / length).raised == []


@pytest.mark.parametrize("length", [24, 40])
def test_a_leak_that_fills_the_card_in_moments(length: int) -> None:
    told = run(BASE + ROOM * COUNT / length)
    assert told.first is not None
    assert told.lead_steps() >= 10


def watch(at: list[int], size: float = 20.0 * MIB) -> StairWatch:
    stairs = StairWatch()
    for step in at:
        stairs.add(step, Change(size, outstanding=True))
    return stairs


def test_what_is_still_to_come_of_risers_that_become_rare() -> None:
    """Distances of 4, 4, 5, 6, 8, 12: 60 MiB in 13 steps, then in 26. Half as fast: as much again is still to come."""
    slowing = watch([10, 14, 18, 23, 29, 37, 49])
    assert slowing.level_off_within(200 * MIB)
    assert not slowing.level_off_within(40 * MIB)
    assert slowing.newest_slope == pytest.approx(60 * MIB / 26)


@pytest.mark.parametrize(
    "at",
    [
        [10, 20, 30, 40, 50, 60, 70, 80],  # even
        [10, 22, 30, 43, 51, 62, 75, 82],  # uneven
        [10, 14, 19, 25, 32],  # too few
        [10, 18, 25, 31, 36, 40, 43],  # ever faster
    ],
)
def test_risers_that_do_not_become_rare(at: list[int]) -> None:
    assert not watch(at).level_off_within(4 * GIB)
