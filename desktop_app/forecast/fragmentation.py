"""Cause ``fragmentation``: idle memory grows in pieces that no request fits into, until a request finds no place.

What is reserved reaching the brim is no sign: the caching allocator fills the card, and gives whole segments back when
the driver refuses. What cannot be given back is idle memory in segments that something long-lived keeps: idle splits.
They are set against the room above the highest peak of live. Runs of the allocator's replica that ran out had idle
splits grown by 0.6 to 2.7 times that room, healthy ones by at most 0.3 (docs/decisions/018-surroundings.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import StepSample
from desktop_app.forecast.cause_model import CauseModel, View
from desktop_app.forecast.line_search import Interest
from desktop_app.forecast.outlook import WITHIN_STEPS, Outlook, StepsToGo
from desktop_app.forecast.robust import RollingOrder
from desktop_app.forecast.sampled_growth import seconds_left
from desktop_app.forecast.trend import Trend, TroughTrend

LIKELY_P: Final = 0.5
WATCH_P: Final = 0.15
_SMOOTH_STEPS: Final = 8
_LEAST_STEPS: Final = 4
_LEAST_GROWN: Final = 0.02  # of the room: less is a segment or two
_LEAST_SLACK: Final = 0.02  # of the room: with less above the peak, the peak itself is the trouble
_WATCHED_SHARE: Final = 0.2
_DANGEROUS_SHARE: Final = 0.35  # growth of idle splits over the room above the peak of live; docs/decisions/037
_BRIM: Final = 0.9  # of the room has been reserved: new requests must find their place in what is there
_BELIEFS: Final = ((_DANGEROUS_SHARE, 0.65), (0.8, 0.8))  # P(it runs out) by that share, between them a line
# Steps to go at the brim: the next request that finds no place is a matter of luck. Median and deviation of the
# logarithm over 775 moments of 24 runs of the tuning half, against steps since the growth began.
_WAIT_FACTOR: Final = 7.0
_WAIT_POWER: Final = 0.4
_WAIT_SPREAD: Final = 0.9
_PRESSURE_STEPS: Final = 150  # without a refusal or anything newly reserved: it fits, as it seems
_MORE_SHARE: Final = 0.01  # of the room
_IMMINENT_RETRIES: Final = 2
_RETRY_WINDOW_STEPS: Final = 30
_ONE_SEGMENT: Final = 1.0
_FLOOR_SHARE: Final = 0.25
_TREND_BELIEF: Final = 0.95
_TREND_EVERY: Final = 4  # steps between looks for a line: one costs up to a millisecond


@dataclass(frozen=True, slots=True)
class _State:
    """As it stands at the newest step. Bytes; shares are of the room above the peak of live."""

    room: float
    slack: float
    idle: float
    grown: float
    reserved: float
    since_steps: float

    @property
    def share(self) -> float:
        return self.grown / self.slack

    @property
    def at_brim(self) -> bool:
        return self.reserved >= _BRIM * self.room


class FragmentationCause(CauseModel):
    """Follows idle splits, what is reserved, and how often the driver refused."""

    cause = Cause.FRAGMENTATION

    def __init__(self) -> None:
        self._last_step = 0
        self._start_over()

    def _start_over(self) -> None:
        self._trend = TroughTrend(of_events=False)
        self._looked: tuple[int, Trend | None] | None = None  # (step, what was found)
        self._newest = RollingOrder(_SMOOTH_STEPS)
        self._lowest: tuple[float, int] | None = None  # (idle splits, step)
        self._live_peak = 0.0
        self._reserved = 0.0
        self._retries: int | None = None
        self._retried: deque[int] = deque(maxlen=_IMMINENT_RETRIES)  # the newest steps with a refusal
        self._pressed_at: int | None = None  # last step in which the driver was asked for more, or pieces became more
        self._most_idle = 0.0

    def take_step(self, sample: StepSample, view: View) -> None:
        """Take a step after start-up."""
        memory = sample.memory
        if memory is None or view.evidence.starting_up:
            return
        if sample.step < self._last_step:  # the run went back: perhaps with an empty allocator
            self._start_over()
        self._last_step = sample.step
        self._newest.add(float(memory.idle_split_bytes))
        if len(self._newest) >= _LEAST_STEPS:
            idle = self._newest.median()
            if self._lowest is None or idle <= self._lowest[0]:
                self._lowest = idle, sample.step
            self._note_pieces(sample.step, idle, view)
        self._live_peak = max(self._live_peak, float(memory.live_peak_bytes))
        self._note_pressure(sample.step, float(memory.reserved_peak_bytes), memory.alloc_retries)
        self._trend.add(sample.step, float(memory.idle_split_bytes), sample.batch_samples, self._reserved)

    def _note_pressure(self, step: int, reserved: float, retries: int) -> None:
        refused = self._retries is not None and retries > self._retries
        more = self._lowest is not None and reserved > self._reserved + _ONE_SEGMENT
        self._retries = retries
        self._reserved = max(self._reserved, reserved)
        if refused:
            self._retried.append(step)
        if refused or more:
            self._pressed_at = step

    def _note_pieces(self, step: int, idle: float, view: View) -> None:
        """On a full card pieces that become more press as requests for more do: the same blocks have fewer places."""
        if idle > self._most_idle + _MORE_SHARE * view.environment.allocator_room(view.evidence.memory):
            if self._most_idle:
                self._pressed_at = step
            self._most_idle = idle

    def outlook(self, view: View, *, known: bool) -> Outlook | None:
        """What the pieces lead to; ``None`` while they are few beside the room that is left."""
        state = self._state(view)
        if state is None or state.share < _WATCHED_SHARE or state.grown < _LEAST_GROWN * state.room:
            return None
        trend = self._line(state, view, known=known)
        left = _steps_left(view)
        found = _by_line(state, trend) if trend is not None else None
        if found is None or (state.at_brim and self._at_brim(state)[1] > found[1]):
            found = self._at_brim(state)
        to_go, belief = found
        p_run = belief * to_go.probability_within(left)
        if p_run < WATCH_P:
            return None
        severity = self._severity(state, p_run)
        return Outlook(
            cause=Cause.FRAGMENTATION,
            severity=severity,
            p_within={steps: belief * to_go.probability_within(min(steps, left)) for steps in WITHIN_STEPS},
            p_run=p_run,
            to_go=to_go,
            action="expandable_segments",
            evidence=self._figures(state, trend),
        )

    def _state(self, view: View) -> _State | None:
        memory = view.evidence.memory
        if memory is None or self._lowest is None:
            return None
        room = float(view.environment.allocator_room(memory))
        if room <= 0:
            return None
        idle = self._newest.median()
        return _State(
            room=room,
            slack=max(room - self._live_peak, _LEAST_SLACK * room),
            idle=idle,
            grown=idle - self._lowest[0],
            reserved=self._reserved,
            since_steps=float(max(self._last_step - self._lowest[1], 1)),
        )

    def _at_brim(self, state: _State) -> tuple[StepsToGo, float]:
        """It is a matter of luck when a request finds no place; the longer none was refused, the less likely it is."""
        to_go = StepsToGo(_WAIT_FACTOR * state.since_steps**_WAIT_POWER, _WAIT_SPREAD)
        if not state.at_brim or self._pressed_at is None:
            return to_go, 0.0
        (low, p_low), (high, p_high) = _BELIEFS
        belief = float(np.interp(state.share, (_WATCHED_SHARE, low, high), (WATCH_P, p_low, p_high)))
        calm = self._last_step - self._pressed_at
        return to_go, belief * min(1.0, _PRESSURE_STEPS / max(calm, 1))

    def _line(self, state: _State, view: View, *, known: bool) -> Trend | None:
        """Idle splits that grow in step with what is reserved."""
        if self._looked is not None and self._last_step - self._looked[0] < _TREND_EVERY:
            return self._looked[1]
        floor = _FLOOR_SHARE * state.slack / max(_steps_left(view), 1.0)
        trend = self._trend.trend(Interest(state.slack, floor, known=known))
        self._looked = self._last_step, trend if trend is not None and trend.reserved_slope > 0 else None
        return self._looked[1]

    def _severity(self, state: _State, p_run: float) -> AlertSeverity:
        if p_run < LIKELY_P:
            return AlertSeverity.WATCH
        often = len(self._retried) == _IMMINENT_RETRIES and self._retried[0] >= self._last_step - _RETRY_WINDOW_STEPS
        return AlertSeverity.IMMINENT if often and state.at_brim else AlertSeverity.LIKELY

    def _figures(self, state: _State, trend: Trend | None) -> Mapping[str, float]:
        slope = trend.slope if trend is not None else state.grown / state.since_steps
        return {
            "idle_split_bytes": state.idle,
            "grown_bytes": state.grown,
            "grown_steps": state.since_steps,
            "slope_bytes_per_step": slope,
            "reserved_slope_bytes_per_step": trend.reserved_slope if trend is not None else 0.0,
            "live_peak_bytes": self._live_peak,
            "reserved_peak_bytes": state.reserved,
            "room_bytes": state.room,
            "headroom_bytes": max(state.room - self._live_peak, 0.0),
            "alloc_retries": float(self._retries or 0),
        }


def _by_line(state: _State, trend: Trend) -> tuple[StepsToGo, float] | None:
    """Until what is reserved reaches the brim. Believed as far as it has come, as other growth is."""
    headroom = state.room - state.reserved
    if headroom <= 0:
        return None
    speed = max(trend.reserved_slope, trend.slope)
    spread = float(np.hypot(trend.slope_sd / trend.slope, 0.15))
    come = state.grown / (state.grown + headroom)
    return StepsToGo(headroom / speed, spread), _TREND_BELIEF * come


def _steps_left(view: View) -> float:
    left = view.environment.steps_left(view.evidence.step)
    if left is not None:
        return float(left)
    pace_s = view.evidence.seconds_per_step()
    return seconds_left(view) / pace_s if pace_s else 1e6
