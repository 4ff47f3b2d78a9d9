"""Whether live memory grows from step to step, and in which shape."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np

from desktop_app.core.steps import PhaseSample
from desktop_app.forecast.equal_risers import EqualRisers
from desktop_app.forecast.event_stairs import EventStairWatch
from desktop_app.forecast.growth import fit_line
from desktop_app.forecast.line_search import Interest, LineSearch, significant
from desktop_app.forecast.ramps import OrdinaryChange, RampWatch
from desktop_app.forecast.robust import median, theil_sen_slope
from desktop_app.forecast.stairs import Stairs, StairWatch
from desktop_app.forecast.troughs import Window

_KNOWN_RISE: Final = 1.2  # a rise up to this multiple of what has fallen back before will fall back again
_KNOWN_LENGTH: Final = 1.5
_PATTERN_RAMPS: Final = 2
_ANOTHER: Final = 2.0  # times the slope of stairs that end: a line so steep is other growth
_MIN_BOTTOMS: Final = 5  # bottoms of ramps before their own growth is judged: five in a row rise by chance 1 in 120
_PROJECTED_STEPS: Final = 30  # of a rise before its slope is drawn out to where it should fall back
_MAY_BE_STEEPER: Final = 2.0  # times the mean slope of the rise so far: less could not fill the card, so is not fitted
_ASKING_SHARE: Final = 0.5  # of the troughs' growth lately: more, and nothing idle is left that it could use
_ASKING_POINTS: Final = 8
_RISERS_KEPT: Final = 8
_BY_CHANCE: Final = 2  # risers that may come at one distance, or with an event, by chance
_OF_MANY: Final = 4  # times as many risers as are regular: those few are so by chance
_ASKED_RISERS: Final = 3  # heights of a staircase that must be known before it is said to ask for memory


class Shape(StrEnum):
    """How the troughs grow."""

    LINE = "line"
    STAIRS = "stairs"
    RAMPS = "ramps"  # a saw-tooth whose bottoms rise


@dataclass(frozen=True, slots=True)
class Trend:
    """Growth of the troughs as it stands at the newest step. Sizes in bytes, slope in bytes per step.

    ``level_bytes`` is the trough to start from: on the line, or at the top of the usual ramp. ``noise_bytes`` and
    ``wander_bytes`` are those of ``growth.LineFit``. ``grown_bytes`` and ``steps`` are those of the window that has the
    slope, ``lasted_bytes`` and ``lasted_steps`` those of the longest over which it grew so: the surest slope may come
    from a short one. ``first_step`` is where the series began that holds the growth.
    ``reserved_bytes`` is what the allocator holds at the peak of a step now, and ``reserved_slope`` how fast that
    grows: 0 while the growth still finds room in what is idle.
    """

    shape: Shape
    slope: float
    slope_sd: float
    level_bytes: float
    noise_bytes: float
    wander_bytes: float
    grown_bytes: float
    steps: float
    first_step: int
    significance: float
    reserved_bytes: float
    lasted_bytes: float
    lasted_steps: float
    reserved_slope: float = 0.0
    reserved_sd_bytes: float = 0.0  # of ``reserved_bytes``: the allocator asks for whole segments, not for each riser
    stairs: Stairs | None = None
    falls_back_in: float | None = None  # steps until it has always fallen back so far

    def later(self, steps: int) -> Trend:
        """The same growth, a few steps on."""
        stairs = self.stairs
        if stairs is not None:
            return replace(self, stairs=replace(stairs, since_last_steps=stairs.since_last_steps + steps))
        return replace(
            self,
            level_bytes=self.level_bytes + (self.slope * steps if self.shape is Shape.LINE else 0.0),
            reserved_bytes=self.reserved_bytes + self.reserved_slope * steps,
            falls_back_in=None if self.falls_back_in is None else self.falls_back_in - steps,
        )


class TroughTrend:
    """Takes one trough per step of equal shape. Not thread-safe. ``of_events``: it may grow with saves and the like."""

    def __init__(self, *, of_events: bool = True) -> None:
        self._search = LineSearch()
        self._ordinary = OrdinaryChange()
        self._ramps = RampWatch()
        self._stairs = StairWatch()
        self._equal = EqualRisers()
        self._tied = EventStairWatch(self._ordinary) if of_events else None
        self._step = 0
        self._trough = 0.0
        self._reserved = 0.0
        self._before_risers: deque[tuple[float, float]] = deque(maxlen=_RISERS_KEPT)  # (trough, reserved)

    def take_phase(self, sample: PhaseSample) -> None:
        """Take an event that growth may come with."""
        if self._tied is not None:
            self._tied.take_phase(sample)

    def add(self, step: int, trough_bytes: float, batch_samples: int, reserved_bytes: float, *, epoch: int = 1) -> None:
        """Take a step; one that is not after the last says nothing."""
        if step <= self._step:
            return
        change = self._ordinary.add(trough_bytes)
        if self._ramps.fell(step, trough_bytes, change):
            self._search = LineSearch()
            self._stairs.restart()
            self._equal.restart()
            if self._tied is not None:
                self._tied.restart()
            self._before_risers.clear()
        elif change.outstanding and change.size_bytes > 0:
            self._before_risers.append((self._trough, self._reserved))
        self._stairs.add(step, change)
        self._equal.add(step, change.size_bytes)
        if self._tied is not None:
            self._tied.add(step, trough_bytes, change, epoch=epoch)
        self._search.series.append(step, trough_bytes, batch_samples, reserved_bytes)
        self._step, self._trough, self._reserved = step, trough_bytes, reserved_bytes

    def trend(self, interest: Interest) -> Trend | None:
        """The growth that is worth a forecast, or ``None``."""
        line = self._before_it_falls(interest) if self._will_fall_back(interest) else self._line(interest)
        stairs = self._clearest_stairs()
        any_event = stairs is not None and stairs.event is not None
        if not any_event and self._stairs.level_off_within(interest.room_bytes, known=interest.known):
            return line if line is not None and line.slope > _ANOTHER * self._stairs.newest_slope else None
        at_random = self._risers_at_random(interest, stairs) if line is None else None
        if at_random is not None:
            return at_random
        if stairs is not None and stairs.slope >= max(interest.slope_floor, 0.5 * line.slope if line else 0.0):
            return self._stair_trend(stairs)
        return line if line is not None else self._rising_bottoms(interest)

    def _risers_at_random(self, interest: Interest, regular: Stairs | None) -> Trend | None:
        """Too uneven to be a line or regular stairs, whose first few may be so by chance."""
        known = 0 if regular is None else regular.risers
        if self._will_fall_back(interest):
            return None
        stairs = self._equal.stairs(self._step, known=interest.known)
        explained = _OF_MANY * known if known > _BY_CHANCE else known + 1
        if stairs is None or stairs.risers <= explained or stairs.slope < interest.slope_floor:
            return None
        return self._stair_trend(stairs)

    def _clearest_stairs(self) -> Stairs | None:
        """Those that come with an event, unless only some of the risers do."""
        any_stairs = self._stairs.stairs(self._step)
        tied = self._tied.stairs(self._step) if self._tied is not None else None
        if tied is None or (any_stairs is not None and any_stairs.risers > tied.risers + 1):
            return any_stairs
        return tied

    def _line(self, interest: Interest) -> Trend | None:
        found = self._search.find(interest)
        if found is None:
            return None
        fit = found.fit
        asked_bytes, reserved_slope = _reserved_growth(found.window, fit.slope, step=self._step)
        return Trend(
            shape=Shape.LINE,
            slope=fit.slope,
            slope_sd=fit.slope_sd,
            level_bytes=fit.level_bytes + fit.slope * (self._step - fit.last_step),
            noise_bytes=fit.noise_bytes,
            wander_bytes=fit.wander_bytes,
            grown_bytes=fit.grown_bytes,
            steps=fit.span_steps,
            first_step=self._first_step,
            significance=fit.significance,
            reserved_bytes=asked_bytes if reserved_slope else self._reserved,
            lasted_bytes=found.longest.grown_bytes,
            lasted_steps=found.longest.span_steps,
            reserved_slope=reserved_slope,
        )

    def _will_fall_back(self, interest: Interest) -> bool:
        """Rises like the present one have fallen back before, and there is room for it to get as high again.

        One that fell back may have been a chance: it speaks only for a rise that lasts about as long.
        """
        usual = self._ramps.usual_rise_bytes
        if usual == 0.0 or self._ramps.first_step is None:
            return False
        lasted = self._step - self._ramps.first_step
        if len(self._ramps.ramps) < _PATTERN_RAMPS and lasted > _KNOWN_LENGTH * self._ramps.longest_steps:
            return False
        rise = self._trough - self._ramps.bottom_bytes
        fits = usual - rise <= interest.room_bytes
        return fits and rise <= _KNOWN_RISE * usual

    def _before_it_falls(self, interest: Interest) -> Trend | None:
        """A rise that will fall back, but not before there is no room any more: steeper than the ones before it."""
        first = self._ramps.first_step
        if first is None or self._step - first < _PROJECTED_STEPS:
            return None
        lasted, period = self._step - first, self._ramps.regular_steps
        if period is None or lasted >= period:
            return None
        left, mean_slope = period - lasted, (self._trough - self._ramps.bottom_bytes) / lasted
        if _MAY_BE_STEEPER * mean_slope * left <= interest.room_bytes:
            return None
        line = self._line(interest)
        return replace(line, falls_back_in=left) if line and line.slope * left > interest.room_bytes else None

    def _rising_bottoms(self, interest: Interest) -> Trend | None:
        ramps = self._ramps.ramps
        if len(ramps) < _MIN_BOTTOMS - 1 or self._ramps.first_step is None:
            return None
        steps = np.array([ramp.first_step for ramp in ramps] + [self._ramps.first_step], dtype=np.float64)
        bottoms = np.array([ramp.bottom_bytes for ramp in ramps] + [self._ramps.bottom_bytes])
        if not np.all(bottoms[-3:] > bottoms[-4:-1]):
            return None
        fit = fit_line(steps, bottoms)
        if fit.slope < interest.slope_floor or not significant(fit, interest):
            return None
        return Trend(
            shape=Shape.RAMPS,
            slope=fit.slope,
            slope_sd=fit.slope_sd,
            level_bytes=fit.level_bytes + self._ramps.usual_rise_bytes,
            noise_bytes=fit.noise_bytes,
            wander_bytes=fit.wander_bytes,
            grown_bytes=fit.grown_bytes,
            steps=fit.span_steps,
            first_step=int(steps[0]),
            significance=fit.significance,
            reserved_bytes=self._reserved,
            lasted_bytes=fit.grown_bytes,
            lasted_steps=fit.span_steps,
        )

    def _stair_trend(self, stairs: Stairs) -> Trend:
        asked = self._asked_for_risers()
        reserved, reserved_sd = asked if asked is not None else (self._reserved, 0.0)
        return Trend(
            shape=Shape.STAIRS,
            slope=stairs.slope,
            slope_sd=stairs.slope * stairs.spread,
            level_bytes=self._trough,
            noise_bytes=0.0,
            wander_bytes=0.0,
            grown_bytes=stairs.grown_bytes,
            steps=stairs.distance_steps * stairs.risers,
            first_step=self._first_step,
            significance=1.0 / max(stairs.spread, 1e-3),
            reserved_bytes=reserved,
            lasted_bytes=stairs.grown_bytes,
            lasted_steps=stairs.distance_steps * stairs.risers,
            reserved_slope=stairs.slope if asked is not None else 0.0,
            reserved_sd_bytes=reserved_sd,
            stairs=stairs,
        )

    def _asked_for_risers(self) -> tuple[float, float] | None:
        """What is reserved at this height of the stairs on average, and its deviation; ``None`` while nothing is asked.

        What a riser leaves of a segment is of no use to the next step's largest block, so the allocator asks for whole
        segments now and then: what lies idle at a peak goes up and down about its mean.
        """
        seen = [*self._before_risers, (self._trough, self._reserved)]
        grown, asked = self._trough - seen[0][0], self._reserved - seen[0][1]
        if len(seen) < _ASKED_RISERS or grown <= 0 or asked < _ASKING_SHARE * grown:
            return None
        gaps = [reserved - trough for trough, reserved in seen]
        mean = sum(gaps) / len(gaps)
        deviation = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
        return self._trough + mean, deviation

    @property
    def _first_step(self) -> int:
        first = self._search.series.first_step
        return first if first is not None else self._step


def _asks(window: Window, slope: float) -> bool:
    """What is reserved has grown with the troughs. Whole segments come now and then: half a window may lack one."""
    return float(window.reserved[-1] - window.reserved[0]) >= _ASKING_SHARE * slope * window.span_steps


def _reserved_growth(window: Window, slope: float, *, step: int) -> tuple[float, float]:
    """Reserved bytes at ``step``, and their growth; 0, 0 unless the allocator asks for what the troughs grow by.

    It asks for more than that when what stays live keeps whole segments from being used again or given back.
    """
    if not any(
        _asks(window.last(points), slope) for points in (max(window.points // 2, _ASKING_POINTS), window.points)
    ):
        return 0.0, 0.0
    growth = max(slope, theil_sen_slope(window.steps, window.reserved))
    return median(window.reserved - growth * (window.steps - step)), growth
