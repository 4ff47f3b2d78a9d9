"""An update that has no room: made tensor by tensor, put back when it was torn, rehearsed so that it is not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from desktop_app.core.events import EventKind
from desktop_app.core.steps import MemoryStats, Phase, RunState, StepSample
from desktop_app.memory.overheads import CardSpec
from desktop_app.memory.simulated_device import SimulatedDevice
from desktop_app.training.devices import SimulatedCudaDevice
from desktop_app.training.optimizer_memory import first_step_demand, rehearse_step

from .doubles import FillingDevice, RecordingSink
from .rescue_bench import (
    CONFIG,
    events_of,
    full,
    train,
)


def test_clipping_that_runs_out_of_memory_is_repeated() -> None:
    device = FillingDevice(Phase.OPTIMIZER, step=4, error=full, at_op="foreach_norm")
    outcome, sink = train(device=device)
    assert outcome.state is RunState.FINISHED
    assert sink.losses() == pytest.approx(train()[1].losses(), abs=1e-12)


class RoomForUpdates(FillingDevice):
    """A card without room for what an update allocates, until something was given back."""

    def __init__(self, *, step: int) -> None:
        super().__init__(Phase.OPTIMIZER, step=step, error=full)
        self._step = step

    def phase(self, phase: Phase) -> None:
        self._phase = phase
        self._step -= phase is Phase.ZERO

    def is_full(self, op: str) -> bool:
        return self._phase is Phase.OPTIMIZER and self._step <= 1 and "empty_like" in op and self.released == 0

    def stats(self) -> MemoryStats:
        return replace(super().stats(), live_bytes=self._step)  # what has changed, so that it may not fit any more


@pytest.mark.parametrize("step", [1, 4])
def test_a_full_update_is_made_tensor_by_tensor_and_nothing_was_half_updated(step: int) -> None:
    """The rehearsal runs out of memory, not the update: no state to go back to is needed."""
    outcome, sink = train(device=RoomForUpdates(step=step))
    assert outcome.state is RunState.FINISHED
    assert [sample.step for sample in sink.steps] == list(range(1, 13))
    assert sink.losses() == pytest.approx(train()[1].losses(), abs=1e-12)
    (rescue,) = outcome.status.rescues
    assert (rescue.phase, rescue.batch_size, rescue.rescued_batch_size) == (Phase.OPTIMIZER, 8, 8)
    assert events_of(sink, EventKind.RESCUE)[0].code == "rescue.update"


def test_no_batch_is_made_smaller_for_an_update_that_fits_after_none() -> None:
    device = RoomForUpdates(step=2)
    device.release = lambda: None  # type: ignore[method-assign] # whatever is given back
    outcome, sink = train(device=device)
    assert outcome.state is RunState.OUT_OF_MEMORY
    assert [event.code for event in events_of(sink, EventKind.RESCUE)] == ["rescue.update"]
    assert outcome.status.step == 1
    assert outcome.oom is not None
    assert (outcome.oom.phase, outcome.oom.batch_size, outcome.oom.fits_no_batch) == (Phase.OPTIMIZER, 8, True)


@pytest.mark.parametrize(("every", "back_to"), [(0, 0), (1, 6)])
def test_after_a_torn_update_the_run_goes_back_to_a_whole_state(tmp_path: Path, every: int, back_to: int) -> None:
    """The moments are of step 8, the parameters of step 7: back to the newest checkpoint, or to the beginning."""
    config = replace(CONFIG, output_dir=str(tmp_path), checkpoint_every_epochs=every)
    device = FillingDevice(Phase.OPTIMIZER, step=8, error=full, at_op="foreach_sqrt")
    outcome, sink = train(config, device=device)
    assert outcome.state is RunState.FINISHED
    assert [sample.step for sample in sink.steps] == [*range(1, 8), *range(back_to + 1, 13)]
    whole = train(replace(config, output_dir=None))[1].losses()
    assert sink.losses() == pytest.approx(whole[:7] + whole[back_to:], abs=1e-12)
    assert outcome.status.step == 12


@pytest.mark.parametrize("kind", ["adamw", "adam", "sgd", "momentum"])
@pytest.mark.parametrize("foreach", [True, False])
def test_a_rehearsal_asks_for_what_the_update_asks_for(kind: str, foreach: bool) -> None:
    """By the books of a simulated card: the update that follows asks the driver for nothing more."""
    mib = 1 << 20
    card = CardSpec("Small", 2048 * mib, 2048 * mib, "turing", (7, 5), 14)
    model = nn.Sequential(nn.Linear(700, 900), nn.Linear(900, 1100), nn.Linear(1100, 10))
    options: dict[str, Any] = {"lr": 1e-3, "foreach": foreach}
    optimizer: torch.optim.Optimizer
    if kind in ("adamw", "adam"):
        make = torch.optim.AdamW if kind == "adamw" else torch.optim.Adam
        optimizer = make(model.parameters(), weight_decay=0.01, **options)
    else:
        optimizer = torch.optim.SGD(
            model.parameters(), momentum=0.9 if kind == "momentum" else 0.0, weight_decay=0.01, **options
        )
    with SimulatedDevice(card) as device:
        device.track_model(model)
        device.track_optimizer(optimizer)
        for _ in ("first", "later"):
            device.phase(Phase.FORWARD)
            with device.scope():
                loss = model(torch.ones(2, 700)).sum()
                device.phase(Phase.BACKWARD)
                loss.backward()
                del loss
                device.phase(Phase.OPTIMIZER)
                demand = first_step_demand(optimizer)
                assert demand is not None
                before = device.stats()
                device.reset_peaks()
                rehearse_step(optimizer)
                rehearsed = device.stats()
                assert rehearsed.live_bytes == before.live_bytes
                asked = rehearsed.live_peak_bytes - before.live_bytes
                assert demand.total_bytes <= asked <= demand.total_bytes + mib  # blocks of the cache may be larger
                device.reset_peaks()
                optimizer.step()
                updated = device.stats()
                assert updated.reserved_peak_bytes == rehearsed.reserved_peak_bytes
                optimizer.zero_grad(set_to_none=True)


def test_an_update_is_rehearsed_when_something_has_changed_and_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first two updates differ, since the first makes the state; then every one is like the last."""
    import desktop_app.training.optimizer_memory as memory

    rehearse, at = memory.rehearse_step, [0]
    rehearsed: list[int] = []
    kept: list[torch.Tensor] = []

    def note(optimizer: torch.optim.Optimizer) -> None:
        rehearsed.append(at[0] + 1)
        rehearse(optimizer)

    monkeypatch.setattr(memory, "rehearse_step", note)
    card = CardSpec("Small", 2 << 30, 2 << 30, "turing", (7, 5), 14)
    with SimulatedDevice(card) as simulated:

        def step(sample: StepSample) -> None:
            at[0] = sample.step
            if sample.step == 6:
                kept.append(simulated.place(torch.zeros(100)))  # 512 bytes more are live

        sink = RecordingSink()
        sink.on_each_step = step
        outcome, _ = train(device=SimulatedCudaDevice(simulated), sink=sink)
    assert outcome.state is RunState.FINISHED
    assert rehearsed == [1, 2, 7]
