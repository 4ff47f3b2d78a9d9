"""Growth of a figure that telemetry tells now and then: when it reaches a limit, and how likely it gets there."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

from desktop_app.forecast.cause_model import View
from desktop_app.forecast.demand import Demand
from desktop_app.forecast.exhaustion import exhaustion
from desktop_app.forecast.line_search import Interest
from desktop_app.forecast.outlook import WITHIN_STEPS, StepsToGo
from desktop_app.forecast.trend import Shape, Trend, TroughTrend

HORIZON_S: Final = 24 * 3600.0  # when the length of the run is unknown: further off is no alarm
_FLOOR_SHARE: Final = 0.25  # a slope this far below the one that reaches the limit in time is not looked at
_PACE_SAMPLES: Final = 16
REFIT_EVERY: Final = 3
_TICKS_PER_S: Final = 1000  # of the fit's clock, which counts in whole numbers
_LEAST_STAIR_SAMPLES: Final = 3.0
_STILL_STAIR_SAMPLES: Final = 1.5  # of a danger that is known: samples come now and then a little closer or further
_BLOCKS: Final = 128
LEAST_COME: Final = 0.1
_LEAST_ROOM: Final = 0.001  # of the limit: at it and growing is as good as over it
_STALE_SAMPLES: Final = 2.0  # a sample older than that is no longer counted on from
# With so few samples left, waiting until a fast growth has come half-way would cost the lead that an alert is for.
_LAST_MOMENT_SAMPLES: Final = 16.0
_LAST_MOMENT_COME: Final = 0.5
_LAST_MOMENT_BELIEF: Final = 0.65
_NO_DEMAND: Final = Demand(0.0, 0.0, varied=False)


@dataclass(frozen=True, slots=True)
class Growth:
    """How a figure grows towards its limit. ``seconds_to_go`` is a distribution of seconds, not of steps.

    ``belief`` is the probability that the growth goes on until the limit. What has grown for n seconds goes on for k
    more with probability n / (n + k) when nothing else is known (Gott, 1993): what other programs do with memory ends
    where they have what they want, so that a growth is believed as far as it has come.
    """

    trend: Trend
    slope_bytes_per_s: float
    lasted_s: float
    grown_bytes: float
    seconds_to_go: StepsToGo
    belief: float
    horizon_s: float

    def probability_within(self, seconds: float) -> float:
        """P(the limit is reached within so many seconds and within the run)."""
        return self.belief * self.seconds_to_go.probability_within(min(seconds, self.horizon_s))

    def by_steps(self, pace_s: float | None) -> tuple[dict[int, float], StepsToGo | None]:
        """P within ``WITHIN_STEPS``, and the steps to go, at so many seconds per step (``None``: not known yet)."""
        if not pace_s:
            return dict.fromkeys(WITHIN_STEPS, 0.0), None
        within = {steps: self.probability_within(steps * pace_s) for steps in WITHIN_STEPS}
        return within, StepsToGo(self.seconds_to_go.median / pace_s, self.seconds_to_go.spread)


class Heights:
    """The highest of a series up to any sample, in bounded space: blocks of samples that double in size."""

    def __init__(self) -> None:
        self._blocks: list[float] = []
        self._size = 1  # samples per block
        self._filled = 0  # of the newest

    def add(self, value: float) -> None:
        """Take the next sample."""
        if self._filled in (0, self._size):
            if len(self._blocks) == _BLOCKS:
                self._blocks = [max(pair) for pair in zip(self._blocks[::2], self._blocks[1::2], strict=True)]
                self._size *= 2
            self._blocks.append(value)
            self._filled = 0
        self._blocks[-1] = max(self._blocks[-1], value)
        self._filled += 1

    def highest_until(self, sample: float) -> float:
        """The highest of the blocks that end at ``sample`` (counted from 1) or before; 0 when there is none."""
        return max(self._blocks[: max(int(sample // self._size), 0)], default=0.0)


class SampledGrowth:
    """Takes one figure per sample of telemetry, at whatever times they come. Not thread-safe."""

    def __init__(self, *, turn: int = 0) -> None:
        """``turn``: which of ``REFIT_EVERY`` samples a line is looked for at, so that several series take turns."""
        self._trend = TroughTrend(of_events=False)
        self._turn = turn % REFIT_EVERY
        self._times: deque[float] = deque(maxlen=_PACE_SAMPLES)
        self._heights = Heights()
        self._count = 0
        self._found: tuple[int, float, Trend | None] = (0, 0.0, None)  # (at which sample, when, what)
        self.value = 0.0
        self.lowest: float | None = None  # since the beginning

    def add(self, t_s: float, value_bytes: float) -> None:
        """Take a sample; one that is not after the last says nothing."""
        if self._times and t_s < self._times[-1] + 1.0 / _TICKS_PER_S:
            return
        self._times.append(t_s)
        self._count += 1
        self._trend.add(round(t_s * _TICKS_PER_S), value_bytes, 1, 0.0)
        self._heights.add(value_bytes)
        self.value = value_bytes
        self.lowest = value_bytes if self.lowest is None else min(self.lowest, value_bytes)

    @property
    def samples(self) -> int:
        return self._count

    @property
    def _seconds_per_sample(self) -> float:
        """Lately; there must have been two samples."""
        return (self._times[-1] - self._times[0]) / (len(self._times) - 1)

    def towards(
        self,
        limit_bytes: float,
        *,
        view: View,
        known: bool,
        horizon_s: float | None = None,
        limit_sd_bytes: float = 0.0,
        least_come: float = LEAST_COME,
    ) -> Growth | None:
        """The growth that would reach ``limit_bytes`` within ``horizon_s`` or a little later; ``None`` without one.

        Without a horizon it is the run's end. ``limit_sd_bytes`` is what the limit may be off by. The growth is not
        looked for before it can have come as far as ``least_come`` of what is left.
        """
        limit_bytes = max(limit_bytes, self.value + _LEAST_ROOM * abs(limit_bytes))
        room = limit_bytes - self.value
        if self._count < 2 or self.value - (self.lowest or 0.0) < least_come * room:
            return None
        horizon_s = seconds_left(view) if horizon_s is None else horizon_s
        trend = self._trend_towards(room, horizon_s, known=known)
        if trend is None:
            return None
        found = exhaustion(trend, _NO_DEMAND, limit_bytes)
        newest = min(view.evidence.t_s, self._times[-1] + _STALE_SAMPLES * self._seconds_per_sample)
        since_s = max(newest, self._times[-1]) - self._found[1]
        median_s = max(found.to_go.median / _TICKS_PER_S - since_s, 0.0)
        of_limit = limit_sd_bytes / max(found.headroom_bytes, room)
        to_go = StepsToGo(median_s, math.hypot(found.to_go.spread, of_limit))
        return Growth(
            trend=trend,
            slope_bytes_per_s=trend.slope * _TICKS_PER_S,
            lasted_s=trend.steps / _TICKS_PER_S,
            grown_bytes=trend.grown_bytes,
            seconds_to_go=to_go,
            belief=self._belief(trend, found.headroom_bytes, to_go),
            horizon_s=horizon_s,
        )

    def _belief(self, trend: Trend, headroom_bytes: float, seconds_to_go: StepsToGo) -> float:
        """How far it has come, beyond where it has been before: what has fallen back once may do so again."""
        lasted_samples = trend.steps / _TICKS_PER_S / self._seconds_per_sample
        before = self._heights.highest_until(self._count - lasted_samples)
        new = trend.level_bytes - max(before, trend.level_bytes - trend.grown_bytes)
        come = max(new, 0.0) / max(new + headroom_bytes, 1.0)
        last_moment = seconds_to_go.low <= _LAST_MOMENT_SAMPLES * self._seconds_per_sample and come >= _LAST_MOMENT_COME
        return max(come, _LAST_MOMENT_BELIEF) if last_moment else come

    def _trend_towards(self, room: float, horizon_s: float, *, known: bool) -> Trend | None:
        """Looked for at every third sample: it costs a millisecond, and outlooks are asked for far more often."""
        count, _, trend = self._found
        due = self._count % REFIT_EVERY == self._turn or self._count - count >= REFIT_EVERY
        if due and count != self._count:
            floor = _FLOOR_SHARE * room / max(horizon_s * _TICKS_PER_S, 1.0)
            trend = self._trend.trend(Interest(room, floor, known=known))
            if trend is not None and self._is_none(trend, known=known):
                trend = None
            self._found = self._count, self._times[-1], trend
        return trend

    def _is_none(self, trend: Trend, *, known: bool) -> bool:
        """What falls back again and again belongs to programs that come and go; stairs of a sample's width are a line
        of few samples."""
        if trend.shape is Shape.RAMPS:
            return not known
        samples = _STILL_STAIR_SAMPLES if known else _LEAST_STAIR_SAMPLES
        width = samples * self._seconds_per_sample * _TICKS_PER_S
        return trend.stairs is not None and trend.stairs.distance_steps < width


def seconds_left(view: View) -> float:
    """Of the run; of a day when its length is unknown."""
    left, pace_s = view.environment.steps_left(view.evidence.step), view.evidence.seconds_per_step()
    if left is None or not pace_s:
        return HORIZON_S
    return min(left * pace_s, HORIZON_S)
