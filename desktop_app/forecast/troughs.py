"""The troughs of live memory over a whole run in bounded space: fine for the newest steps, coarser further back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from desktop_app.forecast.robust import Floats

LEVEL_POINTS: Final = 128  # points kept per level
LEVEL_RATIO: Final = 4  # a point of level n + 1 is the lowest of this many points of level n
LEVELS: Final = 12  # 128 · 4^11 steps: 17 years at 1 step/s
SHORTEST_POINTS: Final = 12  # fewer say nothing about the noise
_SHORTEST_COARSE_POINTS: Final = LEVEL_POINTS // LEVEL_RATIO + 1  # shorter ones are finer on the level below


@dataclass(frozen=True, slots=True)
class Window:
    """Troughs of the newest part of the series, oldest first. Views: valid until the next ``append``."""

    steps: Floats
    troughs: Floats  # bytes
    batches: Floats  # samples
    reserved: Floats  # bytes reserved at the step's peak

    @property
    def points(self) -> int:
        return int(self.steps.size)

    @property
    def span_steps(self) -> float:
        """Steps from the first point to the last."""
        return float(self.steps[-1] - self.steps[0])

    def last(self, points: int) -> Window:
        """The newest ``points`` points."""
        return Window(self.steps[-points:], self.troughs[-points:], self.batches[-points:], self.reserved[-points:])


Point = tuple[float, float, float, float]  # a column of a window


class Level:
    """A mirrored ring of points, and the lowest point of the block being filled for the level above."""

    def __init__(self, *, finest: bool) -> None:
        self._shortest = SHORTEST_POINTS if finest else _SHORTEST_COARSE_POINTS
        self.rows: Floats = np.full((4, 2 * LEVEL_POINTS), np.nan)
        self.count = 0
        self.pending: Point | None = None
        self.pending_count = 0

    @property
    def searchable(self) -> bool:
        """There are enough points for the shortest window."""
        return self.count >= self._shortest

    @property
    def window_sizes(self) -> tuple[int, ...]:
        """Points of windows that end now, each three quarters of the one before, down to the shortest."""
        return _window_sizes(min(self.count, LEVEL_POINTS), self._shortest)

    def append(self, point: Point) -> None:
        """Add a point to the ring."""
        at = self.count % LEVEL_POINTS
        self.rows[:, at] = point
        self.rows[:, at + LEVEL_POINTS] = point
        self.count += 1

    def fold(self, point: Point) -> Point | None:
        """Add to the block; the block's lowest point when it is full."""
        if self.pending is None or point[1] < self.pending[1]:
            self.pending = point
        self.pending_count += 1
        if self.pending_count < LEVEL_RATIO:
            return None
        lowest, self.pending, self.pending_count = self.pending, None, 0
        return lowest

    def window(self) -> Window:
        """All points that are kept."""
        end = (self.count - 1) % LEVEL_POINTS + LEVEL_POINTS + 1
        begin = end - min(self.count, LEVEL_POINTS)
        return Window(*(self.rows[row, begin:end] for row in range(4)))


@lru_cache(maxsize=LEVEL_POINTS * 2)
def _window_sizes(points: int, shortest: int) -> tuple[int, ...]:
    sizes = []
    while points >= shortest:
        sizes.append(points)
        points = points * 3 // 4
    return tuple(sizes)


class TroughSeries:
    """Lowest points of live memory between steps, since the series (re)started. Not thread-safe."""

    def __init__(self) -> None:
        self.levels = tuple(Level(finest=index == 0) for index in range(LEVELS))
        self.first_step: int | None = None

    @property
    def steps(self) -> int:
        """Steps appended since the series began."""
        return self.levels[0].count

    def append(self, step: int, trough_bytes: float, batch_samples: int, reserved_bytes: float) -> None:
        if self.first_step is None:
            self.first_step = step
        point: Point | None = (step, trough_bytes, batch_samples, reserved_bytes)
        for level in self.levels:
            if point is None:
                return
            level.append(point)
            point = level.fold(point)
