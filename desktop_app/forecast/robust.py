"""Robust statistics of short float arrays, without the overhead of numpy's general functions."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def median(values: Floats) -> float:
    """Median of a non-empty array without NaN."""
    middle = values.size // 2
    if values.size % 2:
        return float(np.partition(values, middle)[middle])
    parted = np.partition(values, (middle - 1, middle))
    return float(parted[middle - 1] + parted[middle]) / 2.0


def mean_square(values: Floats) -> float:
    """Mean of the squares of a non-empty array."""
    return float(values @ values) / values.size


def least_squares_slope(steps: Floats, values: Floats) -> tuple[float, float]:
    """Ordinary slope and its significance if all noise were independent: cheap, and never too low a first look."""
    x = steps - steps.sum() / steps.size
    y = values - values.sum() / values.size
    spread = float(x @ x)
    slope = float(x @ y) / spread
    left = mean_square(y - slope * x) * values.size / (values.size - 2)
    if left == 0.0:
        return slope, math.inf if slope else 0.0
    return slope, slope / math.sqrt(left / spread)


def theil_sen_slope(steps: Floats, values: Floats) -> float:
    """Median of the slopes of all pairs of points (Sen, 1968): unmoved by up to 29 % of outliers."""
    first, second = _pairs(steps.size)
    return median((values[second] - values[first]) / (steps[second] - steps[first]))


def without_curve(residual: Floats) -> Floats:
    """The residual of a line less its second-degree part over equidistant points."""
    curve = _curve(residual.size)
    flat: Floats = residual - curve * float(curve @ residual)
    return flat


@lru_cache(maxsize=256)
def _pairs(points: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    first, second = np.triu_indices(points, 1)
    return first, second


@lru_cache(maxsize=256)
def _curve(points: int) -> Floats:
    """The second orthonormal polynomial on ``points`` equidistant points."""
    x = np.linspace(-1.0, 1.0, points)
    curve: Floats = x**2 - np.mean(x**2)
    return curve / np.linalg.norm(curve)
