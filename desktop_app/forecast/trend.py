"""Whether live memory grows from step to step, and in which shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from desktop_app.forecast.evidence import Floats
from desktop_app.forecast.growth import LineFit, bytes_per_sample, fit_line
from desktop_app.forecast.ramps import OrdinaryChange, RampWatch
from desktop_app.forecast.stairs import Stairs, StairWatch
from desktop_app.forecast.troughs import SHORTEST_POINTS, TroughSeries, Window

SIGNIFICANT_Z: Final = 4.0  # slope over its deviation below which growth is noise; high because it is asked every step
_KNOWN_RISE: Final = 1.2  # a rise up to this multiple of what has fallen back before will fall back again
_MIN_BOTTOMS: Final = 5  # bottoms of ramps before their own growth is judged: five in a row rise by chance 1 in 120
_STOPPED_SHARE: Final = 0.35  # of the expected growth: less than this lately, and the growth is over
_STOPPED_Z: Final = 4.0
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
    stairs: Stairs | None = None


@dataclass(frozen=True, slots=True)
class Interest:
    """What growth would matter: room above the troughs, and the slope that could not fill it in time."""

    room_bytes: float
    slope_floor: float


class TroughTrend:
    """Takes one trough per step of equal shape. Not thread-safe."""

    def __init__(self) -> None:
        self._series = TroughSeries()
        self._ordinary = OrdinaryChange()
        self._ramps = RampWatch()
        self._stairs = StairWatch()
        self._fits: dict[tuple[int, int, int], LineFit] = {}
        self._step = 0
        self._trough = 0.0

    def add(self, step: int, trough_bytes: float, batch_samples: int) -> None:
        change = self._ordinary.add(trough_bytes)
        if self._ramps.fell(step, trough_bytes, change):
            self._series = TroughSeries()
            self._stairs.restart()
            self._fits.clear()
        self._stairs.add(step, change)
        self._series.append(step, trough_bytes, batch_samples)
        self._step, self._trough = step, trough_bytes

    @property
    def trough_bytes(self) -> float:
        return self._trough

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
        fit = self._longest_straight(interest)
        if fit is None or self._stopped(fit):
            return None
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
        )

    def _longest_straight(self, interest: Interest) -> LineFit | None:
        slowing = False
        for key, window in self._series.windows():
            if _rough_slope(window) < 0.5 * interest.slope_floor:
                slowing = False
                continue
            fit = self._fit(key, window)
            if fit.slope < interest.slope_floor or fit.significance < SIGNIFICANT_Z:
                slowing = False
            elif fit.levels_off_within(interest.room_bytes):
                if slowing:  # the window and its newer half agree: this growth ends by itself
                    return None
                slowing = True
            elif fit.straight:
                return fit
            else:
                slowing = False
        return None

    def _fit(self, key: tuple[int, int, int], window: Window) -> LineFit:
        fit = self._fits.get(key)
        if fit is None:
            if len(self._fits) >= _MAX_CACHED_FITS:
                self._fits.clear()
            fit = self._fits[key] = fit_line(window.steps, _at_equal_shape(window))
        return fit

    def _stopped(self, fit: LineFit) -> bool:
        """The newest steps grow far less than the line says, and noise does not explain it."""
        newest = self._series.newest()
        for points in (newest.points, max(newest.points // 4, 8)):
            recent = newest.last(points)
            span = float(recent.steps[-1] - recent.steps[0])
            expected = fit.slope * span
            if expected < _STOPPED_Z * (fit.noise_bytes + fit.wander_bytes * math.sqrt(span)):
                continue
            troughs = _at_equal_shape(recent)
            if float(np.median(troughs[-3:]) - np.median(troughs[:3])) < _STOPPED_SHARE * expected:
                return True
        return False

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
        if fit.slope < interest.slope_floor or fit.significance < SIGNIFICANT_Z or np.any(np.diff(bottoms[-4:]) <= 0):
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
            stairs=stairs,
        )

    @property
    def _first_step(self) -> int:
        return self._series.first_step if self._series.first_step is not None else self._step


def _rough_slope(window: Window) -> float:
    """A cheap first look: medians of the outer thirds."""
    third = window.points // 3
    rise = np.median(window.troughs[-third:]) - np.median(window.troughs[:third])
    return float(rise / (window.steps[-1] - window.steps[0]) * 1.5)


def _at_equal_shape(window: Window) -> Floats:
    """Troughs less what the batch size explains of them."""
    per_sample = bytes_per_sample(window.troughs, window.batches)
    if per_sample == 0.0:
        return window.troughs
    like_newest: Floats = window.troughs - per_sample * (window.batches - window.batches[-1])
    return like_newest
