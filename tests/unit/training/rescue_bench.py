"""What the tests of rescues share: a recipe that is equal to the last bits however it is split, narrow cards, a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from desktop_app.core.clock import SessionClock
from desktop_app.core.events import Event, EventKind
from desktop_app.core.steps import Phase
from desktop_app.memory.overheads import CardSpec
from desktop_app.memory.simulated_device import SimulatedDevice
from desktop_app.training.config import RunConfig
from desktop_app.training.control import ControlToken
from desktop_app.training.devices import CpuDevice, SimulatedCudaDevice
from desktop_app.training.loop import Trainer
from desktop_app.training.outcome import RunOutcome
from desktop_app.training.recipes.data import Batch, BatchSource, DataInfo
from desktop_app.training.recipes.recipe import RECIPES

from .doubles import FillingDevice, NumberRecipe, RecordingSink

CONFIG = RunConfig(
    batch_size=8, epochs=2, log_every_steps=1, warmup_steps=2, checkpoint_every_epochs=0, on_oom="shrink"
)  # 6 steps an epoch
FULL = (
    "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 5.00 GiB of which 1.00 MiB is free."
)
WAIT_S = 20.0


def full() -> BaseException:
    return torch.OutOfMemoryError(FULL)


class PlainRecipe(NumberRecipe):
    """No batch statistics and nothing random: equal to the last bits however a batch is split."""

    def __init__(self) -> None:
        super().__init__(dtype=torch.float64)

    def model(self, config: RunConfig, info: DataInfo) -> nn.Module:  # noqa: ARG002
        return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, len(info.classes))).double()


class NarrowDevice(FillingDevice):
    """A card with room for so many samples in the phases named, however often it is tried."""

    def __init__(self, samples: int, *phases: Phase, from_step: int = 1) -> None:
        super().__init__(Phase.BUILD, step=0, error=full)
        self._samples = samples
        self._phases = phases
        self._steps_left = from_step
        self._placed = 0
        self.placed: list[int] = []
        self.refusals: list[tuple[Phase, int]] = []

    def place(self, batch: Batch) -> Batch:
        self._placed = batch.samples
        self.placed.append(batch.samples)
        return batch

    def phase(self, phase: Phase) -> None:
        if phase is Phase.ZERO:
            self._steps_left -= 1
        self._phase = phase

    def is_full(self, op: str) -> bool:  # noqa: ARG002
        refused = self._phase in self._phases and self._steps_left <= 1 and self._placed > self._samples
        if refused:
            self.refusals.append((self._phase, self._placed))
        return refused


def train(
    config: RunConfig = CONFIG,
    *,
    recipe: NumberRecipe | None = None,
    sink: RecordingSink | None = None,
    token: ControlToken | None = None,
    **options: Any,
) -> tuple[RunOutcome, RecordingSink]:
    sink, recipe = sink or RecordingSink(), recipe or PlainRecipe()
    trainer = Trainer(
        recipe,
        config,
        recipe.prepare(config),
        device=options.pop("device", None) or CpuDevice(),
        sink=sink,
        token=token or ControlToken(),
        clock=SessionClock(),
        threads=1,
        **options,
    )
    return trainer.run(), sink


def events_of(sink: RecordingSink, kind: EventKind) -> list[Event]:
    return [event for event in sink.events if event.kind is kind]


def halved_from(step: int, folder: Path, make: Callable[[], NumberRecipe], config: RunConfig = CONFIG) -> list[Any]:
    """Losses of a run whose config has half the micro-batch and twice the accumulation from ``step`` on."""
    config = replace(config, output_dir=str(folder))
    token, first = ControlToken(), RecordingSink()
    first.on_each_step = lambda sample: token.stop(save=True) if sample.step == step - 1 else None
    train(config, recipe=make(), sink=first, token=token)
    halves = replace(config, batch_size=config.batch_size // 2, accumulation=2 * config.accumulation)
    _, second = train(halves, recipe=make(), resume_from=folder / "last.pt")
    return first.losses() + second.losses()


class Few:
    """The first batches of a source."""

    def __init__(self, source: BatchSource, batches: int) -> None:
        self._source = source
        self.batches = batches
        self.samples = batches * source.batch(epoch=1, index=0).samples

    def batch(self, *, epoch: int, index: int) -> Batch:
        return self._source.batch(epoch=epoch, index=index)


def train_on_card(config: RunConfig, *, free_mib: int | None) -> tuple[RunOutcome, RecordingSink]:
    """Three steps and a validation of the built-in recipe on a card of which context and others leave ``free_mib``."""
    mib, recipe, sink = 1 << 20, RECIPES[config.recipe], RecordingSink()
    card = CardSpec("Small", 2048 * mib, 2048 * mib, "turing", (7, 5), 14)
    data = recipe.prepare(config)
    few = min(data.train.batches, 3 * config.accumulation)
    data = replace(data, train=Few(data.train, few), validation=Few(data.validation, 1))
    with SimulatedDevice(card) as memory:
        if free_mib is not None:
            memory.set_others(card.capacity_bytes - memory.outside_bytes - free_mib * mib)
        device, token = SimulatedCudaDevice(memory), ControlToken()
        return Trainer(
            recipe, config, data, device=device, sink=sink, token=token, clock=SessionClock(), threads=1
        ).run(), sink


def losses_of(sink: RecordingSink) -> list[float]:
    return [loss for loss in sink.losses() if loss is not None]


CARD_RUN = RunConfig(batch_size=64, width=32, epochs=1, augment=False, on_oom="shrink", log_every_steps=1)
