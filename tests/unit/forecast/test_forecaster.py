"""The forecast as a whole: figures of the card, flood mark, probabilities, unknowns."""

from __future__ import annotations

import math
import threading
from dataclasses import replace

import pytest

from desktop_app.core.forecasts import Alert, Cause
from desktop_app.core.steps import Phase, PhaseSample, Surroundings
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.cause_model import CauseModel, View
from desktop_app.forecast.environment import Environment
from desktop_app.forecast.evidence import RECENT_STEPS, Evidence
from desktop_app.forecast.flood import CAP
from desktop_app.forecast.forecaster import Forecaster
from desktop_app.forecast.outlook import StepsToGo

from .test_first_optimizer_step import estimate
from .traces import BASE, DEMAND, line, memory, replay, step, steps

CAPACITY = 6 * GIB


def test_device_is_context_reserved_and_others() -> None:
    forecaster = Forecaster(capacity_bytes=CAPACITY, others_bytes=300 * MIB, outside_bytes=400 * MIB)
    assert forecaster.observe_step(step(1, memory(GIB))).device_bytes == 700 * MIB + GIB + DEMAND
    known = forecaster.observe_step(step(2, memory(GIB, outside=500 * MIB)))
    assert known.device_bytes == 800 * MIB + GIB + DEMAND


def test_card_can_change_while_it_runs() -> None:
    """A neighbour that takes 2 GiB brings the end 205 steps nearer."""
    forecaster = Forecaster(capacity_bytes=CAPACITY)
    samples = list(steps(line(62, 10 * MIB)))
    before = replay(samples[:60], forecaster, capacity=CAPACITY).forecasts[-1]
    forecaster.set_environment(others_bytes=2 * GIB)
    after = forecaster.observe_step(samples[60])
    assert before.eta_steps is not None
    assert after.eta_steps == pytest.approx(before.eta_steps - 1 - 204.8, abs=0.1)
    forecaster.set_environment(total_steps=100)
    assert forecaster.observe_step(samples[61]).severity is None  # the run is over before


def test_before_the_first_sample_the_estimate_speaks() -> None:
    prior = estimate(peak_phase=Phase.BACKWARD)
    forecast = Forecaster(capacity_bytes=CAPACITY, others_bytes=GIB, prior=prior).forecast()
    assert (forecast.flood_low_bytes, forecast.flood_high_bytes) == (
        7 * GIB + 768 * MIB,  # 0.25 GiB of others in the estimate, 1 GiB now
        8 * GIB + 768 * MIB,
    )
    assert forecast.p_oom_run == pytest.approx(0.9, abs=0.1)
    assert Forecaster(capacity_bytes=CAPACITY).forecast().flood_low_bytes is None


def test_calm_flood_mark_stands_a_little_over_what_was_measured() -> None:
    forecaster = Forecaster(capacity_bytes=CAPACITY, outside_bytes=400 * MIB, prior=estimate())
    for sample in steps([float(BASE)] * 200):
        forecast = forecaster.observe_step(sample)
    measured = 400 * MIB + BASE + DEMAND
    assert forecast.flood_low_bytes == measured
    assert forecast.flood_high_bytes is not None
    assert measured < forecast.flood_high_bytes <= 1.02 * measured
    assert forecast.p_oom_run == 0.0


def test_flood_mark_of_a_leak_rises_over_the_brim_and_is_capped() -> None:
    told = replay(steps(line(60, 10 * MIB)), Forecaster(capacity_bytes=CAPACITY), capacity=CAPACITY)
    assert told.forecasts[-1].flood_low_bytes == int(CAP * CAPACITY)
    ends = replay(steps(line(60, 10 * MIB)), Forecaster(capacity_bytes=CAPACITY, total_steps=500), capacity=CAPACITY)
    forecast = ends.forecasts[-1]
    assert forecast.flood_low_bytes == pytest.approx(BASE + DEMAND + 5000 * MIB, rel=0.01)
    assert forecast.flood_high_bytes is not None
    assert forecast.flood_low_bytes is not None
    assert forecast.flood_high_bytes > forecast.flood_low_bytes > CAPACITY


def test_probabilities_grow_with_the_horizon() -> None:
    forecaster = Forecaster(capacity_bytes=CAPACITY)
    for sample in steps(line(455, 10 * MIB)):
        forecast = forecaster.observe_step(sample)
        chances = [*(forecast.p_oom[k] for k in (1, 10, 100)), forecast.p_oom_run]
        assert chances == sorted(chances)
        assert 0.0 <= chances[0] <= chances[-1] <= 1.0
    assert forecast.p_oom[10] > 0.9  # full at step 461
    assert forecast.cause_share == 1.0


def test_high_reserved_memory_alone_says_nothing() -> None:
    full = memory(BASE, idle_at_peak=CAPACITY - BASE - DEMAND)
    forecaster = Forecaster(capacity_bytes=CAPACITY)
    for number in range(1, 200):
        update = forecaster.update_step(step(number, full))
        assert update.changes.raised == ()
    assert update.forecast.device_bytes == CAPACITY
    assert update.forecast.p_oom_run == 0.0


def test_retries_without_growth_say_nothing() -> None:
    forecaster = Forecaster(capacity_bytes=CAPACITY)
    for number in range(1, 100):
        assert forecaster.update_step(step(number, memory(4 * GIB, retries=number))).changes.raised == ()


def test_steps_without_memory_figures() -> None:
    forecaster = Forecaster(capacity_bytes=CAPACITY)
    for number in range(1, 50):
        forecast = forecaster.observe_step(step(number, None))
    assert forecast.severity is None
    assert forecast.device_bytes == 0
    phase = PhaseSample(t_s=9.0, step=49, phase=Phase.VALIDATION, memory=None)
    assert forecaster.observe_phase(phase).step == 49


def test_capacity_must_be_positive() -> None:
    with pytest.raises(ValueError, match="capacity_bytes"):
        Forecaster(capacity_bytes=0)


def test_pauses_are_no_pace() -> None:
    evidence = Evidence()
    for sample in steps([float(BASE)] * 50, step_s=0.2):
        late = 600.0 if sample.step > 30 else 0.0
        evidence.add(replace(sample, t_s=sample.t_s + late))
    assert evidence.seconds_per_step() == pytest.approx(0.2)


def test_evidence_is_bounded_and_in_order() -> None:
    evidence = Evidence()
    for sample in steps([float(BASE)] * 1000, batches=list(range(1, 1001))):
        evidence.add(sample)
    assert evidence.rows == RECENT_STEPS
    assert list(evidence.column("step")[-3:]) == [998, 999, 1000]
    assert evidence.usual_batch is None


def test_epochs_by_hand() -> None:
    environment = Environment(CAPACITY, steps_per_epoch=25)
    assert [environment.steps_to_epoch_end(number) for number in (1, 24, 25, 26)] == [24, 1, 0, 24]
    assert environment.same_epoch(1, 25)
    assert not environment.same_epoch(25, 26)
    assert Environment(CAPACITY).steps_to_epoch_end(3) is None


def test_steps_to_go_by_hand() -> None:
    to_go = StepsToGo(100.0, math.log(2.0))
    assert to_go.probability_within(100.0) == pytest.approx(0.5)
    assert to_go.probability_within(200.0) == pytest.approx(0.8413, abs=1e-4)  # one standard deviation
    assert to_go.low == pytest.approx(100.0 / 2**1.2816)
    assert StepsToGo(0.0, 0.0).probability_within(1) == 1.0
    assert StepsToGo(5.0, 0.0).probability_within(0) == 0.0


def test_two_threads_may_ask_at_once() -> None:
    forecaster = Forecaster(capacity_bytes=CAPACITY)
    stop = threading.Event()
    seen: list[tuple[Alert, ...]] = []

    def look() -> None:
        while not stop.is_set():
            forecaster.forecast()
            seen.append(forecaster.open_alerts())

    reader = threading.Thread(target=look)
    reader.start()
    try:
        replay(steps(line(80, 10 * MIB)), forecaster, capacity=CAPACITY)
    finally:
        stop.set()
        reader.join(5.0)
    assert not reader.is_alive()
    assert len(forecaster.open_alerts()) == 1


def test_the_epoch_s_end_lies_between_now_and_the_run_s() -> None:
    """10 MiB a step fill the card at step 461: not in the epoch that ends at step 100, surely in that of 500 steps."""
    told = {}
    for per_epoch in (100, 500, None):
        forecaster = Forecaster(capacity_bytes=6 * GIB, total_steps=1000, steps_per_epoch=per_epoch)
        for sample in steps(line(430, 10 * MIB)):
            forecaster.absorb_step(sample)
        told[per_epoch] = forecaster.observe_step(step(431, memory(BASE + 431 * 10 * MIB)))
    assert told[None].p_oom_epoch is None
    assert told[500].p_oom_epoch is not None
    assert told[500].p_oom[10] <= told[500].p_oom_epoch <= told[500].p_oom_run
    assert told[500].p_oom_epoch > 0.9
    early = Forecaster(capacity_bytes=6 * GIB, total_steps=1000, steps_per_epoch=100)
    for sample in steps(line(200, 10 * MIB)):
        forecast = early.observe_step(sample)
    assert forecast.p_oom_epoch == 0.0  # at the last step of an epoch


class Counted(CauseModel):
    """Counts how often it is asked."""

    cause = Cause.NEIGHBOUR
    asked = 0

    def outlook(self, view: View, *, known: bool) -> None:  # noqa: ARG002 - as every cause
        type(self).asked += 1


def test_what_telemetry_says_is_not_judged_anew_at_each_of_twenty_steps_a_second() -> None:
    """Every 0.2 s between two samples; at once when telemetry speaks, a phase begins, or the driver has refused."""
    forecaster = Forecaster(capacity_bytes=CAPACITY, causes=[Counted])
    Counted.asked = 0
    for number in range(1, 41):
        forecaster.update_step(step(number, memory(BASE), step_s=0.05))
    assert 8 <= Counted.asked <= 10  # 2 s / 0.2 s, whole steps of 0.05 s
    asked = Counted.asked
    forecaster.update_surroundings(Surroundings(t_s=2.01, others_bytes=0))
    assert Counted.asked == asked + 1
    forecaster.update_phase(PhaseSample(2.01, 40, Phase.SAVE, memory(BASE)))
    assert Counted.asked == asked + 2
    forecaster.update_step(step(41, memory(BASE, retries=1), step_s=0.05))
    assert Counted.asked == asked + 3
