"""Probabilities of any horizon keep to those that are given and never fall."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.forecast.outlook import Outlook, StepsToGo, probability_within


def outlook(p_within: dict[int, float], p_run: float, to_go: StepsToGo | None) -> Outlook:
    return Outlook(Cause.LEAK, AlertSeverity.LIKELY, p_within, p_run, to_go)


def test_between_the_horizons_time_to_go_decides() -> None:
    given_ = outlook({1: 0.0, 10: 0.0, 100: 0.9}, 0.9, StepsToGo(50.0, 0.2))
    assert probability_within(given_, 20) < 0.01
    assert abs(probability_within(given_, 50) - 0.45) < 1e-9  # half of what the run will bring
    assert probability_within(given_, 5) == 0.0
    assert probability_within(given_, 10_000) == 0.9


def test_without_a_time_it_is_what_the_next_horizon_says() -> None:
    assert probability_within(outlook({1: 0.1, 10: 0.3, 100: 0.5}, 0.8, None), 40) == 0.5
    assert probability_within(outlook({1: 0.1, 10: 0.3, 100: 0.5}, 0.8, None), 400) == 0.8


@given(
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
    st.floats(0.1, 1e4),
    st.floats(0, 1.5),
    st.lists(st.integers(1, 2000), min_size=2, max_size=6),
)
def test_it_never_falls_with_the_horizon(chances: list[float], median: float, spread: float, steps: list[int]) -> None:
    one, ten, hundred, run = sorted(chances)
    found = outlook({1: one, 10: ten, 100: hundred}, run, StepsToGo(median, spread))
    told = [probability_within(found, k) for k in sorted(steps)]
    assert told == sorted(told)
    assert all(0.0 <= p <= run for p in told)
