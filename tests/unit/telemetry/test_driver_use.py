"""What reading costs the driver: few calls, no program started, and no faster than is good for the card."""

from __future__ import annotations

import pytest

from desktop_app.core.errors import FloodmarkError
from desktop_app.telemetry.sampling_rate import interval_of
from tests.fake_nvml.driver import PlaySteps


def test_nv_58_and_59_a_tick_is_a_handful_of_calls_and_no_program(play: PlaySteps) -> None:
    """The tool that others start each second asks for everything; a fast tick asks for what it shows."""
    steps = [{"t_s": 0.0, "do": ["open", "fast", "slow", "fast", "calls"]}, {"t_s": 0.2, "do": ["fast", "calls"]}]
    played = play([*steps, {"t_s": 1.0, "do": ["slow", "processes", "children"]}])["steps"]
    assert 0 < played[1]["calls"] - played[0]["calls"] <= 10
    assert played[2]["children"] == 0


@pytest.mark.parametrize(("hz", "interval_s"), [(1.0, 1.0), (5.0, 0.2), (10.0, 0.1)])
def test_rates_within_the_limits(hz: float, interval_s: float) -> None:
    assert interval_of(hz) == pytest.approx(interval_s)


@pytest.mark.parametrize("hz", [10.1, 50.0, 0.0, -1.0, 0.01, float("nan"), float("inf")])
def test_nv_57_a_rate_that_would_disturb_the_card_is_refused_with_its_reason(hz: float) -> None:
    with pytest.raises(FloodmarkError, match=r"faster reading disturbs the card.*choose 0\.1 to 10 Hz"):
        interval_of(hz)
