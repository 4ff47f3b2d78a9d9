"""A training small enough for tests: numbers in two classes, a sink that keeps everything, a card that fills up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from desktop_app.core.events import Event
from desktop_app.core.steps import (
    Category,
    MemoryStats,
    Phase,
    PhaseSample,
    RunState,
    RunStatus,
    StepSample,
    ValidationSample,
)
from desktop_app.training.config import RunConfig
from desktop_app.training.devices import CpuDevice
from desktop_app.training.recipes.data import Batch, DataInfo, PreparedData

FEATURES = 6


class RecordingSink:
    """Keeps what it is told and sets an event per state; ``hooks`` are called with each step's number."""

    def __init__(self) -> None:
        self.statuses: list[RunStatus] = []
        self.steps: list[StepSample] = []
        self.phases: list[PhaseSample] = []
        self.validations: list[ValidationSample] = []
        self.events: list[Event] = []
        self.reached = {state: threading.Event() for state in RunState}
        self.on_each_step: Callable[[StepSample], None] = lambda _: None
        self.on_each_phase: Callable[[PhaseSample], None] = lambda _: None

    def on_status(self, status: RunStatus) -> None:
        self.statuses.append(status)
        self.reached[status.state].set()

    def on_step(self, sample: StepSample) -> None:
        self.steps.append(sample)
        self.on_each_step(sample)

    def on_phase(self, sample: PhaseSample) -> None:
        self.phases.append(sample)
        self.on_each_phase(sample)

    def on_validation(self, sample: ValidationSample) -> None:
        self.validations.append(sample)

    def on_event(self, event: Event) -> None:
        self.events.append(event)

    def codes(self) -> list[str]:
        return [event.code for event in self.events]

    def losses(self) -> list[float | None]:
        return [sample.loss for sample in self.steps]


class NumberBatches:
    """Rows of numbers by batch; the order of each epoch is its own."""

    def __init__(self, rows: Tensor, labels: Tensor, *, batch_size: int) -> None:
        self._rows = rows
        self._labels = labels
        self._batch_size = batch_size

    @property
    def samples(self) -> int:
        return len(self._labels)

    @property
    def batches(self) -> int:
        return self.samples // self._batch_size

    def batch(self, *, epoch: int, index: int) -> Batch:
        order = torch.randperm(self.samples, generator=torch.Generator().manual_seed(epoch))
        chosen = order[index * self._batch_size : (index + 1) * self._batch_size]
        return Batch(self._rows[chosen], self._labels[chosen])


class NumberRecipe:
    """Batch norm and dropout, so that a resumed run is equal only if buffers and random state come back too."""

    name = "numbers"

    def __init__(self, *, dtype: torch.dtype = torch.float32, spoil_from_step: int | None = None) -> None:
        self._dtype = dtype
        self._spoil_from = spoil_from_step
        self._calls = 0

    def describe(self, config: RunConfig) -> DataInfo:
        return self.prepare(config).info

    def prepare(self, config: RunConfig, *, cancelled: Callable[[], bool] | None = None) -> PreparedData:  # noqa: ARG002
        random = torch.Generator().manual_seed(7)
        rows = torch.randn(60, FEATURES, generator=random, dtype=torch.float64).to(self._dtype)
        labels = (rows.sum(1) > 0).long()
        info = DataInfo(("low", "high"), 1, 8, 48, 12)
        train = NumberBatches(rows[:48], labels[:48], batch_size=config.batch_size)
        validation = NumberBatches(rows[48:], labels[48:], batch_size=6)
        return PreparedData(info, train, validation, (24, 24), "numbers")

    def model(self, config: RunConfig, info: DataInfo) -> nn.Module:  # noqa: ARG002
        return nn.Sequential(
            nn.Linear(FEATURES, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.25), nn.Linear(8, len(info.classes))
        ).to(self._dtype)

    def optimizer(self, config: RunConfig, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(model.parameters(), lr=config.learning_rate, foreach=config.foreach)

    def example_batch(self, info: DataInfo, *, batch_size: int, device: Any) -> Batch:  # noqa: ARG002
        return Batch(
            torch.zeros(batch_size, FEATURES, dtype=self._dtype, device=device),
            torch.zeros(batch_size, dtype=torch.int64, device=device),
        )

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        logits: Tensor = model(batch.inputs)
        loss = nn.functional.cross_entropy(logits, batch.targets)
        self._calls += 1
        if self._spoil_from is not None and self._calls >= self._spoil_from:
            loss = loss * float("nan")
        return loss, logits


class FillingDevice(CpuDevice):
    """A card that is full at the first op (whose name has ``at_op`` in it) of one phase of one step, as a real one is:
    from inside the op."""

    card_name: str | None = "Filling"
    capacity_bytes: int | None = 6 << 30

    def __init__(self, phase: Phase, *, step: int, error: Callable[[], BaseException], at_op: str = "") -> None:
        self._target = phase
        self._at_op = at_op
        self._countdown = step
        self._error = error
        self._phase = Phase.BUILD
        self.released = 0

    def phase(self, phase: Phase) -> None:
        before, self._phase = self._phase, phase
        stands_in = phase is Phase.OPTIMIZER and before is not Phase.BACKWARD  # for state that is not made yet
        if phase is self._target and not stands_in:
            self._countdown -= 1

    @contextmanager
    def step_scope(self) -> Iterator[None]:
        with _Raising(self):
            yield

    def is_full(self, op: str) -> bool:
        return self._phase is self._target and self._countdown == 0 and self._at_op in op

    def stats(self) -> MemoryStats:
        return MemoryStats(
            live_bytes=1,
            live_peak_bytes=4,
            reserved_bytes=4,
            reserved_peak_bytes=4,
            idle_split_bytes=0,
            returnable_bytes=0,
            alloc_retries=0,
            outside_bytes=0,
            peak_categories={Category.PARAMETERS: 1, Category.ACTIVATIONS: 3, Category.OTHER: 0},
        )

    def release(self) -> None:
        self.released += 1
        self._countdown = -1

    def raise_error(self) -> None:
        raise self._error()


class _Raising(TorchDispatchMode):
    def __init__(self, device: FillingDevice) -> None:
        super().__init__()
        self._device = device

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._device.is_full(str(func)):
            self._device.raise_error()
        return func(*args, **(kwargs or {}))


class HandClock:
    """A monotonic clock that moves only when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now
