"""The estimate of the run, put right by its first steps, for phases that have not been seen yet.

A training's memory has a part that stays between steps (parameters, optimizer state) and one that comes with the batch
(activations, gradients). The estimate is off by an *offset* in the first and by a *scale* in the second; two figures of
a measured step tell both: its trough and its peak. What has been put right is told through ``View.corrected``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from desktop_app.core.forecasts import Estimate
from desktop_app.core.steps import Category, MemoryStats, Phase, PhaseSample, StepSample
from desktop_app.forecast.environment import Environment
from desktop_app.forecast.outlook import Z95, normal_cdf

FITTED_STEPS: Final = 3  # workspaces and algorithm search settle within these
_BATCH_PHASES: Final = frozenset({Phase.FORWARD, Phase.BACKWARD, Phase.VALIDATION})  # others follow the state alone
_STEP_PHASES: Final = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)
_SCALES: Final = (0.25, 4.0)  # a fit beyond these has compared two different things
_LEAST_PART: Final = 0.02  # of the peak: a smaller batch part says nothing about its scale
# What the estimate of a phase is still off by when another phase of the same model is known exactly: mostly workspaces,
# about half of an estimate's spread (docs/decisions/015-workspaces-and-contexts.md), and never below 2 %.
_LEFT_SHARE: Final = 0.5
_LEAST_SPREAD: Final = 0.02


@dataclass(frozen=True, slots=True)
class CorrectedPrior:
    """The estimate as the first steps have put it right. Sizes in bytes; ``steps`` measured steps have gone into it.

    ``spread`` is the relative deviation of a peak that has not been seen yet. Before any measurement ``scale`` is 1
    and ``offset_bytes`` 0, and ``spread`` that of the estimate.
    """

    steps: int
    scale: float  # of what comes with the batch
    offset_bytes: float  # of what stays between steps
    idle_ratio: float  # reserved over live at a peak
    state_bytes: float  # live between steps, optimizer state included
    beside_bytes: float  # other processes, and this one outside its allocator, now
    spread: float
    live: Mapping[Phase, float] = field(default_factory=dict)  # peak of live per phase, P50
    unseen: frozenset[Phase] = frozenset()  # phases of ``live`` that the run has not been through

    def live_bytes(self, phase: Phase, *, batch_ratio: float = 1.0) -> float | None:
        """P50 of the live peak of ``phase`` with a batch so many times the estimate's; ``None`` when unknown."""
        peak = self.live.get(phase)
        if peak is None or phase not in _BATCH_PHASES:
            return peak
        return self.state_bytes + batch_ratio * max(peak - self.state_bytes, 0.0)

    def device_bytes(self, phase: Phase, *, batch_ratio: float = 1.0) -> float | None:
        """P50 of the whole card's use at that peak."""
        peak = self.live_bytes(phase, batch_ratio=batch_ratio)
        return None if peak is None else self.beside_bytes + self.idle_ratio * peak

    def probability_over(self, capacity_bytes: float, phase: Phase, *, batch_ratio: float = 1.0) -> float | None:
        """P(that peak does not fit on the card); log-normal about ``device_bytes``."""
        peak = self.device_bytes(phase, batch_ratio=batch_ratio)
        if peak is None or peak <= 0:
            return None
        return normal_cdf(math.log(peak / capacity_bytes) / self.spread)


class PriorFit:
    """Compares the first steps with the estimate. The forecaster's lock guards it."""

    def __init__(self) -> None:
        self._steps = 0
        self._begun: set[Phase] = set()
        self._seen: set[Phase] = set()
        self._scale: float | None = None
        self._trough_bytes: float | None = None
        self._idle_ratio: float | None = None
        self._found: tuple[Estimate, int, int, CorrectedPrior] | None = None  # with what is beside the allocator

    def take_phase(self, sample: PhaseSample, prior: Estimate | None) -> None:
        """Before the first optimizer call: the peak of forward and backward, with no optimizer state yet."""
        memory = sample.memory
        self._found = None
        if sample.phase not in _STEP_PHASES:  # those are seen when a step with its optimizer state is over
            (self._seen if sample.ended else self._begun).add(sample.phase)
        if prior is None or memory is None or self._steps or sample.phase is not Phase.OPTIMIZER or sample.ended:
            return
        parameters = float(prior.categories.get(Category.PARAMETERS, 0))
        state = float(prior.categories.get(Category.OPTIMIZER_STATE, 0))
        expected = [_live_peaks(prior).get(phase, 0.0) for phase in (Phase.FORWARD, Phase.BACKWARD)]
        self._scale = _ratio(memory.live_peak_bytes, parameters, max(expected) - state, parameters)
        self._idle_ratio = _idle(memory)

    def take_step(self, sample: StepSample, prior: Estimate | None) -> None:
        """The first whole steps: trough and peak. The first of them ran without state, so its peak is not compared."""
        memory = sample.memory
        if self._begun:  # whatever began before a step has ended is over
            self._seen |= self._begun
            self._begun.clear()
            self._found = None
        if prior is None or memory is None or self._steps >= FITTED_STEPS:
            return
        self._found = None
        self._steps += 1
        if self._steps > 1:  # the first has no state in its forward and backward passes yet
            self._seen |= {Phase.BUILD, Phase.ZERO, *_STEP_PHASES}
        self._trough_bytes = float(memory.live_bytes)
        self._idle_ratio = _idle(memory)
        if self._steps > 1:
            scale = _ratio(memory.live_peak_bytes, memory.live_bytes, _step_peak(prior), _state(prior))
            self._scale = scale if scale is not None else self._scale

    def corrected(
        self, prior: Estimate | None, environment: Environment, memory: MemoryStats | None
    ) -> CorrectedPrior | None:
        """The estimate as it stands now; ``None`` without one. ``memory``: the newest figures."""
        if prior is None:
            return None
        beside = environment.others_bytes, environment.outside(memory) or prior.context_bytes
        if self._found is None or self._found[0] is not prior or self._found[1:3] != beside:
            self._found = prior, *beside, self._correct(prior, float(sum(beside)))
        return self._found[3]

    def _correct(self, prior: Estimate, beside_bytes: float) -> CorrectedPrior:
        state = _state(prior)
        offset = 0.0 if self._trough_bytes is None else self._trough_bytes - state
        scale = 1.0 if self._scale is None else self._scale
        idle = prior.reserved_peak_bytes.p50 / max(prior.live_peak_bytes.p50, 1)
        spread = math.log(prior.device_peak_bytes.p95 / max(prior.device_peak_bytes.p50, 1)) / Z95
        measured = self._scale is not None or self._trough_bytes is not None
        peaks = _live_peaks(prior)
        return CorrectedPrior(
            steps=self._steps,
            scale=scale,
            offset_bytes=offset,
            idle_ratio=max(1.0, idle if self._idle_ratio is None else self._idle_ratio),
            state_bytes=state + offset,
            beside_bytes=beside_bytes,
            spread=max(_LEAST_SPREAD, spread * (_LEFT_SHARE if measured else 1.0)),
            live={
                phase: (state + scale * (peak - state) if phase in _BATCH_PHASES else peak) + offset
                for phase, peak in peaks.items()
            },
            unseen=frozenset(peaks) - self._seen,
        )


def _live_peaks(prior: Estimate) -> Mapping[Phase, float]:
    """P50 of the live peak per phase; where an estimate has only the card's use per phase, what is left of that."""
    if prior.phase_peaks:
        return {phase: float(peaks.live.p50) for phase, peaks in prior.phase_peaks.items()}
    beside = prior.device_peak_bytes.p50 - prior.reserved_peak_bytes.p50
    idle = prior.reserved_peak_bytes.p50 / max(prior.live_peak_bytes.p50, 1)
    return {phase: max(0.0, (device - beside) / max(idle, 1.0)) for phase, device in prior.phases.items()}


def _step_peak(prior: Estimate) -> float:
    peaks = _live_peaks(prior)
    return max((peaks[phase] for phase in _STEP_PHASES if phase in peaks), default=float(prior.live_peak_bytes.p50))


def _state(prior: Estimate) -> float:
    kept = (Category.PARAMETERS, Category.OPTIMIZER_STATE)
    return float(sum(prior.categories.get(category, 0) for category in kept))


def _idle(memory: MemoryStats) -> float:
    return max(1.0, memory.reserved_peak_bytes / max(memory.live_peak_bytes, 1))


def _ratio(peak: float, trough: float, expected_peak: float, expected_trough: float) -> float | None:
    """Measured over estimated batch part; ``None`` when either is too small to compare, or they cannot be the same."""
    part, expected = peak - trough, expected_peak - expected_trough
    if expected < _LEAST_PART * expected_peak or part <= 0:
        return None
    ratio = part / expected
    return ratio if _SCALES[0] <= ratio <= _SCALES[1] else None
