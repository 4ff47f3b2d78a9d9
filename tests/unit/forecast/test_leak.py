"""Leaks are foreseen in every shape they come in; what only looks like one is left alone."""

from __future__ import annotations

from dataclasses import replace as changed

import numpy as np
import pytest

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import StepSample
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import Forecaster

from .traces import BASE, DEMAND, Floats, Replay, line, replay, saw, steps

CAPACITY = 6 * GIB
RNG = np.random.default_rng


def run(
    troughs: Floats, *, capacity: int = CAPACITY, total_steps: int | None = None, every: int = 1, **shape: object
) -> Replay:
    per_epoch = shape.get("steps_per_epoch")
    assert per_epoch is None or isinstance(per_epoch, int)
    forecaster = Forecaster(capacity_bytes=capacity, total_steps=total_steps, steps_per_epoch=per_epoch)
    return replay(steps(troughs, **shape), forecaster, capacity=capacity, every=every)  # type: ignore[arg-type]


def test_ten_mib_a_step_under_three_gib_of_headroom_last_307_steps() -> None:
    # 3 GiB / 10 MiB = 3072 / 10 = 307.2 steps, so step 308 from here on does not fit.
    at = 60
    capacity = BASE + at * 10 * MIB + DEMAND + 3 * GIB
    told = run(line(400, 10 * MIB), capacity=capacity)
    forecast = told.at(at)
    assert forecast.eta_steps == pytest.approx(307.2, abs=0.01)
    assert told.oom_step == at + 308
    assert forecast.eta_steps_low is not None
    assert forecast.eta_steps_high is not None
    assert forecast.eta_steps_low < 308 < forecast.eta_steps_high
    assert forecast.evidence["slope_bytes_per_step"] == pytest.approx(10 * MIB)
    assert forecast.evidence["headroom_bytes"] == pytest.approx(3 * GIB)


def test_time_is_steps_times_pace() -> None:
    forecast = run(line(60, 10 * MIB), step_s=0.5).at(60)
    assert forecast.eta_steps is not None
    assert forecast.eta_s == pytest.approx(0.5 * forecast.eta_steps)
    assert forecast.eta_low_s == pytest.approx(0.5 * forecast.eta_steps_low)  # type: ignore[operator]


@pytest.mark.parametrize("per_epoch", [None, 25])
def test_flagged_within_forty_steps_when_one_percent_grows_faster(per_epoch: int | None) -> None:
    told = run(line(460, 10 * MIB), steps_per_epoch=per_epoch)
    assert told.first is not None
    assert told.first.step <= 40
    assert told.first.cause is Cause.LEAK
    assert told.first.severity is AlertSeverity.LIKELY
    assert [alert.severity for alert in told.raised] == [AlertSeverity.LIKELY, AlertSeverity.IMMINENT]
    assert {alert.alert_id for alert in told.raised} == {1}


def test_flagged_by_one_percent_of_the_card_when_that_takes_longer() -> None:
    one_percent_after = int(0.01 * CAPACITY / (0.5 * MIB))  # 122 steps
    told = run(line(200, 0.5 * MIB))
    assert told.first is not None
    assert 40 < told.first.step <= one_percent_after


def test_leak_that_begins_in_the_middle_is_flagged_forty_steps_after() -> None:
    troughs = BASE + 10 * MIB * np.maximum(0, np.arange(700) - 300)
    told = run(troughs)
    assert told.first is not None
    assert 300 < told.first.step <= 341
    assert told.first.eta_steps == pytest.approx(761 - told.first.step, rel=0.03)  # 300 + 4608 MiB / 10 MiB


def test_fast_leak_is_flagged_before_the_usual_evidence_is_in() -> None:
    told = run(line(100, 100 * MIB))  # full after 46 steps
    assert told.first is not None
    assert told.lead_steps() >= 10


@pytest.mark.parametrize("slower_after", [10, 14, 18])
def test_a_line_that_becomes_perfectly_straight_has_lasted_as_long_as_before(slower_after: int) -> None:
    """The first steps were 3 % steeper: the newest few are by far the clearest line, and too few."""
    told = run(BASE + 10 * MIB * np.cumsum(np.where(np.arange(60) < slower_after, 1.03, 1.0)))
    assert told.first is not None
    assert told.first.step <= 34
    assert told.first.evidence["slope_bytes_per_step"] == pytest.approx(10 * MIB, rel=0.04)


def test_leak_beyond_the_end_of_the_run_is_no_alert() -> None:
    told = run(line(400, 10 * MIB), total_steps=400)  # would be full at step 461
    assert told.raised == []
    assert told.forecasts[-1].eta_steps is None


def test_last_partial_batches_do_not_hide_a_leak() -> None:
    """The last batch of an epoch is smaller, and so is what is live after it."""
    batches = np.where(np.arange(400) % 26 == 25, 17, 64)
    told = run(line(400, 10 * MIB) + batches * 3 * MIB, batches=batches)
    assert told.first is not None
    assert told.first.step <= 42
    assert told.first.eta_steps == pytest.approx(461 - 19 - told.first.step, rel=0.03)


def test_leak_under_batches_of_every_size() -> None:
    batches = RNG(1).integers(1, 64, 900)
    told = run(line(900, 8 * MIB) + batches * 2 * MIB, batches=batches, demands=batches * 8.0 * MIB)
    assert told.first is not None
    assert told.oom_step is not None
    half_way = (told.first.step + told.oom_step) // 2
    assert told.at(half_way).eta_steps == pytest.approx(told.oom_step - half_way, rel=0.2)


def test_growth_of_the_batch_is_no_leak() -> None:
    """Data sorted by length: what is live follows the batch, not time."""
    batches = np.sort(RNG(2).integers(16, 400, 600))
    assert run(BASE + batches * 3.0 * MIB, batches=batches).raised == []


def test_lumps_at_every_tenth_step() -> None:
    told = run(BASE + 100 * MIB * (np.arange(480) // 10))
    assert told.first is not None
    assert told.first.step <= 45
    assert told.first.eta_steps == pytest.approx(471 - told.first.step, rel=0.05)  # 4608 MiB: the 47th lump is too much


def test_leak_that_keeps_segments_from_being_used_again_is_seen_to_be_faster() -> None:
    """Live grows by 10 MiB a step, but what is reserved at the peak by 14: 4 MiB of holes that fit nothing."""
    samples = list(steps(line(120, 10 * MIB)))
    holes = Forecaster(capacity_bytes=CAPACITY)
    for index, sample in enumerate(samples):
        reserved = BASE + DEMAND + 14 * MIB * (index + 1)
        forecast = holes.observe_step(_with_reserved(sample, reserved))
    # (6 GiB − 1.5 GiB − 120 · 14 MiB) / 14 MiB = (4608 − 1680) / 14
    assert forecast.eta_steps == pytest.approx(209.1, rel=0.01)


def _with_reserved(sample: StepSample, reserved: int) -> StepSample:
    assert sample.memory is not None
    return changed(sample, memory=changed(sample.memory, reserved_bytes=reserved, reserved_peak_bytes=reserved))


# Rows of reports that users wrote: OOM-04, 05, 36, 37, 08 and 58.


def test_epoch_ramp_that_fits_stays_quiet() -> None:
    """+1.2 MiB a step for 3,000 steps, then a reset, four times: judged against the end of the epoch."""
    ramp = BASE + 1.2 * MIB * np.arange(3000)
    told = run(np.tile(ramp, 2)[:3400], steps_per_epoch=3000, every=5)
    assert told.raised == []


def test_epoch_ramps_seen_to_fall_back_stay_quiet_without_knowing_the_epoch() -> None:
    told = run(np.tile(BASE + 6 * MIB * np.arange(600), 4)[:1500])
    assert all(alert.step < 600 for alert in told.raised)  # at first it looks like a leak
    assert told.cleared != []
    assert told.forecasts[-1].severity is None


def test_epoch_ramp_that_will_not_fit_is_flagged_at_once() -> None:
    """The variant whose ramp crosses the limit at step 2,700 of 3,000."""
    capacity = int(BASE + DEMAND + 1.2 * MIB * 2700)
    told = run(BASE + 1.2 * MIB * np.arange(400), capacity=capacity, steps_per_epoch=3000)
    assert told.first is not None
    assert told.first.step <= 60
    assert told.first.eta_steps == pytest.approx(2701 - told.first.step, rel=0.02)


@pytest.mark.parametrize("total_steps", [50_000, None])
def test_one_block_per_step_stays_quiet(total_steps: int | None) -> None:
    """``total += loss``: 512 B a step, 25 MB after 50,000 steps; days from harm."""
    assert run(line(3000, 512), total_steps=total_steps, every=5).raised == []


def test_staircase_of_copies_at_every_checkpoint() -> None:
    """+430 MiB at steps 1000, 2000, ...: out of memory at the save that has no room any more."""
    troughs = BASE + 430 * MIB * (np.arange(1, 5001) // 1000)
    capacity = int(BASE + DEMAND + 8.5 * 430 * MIB)  # the ninth copy, at step 9000
    told = run(troughs, capacity=capacity, every=20)
    assert told.first is not None
    assert told.first.step <= 3020
    assert told.first.eta_steps == pytest.approx(9000 - told.first.step, abs=2)
    assert told.at(4500).eta_steps == pytest.approx(4500, abs=2)
    assert told.first.evidence["jump_bytes"] == pytest.approx(430 * MIB)


def test_two_copies_are_enough_when_the_third_will_not_fit() -> None:
    troughs = BASE + 430 * MIB * (np.arange(1, 1201) // 400)
    told = run(troughs, capacity=int(BASE + DEMAND + 2.5 * 430 * MIB))
    assert told.first is not None
    assert told.oom_step == 1200
    assert told.first.step <= 802


def test_one_higher_level_after_an_event_is_no_leak() -> None:
    """29 GiB flat, 31 GiB flat after the first save."""
    troughs = np.where(np.arange(1200) < 600, 28.5 * GIB, 30.5 * GIB)
    assert run(troughs, capacity=32 * GIB).raised == []


def test_growth_within_an_outer_step_is_no_leak() -> None:
    """Second-order gradients: linear over eight inner steps, then gone."""
    assert run(saw(600, period=8, rise=1500 * MIB)).raised == []


def test_search_for_algorithms_at_the_start_is_neither_level_nor_leak() -> None:
    demands = np.where(np.arange(400) < 40, 12000.0 * MIB, 4000.0 * MIB)
    told = run(np.full(400, 700.0 * MIB), demands=demands, capacity=16 * GIB)
    assert told.raised == []
    assert all(forecast.severity is None for forecast in told.forecasts)


@pytest.mark.parametrize("tau", [25, 100, 400])
def test_growth_that_levels_off_is_no_leak(tau: int) -> None:
    assert run(BASE + 1500 * MIB * (1 - np.exp(-np.arange(700) / tau))).raised == []


def test_saw_tooth_whose_bottoms_rise_is_a_leak() -> None:
    told = run(saw(1200, period=50, rise=200 * MIB) + 2.0 * MIB * np.arange(1200), every=3)
    late = told.forecasts[-1]
    assert late.severity is not None
    # (6 GiB − 1.5 GiB − 200 MiB) / 2 MiB = 2204 steps from the start
    assert late.eta_steps == pytest.approx(2204 - late.step, rel=0.1)


def test_one_ramp_that_fell_back_does_not_excuse_a_slow_leak() -> None:
    """Something large is loaded and dropped once; what grows afterwards takes far longer to get as high."""
    once = np.where(np.arange(600) < 20, np.arange(600) * 150.0 * MIB, 0.0)
    told = run(BASE + once + 10 * MIB * np.maximum(0, np.arange(600) - 20))
    assert told.first is not None
    assert told.first.step <= 75
    assert told.oom_step is not None
    assert told.at(250).eta_steps == pytest.approx(told.oom_step - 250, rel=0.2)


def test_a_stopped_leak_is_cleared() -> None:
    troughs = BASE + 10 * MIB * np.minimum(np.arange(400), 120)
    told = run(troughs)
    assert [alert.severity for alert in told.raised] == [AlertSeverity.LIKELY]
    assert len(told.cleared) == 1
    assert told.cleared[0].cleared_t_s is not None
    assert told.cleared[0].cleared_t_s < 20.0  # seen to stop at step 120, quiet for 40 steps, 0.1 s each
    assert told.forecasts[-1].severity is None


def test_first_refusal_of_the_driver_raises_a_leak_that_is_close() -> None:
    forecaster = Forecaster(capacity_bytes=CAPACITY)
    severities = []
    for sample in steps(line(25, 60 * MIB)):
        assert sample.memory is not None
        retries = int(sample.step >= 20)
        update = forecaster.update_step(changed(sample, memory=changed(sample.memory, alloc_retries=retries)))
        severities.append((sample.step, [alert.severity for alert in update.changes.raised]))
    assert [step for step, raised in severities if raised] == [21]
