"""Traces on meta tensors: against published measurements, closed forms, and the traps of a machine without a GPU."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from desktop_app.core.steps import Category, Phase
from desktop_app.core.units import GIB, MIB
from desktop_app.memory.estimate_family import TraceFamily
from desktop_app.memory.estimate_replay import owners_at, phase_maxima, replay_table
from desktop_app.memory.estimate_table import EventTable
from desktop_app.memory.overheads import CardSpec
from desktop_app.memory.trace import TraceSubject, UntraceableError, trace_ops, trace_training
from desktop_app.memory.trace_data import Trace
from tests.unit.memory.trainings import (
    HUGE,
    Residual,
    Training,
    adam_loop,
    adamw,
    cnn,
    micro_step,
    mlp,
    sgd,
    sgd_momentum,
)

A100 = CardSpec("A100", 40 * GIB, 40 * GIB, "Ampere", (8, 0), 108)
RTX_4090 = CardSpec("RTX 4090", 24 * GIB, 24 * GIB, "Ada Lovelace", (8, 9), 128)
BF16 = torch.bfloat16

Enter = Callable[[Phase], None]


# Closed forms


def rounded(size_bytes: int) -> int:
    return -(-size_bytes // 512) * 512


def parameter_bytes(model: nn.Module) -> int:
    return sum(rounded(parameter.numel() * 4) for parameter in model.parameters())


def kept(trace: Trace, category: Category) -> int:
    """Bytes of this owner that are never freed."""
    freed = {-event.key for event in trace.events if event.key < 0}
    return sum(
        rounded(e.size_bytes) for e in trace.events if e.key > 0 and e.category is category and e.key not in freed
    )


@pytest.mark.parametrize(
    ("optimizer", "copies"),
    [(adamw, 2), (adam_loop, 2), (sgd_momentum, 1), (sgd, 0)],
    ids=["adamw", "adam", "mom", "sgd"],
)
def test_optimizer_state_in_copies_of_the_parameters(
    optimizer: Callable[[nn.Module], torch.optim.Optimizer], copies: int
) -> None:
    trace = trace_training(Training(mlp, optimizer), batch_size=8)
    assert kept(trace, Category.OPTIMIZER_STATE) == copies * parameter_bytes(mlp())
    assert kept(trace, Category.PARAMETERS) == parameter_bytes(mlp())
    assert kept(trace, Category.GRADIENTS) == kept(trace, Category.ACTIVATIONS) == kept(trace, Category.INPUTS) == 0


def test_the_first_step_of_foreach_adam_demands_three_copies_of_the_parameters() -> None:
    demand = trace_training(Training(mlp, adamw), batch_size=8).optimizer_demand_bytes()
    assert demand == 3 * parameter_bytes(mlp())  # two of state, one for the root of the second moment
    demand = trace_training(Training(mlp, sgd), batch_size=8).optimizer_demand_bytes()
    assert demand == 0


def test_all_that_a_step_makes_is_gone_after_it() -> None:
    trace = trace_training(Training(cnn, adamw, accumulation=2, grad_clip=1.0, precision="bf16"), batch_size=8)
    keys = [event.key for event in trace.events]
    assert len(set(keys)) == len(keys)
    assert all(-key in keys[:index] for index, key in enumerate(keys) if key < 0)
    owners = {event.category for event in trace.events if event.key > 0 and -event.key not in keys}
    assert owners == {Category.PARAMETERS, Category.OPTIMIZER_STATE, Category.WORKSPACE}


def test_a_second_step_repeats_the_first_but_for_the_optimizer_state() -> None:
    trace = trace_training(Training(cnn, adamw), batch_size=8)
    forward = [event for event in trace.events if event.phase is Phase.FORWARD and event.key > 0]
    first, second = ([(event.op, event.size_bytes) for event in forward if event.step == step] for step in (1, 2))
    assert [entry for entry in first if entry[0] != "cublas.workspace"] == second


def test_accumulation_keeps_gradients_and_one_micro_batch() -> None:
    once, more = (
        replay_table(EventTable.of(trace_training(training, batch_size=32))).live_peak_bytes
        for training in (Training(cnn, adamw), Training(cnn, adamw, accumulation=4))
    )
    assert 0 <= more - once <= 2 * parameter_bytes(cnn())


# Traps of a machine without a GPU


def activations(trace: Trace) -> int:
    table = EventTable.of(trace)
    curves = replay_table(table)
    return owners_at(table, curves, curves.peak_index)[Category.ACTIVATIONS]


def test_mixed_precision_is_not_traced_as_full_precision() -> None:
    class Wide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Conv2d(1, 8, 1), *(nn.Conv2d(8, 8, 1) for _ in range(6))])

        def forward(self, images: Tensor) -> Tensor:
            for layer in self.layers:
                images = layer(images)
            return images.mean((2, 3))

    full = activations(trace_training(Training(Wide, sgd), batch_size=256))
    half = activations(trace_training(Training(Wide, sgd, precision="bf16"), batch_size=256))
    assert half == pytest.approx(full / 2, rel=0.1)


def attention(dtype: torch.dtype) -> Callable[[Enter], None]:
    def run(enter: Enter) -> None:
        from desktop_app.memory.cuda_autocast import cuda_lowering

        query, key, value = (torch.empty(2, 4, 2048, 64, dtype=dtype, requires_grad=True) for _ in range(3))
        with cuda_lowering(capability=(8, 0)):
            out = functional.scaled_dot_product_attention(query, key, value)
        enter(Phase.BACKWARD)
        out.backward(torch.empty_like(out))  # type: ignore[no-untyped-call]

    return run


@pytest.mark.parametrize(
    ("dtype", "kernel"),
    [(BF16, "_scaled_dot_product_flash_attention"), (torch.float32, "_scaled_dot_product_efficient_attention")],
)
def test_attention_does_not_materialise_its_scores(dtype: torch.dtype, kernel: str) -> None:
    trace = trace_ops(attention(dtype), card=A100)
    scores = 2 * 4 * 2048 * 2048 * dtype.itemsize
    assert max(event.size_bytes for event in trace.events) < scores
    assert kernel in {event.op for event in trace.events}


def test_older_cards_and_masks_take_the_efficient_kernel() -> None:
    from desktop_app.memory.cuda_autocast import cuda_lowering

    def run(enter: Enter) -> None:
        enter(Phase.FORWARD)
        query = torch.empty(1, 2, 256, 64, dtype=torch.float16)
        with cuda_lowering(capability=(7, 5)):
            functional.scaled_dot_product_attention(query, query, query)
        mask = torch.zeros(256, 256, dtype=torch.bool)
        with cuda_lowering(capability=(8, 6)):
            functional.scaled_dot_product_attention(query, query, query, attn_mask=mask)

    ops = [event.op for event in trace_ops(run).events if event.key > 0 and event.op.startswith("_scaled")]
    assert set(ops) == {"_scaled_dot_product_efficient_attention"}
    assert ops


@pytest.mark.parametrize("explicit", [True, None])
def test_foreach_is_on_by_default_as_on_cuda(explicit: bool | None) -> None:
    def optimizer(model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(model.parameters(), foreach=explicit)

    demand = trace_training(Training(mlp, optimizer), batch_size=8).optimizer_demand_bytes()
    assert demand == 3 * parameter_bytes(mlp())


def test_foreach_that_was_switched_off_stays_off() -> None:
    demand = trace_training(Training(mlp, adam_loop), batch_size=8).optimizer_demand_bytes()
    largest = 256 * 256 * 4
    assert 2 * parameter_bytes(mlp()) < demand < 2 * parameter_bytes(mlp()) + 3 * largest


def test_clipping_takes_the_foreach_kernels_and_no_copy_of_the_gradients() -> None:
    trace = trace_training(Training(mlp, sgd, grad_clip=1.0), batch_size=8)
    made = [event for event in trace.events if event.phase is Phase.OPTIMIZER and event.key > 0]
    assert "_foreach_norm" in {event.op for event in made}
    assert sum(event.size_bytes for event in made) < 2048


def test_a_dropout_mask_has_one_byte_per_element() -> None:
    trace = trace_training(Training(mlp, sgd), batch_size=100)
    masks = [event.size_bytes for event in trace.events if event.op == "empty_like"]
    assert masks == [100 * 256] * 2  # one per step, none in validation


def test_batch_norm_keeps_two_statistics_per_channel_in_training_and_none_in_validation() -> None:
    trace = trace_training(Training(lambda: nn.Sequential(nn.BatchNorm2d(1), nn.Flatten()), sgd), batch_size=100)
    sizes = {
        phase: [e.size_bytes for e in trace.events if e.op == "native_batch_norm" and e.phase is phase]
        for phase in (Phase.FORWARD, Phase.VALIDATION)
    }
    image_bytes = 100 * 16 * 16 * 4
    assert sizes == {Phase.FORWARD: [image_bytes, 4, 4] * 2, Phase.VALIDATION: [image_bytes]}


def test_half_precision_batch_norm_keeps_its_statistics_in_full() -> None:
    trace = trace_training(Training(cnn, sgd, precision="bf16"), batch_size=4)
    first = [event.size_bytes for event in trace.events if event.op == "native_batch_norm"][:3]
    assert first == [4 * 8 * 16 * 16 * 2, 8 * 4, 8 * 4]


def test_validation_does_not_keep_activations() -> None:
    table = EventTable.of(trace_training(Training(cnn, adamw), batch_size=512))
    phases = phase_maxima(table, replay_table(table, apart=True).reserved_bytes)
    assert phases[Phase.VALIDATION] < phases[Phase.BACKWARD]
    assert set(phases) == {Phase.BUILD, Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER, Phase.ZERO, Phase.VALIDATION}


# What cannot be traced


def test_an_op_that_has_no_answer_is_named() -> None:
    library = torch.library.Library("floodmark_tests", "FRAGMENT")
    library.define("blind(Tensor images) -> Tensor")
    library.impl("blind", torch.clone, "CPU")

    class Blind(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(256, 3)

        def forward(self, images: Tensor) -> Tensor:
            return torch.ops.floodmark_tests.blind(self.head(images.flatten(1)))  # type: ignore[no-any-return]

    with pytest.raises(UntraceableError) as caught:
        trace_training(Training(Blind, sgd), batch_size=4)
    assert caught.value.op == "floodmark_tests.blind.default"
    assert gc.isenabled()


def test_errors_of_the_model_itself_come_through() -> None:
    with pytest.raises(RuntimeError, match="reduction dim"):
        trace_training(Training(lambda: nn.Linear(7, 3), sgd), batch_size=4)
    with pytest.raises(ValueError, match="batch_size"):
        trace_training(Training(), batch_size=0)
    with pytest.raises(ValueError, match="precision"):
        trace_training(replace(Training(), precision="int8"), batch_size=4)


def test_a_trace_changes_nothing_of_the_process() -> None:
    before = torch.get_rng_state()
    trace_training(Training(), batch_size=4)
    assert torch.equal(torch.get_rng_state(), before)
    assert gc.isenabled()
    assert torch.ones(1).device.type == "cpu"
    gc.disable()
    try:
        trace_training(Training(), batch_size=4)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_two_threads_trace_at_the_same_time_as_one_alone() -> None:
    expected = {size: trace_training(Training(), batch_size=size).events for size in (4, 8)}
    found: dict[int, object] = {}
    threads = [
        threading.Thread(
            target=lambda size=size: found.update({size: trace_training(Training(), batch_size=size).events})
        )
        for size in (4, 8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == expected
    assert gc.isenabled()


def test_a_batch_may_be_any_nesting_of_tensors() -> None:
    class Nested(Training):
        def build(self) -> TraceSubject:
            subject = super().build()

            def batch(size: int, device: torch.device) -> dict[str, object]:
                images, targets = subject.batch(size, device)
                return {"images": [images], "targets": (targets,)}

            return replace(
                subject, batch=batch, micro_step=lambda model, b: micro_step(model, (b["images"][0], b["targets"][0]))
            )

    plain, nested = (trace_training(training, batch_size=4).events for training in (Training(), Nested()))
    assert [event for event in nested if event.key > 0] == [event for event in plain if event.key > 0]


# Every batch size from two traces


@pytest.mark.parametrize(
    "training", [Training(cnn, adamw), Training(Residual, sgd_momentum, precision="bf16"), Training(mlp)]
)
@pytest.mark.parametrize("batch_size", [3, 50, 333])
def test_two_traces_give_the_trace_at_any_batch_size(training: Training, batch_size: int) -> None:
    family = TraceFamily.between(
        trace_training(training, batch_size=16, card=HUGE), trace_training(training, batch_size=32, card=HUGE)
    )
    assert family is not None
    trace = trace_training(training, batch_size=batch_size, card=HUGE)
    between = replay_table(family.at(batch_size))
    real = replay_table(EventTable.of(trace))
    staging = sum(event.size_bytes for event in trace.events if event.op == "reduce.staging")
    assert between.live_peak_bytes == pytest.approx(real.live_peak_bytes, abs=max(staging, 512))
    assert between.reserved_peak_bytes == pytest.approx(real.reserved_peak_bytes, abs=max(2 * MIB, staging))


def test_traces_that_do_different_things_have_no_family() -> None:
    assert (
        TraceFamily.between(trace_training(Training(cnn), batch_size=4), trace_training(Training(mlp), batch_size=8))
        is None
    )
