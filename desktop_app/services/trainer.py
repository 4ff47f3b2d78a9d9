"""From an order to a training: device, data, loop. torch comes in here, late, by ``training`` and ``memory``."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from desktop_app.core.clock import SessionClock
from desktop_app.core.load import CardLoad
from desktop_app.core.steps import RunState, RunStatus
from desktop_app.core.telemetry import Card
from desktop_app.services.estimate_cards import card_spec
from desktop_app.services.first_run import make_checkpoint
from desktop_app.services.run_desk import RunOrder
from desktop_app.services.run_feed import RunFeed
from desktop_app.services.step_recorder import StepRecorder
from desktop_app.telemetry.limited_host import HostLimit
from desktop_app.training.config import RunConfig

if TYPE_CHECKING:
    from desktop_app.training.control import ControlToken
    from desktop_app.training.devices import TrainingDevice

_log = logging.getLogger(__name__)


def train_order(
    order: RunOrder,
    *,
    sink: RunFeed,
    token: ControlToken,
    checkpoints: Path,
    clock: SessionClock,
    load_of: Callable[[Card | None], CardLoad],
    others_bytes: Callable[[], int],
    host_limit: HostLimit | None = None,
) -> RunStatus:
    """Train in the calling thread and return the last status. Implements ``run_desk.TrainerFactory``."""
    from desktop_app.training.control import RunCancelled
    from desktop_app.training.loop import Trainer
    from desktop_app.training.recipes.faults import FAULTS
    from desktop_app.training.recipes.recipe import RECIPES

    config, load = order.config, load_of(order.card)
    if config.output_dir is None:
        config = replace(config, output_dir=str(checkpoints))
    recipe = RECIPES[config.recipe]
    try:
        data = recipe.prepare(config, cancelled=lambda: token.stop_requested)
    except RunCancelled:
        return _stopped(config)
    for file in data.info.skipped:
        _log.warning("Left out: %s (%s)", file.path, file.reason)
    fault = None if order.fault is None else FAULTS[order.fault]()
    if fault is not None:
        data = fault.alter_data(data)
    threads = config.cpu_threads or max(1, _usable_cores() - 1)
    resume_from = order.resume_from
    if order.stage.resumes and resume_from is None:
        folder = checkpoints / "before"
        resume_from = make_checkpoint(recipe, config, data, folder=folder, token=token, clock=clock, threads=threads)
        if token.stop_requested:
            return _stopped(config)
    device = _open_device(order, load=load, others_bytes=others_bytes(), recorder=sink.recorder)
    try:
        load.invite(order.stage.neighbour)
        if host_limit is not None:
            host_limit.set(order.stage.host_room_bytes)
        outcome = Trainer(
            recipe,
            config,
            data,
            device=device,
            sink=sink,
            token=token,
            clock=clock,
            resume_from=resume_from,
            fault=fault,
            load=load,
            threads=threads,
            largest_batch=sink.counsel.largest_batch,
            name_cause=sink.counsel.name_cause,
        ).run()
        return outcome.status
    finally:
        if host_limit is not None:
            host_limit.set(None)
        device.close()
        load.invite(None)


def _stopped(config: RunConfig) -> RunStatus:
    return RunStatus(RunState.STOPPED, run_name=config.title, epochs=config.epochs, batch_size=config.batch_size)


def _open_device(
    order: RunOrder, *, load: CardLoad, others_bytes: int, recorder: StepRecorder | None
) -> TrainingDevice:
    from desktop_app.memory.simulated_device import SimulatedDevice
    from desktop_app.training.devices import CpuDevice, CudaDevice, SimulatedCudaDevice

    card = order.card
    if card is None:
        return CpuDevice()
    if card.simulated:
        simulated = SimulatedDevice(card_spec(card), others_bytes=others_bytes, load=load, spills=card.spills)
        if recorder is not None:
            recorder.attach(simulated)
        return SimulatedCudaDevice(simulated)
    assert card.torch_index is not None  # card_choice.check_trainable
    return CudaDevice(card.torch_index)


def _usable_cores() -> int:
    """Cores that this process may use: in a container or under taskset fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return (len(affinity(0)) if affinity is not None else os.cpu_count()) or 1
