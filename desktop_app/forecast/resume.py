"""Cause ``resume``: what loading a checkpoint leaves behind, as a rule the checkpoint itself on the card."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import Category, MemoryStats, Phase, PhaseSample, StepSample
from desktop_app.core.units import MIB
from desktop_app.forecast.cause_model import CauseModel, View
from desktop_app.forecast.coming_call import (
    LIKELY_P,
    Need,
    call_outlook,
    call_severity,
    short_probability,
    usual_idle_bytes,
    within,
)
from desktop_app.forecast.demand import recent_demand
from desktop_app.forecast.outlook import WITHIN_STEPS, Outlook, StepsToGo, worst
from desktop_app.forecast.robust import median

# What is live after a resume may be more than expected by this much: workspaces, buffers, rounding.
_SLACK_SHARE: Final = 0.1
_SLACK_BYTES: Final = 32 * MIB
_COPY_SHARE: Final = 0.3  # of the state: so much too much is a part of the checkpoint
_DEMAND_SPREAD: Final = 0.03  # of a step's demand as measured before
_BORNE_SHARE: Final = 0.98  # of the highest demand: a step with that much has been borne, the danger is over
_STEP_PHASES: Final = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)
_LIVES: Final = 8
_FEWEST_LIVES: Final = 4  # three like rises, before they are told as a habit
_ALIKE: Final = 0.35  # as for stairs
_MOST_AHEAD: Final = 4.0  # resumes: further ahead it is nobody's worry
_GOES_ON: Final = 0.85  # P(a run is interrupted once more, and holds as much more)
_NEXT_SPREAD: Final = 0.4  # of the steps to go: interruptions come when they come
_STATE_SHARE: Final = 1.1
_UNKNOWN_P: Final = 0.15  # a copy is held, and what a step takes is not known: a watch


@dataclass(frozen=True, slots=True)
class _Left:
    """What the resume has left. ``demand``: peak less trough of the steps to come; ``None`` is unknown."""

    step: int
    live_bytes: float
    missing_bytes: float  # optimizer state that may still have to be made, as likely as not
    expected_bytes: float
    demand: Need | None
    highest_bytes: float

    @property
    def excess_bytes(self) -> float:
        return self.live_bytes - self.expected_bytes


class ResumeCause(CauseModel):
    """Compares what is live after loading with what it should be, and looks ahead to the first full step."""

    cause = Cause.RESUME

    def __init__(self) -> None:
        self._before: PhaseSample | None = None  # the beginning of a build
        self._left: _Left | None = None
        self._trough_bytes: int | None = None  # of the run before the resume, within this forecast
        self._highest_bytes = 0.0
        self._loading: Outlook | None = None
        self._lives: deque[tuple[int, int]] = deque(maxlen=_LIVES)  # step of each resume, trough after it
        self._built_bytes: int | None = None  # live before the first step of all: the model alone
        self._resumed_step: int | None = None
        self._resumed_after = 0  # steps
        self._state_bytes: int | None = None  # what the first step of all has made: the optimizer's state

    def take_phase(self, sample: PhaseSample, view: View) -> None:
        """The model is about to be built, or has been, with its state from a checkpoint."""
        if sample.phase is not Phase.BUILD or sample.memory is None:
            return
        if not sample.ended:
            self._before = sample
            if not view.evidence.steps_seen:
                self._built_bytes = sample.memory.live_bytes
            self._loading = self._judge_loading(sample, sample.memory, view)
            return
        self._loading = None
        if not self._lives and self._trough_bytes is not None:
            self._lives.append((0, self._trough_bytes))
        self._resumed_step, self._resumed_after = sample.step, view.evidence.steps_seen
        expected = self._expected(sample, view)
        if expected is not None:
            demand, highest = self._demand(view)
            live = float(sample.memory.live_bytes)
            self._left = _Left(sample.step, live, self._missing(live), expected, demand, highest)
        self._before = None

    def take_step(self, sample: StepSample, view: View) -> None:
        """A step has been borne; it may not have been the highest one."""
        self._loading = None
        memory = sample.memory
        if memory is None:
            return
        demand = float(memory.live_peak_bytes - memory.live_bytes)
        left = self._left
        if left is not None:
            left = replace(left, live_bytes=float(memory.live_bytes), missing_bytes=0.0)
            over = demand >= _BORNE_SHARE * left.highest_bytes or not _is_left(left)
            self._left = None if over else replace(left, demand=Need(left.highest_bytes))
        if self._resumed_step is not None and view.evidence.steps_seen > self._resumed_after + 1:
            self._lives.append((self._resumed_step, memory.live_bytes))
            self._resumed_step = None
        if self._left is None:
            self._trough_bytes = memory.live_bytes
            if self._state_bytes is None and self._built_bytes is not None:
                self._state_bytes = max(0, memory.live_bytes - self._built_bytes)
            if view.evidence.steps_seen > 1:
                self._highest_bytes = max(self._highest_bytes, demand)

    def outlook(self, view: View, *, known: bool) -> Outlook | None:
        """Whether the next full steps fit beside what is left over."""
        left, memory = self._left, view.evidence.memory
        if self._loading is not None:
            return self._loading
        if memory is None:
            return None
        if left is None or not _is_left(left):
            return self._of_next(memory, view)
        if left.demand is None:
            held = left.excess_bytes >= _COPY_SHARE * left.expected_bytes
            return _outlook(_UNKNOWN_P, Need(left.live_bytes), left, memory, view) if held else None
        need = left.demand.plus(left.live_bytes)
        idle = usual_idle_bytes(view.evidence)
        probability = short_probability(need, memory, view.environment, idle_bytes=idle)
        if left.missing_bytes > 0.0:
            later = need.plus(left.missing_bytes)
            with_state = short_probability(later, memory, view.environment, idle_bytes=idle)
            probability = 0.5 * (probability + with_state)
        found = _outlook(probability, need, left, memory, view), self._of_next(memory, view)
        return worst(outlook for outlook in found if outlook is not None)

    def _of_next(self, memory: MemoryStats, view: View) -> Outlook | None:
        """Each resume has held more than the one before: what the next ones will hold, if they come as those did."""
        if len(self._lives) < _FEWEST_LIVES:
            return None
        demand = recent_demand(view.evidence)
        if demand is None:
            return None
        steps, levels = (np.array(column, dtype=np.float64) for column in zip(*self._lives, strict=True))
        rises, apart = np.diff(levels)[1 - _FEWEST_LIVES :], np.diff(steps)[1 - _FEWEST_LIVES :]
        rise = median(rises)
        alike = rise > _SLACK_BYTES and bool(np.all(np.abs(rises - rise) <= _ALIKE * rise))
        if not alike or np.any(apart <= 0.0):
            return None
        room = view.environment.allocator_room(memory) - usual_idle_bytes(view.evidence)
        free = max(room - levels[-1] - demand.typical_bytes, 0.0)
        times = float(free // rise) + 1.0
        if times > _MOST_AHEAD:
            return None
        left_steps = times * median(apart) - (view.evidence.step - float(steps[-1]))
        to_go = StepsToGo(max(left_steps, 1.0), _NEXT_SPREAD)
        probability = _GOES_ON**times
        horizon = view.environment.steps_left(view.evidence.step)
        if horizon is not None:
            probability *= to_go.probability_within(horizon)
        if probability < LIKELY_P:
            return None
        left = _Left(int(steps[-1]), float(levels[-1]), 0.0, float(levels[-1]) - rise, None, 0.0)
        need = Need(float(levels[-1]) + rise * times + demand.typical_bytes)
        found = _outlook(probability, need, left, memory, view)
        assert found is not None
        return replace(
            found,
            severity=AlertSeverity.LIKELY,
            p_within={k: probability * to_go.probability_within(k) for k in WITHIN_STEPS},
            to_go=to_go,
            urgent=False,
            evidence={**found.evidence, "resumes_to_go": times, "rise_bytes": rise},
        )

    def _judge_loading(self, sample: PhaseSample, memory: MemoryStats, view: View) -> Outlook | None:
        """The state itself, where the trainer knows its size."""
        if not sample.known_demand_bytes:
            return None
        need = Need(float(memory.live_bytes + sample.known_demand_bytes))
        probability = short_probability(need, memory, view.environment)
        left = _Left(sample.step, float(memory.live_bytes), 0.0, float(memory.live_bytes), None, 0.0)
        return _outlook(probability, need, left, memory, view)

    def _missing(self, live: float) -> float:
        """Loading has added more than the optimizer's state: that may be among it, or is still to come."""
        state, before = self._state_bytes, self._before
        if not state or before is None or before.memory is None:
            return 0.0
        return 0.0 if live - before.memory.live_bytes <= _STATE_SHARE * state else float(state)

    def _expected(self, sample: PhaseSample, view: View) -> float | None:
        """Live bytes of a model with its optimizer state: as before in this run, as told, as estimated."""
        if self._trough_bytes is not None:
            return float(self._trough_bytes)
        before = self._before
        if before is not None and before.memory is not None and before.known_demand_bytes:
            return float(before.memory.live_bytes + before.known_demand_bytes)
        prior = view.prior
        if prior is None:
            return None
        state = sum(prior.categories.get(kind, 0) for kind in (Category.PARAMETERS, Category.OPTIMIZER_STATE))
        return float(state) or None

    def _demand(self, view: View) -> tuple[Need | None, float]:
        """Of a full step, and the highest of all: measured before the resume, else estimated."""
        measured = recent_demand(view.evidence)
        if measured is not None and self._trough_bytes is not None:
            typical = measured.typical_bytes
            return Need(typical, _DEMAND_SPREAD * typical), max(self._highest_bytes, typical)
        prior, corrected = view.prior, view.corrected
        if prior is None or corrected is None:
            return None, 0.0
        peaks = [peak for phase in _STEP_PHASES if (peak := corrected.live_bytes(phase)) is not None]
        if not peaks:
            return None, 0.0
        demand = max(max(peaks) - corrected.state_bytes, 0.0)
        return Need(demand, corrected.spread * max(peaks)), demand


def _is_left(left: _Left) -> bool:
    return left.excess_bytes + left.missing_bytes > max(_SLACK_SHARE * left.expected_bytes, _SLACK_BYTES)


def _outlook(probability: float, need: Need, left: _Left, memory: MemoryStats, view: View) -> Outlook | None:
    severity = call_severity(probability)
    if severity is None:
        return None
    return call_outlook(
        Cause.RESUME,
        severity=severity,
        chances=within(probability, 1),
        probability=probability,
        to_go=StepsToGo(0.0, 0.0),
        need=need,
        memory=memory,
        view=view,
        action="load_to_host",
        urgent=True,
        figures={
            "excess_bytes": left.excess_bytes,
            "expected_bytes": left.expected_bytes,
            "demand_bytes": need.mean_bytes - left.live_bytes,
        },
        live_bytes=left.live_bytes,
    )
