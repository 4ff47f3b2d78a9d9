"""The forecast after every step: evidence in, probabilities, time to exhaustion, flood mark and alerts out."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from desktop_app.core.forecasts import Alert, Cause, Estimate, Forecast
from desktop_app.core.steps import BatchShape, PhaseSample, StepSample, Surroundings
from desktop_app.forecast.attribution import attribute
from desktop_app.forecast.batch_shape import BatchShapeCause
from desktop_app.forecast.cause_model import CauseModel, View
from desktop_app.forecast.checkpoint_save import CheckpointSaveCause
from desktop_app.forecast.corrected_prior import PriorFit
from desktop_app.forecast.environment import Environment
from desktop_app.forecast.evidence import Evidence
from desktop_app.forecast.first_optimizer_step import FirstOptimizerStepCause
from desktop_app.forecast.fragmentation import FragmentationCause
from desktop_app.forecast.host_memory import HostMemoryCause
from desktop_app.forecast.leak import LeakCause
from desktop_app.forecast.neighbour import NeighbourCause
from desktop_app.forecast.outlook import Outlook
from desktop_app.forecast.outside_allocator import OutsideAllocatorCause
from desktop_app.forecast.policy import Changes, Policy
from desktop_app.forecast.resume import ResumeCause
from desktop_app.forecast.spill import SpillCause
from desktop_app.forecast.summary import summarize
from desktop_app.forecast.validation import ValidationCause

# One object of each per run. Order does not matter.
CAUSES: Final[tuple[Callable[[], CauseModel], ...]] = (
    FirstOptimizerStepCause,
    LeakCause,
    BatchShapeCause,
    ValidationCause,
    CheckpointSaveCause,
    ResumeCause,
    NeighbourCause,
    OutsideAllocatorCause,
    HostMemoryCause,
    SpillCause,
    FragmentationCause,
)


# What telemetry says of these, once a second, does not change with a step: their outlook is good for so long.
_AROUND: Final = frozenset({Cause.NEIGHBOUR, Cause.OUTSIDE_ALLOCATOR, Cause.HOST_MEMORY})
_GOOD_FOR_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Update:
    """What one sample led to."""

    forecast: Forecast
    changes: Changes


class Forecaster:
    """Forecasts one run on one card. Thread-safe by one lock; a call takes at most 2 ms and memory does not grow.

    Sizes in bytes. ``others_bytes`` is what other processes hold on the card, ``outside_bytes`` this process outside
    the allocator where the samples do not say; ``prior`` is the estimate of the run.
    """

    def __init__(
        self,
        *,
        capacity_bytes: int,
        others_bytes: int = 0,
        outside_bytes: int = 0,
        total_steps: int | None = None,
        steps_per_epoch: int | None = None,
        prior: Estimate | None = None,
        causes: Iterable[Callable[[], CauseModel]] = CAUSES,
    ) -> None:
        if capacity_bytes <= 0:
            raise ValueError(f"capacity_bytes must be positive, not {capacity_bytes}")
        self._lock = threading.Lock()
        self._environment = Environment(capacity_bytes, others_bytes, outside_bytes, total_steps, steps_per_epoch)
        self._prior = prior
        self._fit = PriorFit()
        self._evidence = Evidence()
        self._models: tuple[CauseModel, ...] = tuple(make() for make in causes)
        self._policy = Policy()
        self._around: dict[Cause, tuple[float, Outlook | None]] = {}  # when it was looked at, and what was seen
        self._forecast = self._assess(self._view(), 0.0, 0).forecast

    def set_environment(
        self,
        *,
        capacity_bytes: int | None = None,
        others_bytes: int | None = None,
        outside_bytes: int | None = None,
        total_steps: int | None = None,
        steps_per_epoch: int | None = None,
        longest_batch: BatchShape | None = None,
        longest_batch_step: int | None = None,
    ) -> None:
        """Take newer figures of the card, the run's length and the batches to come; ``None`` leaves one as it is."""
        self._note(
            capacity_bytes=capacity_bytes,
            others_bytes=others_bytes,
            outside_bytes=outside_bytes,
            total_steps=total_steps,
            steps_per_epoch=steps_per_epoch,
            longest_batch=longest_batch,
            longest_batch_step=longest_batch_step,
        )

    def _note(self, **figures: int | BatchShape | None) -> None:
        known: dict[str, Any] = {name: figure for name, figure in figures.items() if figure is not None}
        with self._lock:
            self._environment = replace(self._environment, **known)

    def forget_estimate(self) -> None:
        """The micro-batch has changed: the estimate was about another one."""
        with self._lock:
            self._prior = None

    def absorb_step(self, sample: StepSample) -> None:
        """Take a step as evidence without a forecast: for a backlog whose newest step is still to come."""
        with self._lock:
            self._take(sample)

    def observe_step(self, sample: StepSample) -> Forecast:
        """Take a step; the forecast after it."""
        return self.update_step(sample).forecast

    def observe_phase(self, sample: PhaseSample) -> Forecast:
        """Take a phase that is about to begin; the forecast before it."""
        return self.update_phase(sample).forecast

    def update_step(self, sample: StepSample) -> Update:
        """As ``observe_step``, with the alerts that it raised or cleared."""
        with self._lock:
            return self._assess(self._take(sample), sample.t_s, sample.step)

    def update_phase(self, sample: PhaseSample) -> Update:
        """As ``observe_phase``, with the alerts that it raised or cleared."""
        with self._lock:
            if sample.memory is not None:
                self._evidence.note_memory(sample.memory, sample.step)
            self._fit.take_phase(sample, self._prior)
            self._around.clear()
            view = self._view()
            for model in self._models:
                model.take_phase(sample, view)
            return self._assess(view, sample.t_s, sample.step)

    def observe_surroundings(self, sample: Surroundings) -> Forecast:
        """Take what telemetry says; the forecast after it."""
        return self.update_surroundings(sample).forecast

    def update_surroundings(self, sample: Surroundings) -> Update:
        """As ``observe_surroundings``, with the alerts that it raised or cleared."""
        self._note(
            capacity_bytes=sample.capacity_bytes,
            others_bytes=sample.others_bytes,
            outside_bytes=sample.outside_bytes,
        )
        with self._lock:
            self._around.clear()
            view = self._view()
            for model in self._models:
                model.take_surroundings(sample, view)
            t_s = max(sample.t_s, self._evidence.t_s)
            return self._assess(view, t_s, self._evidence.step, of_surroundings=True)

    def forecast(self) -> Forecast:
        """The newest forecast; before the first sample, what the estimate says."""
        with self._lock:
            return self._forecast

    def open_alerts(self) -> tuple[Alert, ...]:
        """Alerts that are not over."""
        with self._lock:
            return self._policy.open_alerts

    def _take(self, sample: StepSample) -> View:
        retried = self._evidence.retried_at_step
        self._evidence.add(sample)
        if self._evidence.retried_at_step != retried:
            self._around.clear()
        self._fit.take_step(sample, self._prior)
        view = self._view()
        for model in self._models:
            model.take_step(sample, view)
        return view

    def _view(self) -> View:
        corrected = self._fit.corrected(self._prior, self._environment, self._evidence.memory)
        return View(self._evidence, self._environment, self._prior, corrected)

    def _assess(self, view: View, t_s: float, step: int, *, of_surroundings: bool = False) -> Update:
        open_causes = [alert.cause for alert in self._policy.open_alerts]
        found = [self._outlook(model, view, t_s, known=model.cause in open_causes) for model in self._models]
        pace_s = self._evidence.seconds_per_step()
        settled = attribute(
            {outlook.cause: outlook for outlook in found if outlook is not None},
            open_causes=open_causes,
            pace_s=pace_s,
        )
        changes = self._policy.update(
            t_s,
            step,
            settled.outlooks,
            pace_s,
            superseded=settled.superseded,
            of_surroundings=of_surroundings,
        )
        self._forecast = summarize(view, settled.outlooks, t_s=t_s, step=step, pace_s=pace_s)
        return Update(self._forecast, changes)

    def _outlook(self, model: CauseModel, view: View, t_s: float, *, known: bool) -> Outlook | None:
        if model.cause not in _AROUND:
            return model.outlook(view, known=known)
        looked_s, outlook = self._around.get(model.cause, (-math.inf, None))
        if not 0.0 <= t_s - looked_s < _GOOD_FOR_S:
            outlook = model.outlook(view, known=known)
            self._around[model.cause] = t_s, outlook
        return outlook
