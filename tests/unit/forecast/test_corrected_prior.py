"""The estimate put right by the first steps: an offset in what stays, a scale in what comes with the batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from desktop_app.core.estimates import PhasePeaks
from desktop_app.core.forecasts import Estimate, Quantiles, Verdict
from desktop_app.core.steps import Category, MemoryStats, Phase, PhaseSample
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.corrected_prior import CorrectedPrior, PriorFit
from desktop_app.forecast.environment import Environment
from desktop_app.forecast.forecaster import Forecaster

from .traces import step

PARAMETERS = 1 * GIB
STATE = 3 * GIB  # parameters and two moments
ACTIVATIONS = 4 * GIB
ENVIRONMENT = Environment(capacity_bytes=16 * GIB, others_bytes=512 * MIB)


def peaks(live: int) -> PhasePeaks:
    same = Quantiles(live, live, live)
    return PhasePeaks(live=same, reserved=same, device=same)


PRIOR = Estimate(
    live_peak_bytes=Quantiles(8 * GIB, 8 * GIB, 9 * GIB),
    reserved_peak_bytes=Quantiles(8 * GIB, 8 * GIB, 9 * GIB),
    device_peak_bytes=Quantiles(9 * GIB, 10 * GIB, 11 * GIB),
    capacity_bytes=16 * GIB,
    others_bytes=512 * MIB,
    fits_probability=0.99,
    verdict=Verdict.FITS,
    batch_size=32,
    largest_batch=64,
    peak_phase=Phase.BACKWARD,
    phases={},
    categories={Category.PARAMETERS: PARAMETERS, Category.OPTIMIZER_STATE: 2 * GIB},
    context_bytes=512 * MIB,
    idle_bytes=0,
    optimizer_demand_bytes=3 * GIB,
    rung="trace",
    seconds=1.0,
    phase_peaks={
        Phase.FORWARD: peaks(STATE + ACTIVATIONS),
        Phase.BACKWARD: peaks(STATE + ACTIVATIONS + GIB),
        Phase.OPTIMIZER: peaks(STATE + 2 * GIB),
        Phase.VALIDATION: peaks(STATE + 2 * GIB),
    },
)


def stats(live: int, peak: int, *, reserved: int | None = None) -> MemoryStats:
    held = reserved if reserved is not None else peak
    return MemoryStats(live, peak, held, held, 0, 0, 0, 256 * MIB, {})


def corrected(fit: PriorFit, memory: MemoryStats | None = None) -> CorrectedPrior:
    found = fit.corrected(PRIOR, ENVIRONMENT, memory)
    assert found is not None
    return found


def test_before_any_step_it_is_the_estimate_with_the_card_of_now() -> None:
    prior = corrected(PriorFit())
    assert (prior.scale, prior.offset_bytes, prior.steps) == (1.0, 0.0, 0)
    assert prior.live_bytes(Phase.VALIDATION) == 5 * GIB
    assert prior.device_bytes(Phase.VALIDATION) == 5 * GIB + 512 * MIB + 512 * MIB  # the context is still assumed
    assert prior.live_bytes(Phase.SAVE) is None


def test_without_an_estimate_there_is_nothing_to_correct() -> None:
    fit = PriorFit()
    fit.take_step(step(1, stats(GIB, 2 * GIB)), None)
    assert fit.corrected(None, ENVIRONMENT, None) is None


def test_a_peak_before_the_first_optimizer_call_scales_what_comes_with_the_batch() -> None:
    """Forward and backward took 6 GiB beside the parameters where 5 were expected: so will validation."""
    fit = PriorFit()
    before = stats(2 * GIB, PARAMETERS + 6 * GIB)
    fit.take_phase(PhaseSample(1.0, 1, Phase.OPTIMIZER, before), PRIOR)
    prior = corrected(fit, before)
    assert prior.scale == pytest.approx(1.2)
    assert prior.live_bytes(Phase.VALIDATION) == pytest.approx(STATE + 1.2 * 2 * GIB)
    assert prior.live_bytes(Phase.OPTIMIZER) == STATE + 2 * GIB  # of the state alone
    assert prior.beside_bytes == 512 * MIB + 256 * MIB  # the context is measured now


def test_trough_and_peak_of_whole_steps_give_offset_and_scale() -> None:
    fit = PriorFit()
    fit.take_step(step(1, stats(STATE + 100 * MIB, 6 * GIB)), PRIOR)  # its peak had no state yet
    assert corrected(fit).scale == 1.0
    whole = stats(STATE + 100 * MIB, STATE + 100 * MIB + 4 * GIB, reserved=9 * GIB)
    fit.take_step(step(2, whole), PRIOR)
    prior = corrected(fit, whole)
    assert prior.offset_bytes == 100 * MIB
    assert prior.scale == pytest.approx(0.8)
    assert prior.live_bytes(Phase.VALIDATION) == pytest.approx(STATE + 100 * MIB + 1.6 * GIB)
    assert prior.live_bytes(Phase.VALIDATION, batch_ratio=2.0) == pytest.approx(STATE + 100 * MIB + 3.2 * GIB)
    assert prior.live_bytes(Phase.OPTIMIZER, batch_ratio=2.0) == STATE + 2 * GIB + 100 * MIB
    device = prior.device_bytes(Phase.VALIDATION)
    assert device == pytest.approx(
        prior.beside_bytes + 9 * GIB / whole.live_peak_bytes * (STATE + 100 * MIB + 1.6 * GIB)
    )


def test_only_the_first_steps_count_and_nonsense_does_not() -> None:
    fit = PriorFit()
    for number in range(1, 4):
        fit.take_step(step(number, stats(STATE, STATE + 5 * GIB)), PRIOR)
    fit.take_step(step(4, stats(STATE, STATE + 10 * GIB)), PRIOR)  # a leak is no error of the estimate
    assert corrected(fit).scale == pytest.approx(1.0)
    other = PriorFit()
    for number in range(1, 4):
        other.take_step(step(number, stats(STATE, STATE + 100 * GIB)), PRIOR)  # another model altogether
    assert corrected(other).scale == 1.0


def test_what_has_been_measured_narrows_the_spread() -> None:
    fit = PriorFit()
    wide = corrected(fit).spread
    for number in range(1, 3):
        fit.take_step(step(number, stats(STATE, STATE + 5 * GIB)), PRIOR)
    narrow = corrected(fit)
    assert narrow.spread < wide
    assert narrow.probability_over(6 * GIB, Phase.VALIDATION) == pytest.approx(0.5, abs=0.15)
    over = narrow.probability_over(16 * GIB, Phase.VALIDATION)
    assert over is not None
    assert over < 0.001


def test_what_the_run_has_been_through_is_not_to_come_any_more() -> None:
    fit = PriorFit()
    assert corrected(fit).unseen == {Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER, Phase.VALIDATION}
    fit.take_step(step(1, stats(STATE, 6 * GIB)), PRIOR)
    assert Phase.BACKWARD in corrected(fit).unseen  # the first step ran without the optimizer's state
    fit.take_step(step(2, stats(STATE, 8 * GIB)), PRIOR)
    assert corrected(fit).unseen == {Phase.VALIDATION}
    fit.take_phase(PhaseSample(1.0, 2, Phase.VALIDATION, stats(STATE, 8 * GIB)), PRIOR)
    assert corrected(fit).unseen == {Phase.VALIDATION}
    fit.take_step(step(3, stats(STATE, 8 * GIB)), PRIOR)  # it is over when the training goes on
    assert corrected(fit).unseen == frozenset()


def forecaster() -> Forecaster:
    return Forecaster(capacity_bytes=16 * GIB, others_bytes=512 * MIB, prior=replace(PRIOR, fits_probability=0.6))


def test_the_first_step_says_more_than_the_estimate_s_odds() -> None:
    """The estimate gave 60 %; a first step of half its size leaves hardly any doubt, one that fills the card a lot."""
    subject = forecaster()
    assert subject.forecast().p_oom_run == pytest.approx(0.4)
    subject.update_phase(PhaseSample(0.5, 1, Phase.OPTIMIZER, stats(2 * GIB, PARAMETERS + 3 * GIB), 0))
    assert subject.observe_step(step(1, stats(STATE, 5 * GIB))).p_oom_run < 0.01
    full = forecaster()
    full.update_phase(PhaseSample(0.5, 1, Phase.OPTIMIZER, stats(2 * GIB, PARAMETERS + 12 * GIB), 0))
    assert full.observe_step(step(1, stats(STATE, 13 * GIB))).p_oom[10] > 0.3


def test_the_flood_mark_waits_for_phases_that_are_still_to_come() -> None:
    """Validation takes more than a step in this estimate: the mark stands at it until it is over."""
    larger = replace(PRIOR, phase_peaks={**PRIOR.phase_peaks, Phase.VALIDATION: peaks(STATE + 8 * GIB)})
    subject = Forecaster(capacity_bytes=16 * GIB, others_bytes=512 * MIB, prior=larger)
    for number in range(1, 8):
        before = subject.observe_step(step(number, stats(STATE, STATE + 5 * GIB)))
    assert before.flood_low_bytes is not None
    assert before.flood_low_bytes == pytest.approx(STATE + 8 * GIB + 768 * MIB, rel=1e-3)
    subject.observe_phase(PhaseSample(1.0, 7, Phase.VALIDATION, stats(STATE, STATE + 8 * GIB), ended=True))
    after = subject.observe_step(step(8, stats(STATE, STATE + 5 * GIB)))
    assert after.flood_low_bytes == pytest.approx(STATE + 5 * GIB + 768 * MIB, rel=1e-3)
