"""The one store in the middle: histories and cells, versioned, so that each reader pulls what is new."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np

from desktop_app.core.curve import Curve, draw
from desktop_app.core.missing import ABSENT, Floats, drawable, is_absent
from desktop_app.core.pyramid import BLOCK, MAX_LEVELS, Points, Pyramid
from desktop_app.core.ring import MirroredRing

__all__ = ["Cell", "Curve", "History", "Rows", "Store"]

T = TypeVar("T")

Values = Sequence[float | None] | Mapping[str, float | None] | Floats

DEFAULT_CAPACITY: Final = 32768  # rows: 1 h 49 min at 5 Hz
# Rows, or entries of one level of the pyramid, that are thinned to a pixel. The next level has BLOCK times fewer, so
# there is always one for two pixels at least.
_ENTRIES_PER_PIXEL: Final = BLOCK // 2
# Rows (or entries) looked at beyond a window: for the last value measured there (a slow field, the loss of a run that
# logs rarely), and for the rest of the bins at its edges, which have 8 on average at most.
_REACH: Final = 64
_REACH_OF_CURSOR: Final = 512  # rows back to the last value measured
_BOUNDS_ENTRIES: Final = 1024  # bounds are exact up to so many rows, else to 1/128 of the window at its edges
_SHORTEST_INTERVAL_S: Final = 1e-3  # nothing here has rows closer than this on average


@dataclass(frozen=True, slots=True)
class Rows:
    """Copies of whole rows. ``t_s``: (n,) seconds; ``values``: (columns, n), NaN where missing.

    ``version`` is the position to pull from next time; ``missed`` counts rows that the ring no longer had.
    """

    version: int
    t_s: Floats
    values: Floats
    missed: int
    columns: tuple[str, ...]

    def column(self, name: str) -> Floats:
        """The values of one column, (n,)."""
        values: Floats = self.values[self.columns.index(name)]
        return values


class History:
    """One time axis with fixed columns: one writer, any number of readers, thread-safe.

    The newest ``capacity`` rows are kept exactly (float64 holds bytes up to 2^53); all rows since the first are kept
    as minima and maxima (``pyramid``), at ever coarser grain the longer ago. Readers hold the lock for a search and a
    copy only.
    """

    def __init__(self, columns: Sequence[str], *, capacity: int = DEFAULT_CAPACITY) -> None:
        self.columns = tuple(columns)
        self._index = {name: i for i, name in enumerate(self.columns)}
        if not self.columns or len(self._index) < len(self.columns):
            raise ValueError(f"a history needs columns, each with a name of its own, not {self.columns}")
        if capacity < BLOCK:
            raise ValueError(f"a history needs room for at least {BLOCK} rows, not {capacity}")
        self.capacity = capacity
        self._lock = threading.Lock()
        self._rows: MirroredRing[np.float64] = MirroredRing(1 + len(self.columns), capacity, np.float64)
        self._pyramid = Pyramid(len(self.columns), capacity=capacity // 2)
        self._open = 0  # newest rows that are in no block of the pyramid yet
        self._began_s = self._ended_s = 0.0  # times of the first and the newest row
        self._gap: tuple[float, float] | None = None  # its start, and the mean interval of the rows before it

    @property
    def version(self) -> int:
        """Rows ever appended."""
        return self._rows.total

    @property
    def ended_s(self) -> float:
        """Time of the newest row; 0 before the first."""
        return self._ended_s

    @property
    def nbytes(self) -> int:
        """Memory taken now; it grows no more once the rings are full."""
        return self._rows.nbytes + self._pyramid.nbytes

    def append(self, t_s: float, values: Values) -> None:
        """Add a row at ``t_s``, which may equal the last one's but not be before it (``ValueError``).

        NaN and infinities are gaps in the curve. A name left out of a mapping, or ``None``, was not measured in this
        row: NaN in ``Rows``, no gap in the curve. ``ValueError`` for an unknown name or a wrong number of values.
        """
        row = self._row(t_s, values)
        with self._lock:
            self._push(row)

    def append_gap(self, t_s: float) -> None:
        """Add a row of NaN: from here to the next row every curve is cut, at any zoom that could show it."""
        self.append(t_s, np.full(len(self.columns), np.nan))

    def latest(self) -> Mapping[str, float] | None:
        """The newest row by column name, with ``t_s``; ``None`` before the first."""
        with self._lock:
            if not self._rows.total:
                return None
            row = self._rows.newest(1)[:, 0].tolist()
        return dict(zip(("t_s", *self.columns), row, strict=True))

    def since(self, version: int) -> Rows:
        """The rows appended after ``version`` (0: all still held). ``ValueError`` for a version not reached yet."""
        with self._lock:
            total = self._rows.total
            if not 0 <= version <= total:
                raise ValueError(f"version {version} is not within 0 to {total}")
            start = max(version, self._rows.first)
            block = self._rows.view(start, total).copy()
        return Rows(total, block[0], block[1:], start - version, self.columns)

    def tail(self, n: int, columns: Sequence[str] | None = None) -> Rows:
        """The newest ``n`` rows, or as many as are held, of ``columns`` (all)."""
        names = self.columns if columns is None else tuple(columns)
        series = [0, *(1 + self._index[name] for name in names)]
        with self._lock:
            total = self._rows.total
            block = self._rows.view(max(self._rows.first, total - max(n, 0)), total)[series]
        return Rows(total, block[0], block[1:], 0, names)

    def curve(self, column: str, t0_s: float, t1_s: float, *, pixels: int) -> Curve:
        """The line of ``column`` in the window, at most 2 × pixels + 4 points; its cost does not grow with the history.

        ``ValueError`` for a window that ends before it begins or has no pixel. ``curve.draw`` says which points.
        """
        if not (t0_s <= t1_s and pixels >= 1):
            raise ValueError(f"not a window: {t0_s} s to {t1_s} s on {pixels} pixels")
        t0_s = t0_s if math.isfinite(t0_s) else self._began_s
        t1_s = t1_s if math.isfinite(t1_s) else max(t0_s, self._ended_s)
        x, y = self._points(column, t0_s, t1_s, limit=_ENTRIES_PER_PIXEL * pixels, reach=_REACH)
        return draw(x, y, t0_s=t0_s, t1_s=t1_s, pixels=pixels)

    def bounds(self, column: str, t0_s: float, t1_s: float) -> tuple[float, float] | None:
        """Lowest and highest finite value in the window; ``None`` when there is none. Never narrower than the truth."""
        _, y = self._points(column, t0_s, t1_s, limit=_BOUNDS_ENTRIES, reach=0)
        y = y[np.isfinite(y)]
        return (float(y.min()), float(y.max())) if y.size else None

    def value_at(self, column: str, t_s: float) -> float | None:
        """The value of the newest row at or before ``t_s`` that measured ``column``; ``None`` in a gap.

        Of rows no longer held it is the point of the curve there, exact to float32. ``None``, too, where nothing was
        measured for 512 rows.
        """
        x, y = self._points(column, t_s, t_s, limit=self.capacity, reach=_REACH_OF_CURSOR)
        measured = np.flatnonzero(~np.isposinf(y[: x.searchsorted(t_s, side="right")]))
        value = float(y[measured[-1]]) if measured.size else math.nan
        return None if math.isnan(value) else value

    def _row(self, t_s: float, values: Values) -> Floats:
        if isinstance(values, Mapping):
            if not values.keys() <= self._index.keys():
                raise ValueError(f"no such columns: {sorted(values.keys() - self._index.keys())}")
            values = [values.get(name, ABSENT) for name in self.columns]
        if len(values) != len(self.columns):
            raise ValueError(f"{len(values)} values for {len(self.columns)} columns")
        if isinstance(values, Sequence) and None in values:
            values = [ABSENT if value is None else value for value in values]
        return np.array((t_s, *values), np.float64)

    def _push(self, row: Floats) -> None:
        t_s = float(row[0])
        if not (math.isfinite(t_s) and (t_s >= self._ended_s or not self._rows.total)):
            raise ValueError(f"a row at {t_s} s cannot follow one at {self._ended_s} s")
        if _is_gap(row[1:]):
            self._begin_gap(t_s)
            self._rows.append(row)
        else:
            self._end_gap(t_s)
            self._rows.append(row)
            self._open += 1
            if self._open == BLOCK:
                self._close_block()
        self._began_s = self._began_s if self._rows.total > 1 else t_s
        self._ended_s = t_s

    def _close_block(self) -> None:
        if self._open:
            block = self._rows.newest(self._open)
            self._pyramid.add(block[0], drawable(block[1:]))
            self._open = 0

    def _begin_gap(self, t_s: float) -> None:
        """The first row of a gap closes the block, so that no entry of the finest level spans a gap."""
        if self._gap is None:
            self._close_block()
            interval_s = (t_s - self._began_s) / self._rows.total if self._rows.total else 0.0
            self._gap = t_s, max(interval_s, _SHORTEST_INTERVAL_S)

    def _end_gap(self, t_s: float) -> None:
        """Only now is it known how long the gap was, and so which levels have entries short enough to show it."""
        if self._gap is not None:
            start_s, interval_s = self._gap
            self._gap = None
            rows = max((t_s - start_s) / interval_s, 1.0)
            self._pyramid.add_gap(start_s, t_s, height=min(max(int(math.log(rows, BLOCK)), 1), MAX_LEVELS))

    def _points(self, column: str, t0_s: float, t1_s: float, *, limit: int, reach: int) -> Points:
        """Points of the window, and up to ``reach`` more on either side: rows where they are held and few enough."""
        series = self._index[column]
        with self._lock:
            first, total = self._rows.first, self._rows.total
            times = self._rows.view(first, total)[0]
            start = first + int(times.searchsorted(t0_s, side="left"))
            stop = first + int(times.searchsorted(t1_s, side="right"))
            if stop - start <= limit and (first == 0 or times[0] < t0_s):
                pieces = [self._copied(series, max(start - reach, first), min(stop + reach, total))]
            else:
                pieces, up_to_newest_block = self._pyramid.points(series, t0_s, t1_s, limit=limit, reach=reach)
                if up_to_newest_block:
                    pieces.append(self._copied(series, total - self._open, total))
        x, y = zip(*pieces, strict=True)
        return (np.concatenate(x), np.concatenate(y)) if len(pieces) > 1 else (x[0], y[0])

    def _copied(self, series: int, start: int, stop: int) -> Points:
        rows = self._rows.view(start, stop)
        return rows[0].copy(), drawable(rows[1 + series])


def _is_gap(values: Floats) -> bool:
    """Nothing could be had: all missing, and not because nobody asked."""
    return math.isnan(values[0]) and bool(np.isnan(values).all()) and not is_absent(values).all()


class Cell(Generic[T]):
    """The latest whole value of something, replaced as a whole: versioned, thread-safe."""

    def __init__(self, value: T) -> None:
        self._lock = threading.Lock()
        self._held = (value, 0)  # one tuple, so that a reader without the lock sees a value with its own version

    @property
    def version(self) -> int:
        """How many times it was set."""
        return self._held[1]

    def get(self) -> T:
        return self._held[0]

    def set(self, value: T) -> None:
        with self._lock:
            self._held = (value, self._held[1] + 1)

    def read(self) -> tuple[T, int]:
        """The value and the version it has."""
        return self._held


class Store:
    """Histories by name, and one version over them and the cells that are watched. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._histories: dict[str, History] = {}
        self._versioned: tuple[History | Cell[Any], ...] = ()

    @property
    def version(self) -> int:
        """Grows with every change of a history or a watched cell. Costs one addition for each, and no lock."""
        return sum(part.version for part in self._versioned)

    def declare(self, name: str, columns: Sequence[str], *, capacity: int = DEFAULT_CAPACITY) -> History:
        """The history ``name``, made now unless it exists; ``ValueError`` when it exists with other columns."""
        with self._lock:
            history = self._histories.get(name)
            if history is None:
                history = History(columns, capacity=capacity)
                self._histories[name] = history
                self._versioned += (history,)
            elif history.columns != tuple(columns):
                raise ValueError(f"history {name!r} has the columns {history.columns}, not {tuple(columns)}")
            return history

    def history(self, name: str) -> History:
        """The history ``name``; ``KeyError`` when it was not declared."""
        with self._lock:
            return self._histories[name]

    def names(self) -> tuple[str, ...]:
        """Names of all histories, in the order they were declared."""
        with self._lock:
            return tuple(self._histories)

    def watch(self, cell: Cell[T]) -> Cell[T]:
        """Count the changes of ``cell`` into ``version`` from now on; returns it."""
        with self._lock:
            self._versioned += (cell,)
        return cell
