"""How high the demand of a step that has not come yet may be: the tail of the demands seen so far.

Peaks over threshold: what exceeds a high threshold follows a generalized Pareto distribution (Pickands, 1975), fitted
by its moments (Hosking and Wallis, 1987). Told conservatively: an alarm from a tail is a guess about unseen data.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from typing import Final

import numpy as np

_KEPT: Final = 64
_SHARE: Final = 0.1  # of all steps that are called the tail
_MIN_TAIL: Final = 12
_TIES: Final = 0.005  # relative: demands this near to the highest are the same batch size, cut to a longest length
_MAX_TIES: Final = 3
_SHAPES: Final = (-0.5, 0.5)  # of the distribution; moments exist below a half
_SURE_Z: Final = 1.0  # deviations by which the cautious shape is less heavy


@dataclass(frozen=True, slots=True)
class Tail:
    """``rate`` of steps above ``threshold_bytes``; scale in bytes; ``shape`` > 0 is heavier than exponential."""

    threshold_bytes: float
    rate: float
    scale_bytes: float
    shape: float
    shape_sd: float
    highest_bytes: float
    steps: int

    def exceedance(self, demand_bytes: float, *, cautious: bool = False) -> float:
        """P(the demand of a step is above ``demand_bytes``)."""
        shape = self.shape - (_SURE_Z * self.shape_sd if cautious else 0.0)
        scale = self.scale_bytes * (1.0 - shape) / (1.0 - self.shape)  # the mean excess stays what it is
        beyond = demand_bytes - self.threshold_bytes
        if beyond <= 0.0:
            return self.rate
        if abs(shape) < 1e-6:
            return self.rate * math.exp(-beyond / scale)
        base = 1.0 + shape * beyond / scale
        return 0.0 if base <= 0.0 else self.rate * float(base ** (-1.0 / shape))

    def within(self, demand_bytes: float, steps: float, *, cautious: bool = False) -> float:
        """P(one of so many steps demands more)."""
        return -math.expm1(-steps * self.exceedance(demand_bytes, cautious=cautious))


class DemandTail:
    """Keeps the highest demands. Not thread-safe."""

    def __init__(self) -> None:
        self._highest: list[float] = []  # a heap
        self.steps = 0

    def add(self, demand_bytes: float) -> None:
        """Take the demand of a step."""
        self.steps += 1
        if len(self._highest) < _KEPT:
            heapq.heappush(self._highest, demand_bytes)
        elif demand_bytes > self._highest[0]:
            heapq.heapreplace(self._highest, demand_bytes)

    def tail(self) -> Tail | None:
        """``None`` while there are too few steps, when their demands are alike, or when they are cut to a length."""
        count = min(int(self.steps * _SHARE), _KEPT - 1)
        if count < _MIN_TAIL:
            return None
        values = np.sort(np.array(self._highest))[-count - 1 :]
        threshold, highest = float(values[0]), float(values[-1])
        if np.count_nonzero(values >= (1.0 - _TIES) * highest) > _MAX_TIES:
            return None
        excess = values[1:] - threshold
        mean, variance = float(excess.mean()), float(excess.var(ddof=1))
        if mean <= 0.0 or variance <= 0.0:
            return None
        ratio = mean * mean / variance
        shape = min(max(0.5 * (1.0 - ratio), _SHAPES[0]), _SHAPES[1] - 0.01)
        return Tail(
            threshold_bytes=threshold,
            rate=count / self.steps,
            scale_bytes=mean * (1.0 - shape),
            shape=shape,
            shape_sd=(1.0 + abs(shape)) / math.sqrt(count),
            highest_bytes=highest,
            steps=self.steps,
        )
