"""An out-of-memory error that is survived: the run goes on as if the micro-batch had been smaller from that step on."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from desktop_app.core.events import EventKind, Level
from desktop_app.core.steps import OomReport, Phase, RunState, StepSample
from desktop_app.training.checkpoints import load_checkpoint
from desktop_app.training.micro_batches import MicroBatches, split_sizes

from .doubles import FillingDevice, NumberRecipe, RecordingSink
from .rescue_bench import (
    CONFIG,
    FULL,
    NarrowDevice,
    PlainRecipe,
    events_of,
    full,
    halved_from,
    train,
)

# Splitting


@pytest.mark.parametrize(
    ("samples", "limit", "sizes"),
    [
        (64, 64, (64,)),
        (64, 32, (32, 32)),
        (64, 48, (32, 32)),
        (48, 20, (16, 16, 16)),
        (33, 16, (11, 11, 11)),
        (47, 23, (16, 16, 15)),
        (7, 3, (3, 2, 2)),
        (7, 1, (1,) * 7),
        (5, 9, (5,)),
    ],
)
def test_a_batch_is_split_evenly_or_almost(samples: int, limit: int, sizes: tuple[int, ...]) -> None:
    assert split_sizes(samples, limit) == sizes


def test_no_sample_is_lost_and_no_part_is_too_large() -> None:
    for samples, limit in itertools.product(range(1, 130), range(1, 130)):
        sizes = split_sizes(samples, limit)
        assert sum(sizes) == samples
        assert max(sizes) <= limit
        assert max(sizes) - min(sizes) <= 1


def test_halving_ends_at_one_sample() -> None:
    batches, seen = MicroBatches(whole=44, accumulation=3), []
    while batches.shrink():
        seen.append((batches.size, batches.accumulation))
    assert seen == [(22, 6), (11, 12), (4, 33), (2, 66), (1, 132)]
    assert not batches.shrink()
    hinted = MicroBatches(whole=44)
    assert hinted.shrink(12)
    assert hinted.size == 11
    assert hinted.shrink(40)  # what is known does not help any more
    assert hinted.size == 4


@pytest.mark.parametrize("limit", [6, 5, 3, 1])
def test_parts_add_up_to_the_mean_of_the_whole(limit: int) -> None:
    """Uneven parts too: their gradients are those of the whole batch."""
    recipe, config = PlainRecipe(), replace(CONFIG, batch_size=11)
    data = recipe.prepare(config)
    model, batch = recipe.model(config, data.info), data.train.batch(epoch=1, index=0)
    recipe.loss(model, batch)[0].backward()
    whole = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    for part, divisor in MicroBatches(whole=11, limit=limit).parts(batch):
        (recipe.loss(model, part)[0] / divisor).backward()
    for wanted, parameter in zip(whole, model.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, wanted, rtol=0, atol=1e-15)


# The step is repeated


@pytest.mark.parametrize("make", [PlainRecipe, lambda: NumberRecipe(dtype=torch.float64)], ids=["plain", "batch-norm"])
@pytest.mark.parametrize(
    ("phase", "at_op"),
    [(Phase.FORWARD, ""), (Phase.BACKWARD, ""), (Phase.BACKWARD, "mm"), (Phase.FORWARD, "log_softmax")],
)
@pytest.mark.parametrize("step", [1, 4])
def test_the_losses_are_those_of_a_run_with_smaller_micro_batches_from_that_step_on(
    tmp_path: Path, make: Callable[[], NumberRecipe], phase: Phase, at_op: str, step: int
) -> None:
    """With batch statistics and dropout too: buffers and random state are put back."""
    device = FillingDevice(phase, step=step, error=full, at_op=at_op)
    outcome, sink = train(recipe=make(), device=device)
    assert outcome.state is RunState.FINISHED
    assert [sample.step for sample in sink.steps] == list(range(1, 13))
    wanted = (
        halved_from(step, tmp_path, make)
        if step > 1
        else train(replace(CONFIG, batch_size=4, accumulation=2), recipe=make())[1].losses()
    )
    assert sink.losses() == pytest.approx(wanted, abs=1e-12)
    if make is PlainRecipe:
        assert sink.losses() == pytest.approx(train(recipe=make())[1].losses(), abs=1e-12)
    assert outcome.status.batch_size == 4
    assert outcome.status.accumulation == 2
    assert {sample.batch_samples for sample in sink.steps} == {8}


def test_the_rescue_is_told_once_with_all_that_is_known() -> None:
    named: list[OomReport] = []

    def name(report: OomReport) -> str:
        named.append(report)
        return "leak"

    outcome, sink = train(device=FillingDevice(Phase.BACKWARD, step=4, error=full), name_cause=name)
    (rescue,) = outcome.status.rescues
    assert (rescue.step, rescue.phase, rescue.cause) == (4, Phase.BACKWARD, "leak")
    assert (rescue.batch_size, rescue.rescued_batch_size) == (8, 4)
    assert rescue.message == FULL
    assert rescue.largest_owners == (("activations", 3), ("parameters", 1))
    assert outcome.oom is None
    assert len(named) == 1
    (event,) = events_of(sink, EventKind.RESCUE)
    assert (event.level, event.code) == (Level.WARNING, "rescue.training")
    assert event.params == {
        "step": 4,
        "phase": "backward",
        "cause": "leak",
        "batch_before": 8,
        "batch_after": 4,
        "accumulation_after": 2,
        "requested_bytes": 20 << 20,
    }
    told = next(status for status in sink.statuses if status.rescues)
    assert (told.step, told.batch_size, told.accumulation) == (3, 4, 2)


@pytest.mark.parametrize(
    ("room", "known", "tried"), [(3, None, [8, 4]), (1, None, [8, 4, 2]), (3, 3, [8]), (1, 3, [8, 2])]
)
def test_it_settles_within_the_step(room: int, known: int | None, tried: list[int]) -> None:
    device = NarrowDevice(room, Phase.BACKWARD, from_step=3)
    outcome, sink = train(device=device, largest_batch=lambda: known)
    assert outcome.state is RunState.FINISHED
    assert [size for _, size in device.refusals] == tried
    assert {rescue.step for rescue in outcome.status.rescues} == {3}
    assert sink.losses() == pytest.approx(train()[1].losses(), abs=1e-12)


def test_where_one_sample_does_not_fit_the_run_ends_with_its_post_mortem(tmp_path: Path) -> None:
    config = replace(CONFIG, output_dir=str(tmp_path))
    device = NarrowDevice(0, Phase.FORWARD, from_step=4)
    outcome, sink = train(config, device=device, name_cause=lambda _: "neighbour")
    assert outcome.state is RunState.OUT_OF_MEMORY
    assert outcome.oom is not None
    assert (outcome.oom.step, outcome.oom.phase, outcome.oom.cause) == (4, Phase.FORWARD, "neighbour")
    # As much was asked for with 4 samples as with 8: one was tried, and that was the end.
    assert (outcome.oom.batch_size, outcome.oom.rescued_batch_size, outcome.oom.fits_no_batch) == (4, None, True)
    assert [rescue.rescued_batch_size for rescue in outcome.status.rescues] == [4]
    assert load_checkpoint(tmp_path / "last.pt").progress.step == 3
    assert len(sink.steps) == 3


def test_without_the_rule_the_run_ends_as_it_always_did() -> None:
    outcome, sink = train(replace(CONFIG, on_oom="end"), device=NarrowDevice(4, Phase.BACKWARD, from_step=2))
    assert outcome.state is RunState.OUT_OF_MEMORY
    assert outcome.oom is not None
    assert outcome.oom.batch_size == 8
    assert not events_of(sink, EventKind.RESCUE)


def test_other_errors_are_not_rescued() -> None:
    device = FillingDevice(Phase.FORWARD, step=2, error=lambda: ValueError("shapes do not match"))
    assert train(device=device)[0].state is RunState.FAILED


@pytest.mark.parametrize(
    "message",
    [
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "HIP out of memory. Tried to allocate",
    ],
)
def test_errors_of_libraries_are_rescued_too(message: str) -> None:
    device = FillingDevice(Phase.FORWARD, step=2, error=lambda: RuntimeError(message))
    outcome, _ = train(device=device)
    assert outcome.state is RunState.FINISHED
    assert outcome.status.batch_size == 4


def test_steps_say_their_micro_batch() -> None:
    def known(sample: StepSample) -> int:
        return sample.micro_batch_samples or sample.batch_samples

    _, sink = train(device=FillingDevice(Phase.FORWARD, step=4, error=full))
    assert [known(sample) for sample in sink.steps] == [8] * 3 + [4] * 9


# Nothing is kept


def test_nothing_of_the_failed_step_is_alive_when_it_is_repeated() -> None:
    alive: list[weakref.ref[Any]] = []
    recipe = NumberRecipe()
    loss_of = recipe.loss

    def watched(model: Any, batch: Any) -> Any:
        loss, logits = loss_of(model, batch)
        alive.extend((weakref.ref(loss), weakref.ref(logits), weakref.ref(batch.inputs)))
        return loss, logits

    recipe.loss = watched  # type: ignore[method-assign]
    device = FillingDevice(Phase.BACKWARD, step=3, error=full)
    released: list[tuple[int, int]] = []
    release = device.release

    def count() -> None:
        released.append((len(alive), sum(ref() is not None for ref in alive)))
        release()

    device.release = count  # type: ignore[method-assign]
    told: list[bool] = []
    sink = RecordingSink()
    sink.on_event = lambda event: told.append(event.kind is EventKind.RESCUE)  # type: ignore[method-assign]
    outcome, _ = train(device=device, recipe=recipe, sink=sink)
    assert outcome.state is RunState.FINISHED
    assert released == [(9, 0)]
    assert told == [True]
