"""Estimates: the distribution, the verdict, the largest batch, and saying so when nothing can be said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from desktop_app.core.forecasts import Estimate, Verdict
from desktop_app.core.steps import Category, Phase
from desktop_app.core.units import GIB, MIB
from desktop_app.memory.allocator_settings import AllocatorSettings
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.estimate import (
    PENDING,
    WARN_LIMITED_BY_DATA,
    WARN_NOT_CONFIRMED,
    WARN_RETURNS_CACHE,
    estimate,
)
from desktop_app.memory.estimate_unknowns import Spread
from desktop_app.memory.formula import FormulaFacts
from desktop_app.memory.overheads import ContextPrior
from desktop_app.memory.simulated_device import SimulatedDevice
from desktop_app.memory.trace import trace_training
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.trace_errors import TracerError, UntraceableError
from desktop_app.memory.training_spec import TrainingSpec
from tests.unit.memory.made_traces import Source, network
from tests.unit.memory.trainings import Residual, Training, adam_loop, adamw, cnn, mlp, sgd

GTX_1660 = CardSpec("GeForce GTX 1660", int(5.9 * GIB), 6 * GIB, "Turing", (7, 5), 22)
CONTEXT = ContextPrior.of(GTX_1660)
NO_SPREAD = Spread(residual=0.0, rungs={})


def card_of(capacity_bytes: int) -> CardSpec:
    return replace(GTX_1660, capacity_bytes=capacity_bytes, total_bytes=capacity_bytes)


def spec_of(batch_size: int) -> TrainingSpec:
    return TrainingSpec(model="entry:tests:training", batch_size=batch_size)


def source_of(training: Training) -> Callable[[TrainingSpec, CardSpec], Trace]:
    return lambda spec, card: trace_training(training, batch_size=spec.batch_size, card=card)


def estimated(training: Training, card: CardSpec = GTX_1660, *, batch_size: int, **options: object) -> Estimate:
    return estimate(spec_of(batch_size), card, trace=source_of(training), **options)  # type: ignore[arg-type]


def known(training: Training, card: CardSpec, *, batch_size: int, **options: object) -> Estimate:
    """As on a simulated card, of which everything is known."""
    context = min(CONTEXT.draw(0), card.capacity_bytes)
    return estimated(training, card, batch_size=batch_size, context_bytes=context, workspaces_known=True, **options)


@pytest.fixture(scope="module")
def cnn_estimate() -> Estimate:
    return estimated(Training(cnn, adamw), batch_size=64)


@pytest.fixture(scope="module")
def mlp_estimate() -> Estimate:
    """Without convolutions: only the context and the spread are uncertain."""
    return estimated(Training(lambda: mlp(2048), adamw), batch_size=64, spread=NO_SPREAD)


# Against a training that really runs


def run(training: Training, card: CardSpec, *, batch_size: int) -> tuple[int, int, int]:
    """Live, reserved and outside bytes of three steps and a validation on a simulated card."""
    with SimulatedDevice(card) as device:
        training.run(device, batch_size=batch_size, steps=3)
        stats = device.stats()
    return stats.live_peak_bytes, stats.reserved_peak_bytes, stats.outside_bytes


@pytest.mark.parametrize(
    "training",
    [Training(cnn, adamw), Training(Residual, sgd, precision="bf16"), Training(mlp, adam_loop, accumulation=2)],
    ids=["cnn", "residual", "mlp"],
)
def test_what_is_known_is_exactly_what_a_simulated_card_shows(training: Training) -> None:
    found = known(training, GTX_1660, batch_size=64)
    live, reserved, outside = run(training, GTX_1660, batch_size=64)
    for quantiles, expected in (
        (found.live_peak_bytes, live),
        (found.reserved_peak_bytes, reserved),
        (found.device_peak_bytes, reserved + outside),
    ):
        assert quantiles.p50 == quantiles.p90 == quantiles.p95 == expected
    assert (found.context_bytes, found.rung_width) == (outside, 0.0)


@pytest.mark.parametrize(
    "training",
    [Training(cnn, adamw), Training(Residual, sgd, precision="bf16"), Training(mlp, adamw, accumulation=2)],
    ids=["cnn", "residual", "mlp"],
)
def test_the_largest_batch_runs_on_the_simulated_card_and_one_more_runs_out(training: Training) -> None:
    card = card_of(CONTEXT.draw(0) + 60 * MIB)
    largest = known(training, card, batch_size=16).largest_batch
    assert largest is not None
    run(training, card, batch_size=largest)
    with SimulatedDevice(card) as device, pytest.raises(torch.OutOfMemoryError):
        training.run(device, batch_size=largest + 1, steps=3)


def test_a_training_that_lives_by_giving_its_cache_back_runs() -> None:
    training = Training(cnn, adamw)
    wanted = known(training, GTX_1660, batch_size=512)
    card = card_of(wanted.device_peak_bytes.p50 - 2 * MIB)
    found = known(training, card, batch_size=512)
    if found.verdict is Verdict.FITS:
        assert WARN_RETURNS_CACHE in found.warnings
        assert found.device_peak_bytes.p50 <= card.capacity_bytes
        _, reserved, outside = run(training, card, batch_size=512)
        assert found.device_peak_bytes.p50 == reserved + outside
    else:
        assert found.verdict is Verdict.DOES_NOT_FIT
        with SimulatedDevice(card) as device, pytest.raises(torch.OutOfMemoryError):
            training.run(device, batch_size=512)


# The parts of the answer


def test_quantiles_are_ordered_and_the_context_is_in_them(cnn_estimate: Estimate, mlp_estimate: Estimate) -> None:
    for found in (cnn_estimate, mlp_estimate):
        for quantiles in (found.live_peak_bytes, found.reserved_peak_bytes, found.device_peak_bytes):
            assert quantiles.p50 <= quantiles.p90 <= quantiles.p95
    reserved, device = mlp_estimate.reserved_peak_bytes, mlp_estimate.device_peak_bytes
    assert reserved.p50 == reserved.p95
    assert device.p50 - reserved.p50 == CONTEXT.quantile(0.5)
    assert device.p90 - reserved.p90 == pytest.approx(CONTEXT.quantile(0.9), rel=0.02)
    assert device.p95 - reserved.p95 == pytest.approx(CONTEXT.quantile(0.95), rel=0.03)


def test_where_the_peak_is_and_whose(cnn_estimate: Estimate, mlp_estimate: Estimate) -> None:
    assert mlp_estimate.peak_phase is Phase.OPTIMIZER
    size = sum(-(-parameter.numel() * 4 // 512) * 512 for parameter in mlp(2048).parameters())
    owners = mlp_estimate.categories
    assert owners[Category.PARAMETERS] == owners[Category.GRADIENTS] == size
    assert owners[Category.OPTIMIZER_STATE] == 2 * size
    assert size <= owners[Category.TEMPORARIES] < 1.01 * size
    assert mlp_estimate.optimizer_demand_bytes == 3 * size
    for found in (cnn_estimate, mlp_estimate):
        assert sum(found.categories.values()) == found.live_peak_bytes.p50
        whole = sum(found.categories.values()) + found.idle_bytes + found.context_bytes
        assert whole == found.device_peak_bytes.p50
        assert max(found.phases.values()) <= found.device_peak_bytes.p50
        assert found.phases[Phase.BUILD] == min(found.phases.values())
        assert {phase: peaks.device.p50 for phase, peaks in found.phase_peaks.items()} == found.phases
        assert max(peaks.live.p50 for peaks in found.phase_peaks.values()) == found.live_peak_bytes.p50
        assert found.phase_peaks[found.peak_phase].live.p50 == found.live_peak_bytes.p50


def test_modules_and_timeline_tell_the_same_story(cnn_estimate: Estimate) -> None:
    model = cnn_estimate.modules[0]
    assert (model.path, model.kind) == ("", "Sequential")
    assert model.total_bytes == cnn_estimate.live_peak_bytes.p50
    assert model.parameters == sum(parameter.numel() for parameter in cnn().parameters())
    timeline = cnn_estimate.timeline
    assert timeline is not None
    assert timeline.live_bytes.max() == cnn_estimate.live_peak_bytes.p50
    assert [span.phase for span in timeline.phases] == [Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER, Phase.ZERO]


def test_what_the_trace_says_about_itself_is_passed_on() -> None:
    def trace(spec: TrainingSpec, card: CardSpec) -> Trace:
        assert card is GTX_1660
        made = network(spec.batch_size, kernels=("attention: flash",))
        return replace(made, guesses={"aten.nonzero": 2, "aten.item": 1}, warnings=("from_the_trace",), rung="meta")

    found = estimate(spec_of(4), GTX_1660, trace=trace)
    assert found.kernels_assumed == ("attention: flash",)
    assert found.guesses == {"aten.nonzero": 2, "aten.item": 1}
    assert found.warnings == ("from_the_trace",)
    assert found.rung == "meta"
    plain = estimate(spec_of(4), GTX_1660, trace=Source())
    assert found.rung_width > plain.rung_width
    width = found.reserved_peak_bytes.p95 - found.reserved_peak_bytes.p50  # of the device, the context's is wider
    assert width > plain.reserved_peak_bytes.p95 - plain.reserved_peak_bytes.p50


def test_a_measured_context_replaces_the_prior() -> None:
    found = estimate(spec_of(8), GTX_1660, trace=Source(), context_bytes=777 * MIB, spread=NO_SPREAD)
    assert found.context_bytes == 777 * MIB
    assert found.device_peak_bytes.p50 == found.device_peak_bytes.p95 == found.reserved_peak_bytes.p50 + 777 * MIB


# Verdict and probability


def test_verdicts_by_room() -> None:
    source = Source()
    device = estimate(spec_of(64), GTX_1660, trace=source).device_peak_bytes

    def judged(capacity_bytes: int, others_bytes: int = 0) -> Estimate:
        return estimate(spec_of(64), card_of(capacity_bytes), trace=source, others_bytes=others_bytes)

    fits = judged(device.p95)
    assert (fits.verdict, fits.fits_probability >= 0.95) == (Verdict.FITS, True)
    tight = judged(device.p50)
    assert tight.verdict is Verdict.TIGHT
    assert 0.45 <= tight.fits_probability < 0.95  # the median of the sum is not quite the sum of the medians
    never = judged(device.p50 - CONTEXT.quantile(0.5))
    assert (never.verdict, never.fits_probability) == (Verdict.DOES_NOT_FIT, 0.0)
    assert judged(device.p95 + 100 * MIB, others_bytes=100 * MIB).verdict is Verdict.FITS
    assert judged(device.p95 + 100 * MIB, others_bytes=500 * MIB).verdict is not Verdict.FITS


def test_what_others_hold_only_ever_hurts() -> None:
    card = card_of(2 * GIB)
    answers = [
        estimate(spec_of(64), card, trace=Source(), others_bytes=others * 50 * MIB) for others in range(0, 42, 3)
    ]
    probabilities = [answer.fits_probability for answer in answers]
    batches = [answer.largest_batch or 0 for answer in answers]
    assert probabilities == sorted(probabilities, reverse=True)
    assert batches == sorted(batches, reverse=True)
    assert (probabilities[0], probabilities[-1]) == (1.0, 0.0)
    assert len(set(probabilities)) > 3
    assert batches[-1] == 0


def test_less_risk_means_a_smaller_batch() -> None:
    card = card_of(CONTEXT.quantile(1.0) + 200 * MIB)
    batches = [
        estimated(Training(cnn, adamw), card, batch_size=64, risk=risk).largest_batch or 0 for risk in (0.01, 0.1, 0.5)
    ]
    assert batches[0] < batches[1] < batches[2]


def test_at_the_largest_batch_the_risk_is_what_was_asked_for() -> None:
    card = card_of(2 * GIB)
    source = Source(convolves=True)
    for risk in (0.05, 0.3):
        largest = estimate(spec_of(16), card, trace=source, risk=risk).largest_batch
        assert largest is not None
        at, above = (estimate(spec_of(batch), card, trace=source).fits_probability for batch in (largest, largest + 1))
        assert at >= 1 - risk - 0.003  # P(fits) is found to 0.002
        assert above < 1 - risk + 0.003


# The largest batch


def test_the_largest_batch_below_one_that_does_not_fit() -> None:
    card = card_of(CONTEXT.quantile(1.0) + 500 * MIB)
    start = estimate(spec_of(16), card, trace=Source())
    too_big = estimate(spec_of(1 << 15), card, trace=Source())
    assert too_big.verdict is Verdict.DOES_NOT_FIT
    assert too_big.largest_batch == start.largest_batch


def test_no_batch_fits_where_the_model_does_not() -> None:
    card = card_of(CONTEXT.quantile(0.5) + 20 * MIB)
    found = estimate(spec_of(64), card, trace=Source())
    assert (found.verdict, found.largest_batch, found.warnings) == (Verdict.DOES_NOT_FIT, None, ())


def test_samples_that_are_not_there_are_not_asked_for() -> None:
    found = estimate(spec_of(4), GTX_1660, trace=Source(), most_batch=10)
    assert found.largest_batch == 10
    assert found.warnings == (WARN_LIMITED_BY_DATA,)
    assert estimate(spec_of(4), card_of(CONTEXT.quantile(0.5)), trace=Source(), most_batch=10).warnings == ()


def test_the_end_of_the_search_is_no_limit_and_says_so() -> None:
    """A training whose memory does not grow: 2^20 samples and more."""

    def trace(spec: TrainingSpec, card: CardSpec) -> Trace:
        assert card is GTX_1660
        return network(spec.batch_size, sample_bytes=0)

    found = estimate(spec_of(4), GTX_1660, trace=trace)
    assert (found.largest_batch, found.warnings) == (1048576, ("batch_search_ended",))
    told = estimate(spec_of(4), GTX_1660, trace=trace, most_batch=10)
    assert (told.largest_batch, told.warnings) == (10, (WARN_LIMITED_BY_DATA,))


def test_a_search_that_cannot_finish_says_so() -> None:
    def trace(spec: TrainingSpec, card: CardSpec) -> Trace:
        if spec.batch_size > 8:
            raise UntraceableError("aten.nonzero", f"on {card.name}")
        return network(spec.batch_size)

    found = estimate(spec_of(4), GTX_1660, trace=trace)
    assert found.largest_batch == 8
    assert found.warnings == (WARN_NOT_CONFIRMED,)


def test_allocator_settings_of_the_training_are_replayed() -> None:
    plain = estimate(spec_of(9), GTX_1660, trace=Source())
    rounded = estimate(spec_of(9), GTX_1660, trace=Source(), allocator=AllocatorSettings(roundup_power2_divisions=2))
    assert rounded.live_peak_bytes.p50 > plain.live_peak_bytes.p50


# On the way


def test_the_answer_grows_while_it_is_found() -> None:
    told: list[Estimate] = []
    found = estimate(spec_of(8), GTX_1660, trace=Source(), levers=True, progress=told.append)
    assert PENDING in told[0].warnings
    assert told[0].largest_batch is None
    assert told[0].device_peak_bytes == found.device_peak_bytes
    assert PENDING not in told[1].warnings
    assert told[1].largest_batch == found.largest_batch
    counts = [len(answer.levers) for answer in told[1:]]
    assert counts == list(range(len(found.levers) + 1))
    assert found.seconds >= told[0].seconds > 0.0


def test_whoever_watches_may_end_it() -> None:
    class EnoughError(Exception):
        pass

    def stop(answer: Estimate) -> None:
        raise EnoughError(answer.rung)

    source = Source()
    with pytest.raises(EnoughError):
        estimate(spec_of(8), GTX_1660, trace=source, progress=stop)
    assert source.batches == [8]


# What cannot be traced


def stopped(spec: TrainingSpec, card: CardSpec) -> Trace:
    raise UntraceableError("aten._local_scalar_dense.default", f"{spec.model} on {card.name}")


def test_what_cannot_be_traced_is_not_estimated() -> None:
    found = estimate(spec_of(4), GTX_1660, trace=stopped)
    assert found.verdict is Verdict.CANNOT_SAY
    assert found.largest_batch is None
    assert found.warnings == ("untraceable:aten._local_scalar_dense.default",)
    assert found.rung == "none"
    assert found.capacity_bytes == GTX_1660.capacity_bytes


def test_what_is_known_of_a_model_gives_an_answer_by_formula() -> None:
    shape = FormulaFacts(parameters=110_000_000, layers=12, hidden=768, heads=12, sequence_length=128)
    found = estimate(spec_of(4), GTX_1660, trace=stopped, facts=shape)
    assert (found.rung, found.verdict) == ("formula", Verdict.FITS)
    assert found.warnings == ("untraceable:aten._local_scalar_dense.default",)


def test_what_the_tracer_knows_of_the_model_is_used() -> None:
    def trace(spec: TrainingSpec, card: CardSpec) -> Trace:
        raise UntraceableError("aten.nonzero", f"{spec.model} on {card.name}", facts={"parameters": 10**9})

    found = estimate(spec_of(4), GTX_1660, trace=trace)
    assert (found.rung, found.verdict) == ("formula", Verdict.DOES_NOT_FIT)  # 16 GB of states in 6
    assert found.warnings == ("untraceable:aten.nonzero", "states_only")


def test_a_tracer_that_fails_is_no_estimate() -> None:
    def fails(spec: TrainingSpec, card: CardSpec) -> Trace:
        raise TracerError("missing_torch", f"no torch for {spec.model} on {card.name}")

    with pytest.raises(TracerError, match="no torch"):
        estimate(spec_of(4), GTX_1660, trace=fails)
