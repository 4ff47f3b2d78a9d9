"""Cause ``validation``: it needs more than the training, or keeps what each of its batches leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import MemoryStats, Phase, PhaseSample, StepSample
from desktop_app.forecast.cause_model import CauseModel, View
from desktop_app.forecast.coming_call import (
    LIKELY_P,
    SOON_STEPS,
    WATCH_P,
    Need,
    call_outlook,
    call_severity,
    short_probability,
    within,
)
from desktop_app.forecast.demand import recent_demand
from desktop_app.forecast.growth import LineFit, fit_line
from desktop_app.forecast.outlook import WITHIN_STEPS, Outlook, StepsToGo
from desktop_app.forecast.recurring_call import RecurringCall

# Without gradients activations are freed at once: what is left of a training step's demand, as its mean and deviation.
# Of 16 traced models the share was 0.14 to 0.59 (docs/decisions/019).
_FORWARD_SHARE: Final = (0.35, 0.14)
_KNOWN_SPREAD: Final = 0.02  # of what such a call took before
_POINTS: Final = 64
_MIN_POINTS: Final = 6
_SKIPPED: Final = 2  # first batches: workspaces and caches
_MIN_DONE: Final = 8
_MIN_SHARE: Final = 0.03  # of the batches, before growth is projected to all of them
_SIGNIFICANT: Final = 4.0
_MODEL_SPREAD: Final = 0.04  # of the batches to go
_TOO_LARGE: Final = "smaller_validation_batch"
_KEEPS: Final = "no_grad_validation"


class _Progress:
    """Live memory over the batches of the validation under way."""

    def __init__(self, t_s: float) -> None:
        self.began_t_s = t_s
        self.t_s = t_s
        self.count: int | None = None
        self.done = 0
        self.transient_bytes = 0.0
        self.fit: LineFit | None = None
        self._points: list[tuple[int, int]] = []
        self._stride = 1
        self._taken = 0

    def take(self, sample: PhaseSample, memory: MemoryStats, *, done: int) -> None:
        self.t_s = sample.t_s
        self.count = sample.count if sample.count is not None else self.count
        if done <= self.done:
            return
        self.done = done
        self.transient_bytes = max(self.transient_bytes, float(memory.live_peak_bytes - memory.live_bytes))
        if done <= _SKIPPED:
            return
        if self._taken % self._stride == 0:
            self._points.append((done, memory.live_bytes))
            if len(self._points) >= _POINTS:
                del self._points[1::2]
                self._stride *= 2
            if len(self._points) >= _MIN_POINTS:
                rows = np.array(self._points, dtype=np.float64)
                self.fit = fit_line(rows[:, 0], rows[:, 1])
        self._taken += 1

    @property
    def batch_s(self) -> float | None:
        return (self.t_s - self.began_t_s) / self.done if self.done and self.t_s > self.began_t_s else None


class ValidationCause(CauseModel):
    """Judges a validation before it begins, and while it runs what it keeps from batch to batch."""

    cause = Cause.VALIDATION

    def __init__(self) -> None:
        self._call = RecurringCall()
        self._progress: _Progress | None = None
        self._before: Outlook | None = None
        self._training_samples = 0  # of the largest micro-batch

    def take_step(self, sample: StepSample, view: View) -> None:
        """The training goes on: a validation is over."""
        self._leave()
        self._training_samples = max(self._training_samples, sample.micro_batch_samples or sample.batch_samples)

    def take_phase(self, sample: PhaseSample, view: View) -> None:
        """A validation begins, goes on or has ended; any other phase ends it as well."""
        if sample.phase is not Phase.VALIDATION:
            self._leave()
            return
        memory = sample.memory
        if memory is None:
            return
        begins = self._call.take(sample, memory)
        if sample.ended:
            self._progress, self._before = None, self._call.outlook_of_kept(self.cause, memory, view, action=_KEEPS)
            return
        if self._progress is None:
            self._progress = _Progress(sample.t_s)
        if begins:
            self._before = self._judge(sample, memory, view)
        assert self._call.now is not None
        self._progress.take(sample, memory, done=max(sample.done, self._call.now.parts))
        if self._progress.done:
            self._before = None

    def outlook(self, view: View, *, known: bool) -> Outlook | None:
        """Of the validation under way or about to begin; else of the next one."""
        if self._call.now is not None and self._progress is not None:
            if self._before is not None or not self._progress.done:
                return self._before
            return self._project(self._progress, self._call.now.memory, view)
        if self._before is not None:
            return self._before
        return self._call.outlook_of_next(self.cause, view, action=_TOO_LARGE, figure="steps_to_validation")

    def _leave(self) -> None:
        self._call.leave()
        self._progress = self._before = None

    # Before it

    def _judge(self, sample: PhaseSample, memory: MemoryStats, view: View) -> Outlook | None:
        need, figures = self._need(sample, memory, view)
        if need is None:
            return None
        survived = float(memory.live_peak_bytes if memory.live_peak_bytes > memory.live_bytes else 0)
        if view.evidence.memory is not None:  # the card has just borne the peak of a step
            survived = max(survived, float(view.evidence.memory.live_peak_bytes))
        probability = short_probability(need, memory, view.environment, survived_bytes=survived)
        severity = call_severity(probability)
        if severity is None:
            return None
        figures = {**figures, "demand_bytes": need.mean_bytes - memory.live_bytes, "demand_sd_bytes": need.sd_bytes}
        if sample.batch is not None:
            figures["batch_samples"] = float(sample.batch.samples)
        return call_outlook(
            self.cause,
            severity=severity,
            chances=within(probability, 1),
            probability=probability,
            to_go=StepsToGo(0.0, 0.0),
            need=need,
            memory=memory,
            view=view,
            action=_TOO_LARGE,
            urgent=True,
            figures=figures,
        )

    def _need(self, sample: PhaseSample, memory: MemoryStats, view: View) -> tuple[Need | None, Mapping[str, float]]:
        """What the trainer knows; what earlier ones took; the estimate; a share of what a training step takes."""
        live = float(memory.live_bytes)
        if sample.known_demand_bytes is not None:
            return Need(live + sample.known_demand_bytes), {}
        samples = sample.batch.samples if sample.batch is not None else None
        past = self._call.past[-1] if self._call.past else None
        if past is not None:
            demand = self._call.next_demand_bytes or 0.0
            ratio = samples / past.samples if samples and past.samples else 1.0
            sd = _KNOWN_SPREAD * demand * max(ratio, 1.0 + 5.0 * abs(ratio - 1.0))
            return Need(live + demand * ratio, sd if ratio > 1.0 else 0.0), {
                "earlier_demand_bytes": self._call.demand_bytes or 0.0
            }
        return self._first_need(samples, live, view)

    def _first_need(self, samples: int | None, live: float, view: View) -> tuple[Need | None, Mapping[str, float]]:
        prior, corrected = view.prior, view.corrected
        if prior is not None and corrected is not None:
            ratio = samples / prior.batch_size if samples and prior.batch_size else 1.0
            peak = corrected.live_bytes(Phase.VALIDATION, batch_ratio=ratio)
            if peak is not None:
                mean = max(peak, live)
                return Need(mean, corrected.spread * mean), {"estimated_peak_bytes": peak}
        demand = recent_demand(view.evidence)
        usual = self._training_samples
        if demand is None or not samples or not usual:
            return None, {}
        ratio = samples / usual
        share, doubt = _FORWARD_SHARE
        return (
            Need(live + share * ratio * demand.high_bytes, doubt * ratio * demand.high_bytes),
            {"training_demand_bytes": demand.high_bytes, "batch_ratio": ratio},
        )

    # In its midst

    def _project(self, progress: _Progress, memory: MemoryStats, view: View) -> Outlook | None:
        """What each batch has left so far, times the batches to come."""
        fit = progress.fit
        if fit is None or fit.slope <= 0.0 or fit.significance < _SIGNIFICANT:
            return None
        room = float(view.environment.allocator_room(memory))
        headroom = room - progress.transient_bytes - max(float(memory.live_bytes), fit.level_bytes)
        if fit.levels_off_within(max(headroom, 0.0)):
            return None
        count = progress.count if progress.count is not None else self._call.parts()
        left = float(max((count or 0) - progress.done, 0)) if count else float(progress.done)
        median = max(headroom, 0.0) / fit.slope
        to_go = StepsToGo(median, math.hypot(fit.slope_sd / fit.slope, _MODEL_SPREAD) if median > 0.0 else 0.0)
        belief = 1.0 if count else progress.done / (progress.done + median)  # Gott, 1993, when no end is known
        probability = belief * to_go.probability_within(left if count else math.inf)
        enough = progress.done >= max(_MIN_DONE, _MIN_SHARE * (count or 0)) or median <= SOON_STEPS
        severity = AlertSeverity.WATCH if probability >= WATCH_P else None
        if enough and probability >= LIKELY_P:
            severity = AlertSeverity.IMMINENT if median <= SOON_STEPS else AlertSeverity.LIKELY
        if severity is None:
            return None
        need = Need(memory.live_bytes + fit.slope * left + progress.transient_bytes)
        figures = {
            "slope_bytes_per_batch": fit.slope,
            "batches_done": float(progress.done),
            "batches_left": left,
            "headroom_bytes": headroom,
        }
        return call_outlook(
            self.cause,
            severity=severity,
            chances={k: belief * to_go.probability_within(min(float(k), left)) for k in WITHIN_STEPS},
            probability=probability,
            to_go=to_go,
            need=need,
            memory=memory,
            view=view,
            action=_KEEPS,
            urgent=median <= SOON_STEPS,
            figures=figures,
            pace_s=progress.batch_s,
        )
