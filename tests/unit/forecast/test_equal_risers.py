"""The same amount again and again, at any distances: a branch that is taken now and then."""

from __future__ import annotations

import numpy as np
import pytest

from desktop_app.core.forecasts import Cause
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.equal_risers import EqualRisers
from desktop_app.forecast.forecaster import Forecaster
from desktop_app.forecast.line_search import Interest
from desktop_app.forecast.stairs import Stairs
from desktop_app.forecast.trend import TroughTrend

from .traces import BASE, Floats, Replay, replay, steps

CAPACITY = 6 * GIB
AT_RANDOM = [9, 12, 24, 31]


def watch(at: list[int], sizes: list[float] | None = None) -> EqualRisers:
    risers = EqualRisers()
    for step, size in zip(at, sizes or [40.0 * MIB] * len(at), strict=True):
        risers.add(step, size)
    return risers


def run(troughs: Floats, *, total_steps: int | None = None) -> Replay:
    return replay(steps(troughs), Forecaster(capacity_bytes=CAPACITY, total_steps=total_steps), capacity=CAPACITY)


def lumps(at: list[int], count: int, size: float = 40.0 * MIB) -> Floats:
    troughs: Floats = BASE + size * np.searchsorted(np.array(at), np.arange(count), side="right")
    return troughs


def test_their_mean_distance_counts_the_silence_since_the_newest() -> None:
    """Steps 9 to 36 with three risers after the first: one in 9 steps. Exponential distances: 1 / √4 of the slope."""
    stairs = watch(AT_RANDOM).stairs(36)
    assert stairs is not None
    assert (stairs.jump_bytes, stairs.distance_steps, stairs.risers) == (40 * MIB, 9.0, 4)
    assert stairs.at_random
    assert stairs.spread == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("at", "step"),
    [
        ([9, 24], 30),  # too few
        (AT_RANDOM, 31 + 23),  # silent for more than three times their mean distance of 22 / 3
        ([9, 11, 13, 15, 17, 19], 20),  # so close that a line tells more
        ([9, 10, 11, 12, 13, 15, 30], 34),  # nearly all of them at the beginning: they become rare
    ],
)
def test_what_is_no_steady_growth(at: list[int], step: int) -> None:
    assert watch(at).stairs(step) is None


def test_amounts_of_their_own_are_not_the_same_thing_again() -> None:
    assert watch([9, 12, 24], [40.0 * MIB, 46.0 * MIB, 40.0 * MIB]).stairs(30) is None
    assert watch(AT_RANDOM, [40.0 * MIB, 70.0 * MIB, 40.0 * MIB, 40.0 * MIB]).stairs(36) is None


def test_a_silence_ends_a_known_growth_later() -> None:
    risers = watch(AT_RANDOM)
    assert risers.stairs(31 + 36, known=True) is not None
    assert risers.stairs(31 + 37, known=True) is None


def test_a_fall_begins_anew_and_small_changes_do_not() -> None:
    risers = watch(AT_RANDOM)
    risers.add(33, -0.5 * MIB)
    assert risers.stairs(36) is not None
    risers.add(34, -2.0 * MIB)
    assert risers.stairs(36) is None


@pytest.mark.parametrize("at", [AT_RANDOM, [10, 24, 26, 34, 39], [8, 9, 17, 30, 36, 38]])
def test_flagged_within_forty_steps(at: list[int]) -> None:
    told = run(lumps(at, 45))
    assert told.first is not None
    assert told.first.cause is Cause.LEAK
    assert told.first.step <= 41


def test_a_few_lumps_that_cannot_fill_the_card_before_the_end_are_no_alert() -> None:
    """About 4.4 MiB a step, 4.4 GiB of room: 1,000 steps; the run has 300."""
    assert run(lumps(AT_RANDOM, 45), total_steps=300).raised == []


def test_lumps_that_stay_below_seven_thousandths_of_the_card_are_no_alert() -> None:
    assert run(lumps(AT_RANDOM, 36, size=8.0 * MIB)).raised == []


@pytest.mark.parametrize(("sizes", "in_time"), [([40.0] * 5, True), ([40.0, 48.0, 40.0, 44.0, 36.0], False)])
def test_four_lumps_exactly_alike_need_no_more_than_twenty_steps(sizes: list[float], in_time: bool) -> None:
    """From step 20 on, one in five to eight: 20 of their mean distances' steps are over before 27 are."""
    troughs: Floats = np.full(42, float(BASE))
    for at, size in zip([20, 23, 31, 36, 39], sizes, strict=True):
        troughs[at:] += size * MIB
    assert [alert.cause for alert in run(troughs).raised] == ([Cause.LEAK] if in_time else [])


def test_a_few_that_come_with_an_event_do_not_hide_many_that_do_not() -> None:
    """16 rises of one amount, of which stairs explain 3, are told as the 16: their slope, not that of the 3."""
    trend = TroughTrend(of_events=False)
    rng = np.random.default_rng(1)
    rises = rng.random(120) < 0.2
    trough = float(BASE)
    for step in range(1, 121):
        trough += 40.0 * MIB * float(rises[step - 1])
        trend.add(step, trough, 8, trough)
    few = Stairs(40.0 * MIB, 0.0, 32.0, 0.02, 3, 8.0, event="validation")
    found = trend._risers_at_random(Interest(float(GIB), 0.0, known=True), few)
    assert found is not None
    assert found.stairs is not None
    assert found.stairs.risers >= 12
    many = Stairs(40.0 * MIB, 0.0, 8.0, 0.02, 12, 0.0)
    assert trend._risers_at_random(Interest(float(GIB), 0.0, known=True), many) is None
