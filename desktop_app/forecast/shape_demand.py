"""How the demand of a step follows the shape of its batch: samples, tokens, pixels, and the square of lengths.

The peak of a step is a maximum of affine functions of the size (facts/tracing.md), so it is convex: what counts for a
larger batch is how the demand grows among the largest seen.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from desktop_app.core.steps import BatchShape
from desktop_app.core.units import MIB
from desktop_app.forecast.coming_call import Need
from desktop_app.forecast.robust import Floats

_BINS_PER_OCTAVE: Final = 8.0
_MAX_BINS: Final = 64
_PER_BIN: Final = 3
_FITS_EVERY: Final = 16  # steps that a fit may be old, unless a larger batch has been seen since
_USUAL_SD: Final = 0.005  # of the demand: residuals as they usually are, worth so many points
_USUAL_WORTH: Final = 4.0
_HUBER: Final = 1.5  # residuals beyond this many deviations count less
_ROUNDS: Final = 3
_LEAST_WEIGHT: Final = 0.05
_VARIES: Final = 0.02  # relative width of a regressor from which it can explain anything
_AS_GOOD: Final = 1.5  # times the smallest residual: such regressors are believed too
_EXTRAPOLATION: Final = 0.04  # relative deviation of the growth beyond the largest batch seen (docs/decisions/019)
_LEAST_SD: Final = 0.004  # of the demand: rounding to blocks and kernels chosen by shape
# While all batches have had one shape: mean and deviation of the share of the demand that grows with the batch, and its
# deviation where the part that does not, the gradients, is known.
_ONE_SHAPE_SHARE: Final = (0.78, 0.14)
_GRADIENTS_KNOWN: Final = 0.1
_ONE_SHAPE_SQUARE: Final = 0.5  # tokens: what a square of the length would add is believed to this share


@dataclass(frozen=True, slots=True)
class _Seen:
    shape: BatchShape
    demand_bytes: float


def _samples(shape: BatchShape) -> float | None:
    return float(shape.samples)


def _tokens(shape: BatchShape) -> float | None:
    return None if shape.tokens is None else float(shape.tokens)


def _squared(shape: BatchShape) -> float | None:
    """Samples × length²: what attention matrices grow with."""
    return None if shape.tokens is None else float(shape.tokens) ** 2 / max(shape.samples, 1)


def _pixels(shape: BatchShape) -> float | None:
    return None if shape.pixels is None else float(shape.pixels)


_Column = Callable[[BatchShape], float | None]
_COLUMNS: Final[Mapping[str, tuple[_Column, ...]]] = {
    "tokens": (_tokens,),
    "tokens_squared": (_squared,),
    "tokens_and_squared": (_tokens, _squared),
    "pixels": (_pixels,),
    "samples": (_samples,),
}


@dataclass(frozen=True, slots=True)
class _Fit:
    """``demand = coefficients · (1, columns / scale)``; ``sd_bytes`` of its residuals."""

    name: str
    coefficients: Floats
    scale: Floats
    inverse: Floats  # of the weighted normal matrix, for the leverage
    sd_bytes: float

    def predict(self, shape: BatchShape) -> tuple[float, float] | None:
        """Demand in bytes and the leverage of the shape; ``None`` when it lacks a column."""
        values = [column(shape) for column in _COLUMNS[self.name]]
        if any(value is None for value in values):
            return None
        row = np.array([1.0, *values], dtype=np.float64) / self.scale
        return float(row @ self.coefficients), float(row @ self.inverse @ row)


@dataclass(frozen=True, slots=True)
class ShapeNeed:
    """Demand of a batch of one shape. ``regressor`` explains it best; ``seen_bytes``: such a batch came before."""

    need: Need
    regressor: str
    largest_seen: float  # in the regressor's unit
    size: float
    seen_bytes: float | None


class ShapeDemand:
    """Peak less trough of steps against their batches, in bounded memory. Not thread-safe."""

    def __init__(self) -> None:
        self._bins: OrderedDict[tuple[int, ...], list[_Seen]] = OrderedDict()
        self._fits: tuple[_Fit, ...] = ()
        self._age = 0
        self._stale = True
        self._largest: dict[str, float] = {}
        self.version = 0  # another one, another answer
        self.fixed_bytes = 0.0  # of the demand: gradients, where they are known
        self.steps = 0

    def add(self, shape: BatchShape, demand_bytes: float) -> None:
        """A step with batches of ``shape`` at most has ended."""
        self.steps += 1
        key = _bin(shape)
        kept = self._bins.setdefault(key, [])
        kept.append(_Seen(shape, demand_bytes))
        del kept[:-_PER_BIN]
        self._bins.move_to_end(key)
        if len(self._bins) > _MAX_BINS:
            self._forget_one()
        self._age += 1
        if self._age >= _FITS_EVERY:
            self._renew()
        for name in ("samples", "tokens", "pixels"):
            value = getattr(shape, name)
            if value is not None and value > self._largest.get(name, 0.0):
                self._largest[name] = float(value)
                self._renew()

    def _renew(self) -> None:
        self._stale = True
        self._age = 0
        self.version += 1

    def need(self, shape: BatchShape) -> ShapeNeed | None:
        """What a step with a batch of ``shape`` will demand; ``None`` before any step."""
        if not self._bins:
            return None
        if self._stale:
            self._fits, self._stale = self._fitted(), False
        bound = self._bound(shape)
        found = [(fit, at) for fit in self._fits if (at := fit.predict(shape)) is not None]
        if not found:
            return self._one_shape(shape, bound)
        best, (mean, leverage) = found[0]
        others = [at[0] for _, at in found]
        mean = 0.5 * (max(others) + mean) if len(others) > 1 else mean
        highest = max(seen.demand_bytes for kept in self._bins.values() for seen in kept)
        beyond = _EXTRAPOLATION * max(mean - highest, 0.0)
        model = 0.5 * (max(others) - min(others))
        sd = math.hypot(best.sd_bytes * math.sqrt(1.0 + leverage), beyond, model, _LEAST_SD * mean)
        if bound is not None:
            mean, sd = min(mean, bound), 0.0
        columns = _COLUMNS[best.name]
        largest = max(columns[0](seen.shape) or 0.0 for kept in self._bins.values() for seen in kept)
        size = columns[0](shape) or 0.0
        return ShapeNeed(Need(max(mean, 0.0), sd), best.name, largest, size, bound)

    def _one_shape(self, shape: BatchShape, bound: float | None) -> ShapeNeed:
        """All batches were alike so far: the demand grows with the size, less what does not depend on it."""
        seen = max((seen for kept in self._bins.values() for seen in kept), key=lambda seen: seen.demand_bytes)
        if bound is not None:
            return ShapeNeed(Need(bound), "samples", seen.shape.samples, shape.samples, bound)
        ratios = {"samples": shape.samples / max(seen.shape.samples, 1)}
        for name in ("tokens", "pixels"):
            now, before = getattr(shape, name), getattr(seen.shape, name)
            if now and before:
                ratios[name] = now / before
        name = max(ratios, key=lambda key: ratios[key])
        growth = ratios[name] - 1.0
        share, doubt = _ONE_SHAPE_SHARE
        demand = seen.demand_bytes
        if 0.0 < self.fixed_bytes < demand:
            share, doubt = 1.0 - self.fixed_bytes / demand, _GRADIENTS_KNOWN
        now, before = _squared(shape), _squared(seen.shape)
        square = max(0.0, now / before - ratios["tokens"]) if now and before else 0.0
        sd = demand * math.hypot(doubt * growth, 0.5 * _ONE_SHAPE_SQUARE * square, _LEAST_SD)
        mean = demand * (1.0 + share * growth + 0.25 * _ONE_SHAPE_SQUARE * square)
        return ShapeNeed(Need(mean, sd), name, getattr(seen.shape, name), getattr(shape, name), None)

    def _bound(self, shape: BatchShape) -> float | None:
        """The least demand of a batch that was as large or larger in everything."""
        held = [
            max(seen.demand_bytes for seen in kept if _covers(seen.shape, shape))
            for kept in self._bins.values()
            if any(_covers(seen.shape, shape) for seen in kept)
        ]
        return min(held, default=None)

    def _forget_one(self) -> None:
        """The bin unused for longest goes, unless it holds the largest of something."""
        for key, kept in self._bins.items():
            if not any(
                getattr(seen.shape, name) == largest for seen in kept for name, largest in self._largest.items()
            ):
                del self._bins[key]
                return
        self._bins.popitem(last=False)

    def _fitted(self) -> tuple[_Fit, ...]:
        """Regressors that explain the demand, the best one first."""
        rows = [seen for kept in self._bins.values() for seen in kept]
        demands = np.array([row.demand_bytes for row in rows])
        fits = [fit for name in _COLUMNS if (fit := _fit(name, rows, demands)) is not None]
        if not fits:
            return ()
        fits.sort(key=lambda fit: fit.sd_bytes)
        limit = _AS_GOOD * fits[0].sd_bytes
        return tuple(fit for fit in fits if fit.sd_bytes <= limit)


def _covers(larger: BatchShape, shape: BatchShape) -> bool:
    """Every size known of both is at least as large, the length of a sample included; one beside samples is known."""
    if larger.samples < shape.samples:
        return False
    known = False
    for name in ("tokens", "pixels"):
        has, wants = getattr(larger, name), getattr(shape, name)
        if has is None or wants is None:
            continue
        known = True
        if has < wants or has * max(shape.samples, 1) < wants * max(larger.samples, 1):
            return False
    return known or (shape.tokens is None and shape.pixels is None)


def _bin(shape: BatchShape) -> tuple[int, ...]:
    sizes = (shape.samples, shape.tokens or 0, shape.pixels or 0)
    return tuple(round(_BINS_PER_OCTAVE * math.log2(size + 1)) for size in sizes)


def _fit(name: str, rows: list[_Seen], demands: Floats) -> _Fit | None:
    """Robust least squares with slopes that are not negative; ``None`` when the columns do not vary or explain."""
    columns = []
    for column in _COLUMNS[name]:
        values = [column(row.shape) for row in rows]
        if any(value is None for value in values):
            return None
        columns.append(np.array(values, dtype=np.float64))
    if any(column.max() - column.min() <= _VARIES * column.max() for column in columns):
        return None
    scale = np.array([1.0, *(column.max() for column in columns)])
    design = np.column_stack([np.ones(len(rows)), *columns]) / scale
    if len(rows) < design.shape[1]:
        return None
    size = design[:, 1]
    weights = np.maximum(size, _LEAST_WEIGHT)
    base = weights
    floor = max(_USUAL_SD * float(demands.mean()), MIB / 4.0)
    sd = floor
    for _ in range(_ROUNDS):
        weighted = design * weights[:, None]
        normal = weighted.T @ design + 1e-9 * np.eye(design.shape[1])
        inverse = np.linalg.inv(normal)
        coefficients = inverse @ (weighted.T @ demands)
        residual = np.abs(demands - design @ coefficients)
        freedom = max(len(rows) - design.shape[1], 1)
        huber = np.minimum(1.0, _HUBER * max(sd, floor) / np.maximum(residual, 1.0))
        squares = float((base * huber * residual**2).sum() / base.sum()) * len(rows)
        sd = math.sqrt((squares + _USUAL_WORTH * floor**2) / (freedom + _USUAL_WORTH))
        weights = base * np.minimum(1.0, _HUBER * sd / np.maximum(residual, 1.0))
    if np.any(coefficients[1:] < 0.0):
        return None
    return _Fit(name, coefficients, scale, inverse, sd)
