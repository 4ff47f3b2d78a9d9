"""The built-in data are learnt, fast and reproducibly."""

from __future__ import annotations

import pytest

from desktop_app.core.clock import SessionClock
from desktop_app.core.steps import RunState
from desktop_app.training.config import RunConfig
from desktop_app.training.control import ControlToken
from desktop_app.training.devices import CpuDevice
from desktop_app.training.loop import Trainer
from desktop_app.training.recipes.recipe import RECIPES

from .doubles import RecordingSink


@pytest.mark.slow
def test_cats_and_dogs_are_told_apart_after_four_epochs() -> None:
    """Four epochs, 100 steps: far from done, and guessing is at 0.5."""
    config = RunConfig(width=8, epochs=4, seed=3)
    recipe, sink = RECIPES[config.recipe], RecordingSink()
    outcome = Trainer(
        recipe,
        config,
        recipe.prepare(config),
        device=CpuDevice(),
        sink=sink,
        token=ControlToken(),
        clock=SessionClock(),
        threads=1,
    ).run()
    assert outcome.state is RunState.FINISHED
    assert outcome.status.accuracy_best is not None
    assert outcome.status.accuracy_best >= 0.85
    losses = [sample.loss for sample in sink.steps if sample.loss is not None]
    assert losses[-1] < losses[0] / 2
    assert sink.events == []
