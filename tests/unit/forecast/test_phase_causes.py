"""Validation, saving and resuming: judged before the call where that can be known, silent where there is room."""

from __future__ import annotations

import numpy as np
import pytest

from desktop_app.core.forecasts import Alert, AlertSeverity, Cause
from desktop_app.core.steps import BatchShape, Category, Phase, Surroundings
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import Forecaster

from .shaped_runs import phase, train
from .test_first_optimizer_step import estimate

CAPACITY = 8 * GIB
LIVE = 2 * GIB
DEMAND = 2 * GIB


def run(**known: object) -> Forecaster:
    forecaster = Forecaster(capacity_bytes=CAPACITY, **known)  # type: ignore[arg-type]
    assert train(forecaster, 1, 20, live=LIVE, demand=DEMAND) == []
    return forecaster


# Validation before it begins


@pytest.mark.parametrize(("kind", "cause"), [(Phase.VALIDATION, Cause.VALIDATION), (Phase.SAVE, Cause.CHECKPOINT_SAVE)])
def test_a_call_that_takes_more_each_time_is_flagged_before_the_one_that_will_not_fit(
    kind: Phase, cause: Cause
) -> None:
    """3, 3.7, 4.4, 5.1, 5.8 GiB on 2 GiB of live memory: the sixth, of 6.5, needs half a GiB too much."""
    forecaster = run()
    raised: list[tuple[int, Alert]] = []
    for call in range(5):
        step, peak = 20 * (call + 1), LIVE + round((3 + 0.7 * call) * GIB)
        before = phase(forecaster, kind, step, LIVE)
        after = phase(forecaster, kind, step, LIVE, peak=peak, done=10, ended=True)
        raised += [(call, alert) for update in (before, after) for alert in update.changes.raised]
        raised += [(call, alert) for alert in train(forecaster, step + 1, step + 20, live=LIVE, demand=DEMAND)]
    update = phase(forecaster, kind, 120, LIVE)
    raised += [(5, alert) for alert in update.changes.raised]
    assert {alert.cause for _, alert in raised} == {cause}
    assert min(call for call, _ in raised) >= 3


def test_calls_that_take_now_more_and_now_less_are_silent() -> None:
    forecaster = run()
    for call, size in enumerate([3.0, 4.0, 3.5, 4.5, 4.0, 5.0, 4.6, 5.2]):
        step = 20 * (call + 1)
        assert phase(forecaster, Phase.VALIDATION, step, LIVE).changes.raised == ()
        ended = phase(forecaster, Phase.VALIDATION, step, LIVE, peak=LIVE + round(size * GIB), done=10, ended=True)
        assert ended.changes.raised == ()
        assert train(forecaster, step + 1, step + 20, live=LIVE, demand=DEMAND) == []


def test_first_validation_with_a_far_larger_batch_is_flagged_before_it() -> None:
    """16 times the batch: at the least 0.05 and at the most half of a training step's demand for each sample."""
    forecaster = run()
    update = phase(forecaster, Phase.VALIDATION, 20, LIVE, batch=BatchShape(1024), count=10)
    (alert,) = update.changes.raised
    assert alert.cause is Cause.VALIDATION
    assert alert.action == "smaller_validation_batch"
    assert alert.eta_steps == 0.0
    assert alert.evidence["batch_ratio"] == 16.0


def test_validation_like_training_is_silent() -> None:
    forecaster = run()
    assert phase(forecaster, Phase.VALIDATION, 20, LIVE, batch=BatchShape(64), count=10).changes.raised == ()
    assert phase(forecaster, Phase.VALIDATION, 20, LIVE, peak=LIVE + GIB, done=10, ended=True).changes.raised == ()


def test_known_demand_of_a_validation_is_believed() -> None:
    forecaster = run()
    update = phase(forecaster, Phase.VALIDATION, 20, LIVE, known_demand_bytes=6 * GIB + 64 * MIB)
    assert [alert.severity for alert in update.changes.raised] == [AlertSeverity.IMMINENT]
    assert phase(run(), Phase.VALIDATION, 20, LIVE, known_demand_bytes=5 * GIB).changes.raised == ()


def test_estimate_put_right_speaks_for_the_first_validation() -> None:
    """The estimate says 7 GiB of live memory while validating; the first steps have confirmed what stays."""
    prior = estimate(
        capacity_bytes=CAPACITY,
        others_bytes=0,
        phases={Phase.FORWARD: 4 * GIB, Phase.VALIDATION: 9 * GIB},
        categories={Category.PARAMETERS: GIB, Category.OPTIMIZER_STATE: GIB},
        live_peak_bytes=_quantiles(4 * GIB),
        reserved_peak_bytes=_quantiles(4 * GIB),
        device_peak_bytes=_quantiles(4 * GIB),
        fits_probability=0.99,
        peak_phase=Phase.FORWARD,
    )
    forecaster = Forecaster(capacity_bytes=CAPACITY, prior=prior)
    train(forecaster, 1, 20, live=LIVE, demand=DEMAND)
    (alert,) = phase(forecaster, Phase.VALIDATION, 20, LIVE).changes.raised
    assert alert.cause is Cause.VALIDATION
    assert alert.evidence["estimated_peak_bytes"] == pytest.approx(9 * GIB, rel=0.02)


def _quantiles(size: int) -> object:
    from desktop_app.core.forecasts import Quantiles

    return Quantiles(size, size, size)


# Validation in its midst


def validate(
    forecaster: Forecaster, per_batch: float, *, count: int | None, every: int, until: int, noise: float = 0.0
) -> list[tuple[int, Alert]]:
    """Alerts with the batch they came at; ends where memory does."""
    rng = np.random.default_rng(0)
    raised = [(0, alert) for alert in phase(forecaster, Phase.VALIDATION, 20, LIVE, count=count).changes.raised]
    for done in range(every, until + 1, every):
        live = LIVE + per_batch * done + rng.normal(0.0, noise) * MIB
        if live + 200 * MIB > CAPACITY:
            break
        update = phase(
            forecaster,
            Phase.VALIDATION,
            20,
            live,
            peak=live + 200 * MIB,
            t_s=2.0 + 0.01 * done,
            done=done,
            count=count,
        )
        raised.extend((done, alert) for alert in update.changes.raised)
    return raised


def test_outputs_kept_by_every_batch_are_projected_to_the_end() -> None:
    """OOM-25: +2.9 MiB per batch of 14673; 5.8 GiB are free, so batch 2049 is the last."""
    raised = validate(run(), 2.9 * MIB, count=14673, every=50, until=14673)
    done, first = raised[0]
    assert first.cause is Cause.VALIDATION
    assert first.action == "no_grad_validation"
    assert done <= 0.05 * 14673
    left = (CAPACITY - LIVE - 200 * MIB) / (2.9 * MIB) - done
    assert first.eta_steps == pytest.approx(left, rel=0.02)
    assert first.eta_s == pytest.approx(left * 0.01, rel=0.05)  # the pace of validation, not of training
    assert first.eta_steps_low is not None
    assert first.eta_steps_high is not None
    assert first.eta_steps_low < left < first.eta_steps_high


def test_outputs_that_fit_to_the_end_are_silent() -> None:
    """1,500 batches of 2.9 MiB are 4.2 of the 5.8 GiB."""
    assert validate(run(), 2.9 * MIB, count=1500, every=10, until=1500, noise=20.0) == []


def test_level_validation_with_noise_is_silent() -> None:
    assert validate(run(), 0.0, count=3000, every=10, until=3000, noise=50.0) == []


def test_unknown_count_is_that_of_the_validation_before() -> None:
    forecaster = run()
    assert validate(forecaster, 0.0, count=None, every=10, until=400) == []
    phase(forecaster, Phase.VALIDATION, 20, LIVE, peak=LIVE + 200 * MIB, ended=True)
    assert train(forecaster, 21, 40, live=LIVE, demand=DEMAND) == []
    raised = validate(forecaster, 50 * MIB, count=None, every=4, until=400)
    assert raised[0][0] <= 60  # of 118 that fit
    assert raised[0][1].cause is Cause.VALIDATION


def test_next_validation_is_foreseen_from_the_ones_before() -> None:
    """It takes 5 GiB; what stays live has grown between, so that the third no longer fits."""
    forecaster = Forecaster(capacity_bytes=CAPACITY, steps_per_epoch=40)
    raised: list[Alert] = []
    live = LIVE
    for epoch in range(4):
        for number in range(epoch * 40 + 1, epoch * 40 + 41):
            live += 9 * MIB
            raised += train(forecaster, number, number, live=live, demand=GIB)
        if live + 5 * GIB > CAPACITY:
            break
        raised += phase(forecaster, Phase.VALIDATION, epoch * 40 + 40, live, count=5).changes.raised
        raised += phase(
            forecaster, Phase.VALIDATION, epoch * 40 + 40, live, peak=live + 5 * GIB, done=5, count=5, ended=True
        ).changes.raised
    of_validation = [alert for alert in raised if alert.cause is Cause.VALIDATION]
    assert of_validation
    assert of_validation[0].step < number - 10
    assert of_validation[0].evidence["demand_bytes"] == 5 * GIB


# Saving


def test_save_whose_copy_does_not_fit_is_flagged_before_it() -> None:
    (alert,) = phase(run(), Phase.SAVE, 20, LIVE, known_demand_bytes=6 * GIB + 32 * MIB).changes.raised
    assert (alert.cause, alert.severity, alert.action) == (
        Cause.CHECKPOINT_SAVE,
        AlertSeverity.IMMINENT,
        "save_to_host",
    )
    assert alert.evidence["demand_bytes"] == 6 * GIB + 32 * MIB


@pytest.mark.parametrize("known", [0, 5 * GIB, None])
def test_save_that_fits_is_silent(known: int | None) -> None:
    forecaster = run()
    assert phase(forecaster, Phase.SAVE, 20, LIVE, known_demand_bytes=known).changes.raised == ()
    assert phase(forecaster, Phase.SAVE, 20, LIVE, peak=LIVE + (known or 0), ended=True).changes.raised == ()
    assert train(forecaster, 21, 60, live=LIVE, demand=DEMAND) == []


def test_save_is_judged_by_the_peak_of_the_one_before() -> None:
    forecaster = run()
    phase(forecaster, Phase.SAVE, 20, LIVE)
    phase(forecaster, Phase.SAVE, 20, LIVE, peak=LIVE + 5 * GIB, ended=True)
    (alert,) = phase(forecaster, Phase.SAVE, 40, LIVE + 2 * GIB).changes.raised
    assert alert.cause is Cause.CHECKPOINT_SAVE
    assert alert.evidence["earlier_demand_bytes"] == 5 * GIB


def test_alert_about_a_save_is_over_some_steps_after_it() -> None:
    forecaster = run()
    phase(forecaster, Phase.SAVE, 20, LIVE, known_demand_bytes=6 * GIB + 32 * MIB)
    phase(forecaster, Phase.SAVE, 20, LIVE, ended=True)
    assert train(forecaster, 21, 80, live=LIVE, demand=DEMAND) == []
    assert forecaster.open_alerts() == ()


def test_checkpoint_larger_than_the_ram_that_is_left() -> None:
    """OOM-39: 60 GB of checkpoint, 40 GB of RAM."""
    forecaster = run()
    forecaster.observe_surroundings(Surroundings(t_s=2.0, host_available_bytes=40 * 10**9))
    (alert,) = phase(forecaster, Phase.SAVE, 20, LIVE, known_host_bytes=60 * 10**9).changes.raised
    assert (alert.cause, alert.action) == (Cause.CHECKPOINT_SAVE, "free_host_memory")
    assert alert.evidence == {"checkpoint_bytes": 60e9, "host_available_bytes": 40e9}
    forecaster = run()
    forecaster.observe_surroundings(Surroundings(t_s=2.0, host_available_bytes=80 * 10**9))
    assert phase(forecaster, Phase.SAVE, 20, LIVE, known_host_bytes=60 * 10**9).changes.raised == ()


# Resuming


def test_checkpoint_that_stays_on_the_card_is_flagged_before_the_first_step() -> None:
    """OOM-31: the state is 2 GiB, 5 GiB are live after loading, and a step takes 3.5 of the 3 GiB left."""
    prior = estimate(
        capacity_bytes=CAPACITY,
        others_bytes=0,
        categories={Category.PARAMETERS: GIB, Category.OPTIMIZER_STATE: GIB},
        phases={Phase.BACKWARD: 5 * GIB + 512 * MIB},
        live_peak_bytes=_quantiles(5 * GIB + 512 * MIB),
        reserved_peak_bytes=_quantiles(5 * GIB + 512 * MIB),
        device_peak_bytes=_quantiles(5 * GIB + 512 * MIB),
        fits_probability=1.0,
        peak_phase=Phase.BACKWARD,
    )
    forecaster = Forecaster(capacity_bytes=CAPACITY, prior=prior)
    (alert,) = phase(forecaster, Phase.BUILD, 100, 5 * GIB, ended=True).changes.raised
    assert (alert.cause, alert.action) == (Cause.RESUME, "load_to_host")
    assert alert.severity in (AlertSeverity.LIKELY, AlertSeverity.IMMINENT)
    assert alert.evidence["excess_bytes"] == 3 * GIB
    fresh = Forecaster(capacity_bytes=CAPACITY, prior=prior)
    assert phase(fresh, Phase.BUILD, 100, LIVE, ended=True).changes.raised == ()


def test_resume_within_one_run_is_compared_with_the_run_before() -> None:
    forecaster = run()
    (alert,) = phase(forecaster, Phase.BUILD, 10, LIVE + 5 * GIB, ended=True).changes.raised
    assert alert.cause is Cause.RESUME
    assert alert.evidence["excess_bytes"] == 5 * GIB
    silent = run()
    assert phase(silent, Phase.BUILD, 10, LIVE, ended=True).changes.raised == ()
    assert train(silent, 11, 60, live=LIVE, demand=DEMAND) == []


def test_excess_with_room_for_a_step_is_no_alarm() -> None:
    forecaster = run()
    assert phase(forecaster, Phase.BUILD, 10, LIVE + 3 * GIB, ended=True).changes.raised == ()
    assert [a.cause for a in train(forecaster, 11, 80, live=LIVE + 3 * GIB, demand=DEMAND)] == []


def test_state_told_before_loading_is_what_is_expected_after_it() -> None:
    forecaster = Forecaster(capacity_bytes=CAPACITY)
    assert phase(forecaster, Phase.BUILD, 100, 0, known_demand_bytes=2 * GIB).changes.raised == ()
    update = phase(forecaster, Phase.BUILD, 100, 4 * GIB, ended=True)
    assert update.forecast.cause is Cause.RESUME
    assert update.forecast.severity is AlertSeverity.WATCH  # a copy is held; what a step takes is not known
    assert update.forecast.evidence["excess_bytes"] == 2 * GIB


def test_state_that_does_not_even_fit_is_flagged_before_it_is_loaded() -> None:
    forecaster = Forecaster(capacity_bytes=CAPACITY)
    (alert,) = phase(forecaster, Phase.BUILD, 100, GIB, known_demand_bytes=8 * GIB).changes.raised
    assert alert.cause is Cause.RESUME


def test_each_resume_that_holds_more_than_the_last_is_a_habit() -> None:
    """OOM-33: 1 GiB more each time; the fourth does not fit beside a step."""
    forecaster = Forecaster(capacity_bytes=CAPACITY)
    raised: list[Alert] = []
    for life in range(4):
        live = LIVE + life * GIB
        first = 1 + 30 * life
        if life:
            raised += phase(forecaster, Phase.BUILD, first - 1, live, ended=True).changes.raised
        raised += train(forecaster, first, first + 29, live=live, demand=DEMAND)
    first_alert = raised[0]
    assert first_alert.cause is Cause.RESUME
    assert first_alert.evidence["resumes_to_go"] == 2.0  # 8 − 5 − 2 GiB: one more has room
    assert first_alert.step <= 95


# What a call leaves


@pytest.mark.parametrize(("kind", "cause"), [(Phase.SAVE, Cause.CHECKPOINT_SAVE), (Phase.VALIDATION, Cause.VALIDATION)])
def test_what_a_call_keeps_is_set_against_the_next_step(kind: Phase, cause: Cause) -> None:
    """OOM-37: the step after it needs 2 GiB; 4.5 of 8 GiB stay after it, on top of 2."""
    forecaster = run()
    phase(forecaster, kind, 20, LIVE)
    (alert,) = phase(forecaster, kind, 20, LIVE + 9 * GIB // 2, done=1, ended=True).changes.raised
    assert (alert.cause, alert.eta_steps) == (cause, 1.0)
    assert alert.evidence["kept_bytes"] == 9 * GIB // 2
    silent = run()
    phase(silent, kind, 20, LIVE)
    assert phase(silent, kind, 20, LIVE + 3 * GIB, done=1, ended=True).changes.raised == ()
