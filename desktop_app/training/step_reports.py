"""What each step says: a sample always, values of the device only at log points, a verdict when nothing is learnt."""

from __future__ import annotations

import math
from typing import Final, Protocol

from desktop_app.core.clock import SessionClock
from desktop_app.core.errors import FloodmarkError
from desktop_app.core.events import Event, EventKind, Level
from desktop_app.core.steps import BatchShape, MemoryStats, PhaseSample, RunStatus, StepSample, ValidationSample
from desktop_app.training.checkpoints import Progress
from desktop_app.training.config import RunConfig
from desktop_app.training.learning import LearningWatch
from desktop_app.training.step import StepEngine

# The loss is read from the device five times a second: reading waits for the device, and no eye follows faster.
_LOG_INTERVAL_S: Final = 0.2


class StepSink(Protocol):
    """Who listens to a run. Called in the trainer thread: answer within a few milliseconds, raise nothing."""

    def on_status(self, status: RunStatus) -> None: ...
    def on_step(self, sample: StepSample) -> None: ...
    def on_phase(self, sample: PhaseSample) -> None: ...
    def on_validation(self, sample: ValidationSample) -> None: ...
    def on_event(self, event: Event) -> None: ...


class StepReports:
    """Makes the ``StepSample`` of each step and hands it to the sink. Runs in: trainer thread."""

    def __init__(
        self,
        config: RunConfig,
        *,
        sink: StepSink,
        clock: SessionClock,
        learning: LearningWatch,
        steps_per_epoch: int,
    ) -> None:
        self._config = config
        self._sink = sink
        self._clock = clock
        self._learning = learning
        self._steps_per_epoch = steps_per_epoch
        self._logged_s = -_LOG_INTERVAL_S

    def report(
        self,
        progress: Progress,
        engine: StepEngine,
        *,
        end_s: float,
        step_s: float,
        learning_rate: float,
        memory: MemoryStats | None,
        shape: BatchShape | None = None,
    ) -> None:
        """The step that ``progress`` has just counted, whose largest micro-batch is ``shape``. ``FloodmarkError`` when
        its loss is no number."""
        loss: float | None = None
        accuracy: float | None = None
        grad_norm: float | None = None
        if engine.has_outputs and self._is_due(progress, end_s):
            self._logged_s = end_s
            loss, accuracy, grad_norm = engine.loss(), engine.accuracy(), engine.grad_norm()
            self._note(progress, loss, accuracy, end_s, samples=engine.accuracy_samples)
        self._sink.on_step(
            StepSample(
                t_s=end_s,
                step=progress.step,
                epoch=progress.epoch,
                loss=loss,
                train_accuracy=accuracy,
                learning_rate=learning_rate,
                grad_norm=grad_norm,
                step_s=step_s,
                batch_samples=self._config.effective_batch,
                memory=memory,
                batch_tokens=None if shape is None else shape.tokens,
                batch_pixels=None if shape is None else shape.pixels,
                micro_batch_samples=engine.micro_batch_samples,
            )
        )

    def _is_due(self, progress: Progress, now_s: float) -> bool:
        """At the last step of an epoch too: nothing is validated or saved on an unseen loss."""
        if progress.step_in_epoch == self._steps_per_epoch or progress.step == 1:
            return True
        every = self._config.log_every_steps
        return now_s - self._logged_s >= _LOG_INTERVAL_S if every is None else progress.step % every == 0

    def _note(self, progress: Progress, loss: float, accuracy: float, now_s: float, *, samples: int) -> None:
        if not math.isfinite(loss):
            raise _not_finite(loss, progress.step, self._config)
        progress.loss_last = loss
        if progress.loss_first is None:
            progress.loss_first = loss
        change = self._learning.observe(step=progress.step, loss=loss, accuracy=accuracy, samples=samples)
        if change is not None:
            level, code = (
                (Level.WARNING, "learning.not_learning") if change.stuck else (Level.INFO, "learning.learning_again")
            )
            self._sink.on_event(Event(now_s, EventKind.LEARNING, level, code, change.params))


def _not_finite(loss: float, step: int, config: RunConfig) -> FloodmarkError:
    cures = ["lower learning_rate"]
    if not config.grad_clip:
        cures.append("set grad_clip")
    if config.precision != "fp32":
        cures.append("use precision fp32")
    return FloodmarkError(
        "training.loss_not_finite",
        f"the loss became {loss} at step {step}; {' or '.join(cures)}",
        params={"step": step, "loss": str(loss), "learning_rate": config.learning_rate},
    )
