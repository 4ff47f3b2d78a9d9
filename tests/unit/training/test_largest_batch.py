"""What the estimate calls the largest batch runs on the simulated card, and one sample more runs out of memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from desktop_app.core.clock import SessionClock
from desktop_app.core.forecasts import Estimate
from desktop_app.core.load import CardLoad
from desktop_app.core.steps import RunState
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.estimate import WARN_LIMITED_BY_DATA
from desktop_app.memory.simulated_device import SimulatedDevice
from desktop_app.memory.tracer_process import TracerProcess
from desktop_app.services.estimate_cards import exact_context_bytes
from desktop_app.training.config import RunConfig, field_spec
from desktop_app.training.control import ControlToken
from desktop_app.training.devices import SimulatedCudaDevice
from desktop_app.training.estimation import estimate_run
from desktop_app.training.loop import Trainer
from desktop_app.training.recipes.data import Batch, DataInfo, PreparedData
from desktop_app.training.recipes.recipe import RECIPES

from .doubles import RecordingSink

MIB = 1 << 20
CARD = CardSpec("Small", 1024 * MIB, 1024 * MIB, "ampere", (8, 6), 14)
MODELS = field_spec("model").choices
STEPS = 3  # what is cached after two steps can be missing in the third
INFO = DataInfo(("cats", "dogs"), 1, 16, 10**7, 10**7)
CONFIG = RunConfig(
    image_size=16, width=8, batch_size=8, epochs=1, augment=False, cpu_threads=1, checkpoint_every_epochs=0
)
# Enough of the card that two workspaces of cuBLAS fit, and so little that batches stay small.
FREE_BYTES = {"small-cnn": 44 * MIB, "wide-mlp": 40 * MIB}


class Black:
    """As many black images as are asked for."""

    def __init__(self, *, batch_size: int, batches: int) -> None:
        self._batch_size = batch_size
        self.batches = batches
        self.samples = batch_size * batches

    def batch(self, *, epoch: int, index: int) -> Batch:  # noqa: ARG002
        images = torch.zeros((self._batch_size, INFO.channels, INFO.image_size, INFO.image_size), dtype=torch.uint8)
        return Batch(images, torch.zeros(self._batch_size, dtype=torch.int64))


@pytest.fixture(scope="module")
def tracer() -> Iterator[TracerProcess]:
    with TracerProcess(hide_cards=True) as made:
        made.start()
        yield made


def train(config: RunConfig, free_bytes: int) -> RunState:
    batches = STEPS * config.accumulation
    data = PreparedData(
        INFO,
        Black(batch_size=config.batch_size, batches=batches),
        Black(batch_size=config.batch_size, batches=1),
        class_counts=(1, 1),
        fingerprint="black",
    )
    with SimulatedDevice(CARD) as device:
        device.set_others(CARD.capacity_bytes - device.outside_bytes - free_bytes)
        trainer = Trainer(
            RECIPES[config.recipe],
            config,
            data,
            device=SimulatedCudaDevice(device),
            sink=RecordingSink(),
            token=ControlToken(),
            clock=SessionClock(),
            load=CardLoad(),
            threads=1,
        )
        return trainer.run().state


def ask(config: RunConfig, free_bytes: int, tracer: TracerProcess, info: DataInfo = INFO) -> Estimate:
    context_bytes = exact_context_bytes(CARD)
    return estimate_run(
        config,
        CARD,
        info=info,
        trace=tracer,
        others_bytes=CARD.capacity_bytes - context_bytes - free_bytes,
        context_bytes=context_bytes,
        workspaces_known=True,
        with_levers=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"precision": "bf16"}, {"accumulation": 2}, {"optimizer": "sgd"}], ids=str)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_largest_batch_runs_and_one_more_does_not(
    recipe: str, model: str, changes: dict[str, Any], tracer: TracerProcess
) -> None:
    config = replace(CONFIG, recipe=recipe, model=model, hidden=512 if model == "wide-mlp" else 32, **changes)
    answer = ask(config, FREE_BYTES[model], tracer)
    largest = answer.largest_batch
    assert largest is not None
    assert largest > 8
    assert train(replace(config, batch_size=largest), FREE_BYTES[model]) is RunState.FINISHED
    assert train(replace(config, batch_size=largest + 1), FREE_BYTES[model]) is RunState.OUT_OF_MEMORY
    assert WARN_LIMITED_BY_DATA not in answer.warnings


def test_no_batch_is_larger_than_the_data(tracer: TracerProcess) -> None:
    few = replace(INFO, train_samples=10)
    answer = ask(replace(CONFIG, accumulation=2), FREE_BYTES["small-cnn"], tracer, few)
    assert answer.largest_batch == 5
    assert WARN_LIMITED_BY_DATA in answer.warnings
