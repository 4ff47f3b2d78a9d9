"""Whether live memory grows from step to step, and in which shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from desktop_app.forecast.growth import LineFit, bytes_per_sample, fit_line
from desktop_app.forecast.ramps import OrdinaryChange, RampWatch
from desktop_app.forecast.robust import Floats, least_squares_slope, mean_square, median, theil_sen_slope
from desktop_app.forecast.stairs import Stairs, StairWatch
from desktop_app.forecast.troughs import SHORTEST_POINTS, TroughSeries, Window

SIGNIFICANT_Z: Final = 4.0  # slope over its deviation below which growth is noise; high because it is asked every step
# Enough when an alert is out already, and for growth in lumps that never fell: the significance of k random lumps is
# about √(k / 2), and eight rises without a fall, four in each half, are one chance in 256.
STILL_SIGNIFICANT_Z: Final = 2.0
_STEADY_LUMPS: Final = 4
_CLEARER: Final = 1.25  # times as significant: what a shorter window must be to be preferred
_NEWEST_SHARE: Final = 0.35
_FIRST_LOOK_Z: Final = 2.5
_KNOWN_RISE: Final = 1.2  # a rise up to this multiple of what has fallen back before will fall back again
_MIN_BOTTOMS: Final = 5  # bottoms of ramps before their own growth is judged: five in a row rise by chance 1 in 120
_STOPPED_SHARE: Final = 0.35  # of the expected growth: less than this lately, and the growth is over
_STOPPED_Z: Final = 3.0
_STOPPED_LUMPS: Final = 2.0  # growth that comes in lumps may be this many of them late
_STOPPED_POINTS: Final = 8
_SILENCE: Final = 3  # times the longest pause between rises so far
_ASKING_SHARE: Final = 0.5  # of the troughs' growth lately: more, and nothing idle is left that it could use
_MAX_CACHED_FITS: Final = 64


class Shape(StrEnum):
    """How the troughs grow."""

    LINE = "line"
    STAIRS = "stairs"
    RAMPS = "ramps"  # a saw-tooth whose bottoms rise


@dataclass(frozen=True, slots=True)
class Trend:
    """Growth of the troughs as it stands at the newest step. Sizes in bytes, slope in bytes per step.

    ``level_bytes`` is the trough to start from: on the line, or at the top of the usual ramp. ``noise_bytes`` and
    ``wander_bytes`` are those of ``growth.LineFit``. ``first_step`` is where the series began that holds the growth.
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
    reserved_slope: float = 0.0
    stairs: Stairs | None = None


@dataclass(frozen=True, slots=True)
class Interest:
    """What growth would matter: room above the troughs, and the slope that could not fill it in time."""

    room_bytes: float
    slope_floor: float
    known: bool = False  # an alert about it is out


class TroughTrend:
    """Takes one trough per step of equal shape. Not thread-safe."""

    def __init__(self) -> None:
        self._series = TroughSeries()
        self._ordinary = OrdinaryChange()
        self._ramps = RampWatch()
        self._stairs = StairWatch()
        self._fits: dict[tuple[int, int, int], LineFit | None] = {}
        self._step = 0
        self._trough = 0.0
        self._reserved = 0.0

    def add(self, step: int, trough_bytes: float, batch_samples: int, reserved_bytes: float) -> None:
        change = self._ordinary.add(trough_bytes)
        if self._ramps.fell(step, trough_bytes, change):
            self._series = TroughSeries()
            self._stairs.restart()
            self._fits.clear()
        self._stairs.add(step, change)
        self._series.append(step, trough_bytes, batch_samples, reserved_bytes)
        self._step, self._trough, self._reserved = step, trough_bytes, reserved_bytes

    def trend(self, interest: Interest) -> Trend | None:
        """The growth that is worth a forecast, or ``None``."""
        if self._series.steps < SHORTEST_POINTS and len(self._ramps.ramps) < _MIN_BOTTOMS - 1:
            return None
        line = self._line(interest)
        stairs = self._stairs.stairs(self._step)
        if stairs is not None and stairs.slope >= max(interest.slope_floor, 0.5 * line.slope if line else 0.0):
            return self._stair_trend(stairs)
        if line is not None and not self._will_fall_back(line):
            return line
        return self._rising_bottoms(interest)

    def _line(self, interest: Interest) -> Trend | None:
        """The longest straight window that grows significantly and has not stopped growing."""
        found = self._straightest(interest)
        if found is None:
            return None
        fit, window = found
        if _stopped(window, fit) or _stopped(self._series.newest(), fit):
            return None
        asked_bytes, reserved_slope = _reserved_growth(window, fit.slope, step=self._step)
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
            reserved_slope=reserved_slope,
        )

    def _straightest(self, interest: Interest) -> tuple[LineFit, Window] | None:
        """The longest straight window that grows, unless shorter ones are ever clearer; its line.

        A longer window has a surer slope until it reaches back to before the growth began. ``None`` also when growth
        ends by itself: when a window slows down and one that holds its newest third does so too.
        """
        best: tuple[LineFit, Window] | None = None
        slowing_span = 0.0
        for key, window in self._series.windows():
            fit = self._fit(key, window, interest)
            if fit is None or fit.slope < interest.slope_floor or not _significant(fit, interest):
                continue
            if fit.levels_off_within(interest.room_bytes):
                slowing_span = slowing_span or fit.span_steps
                if fit.span_steps <= _NEWEST_SHARE * slowing_span:
                    return None
            elif best is not None and fit.significance < _CLEARER * best[0].significance:
                return best
            elif fit.straight:
                best = fit, window
        return best

    def _fit(self, key: tuple[int, int, int], window: Window, interest: Interest) -> LineFit | None:
        """The window's line, computed once; ``None`` when a first look says that it cannot matter."""
        if key in self._fits:
            return self._fits[key]
        if len(self._fits) >= _MAX_CACHED_FITS:
            self._fits.clear()
        troughs = _at_equal_shape(window)
        slope, significance = least_squares_slope(window.steps, troughs)
        hopeless = slope < 0.5 * interest.slope_floor or significance < _FIRST_LOOK_Z
        fit = self._fits[key] = None if hopeless else fit_line(window.steps, troughs)
        return fit

    def _will_fall_back(self, line: Trend) -> bool:
        """Rises as high as this one have fallen back before."""
        rise = line.level_bytes - self._ramps.bottom_bytes
        return rise <= _KNOWN_RISE * self._ramps.usual_rise_bytes + line.noise_bytes

    def _rising_bottoms(self, interest: Interest) -> Trend | None:
        ramps = self._ramps.ramps
        if len(ramps) < _MIN_BOTTOMS - 1 or self._ramps.first_step is None:
            return None
        steps = np.array([ramp.first_step for ramp in ramps] + [self._ramps.first_step], dtype=np.float64)
        bottoms = np.array([ramp.bottom_bytes for ramp in ramps] + [self._ramps.bottom_bytes])
        fit = fit_line(steps, bottoms)
        rising = bool(np.all(bottoms[-3:] > bottoms[-4:-1]))
        if not rising or fit.slope < interest.slope_floor or not _significant(fit, interest):
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
        )

    def _stair_trend(self, stairs: Stairs) -> Trend:
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
            reserved_bytes=self._reserved,
            stairs=stairs,
        )

    @property
    def _first_step(self) -> int:
        return self._series.first_step if self._series.first_step is not None else self._step


def _reserved_growth(window: Window, slope: float, *, step: int) -> tuple[float, float]:
    """Reserved bytes at ``step``, and their growth; 0, 0 unless the allocator asks for what the troughs grow by.

    It asks for more than that when what stays live keeps whole segments from being used again or given back.
    """
    reserved = window.reserved
    recent = max(window.points // 2, _STOPPED_POINTS)
    expected = slope * float(window.steps[-1] - window.steps[-recent])
    if float(reserved[-1] - reserved[-recent]) < _ASKING_SHARE * expected:
        return 0.0, 0.0
    growth = max(slope, theil_sen_slope(window.steps, reserved))
    return median(reserved - growth * (window.steps - step)), growth


def _significant(fit: LineFit, interest: Interest) -> bool:
    lenient = interest.known or fit.steady_lumps >= _STEADY_LUMPS
    return fit.significance >= (STILL_SIGNIFICANT_Z if lenient else SIGNIFICANT_Z)


def _stopped(window: Window, fit: LineFit) -> bool:
    """The newest points grow far less than the line says, and neither noise nor growth in lumps explains it."""
    troughs = _at_equal_shape(window)
    changes = troughs[1:] - troughs[:-1]
    if _silent_for_long(changes):
        return True
    largest_lump = float(changes.max())
    change_sd = math.sqrt(mean_square(changes - changes.sum() / changes.size))
    for points in {window.points, window.points // 4, _STOPPED_POINTS}:
        span = float(window.steps[-1] - window.steps[-points])
        expected = fit.slope * span
        of_noise = math.hypot(fit.straight_noise_bytes, fit.straight_wander_bytes * math.sqrt(span))
        chance = min(of_noise, change_sd * math.sqrt(points - 1))  # the end of growth is no wander
        if (
            points < _STOPPED_POINTS
            or span > fit.span_steps
            or expected < max(_STOPPED_Z * chance, _STOPPED_LUMPS * largest_lump)
        ):
            continue
        if median(troughs[-3:]) - median(troughs[-points:][:3]) < _STOPPED_SHARE * expected:
            return True
    return False


def _silent_for_long(changes: Floats) -> bool:
    """No rise for several times as long as ever before, in a series that only rises."""
    rises = np.flatnonzero(changes > 0)
    if rises.size < _STEADY_LUMPS or rises.size < np.count_nonzero(changes):
        return False
    silence = changes.size - 1 - int(rises[-1])
    return silence > _SILENCE * int((rises[1:] - rises[:-1]).max()) + _SILENCE


def _at_equal_shape(window: Window) -> Floats:
    """Troughs less what the batch size explains of them."""
    per_sample = bytes_per_sample(window.troughs, window.batches)
    if per_sample == 0.0:
        return window.troughs
    like_newest: Floats = window.troughs - per_sample * (window.batches - window.batches[-1])
    return like_newest
