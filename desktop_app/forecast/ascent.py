"""A loader sorted by length: the demand of the steps rises through the epoch, and the worst batch comes last.

Sorted lengths are their own quantile function. Where the end of the epoch is known, step k of n stands for the quantile
k / n, and normal, log-normal and even distributions of lengths are straight lines over it; else the newest slope and
its growth have to do.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from desktop_app.forecast.outlook import StepsToGo
from desktop_app.forecast.robust import Floats, median

_POINTS: Final = 96  # kept per ascent; when they are full every second one goes, and from then on every second comes in
_LOOK_EVERY: Final = 4  # points
_MIN_STEPS: Final = 24
_FALL_SHARE: Final = 0.5  # of the rise: the ascent is over, the loader has begun anew
_MIN_FALL_STEPS: Final = 3  # low demands in a row: one is the last partial batch
_SORTED: Final = 0.95  # rank correlation of demand and step
_RISING_SHARE: Final = 0.6  # of neighbouring points do not fall; bucketed loaders shuffle within a bucket
_LEAST_RISE: Final = 0.03  # of the demand
_JUMP_SHARE: Final = 0.6  # of the rise in one step: another batch size or algorithm (OOM-59), not lengths in order
_KNOWN_TOP: Final = 1.02  # an ascent ends about where the one before ended
_MODEL_SPREAD: Final = 0.1  # of the steps to go
_MODEL_RISE: Final = 0.15  # relative deviation of the rise still to come
_NEWEST: Final = 0.6  # share of the points that a shape is fitted to
_CONVEX: Final = 1.15  # a late slope this many times the early one rises further
_AS_GOOD: Final = 1.5  # times the error of the best distribution, and this share of the rise: as likely
_SAME_SHARE: Final = 0.01
_AHEAD: Final = 48  # points of the way to the end of the epoch that are looked at
_START_SHARE: Final = 0.9  # of the least demand does not depend on the length (gradients): so that logs can bend
_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True)
class Ascent:
    """The demand rises from step to step: ``level_bytes`` at the newest, ``demands`` in ``steps_ahead`` more steps."""

    level_bytes: float
    slope: float  # bytes per step, newest
    rise_bytes: float
    steps: float  # that it has risen for
    steps_ahead: Floats
    demands: Floats
    seen_share: float  # of the epoch; 0 when its end is not known
    known_top_bytes: float | None  # of ascents before this one

    @property
    def end_bytes(self) -> float:
        """The highest demand foreseen."""
        top = float(self.demands[-1])
        return top if self.known_top_bytes is None else min(top, _KNOWN_TOP * self.known_top_bytes)

    def to_go(self, headroom_bytes: float, *, spread: float = 0.0) -> StepsToGo | None:
        """Steps until the demand has grown by ``headroom_bytes``, the logarithm of which is known to ``spread``;
        ``None`` when it ends below."""
        if headroom_bytes <= 0.0:
            return StepsToGo(0.0, 0.0)
        limit = self.level_bytes + headroom_bytes
        if limit > self.end_bytes:
            return None
        at = float(np.interp(limit, self.demands, self.steps_ahead))
        return StepsToGo(at, math.hypot(_MODEL_SPREAD, spread))

    def probability_over(self, headroom_bytes: float) -> float:
        """P(the demand grows by that much before the epoch ends)."""
        rise = self.end_bytes - self.level_bytes
        if headroom_bytes <= 0.0:
            return 1.0
        if rise <= 0.0:
            return 0.0
        spread = 0.02 if self.known_top_bytes is not None else _MODEL_RISE
        return _NORMAL.cdf((rise / headroom_bytes - 1.0) / spread)


class AscentWatch:
    """Follows the demand through an epoch in bounded memory. Not thread-safe."""

    def __init__(self) -> None:
        self._points: list[tuple[int, float]] = []
        self._stride = 1
        self._seen = 0
        self._first_step = 0
        self._step = 0
        self._top = 0.0
        self._bottom = math.inf
        self._low = 0
        self._tops: deque[float] = deque(maxlen=8)
        self._found: Ascent | None = None

    def restart(self) -> None:
        """An epoch has begun: what rose in the one before begins anew."""
        if self._seen >= _MIN_STEPS:
            self._tops.append(self._top)
        self._points.clear()
        self._stride, self._seen, self._low = 1, 0, 0
        self._top, self._bottom = 0.0, math.inf
        self._found = None

    def add(self, step: int, demand_bytes: float, *, left_steps: int | None) -> None:
        """Take the demand of a step; ``left_steps`` to the end of the epoch."""
        fallen = demand_bytes < self._top - _FALL_SHARE * (self._top - self._bottom) and self._seen >= _MIN_STEPS
        self._low = self._low + 1 if fallen else 0
        if self._low >= _MIN_FALL_STEPS:
            self.restart()
        if self._seen == 0:
            self._first_step = step
        self._step = step
        self._top, self._bottom = max(self._top, demand_bytes), min(self._bottom, demand_bytes)
        if self._seen % self._stride == 0:
            self._points.append((step, demand_bytes))
            if len(self._points) >= _POINTS:
                del self._points[1::2]
                self._stride *= 2
            if len(self._points) % _LOOK_EVERY == 0:
                self._found = self._find(left_steps)
        self._seen += 1

    def ascent(self) -> Ascent | None:
        """The rise so far; ``None`` when the demand does not rise with the steps."""
        return self._found

    def _find(self, left_steps: int | None) -> Ascent | None:
        if len(self._points) < _MIN_STEPS:
            return None
        rows = np.array(self._points, dtype=np.float64)
        steps, demands = rows[:, 0], rows[:, 1]
        rise = float(demands[-4:].mean() - demands[:4].mean())
        if rise < _LEAST_RISE * float(demands[-1]) or not _is_sorted(demands):
            return None
        if float(np.diff(demands).max()) > _JUMP_SHARE * rise:
            return None
        slope, acceleration = _newest_slope(steps, demands)
        if slope <= 0.0:
            return None
        level = float(np.maximum.accumulate(demands)[-1])
        span = float(steps[-1] - steps[0])
        ahead = np.linspace(1.0, max(2.0, 2.0 * span if left_steps is None else float(left_steps)), _AHEAD)
        coming = level + ahead * (slope + 0.5 * acceleration * ahead)
        if left_steps is not None:
            by_quantile = _by_quantile(steps - self._first_step, demands, self._step - self._first_step + ahead)
            coming = coming if by_quantile is None else level + by_quantile
        return Ascent(
            level_bytes=level,
            slope=slope,
            rise_bytes=rise,
            steps=span,
            steps_ahead=ahead,
            demands=np.maximum.accumulate(np.maximum(coming, level)),
            seen_share=0.0 if left_steps is None else span / (span + left_steps),
            known_top_bytes=max(self._tops) if self._tops else None,
        )


def _newest_slope(steps: Floats, demands: Floats) -> tuple[float, float]:
    """Slope of the newest third, and how fast slopes grow; a slope that falls is taken to stay."""
    third = demands.size // 3
    ends = [median(demands[at : at + max(third // 4, 3)]) for at in (0, third, 2 * third)]
    last = median(demands[-max(third // 4, 3) :])
    spans = float(steps[third] - steps[0]), float(steps[2 * third] - steps[third]), float(steps[-1] - steps[2 * third])
    early, late = (ends[2] - ends[1]) / spans[1], (last - ends[2]) / spans[2]
    acceleration = (late - early) / (0.5 * (spans[1] + spans[2])) if late > _CONVEX * max(early, 0.0) else 0.0
    return late + 0.5 * acceleration * spans[2], acceleration


def _by_quantile(steps: Floats, demands: Floats, ahead: Floats) -> Floats | None:
    """Rise at ``ahead`` above the newest demand: the least of the distributions that fit the newest points well."""
    count = float(ahead[-1]) + 1.0
    keep = int(steps.size * (1.0 - _NEWEST))
    at, to = (steps[keep:] + 0.5) / count, np.minimum((ahead + 0.5) / count, 1.0 - 0.5 / count)
    if at[-1] >= 1.0 or at[0] <= 0.0:
        return None
    z, z_to = (np.array([_NORMAL.inv_cdf(float(value)) for value in values]) for values in (at, to))
    values = demands[keep:]
    floor = float(demands[0])
    logs = np.log(np.maximum(values - _START_SHARE * floor, 1.0))
    found: list[tuple[float, Floats]] = []
    for x, x_to, y, back in ((at, to, values, None), (z, z_to, values, None), (z, z_to, logs, np.exp)):
        slope, level = np.polyfit(x, y, 1)
        if slope <= 0.0:
            continue
        fitted, coming, newest = level + slope * x, level + slope * x_to, level + slope * x[-1]
        if back is not None:
            fitted, coming, newest = (back(part) + _START_SHARE * floor for part in (fitted, coming, newest))
        found.append((math.sqrt(float(((fitted - values) ** 2).mean())), coming - newest))
    if not found:
        return None
    limit = _AS_GOOD * min(error for error, _ in found) + _SAME_SHARE * float(values[-1] - values[0])
    return min((rise for error, rise in found if error <= limit), key=lambda rise: float(rise[-1]))


def _is_sorted(demands: Floats) -> bool:
    changes = demands[1:] - demands[:-1]
    if np.count_nonzero(changes >= 0.0) < _RISING_SHARE * changes.size:
        return False
    ranks = demands.argsort(kind="stable").argsort().astype(np.float64)
    order = np.arange(demands.size, dtype=np.float64)
    ranks -= ranks.mean()
    order -= order.mean()
    return float(ranks @ order) >= _SORTED * math.sqrt(float(ranks @ ranks) * float(order @ order))
