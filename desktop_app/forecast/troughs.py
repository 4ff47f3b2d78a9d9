"""The troughs of live memory over a whole run in bounded space: fine for the newest steps, coarser further back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from desktop_app.forecast.robust import Floats

LEVEL_POINTS: Final = 128  # points kept per level
_KEPT_POINTS: Final = 2 * LEVEL_POINTS  # before the newest ones move to the front again
_UNWRITTEN: Final = 16  # points
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
    """The newest points, and the lowest point of the block being filled for the level above.

    ``alike``: how many of the newest points have one trough, and ``like_batches`` how many have one batch size.
    """

    def __init__(self, *, finest: bool) -> None:
        self._shortest = SHORTEST_POINTS if finest else _SHORTEST_COARSE_POINTS
        self.count = 0
        self.alike = 0
        self.like_batches = 0
        self._newest: Point = (0.0, 0.0, 0.0, 0.0)
        # Written one after the other; when the end is reached the newest move to the front, so they are always a slice.
        self._rows: Floats | None = None  # most levels of most series never get a point
        self._end = 0
        self._unwritten: list[Point] = []  # until somebody looks: most series are hardly ever looked at
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

    @property
    def flat(self) -> bool:
        """All points that are kept have one trough."""
        return self.alike >= min(self.count, LEVEL_POINTS)

    @property
    def of_one_batch(self) -> bool:
        """All points that are kept have one batch size."""
        return self.like_batches >= min(self.count, LEVEL_POINTS)

    def append(self, point: Point) -> None:
        """Add a point to the ring."""
        self.alike = self.alike + 1 if point[1] == self._newest[1] else 1
        self.like_batches = self.like_batches + 1 if point[2] == self._newest[2] else 1
        self._newest = point
        self._unwritten.append(point)
        if len(self._unwritten) >= _UNWRITTEN:
            self._write()
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
        newest = self._write()[:, self._end - min(self.count, LEVEL_POINTS) : self._end]
        return Window(newest[0], newest[1], newest[2], newest[3])

    def _write(self) -> Floats:
        new = len(self._unwritten)
        rows = self._rows = np.full((4, _KEPT_POINTS), np.nan) if self._rows is None else self._rows
        if self._end + new > _KEPT_POINTS:
            rows[:, :LEVEL_POINTS] = rows[:, self._end - LEVEL_POINTS : self._end]
            self._end = LEVEL_POINTS
        if new == 1:
            rows[:, self._end] = self._unwritten[0]
        elif new:
            rows[:, self._end : self._end + new] = np.array(self._unwritten).T
        self._end += new
        self._unwritten.clear()
        return rows


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
