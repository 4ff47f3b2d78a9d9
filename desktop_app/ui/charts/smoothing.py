"""The heavy line through a noisy loss: an exponential mean that follows the steps as they come."""

from __future__ import annotations

from typing import Final

import numpy as np

from desktop_app.core.store import History

COLUMN: Final = "loss"
# A new loss counts for 1/13: the noise shrinks to a fifth (sqrt(1 / (2 * 13 - 1))), and the lag is some 13 steps.
_WEIGHT: Final = 1 / 13
# Rows taken in at once: a replay of a long run must not hold up a frame (5 µs a row).
_AT_ONCE: Final = 800
_SEED_PIXELS: Final = 2000


class SmoothedLoss:
    """Keeps its own history beside the steps'. Without the bias of a mean that begins at zero.

    Runs in: GUI thread.
    """

    def __init__(self, steps: History) -> None:
        self._steps = steps
        self._version = 0
        self._mean = 0.0
        self._weight = 0.0
        self._waiting: list[tuple[float, float]] = []
        self.history = History((COLUMN,))

    def follow(self) -> None:
        """Take in what is new. A gap ends the mean; it begins afresh behind it."""
        if self._version == self._steps.version and not self._waiting:
            return
        if not self._waiting:
            self._waiting = self._pull()
        for t_s, loss in self._waiting[:_AT_ONCE]:
            self._add(t_s, loss)
        self._waiting = self._waiting[_AT_ONCE:]

    def _pull(self) -> list[tuple[float, float]]:
        rows = self._steps.since(self._version)
        first = self._version == 0
        self._version = rows.version
        loss, step = rows.column(COLUMN), rows.column("step")
        # A step without a logged loss is no gap: only a row without anything is.
        kept = np.isfinite(loss) | ~np.isfinite(step)
        fresh = list(zip(rows.t_s[kept].tolist(), loss[kept].tolist(), strict=True))
        if first and rows.missed and rows.t_s.size:
            return self._long_ago(float(rows.t_s[0])) + fresh
        return fresh

    def _long_ago(self, until_s: float) -> list[tuple[float, float]]:
        """What the ring no longer holds row by row, from the pyramid."""
        curve = self._steps.curve(COLUMN, -np.inf, until_s, pixels=_SEED_PIXELS)
        before = curve.x < until_s
        return list(zip(curve.x[before].tolist(), curve.y[before].tolist(), strict=True))

    def _add(self, t_s: float, loss: float) -> None:
        if not np.isfinite(loss):
            self._mean = self._weight = 0.0
            self.history.append_gap(t_s)
            return
        self._mean += _WEIGHT * (loss - self._mean)
        self._weight += _WEIGHT * (1 - self._weight)
        self.history.append(t_s, (self._mean / self._weight,))
