"""A real CPU training on a simulated card: what it holds, when it is full, and that nothing is left behind."""

from __future__ import annotations

import dataclasses
import gc
import re
import threading
import weakref
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import pytest
import torch
from torch import nn

from desktop_app.core.load import CardLoad
from desktop_app.core.steps import Category, Phase
from desktop_app.core.units import GIB, MIB
from desktop_app.memory.estimate_replay import replay_table
from desktop_app.memory.estimate_table import EventTable
from desktop_app.memory.overheads import CUBLAS_WORKSPACE_BYTES, CardSpec, ContextPrior
from desktop_app.memory.simulated_device import SimulatedDevice
from desktop_app.memory.trace import trace_training
from tests.unit.memory.trainings import (
    HUGE,
    Recording,
    Residual,
    TokenModel,
    Training,
    adam_loop,
    adamw,
    cnn,
    micro_step,
    mlp,
    random_batch,
    sgd,
    sgd_momentum,
)

ROOMY_A100 = CardSpec("A100", 1024 * GIB, 1024 * GIB, "Ampere", (8, 0), 108)
TRAININGS = {
    "cnn, adamw": Training(cnn, adamw),
    "cnn, adam one by one": Training(cnn, adam_loop),
    "cnn, sgd momentum, clipped": Training(cnn, sgd_momentum, grad_clip=1.0),
    "cnn, accumulation": Training(cnn, adamw, accumulation=3),
    "cnn, bf16": Training(cnn, adamw, precision="bf16"),
    "mlp, adamw": Training(mlp, adamw),
    "mlp, sgd": Training(mlp, sgd),
    "mlp, bf16, accumulation, clipped": Training(mlp, adamw, precision="bf16", accumulation=2, grad_clip=0.5),
    "residual, adamw": Training(Residual, adamw),
    "residual, bf16": Training(Residual, sgd_momentum, precision="bf16"),
}


def card_with_room(room_bytes: int) -> CardSpec:
    """A card on which the allocator may hold so much."""
    context = ContextPrior.of(HUGE).quantile(0.5)
    return CardSpec("small", context + room_bytes, context + room_bytes + 64 * MIB, "Turing", (7, 5), 22)


def rounded(size_bytes: int) -> int:
    return -(-size_bytes // 512) * 512


def parameter_bytes(model: nn.Module) -> int:
    return sum(rounded(parameter.numel() * 4) for parameter in model.parameters())


@pytest.mark.parametrize("training", TRAININGS.values(), ids=TRAININGS.keys())
def test_a_real_run_holds_to_the_byte_what_the_trace_says(training: Training) -> None:
    trace = trace_training(training, batch_size=24, card=HUGE)
    traced = replay_table(EventTable.of(trace))
    with SimulatedDevice(HUGE) as device:
        training.run(device, batch_size=24)
        stats = device.stats()
    assert stats.live_peak_bytes == traced.live_peak_bytes
    assert stats.reserved_peak_bytes == traced.reserved_peak_bytes


@pytest.mark.parametrize("training", TRAININGS.values(), ids=TRAININGS.keys())
def test_a_real_run_allocates_the_same_sizes_for_the_same_ops_in_the_same_order(training: Training) -> None:
    trace = trace_training(training, batch_size=24, card=HUGE)
    recording = Recording()
    training.run(recording, batch_size=24)
    made = [(event.key > 0, event.size_bytes, event.op, event.phase) for event in recording.recorder.finish()]
    traced = [(event.key > 0, event.size_bytes, event.op, event.phase) for event in trace.events]
    assert made[: len(traced)] == traced  # after its end the real model dies too


@pytest.mark.parametrize(
    "training",
    [
        Training(TokenModel, adamw, grad_clip=1.0),
        Training(TokenModel, adamw, precision="bf16", accumulation=2),
        Training(TokenModel, sgd_momentum, precision="bf16"),
    ],
    ids=["full precision, clipped", "bf16, accumulated", "bf16, sgd"],
)
def test_a_real_transformer_allocates_what_its_trace_says(training: Training) -> None:
    """Attention runs by the CPU's own kernel and is booked as CUDA's; 4,096 tokens sort the embedding's gradient."""
    trace = trace_training(training, batch_size=16, card=ROOMY_A100)
    recording = Recording(ROOMY_A100)
    training.run(recording, batch_size=16)
    made = [(event.key > 0, event.size_bytes, event.op, event.phase) for event in recording.recorder.finish()]
    traced = [(event.key > 0, event.size_bytes, event.op, event.phase) for event in trace.events]
    assert made[: len(traced)] == traced
    ops = {event.op for event in trace.events}
    kernel = "flash" if training.precision == "bf16" else "efficient"
    assert {f"_scaled_dot_product_{kernel}_attention", "cub.temporary", "reduce.staging"} <= ops


def test_tracking_changes_no_number() -> None:
    class Nothing:
        def place(self, tensor: torch.Tensor) -> torch.Tensor:
            return tensor

        def phase(self, phase: Phase) -> None: ...
        def track_model(self, model: nn.Module) -> None: ...
        def track_optimizer(self, optimizer: torch.optim.Optimizer) -> None: ...

        def scope(self) -> AbstractContextManager[object]:
            return nullcontext()

        def autocast(self, dtype: torch.dtype | None) -> AbstractContextManager[object]:  # noqa: ARG002
            return nullcontext()

    training = Training(Residual, adamw)
    with SimulatedDevice(HUGE) as device:
        assert training.run(device, batch_size=8, steps=4) == training.run(Nothing(), batch_size=8, steps=4)


def test_the_model_gradients_and_adam_states_are_told_apart() -> None:
    model = mlp()
    optimizer = adamw(model)
    size = parameter_bytes(model)
    with SimulatedDevice(HUGE) as device:
        device.track_model(model)
        device.track_optimizer(optimizer)
        assert device.stats().live_bytes == size
        with device.scope():
            loss = micro_step(model, random_batch(8))
            device.phase(Phase.BACKWARD)
            loss.backward()  # type: ignore[no-untyped-call]
            del loss
            device.phase(Phase.OPTIMIZER)
            device.reset_peaks()
            optimizer.step()
            device.phase(Phase.ZERO)
        stats = device.stats()
        # The largest of the peaks is that of the foreach temporary: one more copy of the parameters.
        assert stats.live_peak_bytes == 5 * size + 2 * CUBLAS_WORKSPACE_BYTES
        device.reset_peaks()
        owners = device.stats().peak_categories
        assert owners[Category.PARAMETERS] == size
        assert owners[Category.GRADIENTS] == size
        assert owners[Category.OPTIMIZER_STATE] == 2 * size
        assert owners[Category.WORKSPACE] == 2 * CUBLAS_WORKSPACE_BYTES
        assert owners[Category.ACTIVATIONS] == 0
        assert sum(owners.values()) == device.stats().live_bytes
        optimizer.zero_grad(set_to_none=True)
        assert device.stats().live_bytes == 3 * size + 2 * CUBLAS_WORKSPACE_BYTES


def test_owners_add_up_to_the_peak() -> None:
    with SimulatedDevice(HUGE) as device:
        Training(cnn, adamw).run(device, batch_size=24, steps=3)
        stats = device.stats()
    assert sum(stats.peak_categories.values()) == stats.live_peak_bytes
    assert stats.peak_categories[Category.ACTIVATIONS] > 0
    assert stats.peak_categories[Category.INPUTS] == rounded(24 * 256 * 4) + 512


def test_states_of_a_resumed_optimizer_are_on_the_card() -> None:
    model = mlp()
    optimizer = adamw(model)
    micro_step(model, random_batch(4)).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    optimizer.zero_grad()
    with SimulatedDevice(HUGE) as device:
        device.track_model(model)
        device.track_optimizer(optimizer)
        assert device.stats().live_bytes == 3 * parameter_bytes(model)  # step counts stay on the host


def smallest_room(training: Training, batch_size: int) -> int:
    """By replay: the fewest bytes, in steps of 2 MiB, with which the training does not run out."""
    table = EventTable.of(trace_training(training, batch_size=batch_size, card=HUGE))
    low, high = 0, 1 << 12
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if replay_table(table, limit_bytes=middle * 2 * MIB).out_of_memory else (low, middle)
    return high * 2 * MIB


@pytest.mark.parametrize(
    "training", [Training(cnn, adamw), Training(mlp, adamw), Training(Residual, sgd_momentum, accumulation=2)]
)
def test_runs_out_exactly_when_the_replica_says_so(training: Training) -> None:
    room = smallest_room(training, 64)
    assert room > 0
    with SimulatedDevice(card_with_room(room)) as device:
        training.run(device, batch_size=64)
    with SimulatedDevice(card_with_room(room - 2 * MIB)) as device, pytest.raises(torch.OutOfMemoryError):
        training.run(device, batch_size=64)


def test_other_processes_take_room() -> None:
    training = Training(mlp, adamw)
    room = smallest_room(training, 64)
    card = card_with_room(room + 100 * MIB)
    with SimulatedDevice(card, others_bytes=102 * MIB) as device:
        with pytest.raises(torch.OutOfMemoryError):
            training.run(device, batch_size=64)
        device.set_others(100 * MIB)
        device.release()
        training.run(device, batch_size=64)
        with pytest.raises(ValueError, match="negative"):
            device.set_others(-1)


def test_the_message_is_torchs_own() -> None:
    card = card_with_room(100 * MIB)
    with SimulatedDevice(card, others_bytes=10 * MIB) as device:
        model = nn.Linear(1024, 1024, bias=False)
        device.track_model(model)
        with device.scope(), pytest.raises(torch.OutOfMemoryError) as caught:
            torch.empty(128 * MIB, dtype=torch.uint8)
    context = card.capacity_bytes - 100 * MIB
    message = str(caught.value)
    assert message.startswith("CUDA out of memory. Tried to allocate 128.00 MiB. GPU 0 has a total capacity of ")
    assert f"of which {90 - 20:.2f} MiB is free. " in message
    process = re.search(r"Including non-PyTorch memory, this process has ([\d.]+) MiB memory in use\.", message)
    assert process is not None
    assert float(process[1]) == pytest.approx((context + 20 * MIB) / MIB)
    assert "4.00 MiB is allocated by PyTorch, and 16.00 MiB is reserved by PyTorch but unallocated." in message


def run_until_full(device: SimulatedDevice, phase: Phase) -> list[weakref.ref[torch.Tensor]]:
    """One step that runs out in this phase; references to tensors that it made and must not keep alive."""
    model = cast(nn.Sequential, mlp(1024))
    optimizer = adamw(model)
    device.track_model(model)
    device.track_optimizer(optimizer)
    held: list[weakref.ref[torch.Tensor]] = []
    fill = 0

    def step() -> None:
        nonlocal fill
        device.phase(Phase.FORWARD)
        images, targets = (device.place(tensor) for tensor in random_batch(512))
        held.append(weakref.ref(images))
        with device.scope():
            if phase is Phase.FORWARD:
                device.set_others(device.card.capacity_bytes)
            hidden = model[1](model[0](images))
            held.append(weakref.ref(hidden))
            loss = nn.functional.cross_entropy(model[2:](hidden), targets)
            held.append(weakref.ref(loss))
            device.phase(Phase.BACKWARD)
            if phase is Phase.BACKWARD:
                device.set_others(device.card.capacity_bytes)
            loss.backward()  # type: ignore[no-untyped-call]
            del loss, hidden
            device.phase(Phase.OPTIMIZER)
            device.set_others(device.card.capacity_bytes)
            optimizer.step()

    message = ""
    try:
        step()
    except torch.OutOfMemoryError as error:
        message = str(error)
    assert message
    optimizer.zero_grad(set_to_none=True)
    optimizer.state.clear()
    device.release()
    stats = device.stats()
    assert stats.live_bytes == parameter_bytes(model)  # the workspaces of cuBLAS are given back too
    assert stats.returnable_bytes == 0
    return held


@pytest.mark.parametrize("phase", [Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER])
def test_nothing_is_left_of_a_step_that_ran_out(phase: Phase) -> None:
    with SimulatedDevice(card_with_room(400 * MIB)) as device:
        held = run_until_full(device, phase)
    assert [reference() for reference in held] == [None] * len(held)


def test_a_new_run_fits_after_the_old_one_ran_out() -> None:
    training = Training(mlp, adamw)
    room = smallest_room(training, 64)
    with SimulatedDevice(card_with_room(room)) as device:
        ran_out = False
        try:
            Training(lambda: mlp(4096), adamw).run(device, batch_size=64)
        except torch.OutOfMemoryError:
            ran_out = True
        assert ran_out
        device.release()
        assert device.stats().live_bytes <= 2 * CUBLAS_WORKSPACE_BYTES
        training.run(device, batch_size=64)


def test_a_model_or_a_batch_that_is_too_large_is_refused() -> None:
    with SimulatedDevice(card_with_room(8 * MIB)) as device:
        with pytest.raises(torch.OutOfMemoryError):
            device.track_model(nn.Linear(4096, 4096))
        with pytest.raises(torch.OutOfMemoryError):
            device.place(torch.empty(64 * MIB, dtype=torch.uint8))
        gc.collect()
        device.release()
        assert device.stats().live_bytes == 0


def test_cudnn_does_without_a_workspace_when_there_is_no_room() -> None:
    convolution = nn.Conv2d(32, 128, 3, padding=1)
    images = torch.zeros(1, 32, 32, 32)  # 0.125 MiB in, 0.5 MiB out, more than 1 MiB of workspace, so in 20 MiB
    card = dataclasses.replace(card_with_room(12 * MIB), compute_capability=(8, 6))
    with SimulatedDevice(card) as device, torch.no_grad():
        device.place(images)
        with device.scope():
            convolution(images)
        stats = device.stats()
    assert stats.reserved_peak_bytes == 2 * MIB
    assert stats.alloc_retries > 0


def test_a_view_of_the_data_set_is_copied_and_a_tensor_of_its_own_is_not() -> None:
    data = torch.arange(4096.0)
    with SimulatedDevice(HUGE) as device:
        first = device.place(data[:256])
        assert first.untyped_storage().nbytes() == 1024
        assert torch.equal(first, data[:256])
        assert device.stats().live_bytes == 1024
        whole = torch.zeros(128)
        assert device.place(whole) is whole
        again = device.place(whole)
        assert again is not whole
        assert device.stats().live_bytes == 1024 + 512 + 512
        del first, whole, again
        assert device.stats().live_bytes == 0


def test_the_load_follows_the_reserve_and_ends_with_the_process() -> None:
    load = CardLoad()
    device = SimulatedDevice(HUGE, load=load)
    assert (load.reserved_bytes, load.outside_bytes) == (0, device.outside_bytes)
    batch = device.place(torch.zeros(4 * MIB, dtype=torch.uint8))
    assert load.reserved_bytes == 20 * MIB
    del batch
    device.release()
    assert load.reserved_bytes == 0
    device.close()
    device.close()
    assert (load.reserved_bytes, load.outside_bytes) == (0, 0)


def test_the_context_is_the_median_or_drawn_by_the_seed() -> None:
    card = CardSpec("card", 6 * GIB, 6 * GIB, "Turing", (7, 5), 22)
    median = ContextPrior.of(card).quantile(0.5)
    assert SimulatedDevice(card).outside_bytes == SimulatedDevice(card).stats().outside_bytes == median
    assert SimulatedDevice(card, seed=7).outside_bytes == SimulatedDevice(card, seed=7).outside_bytes
    assert len({SimulatedDevice(card, seed=seed).outside_bytes for seed in range(8)}) > 3


def test_a_run_in_another_thread_than_the_one_that_made_the_device() -> None:
    device = SimulatedDevice(HUGE)
    expected = SimulatedDevice(HUGE)
    Training(cnn, adamw).run(expected, batch_size=8)
    thread = threading.Thread(target=lambda: Training(cnn, adamw).run(device, batch_size=8))
    thread.start()
    thread.join(60)
    assert device.stats().live_peak_bytes == expected.stats().live_peak_bytes
    assert device.stats().live_bytes == expected.stats().live_bytes
    device.close()
    expected.close()


# One step, written down


@pytest.mark.parametrize("training", [Training(cnn, adamw), Training(Residual, sgd_momentum, accumulation=2)])
def test_a_recorded_step_is_that_of_the_trace(training: Training) -> None:
    trace = trace_training(training, batch_size=8, card=HUGE)
    with SimulatedDevice(HUGE) as device:
        recorder = StepByStep(device, record_before=2)
        training.run(recorder, batch_size=8, steps=3)
        recorded = device.recorded_step()
    assert recorded is not None
    made, traced = (
        [
            (event.key > 0, event.size_bytes, event.op, event.phase, event.category, event.module)
            for event in events
            if event.step == step and event.phase is not Phase.VALIDATION
        ]
        for events, step in ((recorded, 1), (trace.events, 2))
    )
    assert made == traced[: len(made)]
    # When the step is over the trace lets images, targets and loss go.
    assert [event[0] for event in traced[len(made) :]] == [False] * 3
    before = [event for event in recorded if event.step == 0]
    named = {event.module for event in before if event.category is Category.PARAMETERS}
    assert named == {
        name for name, module in training.model().named_modules() if list(module.parameters(recurse=False))
    }


class StepByStep:
    """A device whose step number so and so is recorded."""

    def __init__(self, device: SimulatedDevice, *, record_before: int) -> None:
        self._device = device
        self._zeros = 0
        self._record_before = record_before

    def phase(self, phase: Phase) -> None:
        self._device.phase(phase)
        self._zeros += phase is Phase.ZERO
        if phase is Phase.ZERO and self._zeros == self._record_before - 1:
            self._device.record_step()

    def __getattr__(self, name: str) -> object:
        return getattr(self._device, name)


def test_a_step_that_is_not_recorded_goes_straight_to_the_card() -> None:
    training = Training(mlp, adamw)
    with SimulatedDevice(HUGE) as device:
        training.run(device, batch_size=8)
        assert device.recorded_step() is None
        assert device._tracker.ledger is device._ledger
        assert device._tracker._modules is None


def test_a_step_that_runs_out_leaves_no_recording_behind() -> None:
    with SimulatedDevice(card_with_room(400 * MIB)) as device:
        device.record_step()
        run_until_full(device, Phase.BACKWARD)
        assert device._tracker.ledger is device._ledger
        assert device.recorded_step() is None
