"""The optimizer's first step is judged before it is called, with the figures of that moment."""

from __future__ import annotations

import pytest

from desktop_app.core.forecasts import AlertSeverity, Cause, Estimate, Quantiles, Verdict
from desktop_app.core.steps import Category, MemoryStats, Phase, PhaseSample
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import Forecaster

from .traces import memory, step

CAPACITY = 6 * GIB


def before_optimizer(
    demand_bytes: int | None,
    *,
    live: int = 2 * GIB,
    peak: int = 3 * GIB,
    reserved: int = 3 * GIB,
    idle_split: int = 0,
    number: int = 1,
    phase: Phase = Phase.OPTIMIZER,
) -> PhaseSample:
    """Just before the call: of what is reserved and not live, all but ``idle_split`` is wholly free."""
    return PhaseSample(
        t_s=1.0,
        step=number,
        phase=phase,
        known_demand_bytes=demand_bytes,
        memory=MemoryStats(
            live_bytes=live,
            live_peak_bytes=peak,
            reserved_bytes=reserved,
            reserved_peak_bytes=reserved,
            idle_split_bytes=idle_split,
            returnable_bytes=reserved - live - idle_split,
            alloc_retries=0,
            outside_bytes=256 * MIB,
            peak_categories={},
        ),
    )


def forecaster(prior: Estimate | None = None) -> Forecaster:
    return Forecaster(capacity_bytes=CAPACITY, others_bytes=256 * MIB, prior=prior)


def estimate(**changes: object) -> Estimate:
    known: dict[str, object] = {
        "live_peak_bytes": Quantiles(4 * GIB, 5 * GIB, 5 * GIB),
        "reserved_peak_bytes": Quantiles(5 * GIB, 5 * GIB, 6 * GIB),
        "device_peak_bytes": Quantiles(7 * GIB, 8 * GIB, 8 * GIB),
        "capacity_bytes": CAPACITY,
        "others_bytes": 256 * MIB,
        "fits_probability": 0.1,
        "verdict": Verdict.DOES_NOT_FIT,
        "batch_size": 32,
        "largest_batch": 8,
        "peak_phase": Phase.OPTIMIZER,
        "phases": {Phase.FORWARD: 3 * GIB, Phase.OPTIMIZER: 7 * GIB},
        "categories": {Category.OPTIMIZER_STATE: 2 * GIB},
        "context_bytes": 256 * MIB,
        "idle_bytes": 0,
        "optimizer_demand_bytes": 4 * GIB,
        "rung": "meta",
        "seconds": 0.5,
    }
    return Estimate(**{**known, **changes})  # type: ignore[arg-type]


# 6 GiB − 0.25 others − 0.25 context − 2 live leave 3.5 GiB when nothing idle is split.


def test_demand_that_fits_is_no_alert() -> None:
    update = forecaster().update_phase(before_optimizer(2 * GIB))
    assert update.changes.raised == ()
    assert update.forecast.p_oom[1] == 0.0
    assert update.forecast.severity is None


def test_demand_that_does_not_fit_is_an_alert_before_the_call() -> None:
    update = forecaster().update_phase(before_optimizer(3 * GIB + 600 * MIB))
    (alert,) = update.changes.raised
    assert (alert.cause, alert.severity, alert.step, alert.t_s) == (
        Cause.FIRST_OPTIMIZER_STEP,
        AlertSeverity.IMMINENT,
        1,
        1.0,
    )
    assert (alert.eta_steps, alert.eta_s) == (0.0, 0.0)
    assert alert.evidence["demand_bytes"] == 3 * GIB + 600 * MIB
    assert alert.evidence["room_bytes"] == 3.5 * GIB
    assert update.forecast.p_oom[1] == 1.0
    assert update.forecast.flood_low_bytes == 2 * GIB + 512 * MIB + 3 * GIB + 600 * MIB
    assert alert.action == "pause"  # no batch size makes room for the state


def test_wholly_free_memory_counts_and_holes_count_in_part() -> None:
    """1 GiB of holes: 2.5 GiB are free beside them, so of 3 GiB demand a half of the holes must hold 0.5 GiB."""
    tight = before_optimizer(3 * GIB, reserved=4 * GIB, idle_split=GIB)
    p = forecaster().update_phase(tight).forecast.p_oom[1]
    assert 0.0 < p < 0.1
    hopeless = before_optimizer(3 * GIB + 512 * MIB, reserved=4 * GIB, idle_split=GIB)
    update = forecaster().update_phase(hopeless)
    assert update.forecast.p_oom[1] > 0.9
    assert update.changes.raised[0].action == "reduce_batch"  # it is the holes of the activations that are in the way


def test_state_that_fits_may_leave_no_room_for_the_next_step() -> None:
    """5 GiB peak of forward and backward, 5.5 GiB to be had, and 1.2 of 1.8 GiB or more stay."""
    update = forecaster().update_phase(before_optimizer(1800 * MIB, peak=5 * GIB, reserved=5 * GIB))
    (alert,) = update.changes.raised
    assert alert.severity is AlertSeverity.LIKELY
    assert alert.eta_steps == 1.0
    assert alert.action == "reduce_batch"
    assert update.forecast.p_oom[1] == 0.0
    assert update.forecast.p_oom[10] == 1.0


def test_over_when_the_call_has_returned() -> None:
    subject = forecaster()
    subject.update_phase(before_optimizer(3 * GIB + 600 * MIB))
    stats = memory(3 * GIB, demand=GIB)
    after_one = subject.update_step(step(1, stats))
    after_two = subject.update_step(step(2, stats))
    assert [len(update.changes.cleared) for update in (after_one, after_two)] == [0, 1]
    assert after_two.forecast.severity is None
    assert subject.open_alerts() == ()


@pytest.mark.parametrize("phase", [Phase.VALIDATION, Phase.SAVE])
def test_other_phases_are_other_causes(phase: Phase) -> None:
    raised = forecaster().update_phase(before_optimizer(9 * GIB, phase=phase)).changes.raised
    assert Cause.FIRST_OPTIMIZER_STEP not in {alert.cause for alert in raised}


def test_resumed_run_with_its_state_in_place() -> None:
    assert forecaster().update_phase(before_optimizer(0, number=900)).changes.raised == ()


def test_the_estimate_stands_in_for_an_unknown_demand() -> None:
    raised = forecaster(estimate()).update_phase(before_optimizer(None)).changes.raised
    assert [alert.severity for alert in raised] == [AlertSeverity.IMMINENT]


def test_ahead_of_the_run_the_estimate_is_a_watch() -> None:
    subject = forecaster(estimate())
    forecast = subject.forecast()
    assert forecast.cause is Cause.FIRST_OPTIMIZER_STEP
    assert forecast.severity is AlertSeverity.WATCH
    assert forecast.eta_steps == 1.0
    assert forecast.p_oom[1] > 0.9
    assert subject.open_alerts() == ()


def test_estimate_with_its_peak_elsewhere_or_with_room_is_no_watch() -> None:
    assert forecaster(estimate(peak_phase=Phase.BACKWARD)).forecast().cause is None
    roomy = estimate(phases={Phase.OPTIMIZER: 3 * GIB}, fits_probability=1.0)
    assert forecaster(roomy).forecast().severity is None


# An optimizer that nobody has named: after the first backward 2 GiB are live, so up to 1 GiB of parameters. Adam would
# ask for 3 GiB in its call and keep 2, AMSGrad for 4; the room beside what is live is 3.5 GiB.


def test_an_unknown_optimizer_is_taken_for_adam() -> None:
    update = forecaster().update_phase(before_optimizer(None, live=2400 * MIB, peak=2400 * MIB, reserved=2400 * MIB))
    (alert,) = update.changes.raised  # 3 x 1200 MiB do not fit into 5632 - 2400 MiB
    assert (alert.cause, alert.severity) == (Cause.FIRST_OPTIMIZER_STEP, AlertSeverity.LIKELY)
    assert alert.evidence["demand_assumed"] == 1.0
    assert alert.evidence["demand_bytes"] == 3 * 1200 * MIB
    assert 0.3 <= update.forecast.p_oom[1] <= 0.9  # it may be SGD


def test_what_only_the_largest_optimizers_would_ask_for_is_a_watch() -> None:
    update = forecaster().update_phase(before_optimizer(None, live=1900 * MIB, peak=1900 * MIB, reserved=4 * GIB))
    assert update.changes.raised == ()  # 4 x 950 MiB do not fit into 5632 - 1900 MiB, 3 x 950 do
    assert update.forecast.severity in (None, AlertSeverity.WATCH)
    assert update.forecast.p_oom[1] > 0.0


def test_an_unknown_optimizer_with_room_for_any_is_nothing() -> None:
    update = forecaster().update_phase(before_optimizer(None, live=GIB, peak=GIB, reserved=GIB))
    assert update.forecast.severity is None
    assert update.forecast.p_oom[1] == 0.0


def test_frozen_parameters_need_no_state() -> None:
    """2.3 GiB before the first forward pass and 100 MiB more after backward: adapters, not the model, are trained."""
    subject = forecaster()
    subject.update_phase(before_optimizer(None, live=2300 * MIB, phase=Phase.FORWARD))
    update = subject.update_phase(before_optimizer(None, live=2400 * MIB, peak=3 * GIB, reserved=3 * GIB))
    assert update.changes.raised == ()
    assert update.forecast.p_oom[1] == 0.0
    assert update.forecast.evidence.get("demand_bytes", 300 * MIB) == 300 * MIB


def test_a_run_that_is_joined_later_has_its_state_already() -> None:
    late = before_optimizer(None, live=2400 * MIB, peak=2400 * MIB, reserved=2400 * MIB, number=700)
    assert forecaster().update_phase(late).changes.raised == ()
    subject = forecaster()
    subject.update_step(step(1, memory(2 * GIB)))
    again = before_optimizer(None, live=2400 * MIB, peak=2400 * MIB, reserved=2400 * MIB, number=1)
    assert subject.update_phase(again).changes.raised == ()
