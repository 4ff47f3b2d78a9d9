"""Finds the line that the troughs follow now: over which window they grow straight, and whether they still do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from desktop_app.forecast.growth import LineFit, bytes_per_sample, fit_line, significance_at_most
from desktop_app.forecast.robust import Floats, mean_square, suffix_slopes
from desktop_app.forecast.troughs import Level, TroughSeries, Window

SIGNIFICANT_Z: Final = 4.0  # slope over its deviation below which growth is noise; high because it is asked every step
# Enough when an alert is out already, and for growth in lumps that never fell: the significance of k random lumps is
# about √(k / 2), and eight rises without a fall, four in each half, are one chance in 256.
STILL_SIGNIFICANT_Z: Final = 2.0
_STEADY_LUMPS: Final = 4
_FIRST_LOOK_Z: Final = 2.5  # of least squares, which takes all noise for independent
_CLEARER: Final = 1.25  # times as significant: what a shorter window must be to be preferred
_AS_STEEP: Final = 1.08  # times the clearest slope: a longer window that was steeper slows down
_NEWEST_SHARE: Final = 0.35  # of a window that slows down: what must slow down too
_STOPPED_SHARE: Final = 0.35  # of the expected growth: less than this lately, and the growth is over
_STOPPED_Z: Final = 3.0
_STOPPED_LUMPS: Final = 2.0  # growth that comes in lumps may be this many of them late
_STOPPED_POINTS: Final = 8
_SILENCE: Final = 3  # times the longest pause between rises so far
_MAX_CACHED_FITS: Final = 64


@dataclass(frozen=True, slots=True)
class Interest:
    """What growth would matter: room above the troughs, and the slope that could not fill it in time."""

    room_bytes: float
    slope_floor: float
    known: bool = False  # an alert about it is out


@dataclass(frozen=True, slots=True)
class Found:
    """The line of the clearest window, that window, and the longest one that grows straight: how long it has lasted."""

    fit: LineFit
    window: Window
    longest: LineFit


@dataclass(frozen=True, slots=True)
class _Look:
    """A level of the series at a first look: windows that end now, their least-squares slopes and significances."""

    count: int
    window: Window  # troughs less what the batch size explains
    sizes: tuple[int, ...]
    slopes: Floats
    significances: Floats


class LineSearch:
    """Searches a trough series. Not thread-safe."""

    def __init__(self) -> None:
        self.series = TroughSeries()
        self._looks: dict[int, _Look] = {}
        self._fits: dict[tuple[int, int, int], LineFit | None] = {}

    def find(self, interest: Interest) -> Found | None:
        """The line that the series follows now; ``None`` when nothing grows, or not any more."""
        found = self._straightest(interest)
        if found is None:
            return None
        fit, window = found.fit, found.window
        newest = self._look(self.series.levels[0], 0).window
        if _stopped(newest, fit) or (window.span_steps != newest.span_steps and _stopped(window, fit)):
            return None
        return found

    def _straightest(self, interest: Interest) -> Found | None:
        """The longest straight window that grows, unless shorter ones are ever clearer; its line.

        A longer window has a surer slope until it reaches back to before the growth began. ``None`` also when growth
        ends by itself: when a window slows down and one that holds its newest third does so too, or no shorter one
        shows that it has stopped slowing down.
        """
        best: Found | None = None
        slowing: LineFit | None = None  # the longest that does
        for index in reversed(range(len(self.series.levels))):
            level = self.series.levels[index]
            if not level.searchable or level.flat:
                continue
            look = self._look(level, index)
            for at, points in enumerate(look.sizes):
                if look.slopes[at] < 0.5 * interest.slope_floor or look.significances[at] < _FIRST_LOOK_Z:
                    continue
                fit = self._fit(index, look, at)
                if fit is None or fit.slope < interest.slope_floor or not significant(fit, interest):
                    continue
                if fit.levels_off_within(interest.room_bytes):
                    slowing = slowing or fit
                    if fit.span_steps <= _NEWEST_SHARE * slowing.span_steps:
                        return None
                elif best is not None and fit.significance < _CLEARER * best.fit.significance:
                    if best.fit.significance >= SIGNIFICANT_Z:
                        return best
                elif fit.straight and (slowing is None or interest.known or fit.belies(slowing)):
                    longer = best.longest if best is not None and best.longest.slope <= _AS_STEEP * fit.slope else fit
                    best = Found(fit, look.window.last(points), longer)
        return best

    def _look(self, level: Level, index: int) -> _Look:
        """First look at a level, kept until the level has a new point."""
        look = self._looks.get(index)
        if look is None or look.count != level.count:
            window = level.window() if level.of_one_batch else _at_equal_shape(level.window())
            sizes = level.window_sizes
            slopes, significances = suffix_slopes(window.steps, window.troughs, sizes)
            look = self._looks[index] = _Look(level.count, window, sizes, slopes, significances)
        return look

    def _fit(self, index: int, look: _Look, at: int) -> LineFit | None:
        """A window's line, computed once; ``None`` when its noise says that it cannot be significant."""
        key = (index, look.count, look.sizes[at])
        if key not in self._fits:
            if len(self._fits) >= _MAX_CACHED_FITS:
                self._fits.clear()
            window = look.window.last(look.sizes[at])
            most = significance_at_most(window.steps, window.troughs, float(look.slopes[at]))
            self._fits[key] = fit_line(window.steps, window.troughs) if most >= STILL_SIGNIFICANT_Z else None
        return self._fits[key]


def significant(fit: LineFit, interest: Interest) -> bool:
    """The slope is no accident of the noise."""
    lenient = interest.known or fit.steady_lumps >= _STEADY_LUMPS
    return fit.significance >= (STILL_SIGNIFICANT_Z if lenient else SIGNIFICANT_Z)


def _stopped(window: Window, fit: LineFit) -> bool:
    """The newest points grow far less than the line says, and neither noise nor growth in lumps explains it."""
    changes = window.troughs[1:] - window.troughs[:-1]
    if _silent_for_long(changes):
        return True
    largest_lump = float(changes.max())
    change_sd = math.sqrt(mean_square(changes - changes.sum() / changes.size))
    for points in {window.points, window.points // 4, _STOPPED_POINTS}:
        span = float(window.steps[-1] - window.steps[-points])
        if points < _STOPPED_POINTS or span > fit.span_steps:
            continue
        of_noise = math.hypot(fit.straight_noise_bytes, fit.straight_wander_bytes * math.sqrt(span))
        chance = min(of_noise, change_sd * math.sqrt(points - 1))  # the end of growth is no wander
        telling = max(_STOPPED_Z * chance, _STOPPED_LUMPS * largest_lump)
        expected = fit.slope * span
        if expected < telling:
            continue
        first, last = window.troughs[-points:][:3].tolist(), window.troughs[-3:].tolist()
        if sorted(last)[1] - sorted(first)[1] < _STOPPED_SHARE * expected:
            return True
    return False


def _silent_for_long(changes: Floats) -> bool:
    """No rise for several times as long as ever before, in a series that only rises."""
    if changes.min() < 0:
        return False
    rises = np.flatnonzero(changes)
    if rises.size < _STEADY_LUMPS:
        return False
    silence = changes.size - 1 - int(rises[-1])
    return silence > _SILENCE * int((rises[1:] - rises[:-1]).max()) + _SILENCE


def _at_equal_shape(window: Window) -> Window:
    """Troughs less what the batch size explains of them."""
    per_sample = bytes_per_sample(window.troughs, window.batches)
    if per_sample == 0.0:
        return window
    like_newest = window.troughs - per_sample * (window.batches - window.batches[-1])
    return Window(window.steps, like_newest, window.batches, window.reserved)
