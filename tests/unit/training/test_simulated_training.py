"""Real trainings on small simulated cards: what the estimate says is what the card sees, and it can be full."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from desktop_app.core.clock import SessionClock
from desktop_app.core.load import CardLoad
from desktop_app.core.steps import Phase, RunState
from desktop_app.memory.overheads import CardSpec
from desktop_app.memory.simulated_device import SimulatedDevice
from desktop_app.training.config import RunConfig
from desktop_app.training.control import ControlToken
from desktop_app.training.devices import SimulatedCudaDevice
from desktop_app.training.estimation import estimate_run
from desktop_app.training.loop import Trainer
from desktop_app.training.outcome import RunOutcome
from desktop_app.training.recipes.faults import FAULTS
from desktop_app.training.recipes.recipe import RECIPES

from .doubles import RecordingSink

MIB = 1 << 20
CONFIG = RunConfig(validation_fraction=0.9, batch_size=32, width=8, epochs=1, augment=False)  # 6 steps
CARD = CardSpec(
    name="Small",
    capacity_bytes=1024 * MIB,
    total_bytes=1024 * MIB,
    architecture="turing",
    compute_capability=(7, 5),
    sm_count=14,
)


def train(
    config: RunConfig,
    *,
    free_bytes: int | None = None,
    card: CardSpec = CARD,
    stop_at: int | None = None,
    **options: Any,
) -> tuple[RunOutcome, RecordingSink, CardLoad]:
    """``free_bytes``: what other processes and the context leave of the card."""
    recipe, sink, load, token = RECIPES[config.recipe], RecordingSink(), CardLoad(), ControlToken()
    sink.on_each_step = lambda sample: token.stop(save=False) if sample.step == stop_at else None
    with SimulatedDevice(card, load=load) as memory:
        if free_bytes is not None:
            memory.set_others(card.capacity_bytes - memory.outside_bytes - free_bytes)
        trainer = Trainer(
            recipe,
            config,
            recipe.prepare(config),
            device=SimulatedCudaDevice(memory),
            sink=sink,
            token=token,
            clock=SessionClock(),
            load=load,
            threads=1,
            **options,
        )
        return trainer.run(), sink, load


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"accumulation": 2, "batch_size": 16},
        {"optimizer": "adam", "foreach": False},
        {"optimizer": "sgd", "grad_clip": 0.0},
        {"model": "wide-mlp", "hidden": 512, "precision": "bf16"},
    ],
    ids=lambda changes: "-".join(map(str, changes.values())) or "default",
)
def test_the_estimate_is_what_the_card_sees(changes: dict[str, Any]) -> None:
    config = replace(CONFIG, **changes)
    forecast = estimate_run(config, CARD, with_levers=False)
    outcome, sink, _ = train(config)
    assert outcome.state is RunState.FINISHED
    seen = [sample.memory for sample in sink.steps if sample.memory is not None]
    assert len(seen) == 6
    live = max(memory.live_peak_bytes for memory in seen)
    assert live == pytest.approx(forecast.live_peak_bytes.p50, abs=16 * 1024)
    assert max(memory.reserved_peak_bytes for memory in seen) == forecast.reserved_peak_bytes.p50
    first = next(sample for sample in sink.phases if sample.phase is Phase.OPTIMIZER)
    assert first.known_demand_bytes == pytest.approx(forecast.optimizer_demand_bytes, abs=1024)
    # Between steps it holds the same each time: what a leak is told from.
    assert len({memory.live_bytes for memory in seen}) == 1


def test_memory_is_read_after_the_gradients_are_gone() -> None:
    _, sink, _ = train(replace(CONFIG, model="wide-mlp", hidden=512))
    memory = sink.steps[-1].memory
    assert memory is not None
    parameters = 4 * (785 * 512 + 513 * 512 + 513 * 2)
    # Parameters and two states, the cuBLAS workspaces, one batch; gradients would be another 2.6 MB.
    assert memory.live_bytes < 3.2 * parameters + 2 * 8_519_680 + 100_000


def test_the_first_update_is_announced_and_then_kills() -> None:
    config = replace(CONFIG, model="wide-mlp", hidden=1024, batch_size=16)
    outcome, sink, load = train(config, free_bytes=44 * MIB)
    assert outcome.state is RunState.OUT_OF_MEMORY
    assert outcome.oom is not None
    assert (outcome.oom.step, outcome.oom.phase) == (1, Phase.OPTIMIZER)
    assert outcome.oom.message.startswith("CUDA out of memory. Tried to allocate ")
    assert outcome.oom.capacity_bytes == CARD.capacity_bytes
    announced = next(sample for sample in sink.phases if sample.phase is Phase.OPTIMIZER)
    assert announced.step == 1
    assert announced.t_s <= outcome.oom.t_s
    assert announced.known_demand_bytes == pytest.approx(3 * 4 * (785 * 1024 + 1025 * 1024 + 1025 * 2), abs=4096)
    assert sink.steps == []
    assert load.reserved_bytes == 0  # the process has left the card


def test_a_leak_grows_by_the_same_each_step_until_the_card_is_full(tmp_path: Path) -> None:
    config = replace(CONFIG, epochs=50, output_dir=str(tmp_path), checkpoint_every_epochs=0)
    outcome, sink, _ = train(config, free_bytes=90 * MIB, fault=FAULTS["keeps-loss-graph"]())
    assert outcome.state is RunState.OUT_OF_MEMORY
    assert outcome.oom is not None
    assert outcome.oom.phase in (Phase.FORWARD, Phase.BACKWARD)
    assert outcome.oom.step == len(sink.steps) + 1
    troughs = [sample.memory.live_bytes for sample in sink.steps if sample.memory is not None]
    growth = [after - before for before, after in itertools.pairwise(troughs[2:])]
    assert len(growth) > 10
    assert max(growth) - min(growth) < 64 * 1024
    assert min(growth) > MIB
    assert (tmp_path / "last.pt").exists()
    largest = dict(outcome.oom.largest_owners)
    assert next(iter(largest)) == "activations"


@pytest.mark.slow
def test_the_advised_batch_fits_and_the_asked_one_does_not() -> None:
    config = replace(CONFIG, batch_size=160, image_size=112, width=16)
    small = estimate_run(replace(config, batch_size=16), CARD, with_levers=False)
    card = replace(CARD, capacity_bytes=small.device_peak_bytes.p95 + 16 * MIB)
    forecast = estimate_run(config, card)
    assert forecast.verdict.value == "does_not_fit"
    outcome, _, _ = train(config, card=card)
    assert outcome.state is RunState.OUT_OF_MEMORY
    assert forecast.largest_batch is not None
    assert 16 <= forecast.largest_batch < 160
    outcome, _, _ = train(replace(config, batch_size=forecast.largest_batch), card=card, stop_at=3)
    assert outcome.state is RunState.STOPPED
    assert outcome.status.step == 3
    codes = [lever.code for lever in forecast.levers]
    assert "batch_accumulate" in codes
    assert "bf16" not in codes  # Turing computes no bf16
    assert all(lever.saved_bytes > 0 for lever in forecast.levers)


def test_levers_are_changes_of_the_config() -> None:
    config = replace(CONFIG, model="wide-mlp", hidden=2048)
    ampere = replace(CARD, architecture="ampere", compute_capability=(8, 6))
    levers = {lever.code: lever for lever in estimate_run(config, ampere).levers}
    assert levers["sgd"].changes == {"optimizer": "sgd"}
    assert not levers["adam8bit"].changes
    for lever in levers.values():
        if lever.changes:
            changed = replace(config, **lever.changes)  # type: ignore[arg-type]
            assert changed.effective_batch == config.effective_batch
            answer = estimate_run(changed, ampere, with_levers=False)
        elif lever.code == "expandable_segments":  # the allocator's, not the run's
            continue
        else:
            answer = estimate_run(config, ampere, with_levers=False, changes=dict(lever.settings))
        assert answer.device_peak_bytes.p50 == lever.device_peak_bytes, lever.code
