"""Estimates: the distribution, the verdict, the largest batch, and saying so when nothing can be said."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from desktop_app.core.forecasts import Estimate, Verdict
from desktop_app.core.steps import Category, Phase
from desktop_app.core.units import GIB, MIB
from desktop_app.memory.estimate import _largest, device_peak_p50, estimate
from desktop_app.memory.overheads import CardSpec, ContextPrior
from desktop_app.memory.simulated_device import SimulatedDevice
from desktop_app.memory.trace import trace_training
from desktop_app.memory.trace_events import TraceFamily
from tests.unit.memory.trainings import HUGE, Residual, Training, adamw, cnn, mlp, sgd

GTX_1660 = CardSpec("GeForce GTX 1660", int(5.9 * GIB), 6 * GIB, "Turing", (7, 5), 22)
CONTEXT = ContextPrior.of(GTX_1660)


def card_of(capacity_bytes: int) -> CardSpec:
    return replace(GTX_1660, capacity_bytes=capacity_bytes, total_bytes=capacity_bytes)


@pytest.fixture(scope="module")
def cnn_estimate() -> Estimate:
    return estimate(Training(cnn, adamw), GTX_1660, batch_size=64)


@pytest.fixture(scope="module")
def mlp_estimate() -> Estimate:
    """Without convolutions: only the context is uncertain."""
    return estimate(Training(lambda: mlp(2048), adamw), GTX_1660, batch_size=64)


def test_the_median_is_what_a_simulated_card_shows(cnn_estimate: Estimate) -> None:
    with SimulatedDevice(GTX_1660) as device:
        Training(cnn, adamw).run(device, batch_size=64)
        stats = device.stats()
    assert cnn_estimate.live_peak_bytes.p50 == stats.live_peak_bytes
    assert cnn_estimate.reserved_peak_bytes.p50 == stats.reserved_peak_bytes
    assert cnn_estimate.device_peak_bytes.p50 == stats.reserved_peak_bytes + stats.outside_bytes
    assert cnn_estimate.context_bytes == stats.outside_bytes


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
    assert mlp_estimate.optimizer_demand_bytes == 3 * size
    for found in (cnn_estimate, mlp_estimate):
        assert sum(found.categories.values()) == found.live_peak_bytes.p50
        whole = sum(found.categories.values()) + found.idle_bytes + found.context_bytes
        assert whole == found.device_peak_bytes.p50
        assert max(found.phases.values()) <= found.device_peak_bytes.p50
        assert found.phases[Phase.BUILD] == min(found.phases.values())


def test_verdicts_by_room() -> None:
    training = Training(lambda: mlp(2048), adamw)
    device = estimate(training, GTX_1660, batch_size=64).device_peak_bytes

    def judged(capacity_bytes: int, others_bytes: int = 0) -> Estimate:
        return estimate(training, card_of(capacity_bytes), batch_size=64, others_bytes=others_bytes)

    fits = judged(device.p95)
    assert (fits.verdict, fits.fits_probability >= 0.95) == (Verdict.FITS, True)
    tight = judged(device.p50)
    assert tight.verdict is Verdict.TIGHT
    assert 0.5 <= tight.fits_probability < 0.95
    never = judged(device.p50 - CONTEXT.quantile(0.5))
    assert (never.verdict, never.fits_probability) == (Verdict.DOES_NOT_FIT, 0.0)
    assert judged(device.p95 + 100 * MIB, others_bytes=100 * MIB).verdict is Verdict.FITS
    assert judged(device.p95 + 100 * MIB, others_bytes=102 * MIB).verdict is Verdict.TIGHT


def test_a_training_that_lives_by_giving_its_cache_back_is_tight_and_runs() -> None:
    """More reserved than there is, but not all of it needed at once: the allocator frees its cache and goes on."""
    training = Training(cnn, adamw)
    wanted = estimate(training, GTX_1660, batch_size=512)
    card = card_of(wanted.device_peak_bytes.p50 - 2 * MIB)
    found = estimate(training, card, batch_size=512)
    if found.verdict is Verdict.TIGHT:
        with SimulatedDevice(card) as device:
            training.run(device, batch_size=512)
    else:
        assert found.verdict is Verdict.DOES_NOT_FIT
        with SimulatedDevice(card) as device, pytest.raises(torch.OutOfMemoryError):
            training.run(device, batch_size=512)


def test_a_training_that_does_not_fit_runs_out_on_the_simulated_card() -> None:
    training = Training(lambda: mlp(2048), adamw)
    card = card_of(CONTEXT.quantile(0.5) + 60 * MIB)
    assert estimate(training, card, batch_size=64).verdict is Verdict.DOES_NOT_FIT
    with SimulatedDevice(card) as device, pytest.raises(torch.OutOfMemoryError):
        training.run(device, batch_size=64)


@pytest.mark.parametrize(
    "training", [Training(cnn, adamw), Training(Residual, sgd, precision="bf16"), Training(mlp, adamw, accumulation=2)]
)
@pytest.mark.parametrize("batch_size", [1, 64])
def test_the_largest_batch_fits_and_the_next_larger_one_does_not(training: Training, batch_size: int) -> None:
    card = card_of(CONTEXT.quantile(1.0) + 100 * MIB)
    found = estimate(training, card, batch_size=batch_size)
    assert found.largest_batch is not None
    assert found.warnings == ()
    assert estimate(training, card, batch_size=found.largest_batch).verdict is Verdict.FITS
    # Reserved memory comes in whole segments, so a batch a little larger may happen to need no more.
    assert estimate(training, card, batch_size=found.largest_batch * 5 // 4).verdict is not Verdict.FITS


def test_the_largest_batch_below_one_that_does_not_fit() -> None:
    training = Training(cnn, adamw)
    card = card_of(CONTEXT.quantile(1.0) + 100 * MIB)
    start = estimate(training, card, batch_size=64)
    too_big = estimate(training, card, batch_size=1 << 15)
    assert too_big.verdict is Verdict.DOES_NOT_FIT
    assert too_big.largest_batch == start.largest_batch


def test_no_batch_fits_where_the_model_does_not() -> None:
    card = card_of(CONTEXT.quantile(0.5) + 20 * MIB)
    found = estimate(Training(lambda: mlp(4096), adamw), card, batch_size=64)
    assert (found.verdict, found.largest_batch) == (Verdict.DOES_NOT_FIT, None)


def test_less_risk_means_a_smaller_batch() -> None:
    card = card_of(CONTEXT.quantile(1.0) + 200 * MIB)
    batches = [
        estimate(Training(cnn, adamw), card, batch_size=64, risk=risk).largest_batch or 0 for risk in (0.01, 0.1, 0.5)
    ]
    assert batches[0] < batches[1] < batches[2]


def test_streams_that_do_not_align_are_searched_by_real_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(cnn, adamw)
    card = card_of(CONTEXT.quantile(1.0) + 60 * MIB)
    expected = estimate(training, card, batch_size=64).largest_batch
    monkeypatch.setattr(TraceFamily, "between", lambda _trace, _other: None)
    assert estimate(training, card, batch_size=64).largest_batch == expected


@pytest.mark.parametrize("limit", [1, 2, 7, 63, 64, 65, 1000, 1 << 19])
@pytest.mark.parametrize("start", [1, 64, 500])
def test_the_search_finds_every_limit(limit: int, start: int) -> None:
    assert _largest(lambda batch: batch <= limit, start=start) == limit
    assert _largest(lambda _: False, start=start) is None
    assert _largest(lambda _: True, start=start) == 1 << 20


def test_a_measured_context_replaces_the_prior() -> None:
    found = estimate(Training(lambda: mlp(512), adamw), GTX_1660, batch_size=8, context_bytes=777 * MIB)
    assert found.context_bytes == 777 * MIB
    assert found.device_peak_bytes.p50 == found.device_peak_bytes.p95 == found.reserved_peak_bytes.p50 + 777 * MIB


def test_what_cannot_be_traced_is_not_estimated() -> None:
    class Looks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(256, 3)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.head(images.flatten(1))
            return out if out.sum() > 0 else -out

    found = estimate(Training(Looks, sgd), GTX_1660, batch_size=4)
    assert found.verdict is Verdict.CANNOT_SAY
    assert found.largest_batch is None
    assert found.warnings == ("untraceable:aten._local_scalar_dense.default",)
    assert found.rung == "none"
    assert found.capacity_bytes == GTX_1660.capacity_bytes


def test_the_median_alone_is_that_of_the_whole_estimate(cnn_estimate: Estimate) -> None:
    alone = device_peak_p50(Training(cnn, adamw), GTX_1660, batch_size=64)
    assert alone == cnn_estimate.device_peak_bytes.p50
    assert trace_training(Training(cnn, adamw), batch_size=64, card=HUGE).batch_size == 64
