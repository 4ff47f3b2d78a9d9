"""The short training before a demonstration that resumes: it makes the checkpoint, and nobody watches it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from desktop_app.core.clock import SessionClock
from desktop_app.core.events import Event
from desktop_app.core.steps import PhaseSample, RunStatus, StepSample, ValidationSample
from desktop_app.training.checkpoints import FILE_NAME
from desktop_app.training.config import RunConfig

if TYPE_CHECKING:
    from desktop_app.training.control import ControlToken
    from desktop_app.training.recipes.data import PreparedData
    from desktop_app.training.recipes.recipe import Recipe

_SECONDS: Final = 2.0  # an audience waits for it; the step under way is ended


class _Nobody:
    """Listens to a run and keeps nothing of it."""

    def on_status(self, status: RunStatus) -> None: ...
    def on_step(self, sample: StepSample) -> None: ...
    def on_phase(self, sample: PhaseSample) -> None: ...
    def on_validation(self, sample: ValidationSample) -> None: ...
    def on_event(self, event: Event) -> None: ...


def make_checkpoint(
    recipe: Recipe,
    config: RunConfig,
    data: PreparedData,
    *,
    folder: Path,
    token: ControlToken,
    clock: SessionClock,
    threads: int,
) -> Path:
    """A few steps on the CPU, and where their checkpoint is; none when the run was stopped before the first one."""
    from desktop_app.training.devices import CpuDevice
    from desktop_app.training.loop import Trainer

    short = replace(
        config,
        epochs=1,
        max_seconds=_SECONDS,
        max_steps_per_s=None,
        checkpoint_every_epochs=0,
        output_dir=str(folder),
    )
    device = CpuDevice()
    try:
        Trainer(recipe, short, data, device=device, sink=_Nobody(), token=token, clock=clock, threads=threads).run()
    finally:
        device.close()
    return folder / FILE_NAME
