"""Cause ``first_optimizer_step``: the optimizer makes its state in its first step, and there is no room for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from desktop_app.core.forecasts import AlertSeverity, Cause, Estimate
from desktop_app.core.steps import Category, MemoryStats, Phase, PhaseSample, StepSample
from desktop_app.forecast.cause_model import CauseModel, View
from desktop_app.forecast.demand import SEGMENT_BYTES
from desktop_app.forecast.environment import Environment
from desktop_app.forecast.optimizer_guess import guess_optimizer, usual_demand
from desktop_app.forecast.outlook import WITHIN_STEPS, Z95, Outlook, StepsToGo, normal_cdf

LIKELY_P: Final = 0.3  # lower than for other causes: the warning comes moments before, a miss cannot be made good
IMMINENT_P: Final = 0.7
WATCH_P: Final = 0.1
# Idle splits are holes of every size that activations left; state tensors are as large as parameters. Some share of
# the holes gets used: between this and all.
_LEAST_USABLE_SHARE: Final = 0.5
# A foreach Adam step needs three parameter-sized tensors at its peak and keeps two of them.
_LEAST_KEPT_SHARE: Final = 2.0 / 3.0
_LEAST_ESTIMATE_SPREAD: Final = 0.02  # of the logarithm of an estimated peak


@dataclass(frozen=True, slots=True)
class _Danger:
    """What was found just before the optimizer call of ``step``: P(short) in the call, and in the step after it."""

    step: int
    in_call: float
    after: float
    action: str
    evidence: Mapping[str, float]
    peak_low_bytes: float
    peak_high_bytes: float
    assumed: bool = False  # the optimizer's kind is a guess


class FirstOptimizerStepCause(CauseModel):
    """Judges the sample that the trainer sends just before its optimizer call.

    What the call will allocate is told with it, or known from the estimate, or else guessed from what is live.
    """

    cause = Cause.FIRST_OPTIMIZER_STEP

    def __init__(self) -> None:
        self._danger: _Danger | None = None
        self._call_is_over = False
        self._estimate_is_over = False
        self._before_forward_bytes: int | None = None

    def take_phase(self, sample: PhaseSample, view: View) -> None:
        """Take a phase; only an optimizer phase that will make memory matters."""
        environment, prior = view.environment, view.prior
        if sample.memory is None:
            return
        if sample.phase is not Phase.OPTIMIZER or sample.ended:
            if sample.phase is Phase.FORWARD and not sample.ended and self._before_forward_bytes is None:
                self._before_forward_bytes = sample.memory.live_bytes
            return
        is_first = not self._estimate_is_over and not view.evidence.steps_seen and sample.step <= 1
        demand = sample.known_demand_bytes
        if demand is None and prior is not None and not self._estimate_is_over:
            demand = prior.optimizer_demand_bytes
        self._estimate_is_over = True
        if demand is None and prior is None and is_first:
            self._danger = _guess(sample.step, sample.memory, self._before_forward_bytes, environment)
            self._call_is_over = False
        elif demand:
            kept = prior.categories.get(Category.OPTIMIZER_STATE) if prior is not None else None
            self._danger = _look(sample.step, sample.memory, demand, kept, environment)
            self._call_is_over = False

    def take_step(self, sample: StepSample, view: View) -> None:
        """The call is over with its own step; what the state leaves for the next step, with that one."""
        step = sample.step
        self._estimate_is_over = True
        if self._danger is None or step < self._danger.step:
            return
        self._call_is_over = True
        if step > self._danger.step:
            self._danger = None

    def outlook(self, view: View, *, known: bool) -> Outlook | None:
        """The danger of the coming call or step; before the first sample, what the estimate says."""
        environment, prior = view.environment, view.prior
        if self._danger is not None:
            return _to_outlook(self._danger, call_is_over=self._call_is_over)
        if prior is None or self._estimate_is_over:
            return None
        return _from_estimate(prior, environment)


def _look(step: int, memory: MemoryStats, demand: int, kept: int | None, environment: Environment) -> _Danger:
    room = environment.allocator_room(memory)
    free = room - memory.reserved_bytes + memory.returnable_bytes
    missing = demand - free
    in_call = _probability_positive(
        missing - memory.idle_split_bytes, missing - _LEAST_USABLE_SHARE * memory.idle_split_bytes + SEGMENT_BYTES
    )
    kept_low = min(kept, demand) if kept else _LEAST_KEPT_SHARE * demand
    over = memory.live_peak_bytes - room
    after = _probability_positive(over + kept_low, over + max(demand, kept_low) + SEGMENT_BYTES)
    device = environment.device_bytes(memory)
    peak = max(device, device - memory.reserved_bytes + memory.live_bytes + demand)
    return _Danger(
        step=step,
        in_call=in_call,
        after=after,
        action="pause" if memory.live_bytes + demand > room else "reduce_batch",
        evidence={
            "demand_bytes": float(demand),
            "room_bytes": float(free),
            "idle_split_bytes": float(memory.idle_split_bytes),
            "live_bytes": float(memory.live_bytes),
            "live_peak_bytes": float(memory.live_peak_bytes),
            "reserved_bytes": float(memory.reserved_bytes),
            "others_bytes": float(environment.others_bytes),
            "outside_bytes": float(environment.outside(memory)),
            "capacity_bytes": float(environment.capacity_bytes),
        },
        peak_low_bytes=float(peak),
        peak_high_bytes=peak + _LEAST_USABLE_SHARE * memory.idle_split_bytes + SEGMENT_BYTES,
    )


def _guess(step: int, memory: MemoryStats, before_forward: int | None, environment: Environment) -> _Danger:
    """Nobody knows the optimizer: each kind by how common it is."""
    demand = usual_demand(memory.live_bytes, before_forward_bytes=before_forward)
    usual = _look(step, memory, demand, None, environment)
    in_call = after = 0.0
    for guess in guess_optimizer(memory.live_bytes, before_forward_bytes=before_forward):
        if guess.demand_bytes:
            found = _look(step, memory, guess.demand_bytes, guess.kept_bytes, environment)
            in_call += guess.share * found.in_call
            after += guess.share * found.after
    return replace(
        usual,
        in_call=min(in_call, 1.0),
        after=min(after, 1.0),
        evidence={**usual.evidence, "demand_assumed": 1.0},
        assumed=True,
    )


def _probability_positive(low: float, high: float) -> float:
    """P(X > 0) for X uniform between ``low`` and ``high``."""
    return min(1.0, max(0.0, high / (high - low)))


def _to_outlook(danger: _Danger, *, call_is_over: bool) -> Outlook | None:
    now = danger.after if call_is_over else danger.in_call
    later = max(now, danger.after)
    severity = _severity(now, later)
    if danger.assumed and severity is AlertSeverity.IMMINENT:
        severity = AlertSeverity.LIKELY
    if severity is None and call_is_over:
        return None
    return Outlook(
        cause=Cause.FIRST_OPTIMIZER_STEP,
        severity=severity,
        p_within={steps: now if steps == 1 else later for steps in WITHIN_STEPS},
        p_run=later,
        to_go=StepsToGo(0.0 if now >= LIKELY_P else 1.0, 0.0) if severity is not None else None,
        urgent=True,
        action=danger.action,
        evidence=danger.evidence,
        peak_low_bytes=danger.peak_low_bytes,
        peak_high_bytes=danger.peak_high_bytes,
    )


def _severity(now: float, later: float) -> AlertSeverity | None:
    if now >= IMMINENT_P:
        return AlertSeverity.IMMINENT
    if now >= LIKELY_P or later >= IMMINENT_P:
        return AlertSeverity.LIKELY
    return AlertSeverity.WATCH if later >= WATCH_P else None


def _from_estimate(prior: Estimate, environment: Environment) -> Outlook | None:
    """Ahead of the run: only a watch, as the verdict of the estimate is on screen already."""
    peak = prior.phases.get(Phase.OPTIMIZER)
    if peak is None or prior.peak_phase is not Phase.OPTIMIZER:
        return None
    peak += environment.others_bytes - prior.others_bytes
    quantiles = prior.device_peak_bytes
    spread = max(math.log(quantiles.p95 / quantiles.p50) / Z95, _LEAST_ESTIMATE_SPREAD)
    probability = normal_cdf(math.log(peak / environment.capacity_bytes) / spread)
    if probability < WATCH_P:
        return None
    return Outlook(
        cause=Cause.FIRST_OPTIMIZER_STEP,
        severity=AlertSeverity.WATCH,
        p_within=dict.fromkeys(WITHIN_STEPS, probability),
        p_run=probability,
        to_go=StepsToGo(1.0, 0.0),
        action="reduce_batch",
        evidence={
            "demand_bytes": float(prior.optimizer_demand_bytes),
            "estimated_peak_bytes": float(peak),
            "capacity_bytes": float(environment.capacity_bytes),
        },
        peak_low_bytes=float(peak),
        peak_high_bytes=peak * math.exp(Z95 * spread),
    )
