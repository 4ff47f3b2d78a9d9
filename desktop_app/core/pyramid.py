"""Minima and maxima of a history at ever coarser grain, so that a curve of any length costs the same to draw."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from desktop_app.core.missing import NOT_MEASURED, Floats
from desktop_app.core.ring import MirroredRing

# Entries of one level that make one entry of the next. Of 2, 4, 8 and 16, measured on 160 series, 8 and 16 were the
# cheapest to write (3.7 and 3.1 µs a row against 15 for 4); 8 adds 2/7 of the values and wastes less of a pixel.
BLOCK: Final = 8
# 8^12 rows are 435 years at 5 Hz.
MAX_LEVELS: Final = 12

Points = tuple[Floats, Floats]  # x and y, each (n,)


class Level:
    """One grain: per entry the times it spans and, per column, its two extremes in the order they came.

    float32 for the extremes: half the memory, and 2 KiB in 24 GiB is far below a pixel. Times stay float64.
    """

    def __init__(self, columns: int, capacity: int) -> None:
        self._columns = columns
        self._spans: MirroredRing[np.float64] = MirroredRing(2, capacity, np.float64)
        self._extremes: MirroredRing[np.float32] = MirroredRing(2 * columns, capacity, np.float32)
        self.unmerged = 0  # newest entries that are not yet part of an entry of the next level

    @property
    def first(self) -> int:
        return self._spans.first

    @property
    def total(self) -> int:
        return self._spans.total

    @property
    def nbytes(self) -> int:
        return self._spans.nbytes + self._extremes.nbytes

    def append(self, start_s: float, end_s: float, extremes: NDArray[np.float32]) -> None:
        """Add an entry; ``extremes`` (2, columns) are those that came first, then the others."""
        self._spans.append(np.array((start_s, end_s)))
        self._extremes.append(extremes.reshape(-1))

    def covers(self, t_s: float) -> bool:
        """Nothing at or after ``t_s`` has left the ring."""
        return self.first == 0 or bool(self._spans.view(self.first, self.first + 1)[0, 0] < t_s)

    def overlap(self, t0_s: float, t1_s: float) -> tuple[int, int]:
        """Entries (start, stop) whose span meets [t0_s, t1_s]."""
        starts, ends = self._spans.view(self.first, self.total)
        start = int(ends.searchsorted(t0_s, side="left"))
        stop = int(starts.searchsorted(t1_s, side="right"))
        return self.first + start, self.first + max(start, stop)

    def points(self, column: int, start: int, stop: int) -> Points:
        """Copies of two points per entry: its extremes in order, at the two ends of its span."""
        x, y = np.empty((2, stop - start, 2))
        x.T[:] = self._spans.view(start, stop)
        y.T[:] = self._extremes.view(start, stop)[column :: self._columns]
        return x.reshape(-1), y.reshape(-1)

    def merged(self) -> tuple[float, float, NDArray[np.float32]]:
        """The unmerged entries as one: (start, end, extremes)."""
        n = self.unmerged
        spans = self._spans.newest(n)
        pairs = self._extremes.newest(n).reshape(2, self._columns, n)
        in_order = pairs.transpose(1, 2, 0).reshape(self._columns, 2 * n)
        return float(spans[0, 0]), float(spans[1, -1]), _extremes(in_order)


class Pyramid:
    """Levels over blocks of rows: entry edges, once written, never move, so curves do not shimmer as time goes on.

    Level 0 has one entry per block of rows, level k+1 one per ``BLOCK`` entries of level k. Every level is a ring of
    ``capacity`` entries and begins when the one below has filled its first block: memory grows with the logarithm of
    the history's length up to ``MAX_LEVELS`` rings, and some level always reaches back to the first row.

    An entry ignores the gaps in it and is itself a gap (NaN) when nothing in it is finite. A gap that lasts, however
    few rows it has, gets entries of its own (``add_gap``). Not thread-safe.
    """

    def __init__(self, columns: int, *, capacity: int = 16384) -> None:
        self._columns = columns
        self._capacity = max(capacity, 2 * BLOCK)
        self.levels: list[Level] = []

    @property
    def nbytes(self) -> int:
        """Memory taken by all levels now."""
        return sum(level.nbytes for level in self.levels)

    def add(self, t_s: Floats, values: Floats) -> None:
        """Add the next block of rows. ``t_s``: (n,); ``values``: (columns, n), as ``missing.drawable`` makes them."""
        self._push(0, float(t_s[0]), float(t_s[-1]), _extremes(values))

    def add_gap(self, start_s: float, end_s: float, *, height: int) -> None:
        """Cut the lowest ``height`` levels by an entry of NaN in the middle of a gap.

        Entries that are still open there are closed short, so none of them holds rows from both sides.
        """
        for k in range(height - 1):
            self._merge(k)
        gap = np.full((2, self._columns), np.nan, np.float32)
        middle_s = (start_s + end_s) / 2
        for k in range(height - 1):
            self._level(k).append(middle_s, middle_s, gap)
        self._push(height - 1, middle_s, middle_s, gap)

    def points(self, column: int, t0_s: float, t1_s: float, *, limit: int, reach: int) -> tuple[list[Points], bool]:
        """Points of the finest level that still holds all of [t0_s, t1_s], in at most ``limit`` entries.

        ``reach`` entries more are taken on either side. Returns pieces in order of time, and whether they go up to
        the newest block: rows that are in no block yet then come after them.
        """
        if not self.levels:
            return [], True
        for k, level in enumerate(self.levels):  # noqa: B007  # the last level is the answer when none will do
            start, stop = level.overlap(t0_s, t1_s)
            if stop - start <= limit and level.covers(t0_s):
                break
        start, stop = max(level.first, start - reach), min(level.total, stop + reach)
        pieces = [level.points(column, start, stop)]
        if stop < level.total:
            return pieces, False
        pieces += [finer.points(column, finer.total - finer.unmerged, finer.total) for finer in self.levels[:k][::-1]]
        return pieces, True

    def _level(self, k: int) -> Level:
        while len(self.levels) <= k:
            self.levels.append(Level(self._columns, self._capacity))
        return self.levels[k]

    def _push(self, k: int, start_s: float, end_s: float, extremes: NDArray[np.float32]) -> None:
        level = self._level(k)
        level.append(start_s, end_s, extremes)
        level.unmerged += 1
        if level.unmerged == BLOCK and k + 1 < MAX_LEVELS:
            self._merge(k)

    def _merge(self, k: int) -> None:
        level = self._level(k)
        if level.unmerged:
            start_s, end_s, extremes = level.merged()
            level.unmerged = 0
            self._push(k + 1, start_s, end_s, extremes)


def _extremes(values: NDArray[Any]) -> NDArray[np.float32]:
    """Minimum and maximum of every series (series, n) in the order they came: (2, series)."""
    finite = np.isfinite(values)
    whole = finite.all()
    lowest = (values if whole else np.where(finite, values, np.inf)).argmin(axis=1)
    highest = (values if whole else np.where(finite, values, -np.inf)).argmax(axis=1)
    in_order = np.array((np.minimum(lowest, highest), np.maximum(lowest, highest)))
    extremes: NDArray[Any] = values[np.arange(len(values)), in_order]
    if not whole:
        nothing = ~finite.any(axis=1)
        gap = np.isnan(values).any(axis=1)
        extremes[:, nothing] = np.where(gap, np.nan, NOT_MEASURED)[nothing]
    return extremes.astype(np.float32, copy=False)
