"""Lines through noisy troughs: a robust slope, what is known about its error, and whether it is a line at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from desktop_app.forecast.robust import Floats, mean_square, median, theil_sen_slope, without_curve

_BLOCK_BYTES: Final = 512  # every allocation is a multiple of this: facts/allocator.md rule 1
_OLS_SLOPE_FACTOR: Final = 12.0  # variance of a slope over n equidistant points: 12 σ² / n³
_WANDER_SLOPE_FACTOR: Final = 1.2  # variance of a slope through a random walk: 6/5 ω² / n
_WANDER_BIAS: Final = 1.6  # the fitted line takes part of the wander with it; from the coverage of made-up leaks
_WANDERING_SHARE: Final = 0.125  # of the points alike: fewer, and the series is more of a walk than of a line
_BOUND: Final = 1.5  # times the least-squares significance: more than Theil and Sen's slope makes of it
_STRAIGHT_RATIO: Final = 0.25  # halves of a line may differ by this much even when the noise says it is significant
_STRAIGHT_Z: Final = 2.5
_MIN_VARIED_STEPS: Final = 8  # changes of batch size before their effect is worth fitting
_EXPLAINED_SHARE: Final = 0.3  # of the variance, for the batch size to count as the reason


@dataclass(frozen=True, slots=True)
class LineFit:
    """A line through (step, bytes). Slopes in bytes per step.

    The noise has two parts: ``noise_bytes``, independent at each point, and ``wander_bytes``, the deviation that one
    step adds for good (a leak of varying size is a random walk around its line). ``level_bytes`` is the line at the
    newest point. ``early`` and ``late`` are the slopes of the two halves and ``half_sd`` the deviation of each;
    ``straight_…`` are the two parts of the noise when a curve is not counted as noise. ``steady_lumps``: rises in the
    half that has fewer, when no point lies below the one before it; else 0.
    """

    slope: float
    slope_sd: float
    level_bytes: float
    noise_bytes: float
    wander_bytes: float
    span_steps: float
    last_step: float
    early: float
    late: float
    half_sd: float
    straight_noise_bytes: float
    straight_wander_bytes: float
    steady_lumps: int

    @property
    def grown_bytes(self) -> float:
        """Growth along the line over the window."""
        return self.slope * self.span_steps

    @property
    def significance(self) -> float:
        """Slope in units of its own deviation."""
        return self.slope / self.slope_sd

    @property
    def straight(self) -> bool:
        """Both halves have the same slope, as far as the noise lets one see."""
        allowed = max(_STRAIGHT_RATIO * self.slope, _STRAIGHT_Z * math.sqrt(2.0) * self.half_sd)
        return abs(self.late - self.early) <= allowed

    def levels_off_within(self, room_bytes: float) -> bool:
        """Growth slows so clearly that it will end before it has taken ``room_bytes`` more.

        If each half-window grows by the fraction r of the one before (Aitken's extrapolation), r / (1 − r) times the
        newest half's growth is still to come; the verdict asks for room even when r is two deviations higher.
        """
        if self.early <= 0 or self.late >= self.early:
            return False
        ratio = self._ratio(2.0)
        half_growth = max(self.late, 0.0) * self.span_steps / 2.0
        return ratio < 1.0 and half_growth * ratio / (1.0 - ratio) < room_bytes

    def belies(self, slowing: LineFit) -> bool:
        """A shorter line that would be less straight, by at least a deviation, if a longer one went on to slow down."""
        if self.early <= 0 or slowing.early <= 0:
            return self.late > 0
        goes_on: float = (max(slowing.late, 0.0) / slowing.early) ** (self.span_steps / slowing.span_steps)
        return self._ratio(-1.0) > goes_on

    def _ratio(self, deviations: float) -> float:
        """Growth of the late half over that of the early one, so many of its own deviations higher."""
        ratio = max(self.late, 0.0) / self.early
        return ratio + deviations * self.half_sd / self.early * math.sqrt(1.0 + ratio**2)


def fit_line(steps: Floats, values: Floats) -> LineFit:
    """Fit a line to at least 4 points with rising ``steps``; sizes in bytes.

    The slope is Theil and Sen's, or from end to end where the points wander: each step of a random walk adds to its
    slope alike. The level is that of as many of the newest points as have noise in common.
    """
    slope = theil_sen_slope(steps, values)
    middle = steps.size // 2
    span = float(steps[-1] - steps[0])
    spacing = span / (steps.size - 1)
    residual = values - slope * (steps - steps[-1])
    noise, wander = _noise(residual, spacing)
    straight_noise, straight_wander = _noise(without_curve(residual - median(residual)), spacing)
    alike = _points_alike(noise, wander * math.sqrt(spacing), steps.size)
    if alike <= _WANDERING_SHARE * steps.size:
        rise = median(values[-alike:]) - median(values[:alike])
        slope = rise / float(steps[-alike:].mean() - steps[:alike].mean())
        residual = values - slope * (steps - steps[-1])
    return LineFit(
        slope=slope,
        slope_sd=_slope_sd(noise, wander, steps.size, span),
        level_bytes=median(residual[-alike:]),
        noise_bytes=noise,
        wander_bytes=wander,
        span_steps=span,
        last_step=float(steps[-1]),
        early=theil_sen_slope(steps[:middle], values[:middle]),
        late=theil_sen_slope(steps[middle:], values[middle:]),
        half_sd=_slope_sd(straight_noise, straight_wander, middle, span / 2.0),
        straight_noise_bytes=straight_noise,
        straight_wander_bytes=straight_wander,
        steady_lumps=_steady_lumps(values),
    )


def significance_at_most(steps: Floats, values: Floats, slope: float) -> float:
    """A cheap bound for the significance that ``fit_line`` would find, from a least-squares slope."""
    residual = values - slope * (steps - steps[-1])
    span = float(steps[-1] - steps[0])
    noise, wander = _noise(residual, span / (steps.size - 1))
    return _BOUND * slope / _slope_sd(noise, wander, steps.size, span)


def _steady_lumps(values: Floats) -> int:
    changes = values[1:] - values[:-1]
    if changes.min() < 0:
        return 0
    middle = changes.size // 2
    return int(min(np.count_nonzero(changes[:middle]), np.count_nonzero(changes[middle:])))


def _points_alike(noise: float, wander: float, points: int) -> int:
    """Number of newest points over which wander stays below noise; all of them when it never reaches it."""
    return points if wander * points <= noise else 1 + int(noise / wander)


def _slope_sd(noise: float, wander: float, points: int, span: float) -> float:
    """Deviation of a slope over ``span`` steps from both kinds of noise."""
    independent = _OLS_SLOPE_FACTOR * noise**2 / (points * span**2)
    return math.sqrt(independent + _WANDER_SLOPE_FACTOR * wander**2 / span)


def _noise(residual: Floats, spacing: float) -> tuple[float, float]:
    """Independent noise per point and wander per √step, from the structure function of the residuals.

    The mean square of differences at lag m is 2 σ² + m ω². Mean squares, not medians: a single jump in an otherwise
    level window must look like wander, or it would pass for a line.
    """
    near = mean_square(residual[1:] - residual[:-1])
    wander_squared = 0.0
    for lag in {max(2, residual.size // 8), max(3, residual.size // 4)}:
        far = mean_square(residual[lag:] - residual[:-lag])
        wander_squared = max(wander_squared, (far - near) / (lag - 1))
    noise_squared = max(near - wander_squared, 0.0) / 2.0
    floor = _BLOCK_BYTES**2 / 12.0  # of rounding to blocks
    return math.sqrt(noise_squared + floor), math.sqrt(_WANDER_BIAS * wander_squared / spacing)


def bytes_per_sample(troughs: Floats, batches: Floats) -> float:
    """How much of a trough follows the batch size (the batch itself is still live), from neighbouring steps.

    0 when batches do not vary or the troughs do not follow them.
    """
    change = batches[1:] - batches[:-1]
    if np.count_nonzero(change) < _MIN_VARIED_STEPS:
        return 0.0
    effect = troughs[1:] - troughs[:-1]
    change = change - change.sum() / change.size  # what all steps share is time, not shape
    effect = effect - effect.sum() / effect.size
    varied, total = float(change @ change), float(effect @ effect)
    if varied == 0.0 or total == 0.0:
        return 0.0
    slope = float(change @ effect) / varied
    explained = slope**2 * varied
    return slope if slope > 0 and explained >= _EXPLAINED_SHARE * total else 0.0
