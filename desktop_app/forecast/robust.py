"""Robust statistics of short float arrays, without the overhead of numpy's general functions."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

_ALL_PAIRS_POINTS: Final = 32
_DISTANCES: Final = 16
_SORTED_POINTS: Final = 256  # up to here sorting whole arrays is cheaper than parting them

Floats = npt.NDArray[np.float64]


def median(values: Floats) -> float:
    """Median of a non-empty array without NaN."""
    middle = values.size // 2
    parted = values.copy()  # the method of a copy costs half of numpy's function
    if values.size <= _SORTED_POINTS:
        parted.sort()
        return float(parted[middle]) if values.size % 2 else float(parted[middle - 1] + parted[middle]) / 2.0
    if values.size % 2:
        parted.partition(middle)
        return float(parted[middle])
    parted.partition((middle - 1, middle))
    return float(parted[middle - 1] + parted[middle]) / 2.0


class RollingOrder:
    """The newest values of a series in order: quantiles of a short window without sorting it anew. Not thread-safe."""

    __slots__ = ("_newest", "ordered")

    def __init__(self, kept: int) -> None:
        self._newest: deque[float] = deque(maxlen=kept)
        self.ordered: list[float] = []  # ascending

    def __len__(self) -> int:
        return len(self.ordered)

    def add(self, value: float) -> None:
        """Take the next value; the oldest goes when there is no place."""
        if len(self._newest) == self._newest.maxlen:
            del self.ordered[bisect_left(self.ordered, self._newest[0])]
        self._newest.append(value)
        insort(self.ordered, value)

    def clear(self) -> None:
        self._newest.clear()
        self.ordered.clear()

    def median(self) -> float:
        """There must be a value."""
        middle = len(self.ordered) // 2
        if len(self.ordered) % 2:
            return self.ordered[middle]
        return (self.ordered[middle - 1] + self.ordered[middle]) / 2.0


class RollingMost:
    """The highest of the newest values of a series, each step in constant time on average. Not thread-safe."""

    __slots__ = ("_at", "_falling", "_kept")

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._at = 0
        self._falling: deque[tuple[int, float]] = deque()  # values with no higher one after them, and their places

    def add(self, value: float) -> None:
        """Take the next value; the oldest goes when there is no place."""
        self._at += 1
        falling = self._falling
        while falling and falling[-1][1] <= value:
            falling.pop()
        falling.append((self._at, value))
        if falling[0][0] <= self._at - self._kept:
            falling.popleft()

    @property
    def most(self) -> float:
        """0 before the first value."""
        return self._falling[0][1] if self._falling else 0.0


def mean_square(values: Floats) -> float:
    """Mean of the squares of a non-empty array."""
    return float(values @ values) / values.size


def deviation(values: Floats) -> float:
    """Standard deviation of a non-empty array."""
    return math.sqrt(mean_square(values - values.sum() / values.size))


def suffix_slopes(steps: Floats, values: Floats, sizes: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Least-squares slopes of the newest ``sizes`` points, and their significance if all noise were independent.

    One pass for all sizes: the first look at many windows. ``steps`` are whole numbers that rise. Values are in bytes;
    less than a byte of noise is none.
    """
    if not sizes:
        return np.empty(0), np.empty(0)
    points = steps.size
    n, at = _suffixes(sizes)
    y = (values - values[-1])[::-1]
    if steps[-1] - steps[0] == points - 1:  # whole numbers that rise: one after the other
        x, sum_x, squares = _consecutive(points, sizes)
    else:
        x = (steps - steps[-1])[::-1]
        sum_x, squares = _sums_of_steps(x, sizes)
    sum_y = y.cumsum()[at]
    slopes = ((x * y).cumsum()[at] - sum_x * sum_y / n) / squares
    left = (y * y).cumsum()[at] - sum_y * sum_y / n - slopes * slopes * squares
    noise = np.maximum(left, n) / (n - 2.0)
    return slopes, slopes / np.sqrt(noise / squares)


def _sums_of_steps(x: Floats, sizes: tuple[int, ...]) -> tuple[Floats, Floats]:
    n, at = _suffixes(sizes)
    sum_x: Floats = x.cumsum()[at]
    return sum_x, (x * x).cumsum()[at] - sum_x * sum_x / n


@lru_cache(maxsize=256)
def _suffixes(sizes: tuple[int, ...]) -> tuple[Floats, npt.NDArray[np.intp]]:
    return np.array(sizes, dtype=np.float64), np.array(sizes, dtype=np.intp) - 1


@lru_cache(maxsize=256)
def _consecutive(points: int, sizes: tuple[int, ...]) -> tuple[Floats, Floats, Floats]:
    x = -np.arange(points, dtype=np.float64)
    return x, *_sums_of_steps(x, sizes)


def theil_sen_slope(steps: Floats, values: Floats) -> float:
    """Median of the slopes of pairs of points (Sen, 1968): unmoved by up to 29 % of outliers.

    Of more than 32 points only pairs at 15 evenly spread distances are used: an eighth of all pairs of 128 points, and
    hardly less sure, as neighbouring pairs say almost the same. ``steps`` are whole numbers that rise.
    """
    first, second, apart = _pairs(steps.size)
    if steps[-1] - steps[0] != steps.size - 1:
        apart = steps[second] - steps[first]
    return median((values[second] - values[first]) / apart)


def without_curve(residual: Floats) -> Floats:
    """The residual of a line less its second-degree part over equidistant points."""
    curve = _curve(residual.size)
    flat: Floats = residual - curve * float(curve @ residual)
    return flat


@lru_cache(maxsize=256)
def _pairs(points: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Floats]:
    """Indices of the pairs, and how far they are apart."""
    distances: Iterable[int] = range(1, points)
    if points > _ALL_PAIRS_POINTS:
        distances = sorted({points * part // _DISTANCES for part in range(1, _DISTANCES)})
    first = np.concatenate([np.arange(points - distance) for distance in distances])
    apart = np.repeat(np.array(distances), [points - distance for distance in distances])
    return first, first + apart, apart.astype(np.float64)


@lru_cache(maxsize=256)
def _curve(points: int) -> Floats:
    """The second orthonormal polynomial on ``points`` equidistant points."""
    x = np.linspace(-1.0, 1.0, points)
    curve: Floats = x**2 - (x**2).mean()
    return curve / np.linalg.norm(curve)
