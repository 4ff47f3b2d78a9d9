"""Cause ``leak``: memory that is live after every step and never freed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import Phase, PhaseSample, StepSample
from desktop_app.forecast.cause_model import CauseModel, View
from desktop_app.forecast.demand import Demand, recent_demand
from desktop_app.forecast.environment import Environment
from desktop_app.forecast.evidence import Evidence
from desktop_app.forecast.exhaustion import Exhaustion, exhaustion
from desktop_app.forecast.line_search import Interest
from desktop_app.forecast.outlook import WITHIN_STEPS, Z95, Outlook, StepsToGo
from desktop_app.forecast.reserve_risers import Brim, ReserveRisers
from desktop_app.forecast.trend import Shape, Trend, TroughTrend

# A leak is to be flagged by the time 1 % of the card has grown or 40 steps, whichever is later. The bounds are lower by
# three tenths: windows shrink by quarters, 3 start-up steps are not counted, and the policy wants to see it twice.
ENOUGH_STEPS: Final = 27
ENOUGH_GROWTH: Final = 0.007
LAST_MOMENT_STEPS: Final = 16  # with this few steps left, waiting for more evidence would cost the 10 steps of lead
IMMINENT_STEPS: Final = 20
IMMINENT_S: Final = 10.0  # what it takes to read a banner and to save a checkpoint
LIKELY_P: Final = 0.5
WATCH_P: Final = 0.1
HORIZON_S: Final = 24 * 3600.0  # when the length of the run is unknown: further off is no alarm
_HORIZON_STEPS: Final = 1e6  # when the pace is unknown too
_BELIEF_UNPROVEN: Final = 0.25  # share of early growth that goes on: warm-up and caches look the same at first
_BELIEF_PROVEN: Final = 0.8  # prior, until the corpus of the forecast's score says better
_EPOCH_MARGIN: Final = 1.02  # a ramp that would be full this much after the epoch's end is still a warning
_EPOCH_MARGIN_STEPS: Final = 5
_FALL_SLACK_STEPS: Final = 3  # an epoch's meters may live on for a moment after its end
_MIN_RISERS: Final = 3
_MIN_TIED_RISERS: Final = 2  # of those that come with an event
_BELIEF_ONCE: Final = 0.55  # one riser that came with an event, and the next one would not fit
_BELIEF_AT_RANDOM: Final = 0.65  # a cache that fills begins like this too
# Risers of one amount at random show for how long only from the first one on, which is a mean distance late: four that
# are alike are enough after half of the 40 steps. What fills a cache differs in size.
_ENOUGH_STEPS_ALIKE: Final = 20
_ALIKE_RISERS: Final = 4
_ALIKE_SPREAD: Final = 0.05
_ONCE_SHARE: Final = 0.005  # of the card: what a riser that was seen once must have at least
_RETRY_MEMORY_STEPS: Final = 5
_RETRY_MATTERS_STEPS: Final = 100  # a retry proves a leak that would be full this soon, not one that is far off
# Growth that an alert is out about is looked at again when this share of the steps to go has passed, or so many steps:
# it is the costliest look of all.
_LOOK_SHARE: Final = 1.0 / 25.0
_LOOK_WITHIN: Final = 16
_FLOOR_SHARE: Final = 0.25  # a slope this far below the one that fills the card in time is not looked at


@dataclass(frozen=True, slots=True)
class _Verdict:
    """A trend set against room and time. ``horizon_steps``: how long the growth is taken to go on."""

    trend: Trend
    demand: Demand
    exhaustion: Exhaustion
    horizon_steps: float
    proven: bool
    at_last_moment: bool = False  # proven only because there is no time for more evidence

    @property
    def to_go(self) -> StepsToGo:
        return self.exhaustion.to_go

    @property
    def belief(self) -> float:
        """Probability that the growth goes on until memory is out.

        What has grown for n steps goes on for k more with probability n / (n + k), were nothing else known (Gott,
        1993); most growth of troughs that has passed the tests is a true leak and never stops. What is so steep that
        there is no time for them is as often a cache that fills: it is believed as far as it has come.
        """
        if not self.proven:
            return _BELIEF_UNPROVEN
        stairs = self.trend.stairs
        if stairs is not None and stairs.risers < _MIN_TIED_RISERS:
            return _BELIEF_ONCE
        if stairs is not None and stairs.at_random:
            return _BELIEF_AT_RANDOM
        lasted = self.trend.lasted_steps / (self.trend.lasted_steps + max(self.to_go.median, 0.0))
        if self.at_last_moment:
            return lasted
        return _BELIEF_PROVEN + (1.0 - _BELIEF_PROVEN) * lasted

    def chances(self) -> tuple[float, Mapping[int, float]]:
        """P(OOM) to the end of the run and within ``WITHIN_STEPS``."""
        belief, horizon, within = self.belief, self.horizon_steps, self.to_go.probability_within
        return belief * within(horizon), {steps: belief * within(min(steps, horizon)) for steps in WITHIN_STEPS}


class LeakCause(CauseModel):
    """Sees every step; says what the troughs lead to."""

    cause = Cause.LEAK

    def __init__(self) -> None:
        self._trend = TroughTrend()
        self._risers = ReserveRisers()
        self._last_step = 0
        self._looked: tuple[int, Trend, float] | None = None  # at which step, what was seen, steps to go

    def take_phase(self, sample: PhaseSample, view: View) -> None:
        """Take an event that growth may come with. What a build leaves is no growth: another process, or a resume."""
        if sample.phase is Phase.BUILD:
            self._trend, self._risers = TroughTrend(), ReserveRisers()
            return
        self._trend.take_phase(sample)

    def take_step(self, sample: StepSample, view: View) -> None:
        """Take one step, when it is of the usual shape and start-up is over."""
        evidence = view.evidence
        if sample.memory is None or evidence.starting_up:
            return
        if sample.step < self._last_step:  # the run went back to an earlier state
            self._trend, self._risers = TroughTrend(), ReserveRisers()
        self._last_step = sample.step
        usual = evidence.usual_batch
        if usual is None or sample.batch_samples == usual:
            live, reserved = float(sample.memory.live_bytes), float(sample.memory.reserved_peak_bytes)
            self._risers.add(float(sample.memory.live_peak_bytes), reserved)
            self._trend.add(sample.step, live, sample.batch_samples, reserved, epoch=sample.epoch)

    def outlook(self, view: View, *, known: bool) -> Outlook | None:
        """What will happen if growth goes on; ``None`` when nothing grows or it cannot matter.

        ``known``: an alert about it is out, so less evidence will do.
        """
        evidence, environment = view.evidence, view.environment
        if evidence.memory is None:
            return None
        room = environment.allocator_room(evidence.memory)
        above = max(float(room - evidence.memory.live_peak_bytes), 1.0)
        floor = _FLOOR_SHARE * above / max(_run_horizon(evidence, environment), 1.0)
        trend = self._trend_now(Interest(above, floor, known=known))
        demand = recent_demand(evidence) if trend is not None else None
        if trend is None or demand is None:
            self._looked = None
            return None
        jump = trend.stairs.jump_bytes if trend.stairs is not None else 0.0
        brim = self._risers.brim(trend.level_bytes, demand, evidence, float(room), jump_bytes=jump)
        verdict = _judge(trend, demand, float(room), brim, evidence, environment)
        if self._looked is None or self._looked[0] == self._last_step:
            self._looked = self._last_step, trend, verdict.to_go.median
        return _to_outlook(verdict, evidence, environment)

    def _trend_now(self, interest: Interest) -> Trend | None:
        if self._looked is not None and interest.known:
            step, trend, to_go = self._looked
            if 0 < self._last_step - step < min(_LOOK_SHARE * to_go, _LOOK_WITHIN):
                return trend.later(self._last_step - step)
        self._looked = None
        return self._trend.trend(interest)


def _run_horizon(evidence: Evidence, environment: Environment) -> float:
    left = environment.steps_left(evidence.step)
    if left is not None:
        return float(left)
    pace = evidence.seconds_per_step()
    return HORIZON_S / pace if pace else _HORIZON_STEPS


def _judge(
    trend: Trend, demand: Demand, room_bytes: float, brim: Brim | None, evidence: Evidence, environment: Environment
) -> _Verdict:
    found = exhaustion(trend, demand, room_bytes, brim)
    horizon = _run_horizon(evidence, environment)
    epoch_left = environment.steps_to_epoch_end(evidence.step)
    in_first_ramp = environment.same_epoch(trend.first_step, evidence.step - _FALL_SLACK_STEPS)
    if trend.shape is Shape.LINE and epoch_left is not None and in_first_ramp:
        horizon = min(horizon, _EPOCH_MARGIN * epoch_left + _EPOCH_MARGIN_STEPS)
    if trend.falls_back_in is not None:
        horizon = min(horizon, _EPOCH_MARGIN * trend.falls_back_in)
    proven = _enough_evidence(trend, found.to_go, environment) or _driver_refused(found.to_go, evidence)
    in_a_hurry = not proven and trend.stairs is None and found.to_go.low <= LAST_MOMENT_STEPS
    return _Verdict(trend, demand, found, horizon, proven or in_a_hurry, at_last_moment=in_a_hurry)


def _enough_evidence(trend: Trend, to_go: StepsToGo, environment: Environment) -> bool:
    if trend.stairs is not None:
        stairs = trend.stairs
        one_more = to_go.median <= 1.5 * stairs.distance_steps
        if stairs.at_random:
            alike = stairs.risers >= _ALIKE_RISERS and stairs.jump_spread <= _ALIKE_SPREAD
            return _lasts(trend, environment, _ENOUGH_STEPS_ALIKE if alike else ENOUGH_STEPS)
        if stairs.event is None:
            return one_more or (stairs.risers >= _MIN_RISERS and trend.steps >= ENOUGH_STEPS)
        large = stairs.jump_bytes >= _ONCE_SHARE * environment.capacity_bytes
        return stairs.risers >= _MIN_TIED_RISERS or (large and to_go.median <= stairs.distance_steps)
    return _lasts(trend, environment)


def _lasts(trend: Trend, environment: Environment, steps: int = ENOUGH_STEPS) -> bool:
    return trend.lasted_steps >= steps and trend.lasted_bytes >= ENOUGH_GROWTH * environment.capacity_bytes


def _driver_refused(to_go: StepsToGo, evidence: Evidence) -> bool:
    """The allocator had to give memory back and ask again: the last warning there is, when memory grows as well."""
    retried = evidence.retried_at_step
    recently = retried is not None and evidence.step - retried <= _RETRY_MEMORY_STEPS
    return recently and to_go.low <= _RETRY_MATTERS_STEPS


def _severity(verdict: _Verdict, p_run: float, evidence: Evidence) -> AlertSeverity | None:
    if verdict.proven and p_run >= LIKELY_P:
        pace = evidence.seconds_per_step() or 0.0
        soon = verdict.to_go.median <= IMMINENT_STEPS or 0.0 < verdict.to_go.median * pace <= IMMINENT_S
        return AlertSeverity.IMMINENT if soon else AlertSeverity.LIKELY
    watch = verdict.to_go.probability_within(verdict.horizon_steps) >= WATCH_P
    return AlertSeverity.WATCH if watch else None


def _to_outlook(verdict: _Verdict, evidence: Evidence, environment: Environment) -> Outlook | None:
    p_run, p_within = verdict.chances()
    severity = _severity(verdict, p_run, evidence)
    grows_for = verdict.horizon_steps if verdict.proven else min(verdict.horizon_steps, verdict.trend.lasted_steps)
    base = environment.device_bytes(evidence.memory) - (evidence.memory.reserved_bytes if evidence.memory else 0)
    peak = base + verdict.exhaustion.held_bytes
    growth = verdict.exhaustion.bytes_per_step * grows_for
    return Outlook(
        cause=Cause.LEAK,
        severity=severity,
        p_within=p_within,
        p_run=p_run,
        to_go=verdict.to_go if severity is not None else None,
        evidence=_figures(verdict, evidence),
        peak_low_bytes=peak + growth,
        peak_high_bytes=peak + growth * (1.0 + Z95 * min(verdict.to_go.spread, 1.0)),
    )


def _figures(verdict: _Verdict, evidence: Evidence) -> Mapping[str, float]:
    trend = verdict.trend
    figures = {
        "slope_bytes_per_step": trend.slope,
        "slope_sd_bytes_per_step": trend.slope_sd,
        "reserved_slope_bytes_per_step": trend.reserved_slope,
        "grown_bytes": trend.lasted_bytes,
        "grown_steps": trend.lasted_steps,
        "trough_bytes": trend.level_bytes,
        "demand_bytes": verdict.demand.typical_bytes,
        "headroom_bytes": verdict.exhaustion.headroom_bytes,
        "first_step": float(trend.first_step),
        "significance": trend.significance,
    }
    usual = evidence.usual_batch
    if usual is not None:
        figures["batch_samples"] = float(usual)
    if trend.stairs is not None:
        stairs = trend.stairs
        figures |= {
            "jump_bytes": stairs.jump_bytes,
            "jump_distance_steps": stairs.distance_steps,
            "risers": float(stairs.risers),
        }
        if stairs.event is not None:
            figures[f"{stairs.event}s_to_go"] = stairs.risers_until_full(verdict.exhaustion.headroom_bytes)
    return figures
