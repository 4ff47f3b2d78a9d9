"""What a run says about itself, at most ten times a second and at each change of state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from desktop_app.core.clock import SessionClock
from desktop_app.core.steps import BatchShape, OomReport, RunState, RunStatus
from desktop_app.training.checkpoints import Progress
from desktop_app.training.config import RunConfig
from desktop_app.training.control import ControlToken
from desktop_app.training.progress import Pace

# Text in the window changes at 2 Hz; ten a second leave it nothing to wait for.
_INTERVAL_S: Final = 0.1
# Halving ends after 16 (65,536 samples); checkpoints that have no room may go on for the whole run.
_RESCUES_KEPT: Final = 100


class StatusBoard:
    """Builds ``RunStatus`` from the numbers of a run and hands it to the sink. Runs in: trainer thread."""

    def __init__(
        self,
        config: RunConfig,
        *,
        clock: SessionClock,
        token: ControlToken,
        publish: Callable[[RunStatus], None],
        skipped_files: int = 0,
    ) -> None:
        self._config = config
        self._clock = clock
        self._token = token
        self._publish = publish
        self._next_s = 0.0
        self._status = RunStatus(
            RunState.PREPARING,
            run_name=config.title,
            epochs=config.epochs,
            batch_size=config.batch_size,
            accumulation=config.accumulation,
            skipped_files=skipped_files,
        )
        self.pace = Pace()

    @property
    def status(self) -> RunStatus:
        """The last one published."""
        return self._status

    def begin(self, *, total_steps: int) -> None:
        """The first step comes next."""
        self._status = replace(self._status, started_t_s=self._clock.now_s(), total_steps=total_steps)

    def note_checkpoint(self, path: str) -> None:
        self._status = replace(self._status, checkpoint_path=path)

    def note_batch(self, batch_size: int, accumulation: int) -> None:
        """The micro-batch has changed; shown with the next status."""
        self._status = replace(self._status, batch_size=batch_size, accumulation=accumulation)

    def note_longest(self, batch: BatchShape | None, step: int | None) -> None:
        """The longest batch of the epoch, and its step; shown with the next status."""
        self._status = replace(self._status, longest_batch=batch, longest_batch_step=step)

    def note_rescue(self, rescue: OomReport) -> None:
        """An out-of-memory error was survived. The newest are kept."""
        self._status = replace(self._status, rescues=(*self._status.rescues, rescue)[-_RESCUES_KEPT:])

    def tick(self, progress: Progress, *, steps_per_epoch: int, left_s: float | None) -> None:
        """Publish a running status when a tenth of a second has passed."""
        now_s = self._clock.now_s()
        if now_s >= self._next_s:
            self._next_s = now_s + _INTERVAL_S
            self._status = self._with_outlook(progress, steps_per_epoch, left_s)
            self.show(self._running_state(), progress)

    def refresh(self, progress: Progress) -> None:
        """Publish now what has changed, in the state it is in."""
        self.show(self._running_state() if self._status.state is not RunState.PAUSED else RunState.PAUSED, progress)

    def show(self, state: RunState, progress: Progress) -> None:
        """Publish a state now."""
        waiting = progress.step + 1 if state in (RunState.PAUSING, RunState.STOPPING) else None
        self._status = self._with_progress(replace(self._status, state=state, waiting_step=waiting), progress)
        self._publish(self._status)

    def end(
        self,
        state: RunState,
        progress: Progress,
        *,
        error: tuple[str, str] | None = None,
        oom: OomReport | None = None,
    ) -> RunStatus:
        """Publish the last status and return it."""
        code, message = error or (None, None)
        self._status = replace(
            self._status,
            ended_t_s=self._clock.now_s(),
            eta_s=None,
            eta_low_s=None,
            eta_high_s=None,
            error_code=code,
            error_message=message,
            oom=oom,
        )
        self.show(state, progress)
        return self._status

    def _running_state(self) -> RunState:
        if self._token.stop_requested:
            return RunState.STOPPING
        return RunState.PAUSING if self._token.pause_requested else RunState.RUNNING

    def _with_progress(self, status: RunStatus, progress: Progress) -> RunStatus:
        return replace(
            status,
            step=progress.step,
            epoch=min(progress.epoch, self._config.epochs),
            epochs_done=progress.epoch - 1,
            loss_first=progress.loss_first,
            loss_last=progress.loss_last,
            accuracy_last=progress.last_accuracy,
            accuracy_best=progress.best_accuracy,
        )

    def _with_outlook(self, progress: Progress, steps_per_epoch: int, left_s: float | None) -> RunStatus:
        step_s = self.pace.median_step_s()
        epochs_left = self._config.epochs - progress.epoch + 1
        eta = self.pace.eta(steps=epochs_left * steps_per_epoch - progress.step_in_epoch, validations=epochs_left)
        if step_s is None or eta is None:
            return self._status
        limit_s = float("inf") if left_s is None else left_s
        return replace(
            self._status,
            samples_per_s=self._config.effective_batch / step_s if step_s > 0 else None,
            eta_s=min(eta.eta_s, limit_s),
            eta_low_s=min(eta.low_s, limit_s),
            eta_high_s=min(eta.high_s, limit_s),
        )
