"""Where the runs of ``oom_on_card`` are made, and one run with a forecaster that listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from desktop_app.core.clock import SessionClock
from desktop_app.core.events import Event
from desktop_app.core.forecasts import Alert, AlertSeverity
from desktop_app.core.steps import MemoryStats, PhaseSample, RunStatus, StepSample, ValidationSample
from desktop_app.core.units import GIB
from desktop_app.forecast.forecaster import Forecaster, Update
from desktop_app.training.config import RunConfig
from desktop_app.training.control import ControlToken


class Card(Protocol):
    """Where the runs are made. ``room_bytes``: what the allocator may take."""

    @property
    def room_bytes(self) -> int: ...

    def device(self) -> Any:
        """A context manager that gives a ``TrainingDevice``."""

    def narrow(self, share: float) -> None:
        """In the midst of a run, between two steps: only so much of the room is left from now on."""

    def narrower(self, share: float) -> Card:
        """The same card with so much of the room from the start."""

    def arguments(self) -> list[str]:
        """The same card for another process of this script."""


class RealCard:
    """The first CUDA card, acting as one of ``gib``."""

    def __init__(self, gib: float) -> None:
        self.room_bytes = int(gib * GIB)

    def narrow(self, share: float) -> None:
        import torch

        torch.cuda.empty_cache()  # what is cached would go on serving
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, share * self.room_bytes / total), 0)

    def narrower(self, share: float) -> RealCard:
        return RealCard(share * self.room_bytes / GIB)

    def arguments(self) -> list[str]:
        return ["--gib", repr(self.room_bytes / GIB)]

    @contextmanager
    def device(self) -> Iterator[Any]:
        import torch

        from desktop_app.training.devices import CudaDevice

        device = CudaDevice(0)
        self.narrow(1.0)
        device.capacity_bytes = self.room_bytes
        try:
            yield device
        finally:
            device.close()
            torch.cuda.set_per_process_memory_fraction(1.0, 0)


class SimulatedCard:
    """A simulated card whose context and other processes leave ``room_bytes`` to the allocator."""

    def __init__(self, room_bytes: int) -> None:
        self.room_bytes = room_bytes
        self._memory: Any = None

    def narrow(self, share: float) -> None:
        self._memory.empty_cache()
        taken = self._card.capacity_bytes - self._memory.outside_bytes
        self._memory.set_others(taken - round(share * self.room_bytes))

    def narrower(self, share: float) -> SimulatedCard:
        return SimulatedCard(round(share * self.room_bytes))

    def arguments(self) -> list[str]:
        return ["--simulated-bytes", str(self.room_bytes)]

    @contextmanager
    def device(self) -> Iterator[Any]:
        from desktop_app.memory.overheads import CardSpec
        from desktop_app.memory.simulated_device import SimulatedDevice
        from desktop_app.training.devices import SimulatedCudaDevice

        self._card = CardSpec("Simulated", 24 * GIB, 24 * GIB, "ampere", (8, 6), 82)
        with SimulatedDevice(self._card) as memory:
            self._memory = memory
            self.narrow(1.0)
            yield SimulatedCudaDevice(memory)


@dataclass
class Listener:
    """The sink of a run: a forecaster, and a row of the trace for each step."""

    capacity_bytes: int
    outside_bytes: int
    alerts: list[Alert] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    rows: list[dict[str, object]] = field(default_factory=list)
    token: ControlToken = field(default_factory=ControlToken)
    most_steps: int = 10**9
    on_each_step: Callable[[int], None] = field(default=lambda _: None)

    def __post_init__(self) -> None:
        self.forecaster = Forecaster(capacity_bytes=self.capacity_bytes, outside_bytes=self.outside_bytes)

    def on_status(self, status: RunStatus) -> None:
        """What the application tells its forecaster of a run's length and its longest batch."""
        if status.total_steps is not None:
            per_epoch = status.total_steps // status.epochs
            self.forecaster.set_environment(total_steps=status.total_steps, steps_per_epoch=per_epoch)
        if status.longest_batch is not None:
            self.forecaster.set_environment(
                longest_batch=status.longest_batch, longest_batch_step=status.longest_batch_step
            )

    def on_validation(self, sample: ValidationSample) -> None: ...
    def on_event(self, event: Event) -> None: ...

    def on_step(self, sample: StepSample) -> None:
        self._take(self.forecaster.update_step(sample))
        if sample.loss is not None:
            self.losses.append(sample.loss)
        self.rows.append(self._row(sample))
        self.on_each_step(sample.step)
        if sample.step >= self.most_steps:
            self.token.stop(save=False)

    def on_phase(self, sample: PhaseSample) -> None:
        self._take(self.forecaster.update_phase(sample))

    def _take(self, update: Update) -> None:
        self.alerts += [alert for alert in update.changes.raised if alert.severity is not AlertSeverity.WATCH]

    def _row(self, sample: StepSample) -> dict[str, object]:
        memory = sample.memory
        assert memory is not None
        return {
            "t_s": round(sample.t_s, 4),
            "step": sample.step,
            "phase": "step",
            "live_after_bytes": memory.live_bytes,
            "live_peak_bytes": memory.live_peak_bytes,
            "reserved_peak_bytes": memory.reserved_peak_bytes,
            "idle_split_bytes": memory.idle_split_bytes,
            "alloc_retries": memory.alloc_retries,
            "capacity_bytes": self.capacity_bytes,
            "batch_samples": sample.batch_samples,
            "step_s": round(sample.step_s, 6),
        }


def doubles() -> Any:
    """The recipe of images with a model of doubles: whatever way a batch is cut, the losses are equal to 1e-6."""
    import torch
    from torch import nn

    from desktop_app.training.recipes.image_folder import ImageFolder

    class FromBytesToDoubles(nn.Module):
        def forward(self, images: Any) -> Any:
            return images.to(torch.float64).sub_(127.5).div_(127.5)

    class Doubles(ImageFolder):
        def model(self, config: RunConfig, info: Any) -> nn.Module:
            layers = list(super().model(config, info).children())
            return nn.Sequential(FromBytesToDoubles(), *layers[1:]).double()

    return Doubles()


def train(
    config: RunConfig,
    card: Card,
    *,
    fault: str | None = None,
    most_steps: int = 3000,
    recipe: Any = None,
    on_each_step: Callable[[int], None] = lambda _: None,
    **options: Any,
) -> tuple[Any, Listener]:
    """One run to its end, with a forecaster listening."""
    from desktop_app.training.loop import Trainer
    from desktop_app.training.recipes.faults import FAULTS
    from desktop_app.training.recipes.recipe import RECIPES

    mistake = None if fault is None else FAULTS[fault]()
    recipe = recipe or RECIPES[config.recipe]
    data = recipe.prepare(config)
    if mistake is not None:
        data = mistake.alter_data(data)
    with card.device() as device:
        stats: MemoryStats = device.stats()
        listener = Listener(
            card.room_bytes + stats.outside_bytes,
            stats.outside_bytes,
            most_steps=most_steps,
            on_each_step=on_each_step,
        )
        outcome = Trainer(
            recipe,
            config,
            data,
            device=device,
            sink=listener,
            token=listener.token,
            clock=SessionClock(),
            fault=mistake,
            **options,
        ).run()
    return outcome, listener
