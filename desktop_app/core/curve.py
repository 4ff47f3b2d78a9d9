"""From points to what a panel draws: at most two per pixel, none of its extremes lost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from desktop_app.core.missing import NOT_MEASURED, Floats

Indices = NDArray[np.intp]

# Bins of less than a nanosecond or more than an aeon mean nothing.
_NARROWEST_S: Final = 2.0**-30
_WIDEST_S: Final = 2.0**60
# Bins are compared as a table, in 0.6 to 0.8 of the time that ``reduceat`` takes for 750 pixels, unless it would be
# this many times larger than its points because rows were much closer at some time.
_UNEVEN: Final = 3


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of one line. ``x``: (m,) seconds, never falling; ``y``: (m,), NaN where the line is cut, never infinite.

    Both are the reader's own copies.
    """

    x: Floats
    y: Floats
    has_gaps: bool


def bin_width_s(span_s: float, pixels: int) -> float:
    """Width of the time bins of a window: the power of two above a pixel's worth.

    It depends on nothing else, and bins start at multiples of it: while a window of constant length moves, the same
    rows give the same points. Never as narrow as a pixel, so fewer than ``pixels`` bins fit between the edges.
    """
    exponent = math.log2(min(max(span_s / pixels, _NARROWEST_S), _WIDEST_S))
    return 2.0 ** math.ceil(exponent + 1e-9)  # 1e-9: rounding in span_s must not flip a round width


def draw(x: Floats, y: Floats, *, t0_s: float, t1_s: float, pixels: int) -> Curve:
    """The curve of points (x never falling, y as ``missing.drawable`` makes it) in the window [t0_s, t1_s].

    All points when they are no more than two per pixel, else the lowest and the highest of every time bin, in the
    order they came; and one point beyond either edge, so that the line reaches the border. Never more than
    2 × pixels + 4 points. ``x`` and ``y`` reach beyond the window, so that the bins at its edges are whole.
    """
    whole = bool(np.isfinite(y).all())
    if not whole:
        measured = y != NOT_MEASURED
        x, y = x[measured], y[measured]
    start, stop = int(x.searchsorted(t0_s, side="left")), int(x.searchsorted(t1_s, side="right"))
    if stop - start <= 2 * pixels:
        x, y = x[max(start - 1, 0) : stop + 1], y[max(start - 1, 0) : stop + 1]
    else:
        width_s = bin_width_s(t1_s - t0_s, pixels)
        x = x if whole else _gaps_amid(x, y)
        start = int(x.searchsorted(math.floor(t0_s / width_s) * width_s, side="left"))
        stop = int(x.searchsorted((math.floor(t1_s / width_s) + 1) * width_s, side="left"))
        places = start + _extremes_of_bins(x[start:stop], y[start:stop], width_s)
        places[0], places[-1] = start - 1, stop  # one point beyond either edge, where there is one
        places = places[start == 0 : len(places) - (stop == len(x))]
        x, y = x.take(places), y.take(places)
    return Curve(x, y, not whole and bool(np.isnan(y).any()))


def _gaps_amid(x: Floats, y: Floats) -> Floats:
    """Move every gap half-way to the next point: one row that stands for a long gap must have a bin of its own."""
    gaps = np.flatnonzero(np.isnan(y[:-1]))
    moved = x.copy()
    moved[gaps] = (x[gaps] + x[gaps + 1]) / 2
    return moved


def _extremes_of_bins(x: Floats, y: Floats, width_s: float) -> Indices:
    """Indices of the lowest and the highest point of each bin, ascending, with room for one more at either end.

    A bin that is flat or a gap gives its point twice.
    """
    bins = np.floor(x * (1 / width_s))
    begins = np.ones(len(x), np.bool_)
    np.not_equal(bins[1:], bins[:-1], out=begins[1:])
    lowest, highest = _places_of_bins(y, np.flatnonzero(begins))
    places = np.zeros(2 * len(lowest) + 2, np.intp)
    np.minimum(lowest, highest, out=places[1:-1:2])
    np.maximum(lowest, highest, out=places[2::2])
    return places


def _places_of_bins(y: Floats, starts: Indices) -> tuple[Indices, Indices]:
    """Index of the first lowest and of the first highest point in each bin; a gap is neither unless it is alone."""
    low = high = y
    gaps = np.isnan(y)
    if gaps.any():
        low, high = np.where(gaps, np.inf, y), np.where(gaps, -np.inf, y)
    ends = np.append(starts[1:], len(y))
    widest = int((ends - starts).max())
    if widest * len(starts) > _UNEVEN * len(y):
        return _first_of_bins(low, starts, ends, np.minimum), _first_of_bins(high, starts, ends, np.maximum)
    # One bin a row, short ones filled up with their last point; turned because numpy is quicker along a row.
    table = np.ascontiguousarray(np.minimum(starts + np.arange(widest)[:, np.newaxis], ends - 1).T)
    lows = low.take(table)
    highs = lows if high is low else high.take(table)
    return starts + lows.argmin(axis=1), starts + highs.argmax(axis=1)


def _first_of_bins(y: Floats, starts: Indices, ends: Indices, extreme: np.ufunc) -> Indices:
    hits = np.flatnonzero(y == np.repeat(extreme.reduceat(y, starts), ends - starts))
    return hits[hits.searchsorted(starts)]
