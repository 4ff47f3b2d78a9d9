"""The one store in the middle: histories and cells, versioned, so that each reader pulls what is new."""

from __future__ import annotations

import bisect
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rows:
    """Copies of whole rows. ``t_s``: (n,); ``values``: (columns, n); ``version``: pull from here next time."""

    version: int
    t_s: Floats
    values: Floats
    missed: int
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """Points to draw. ``x``: (m,) seconds, never falling; ``y``: (m,), NaN where the line is cut."""

    x: Floats
    y: Floats
    has_gaps: bool


class History:
    def __init__(self, columns: Sequence[str], *, capacity: int = 32768) -> None:
        self.columns = tuple(columns)
        self._lock = threading.Lock()
        self._t: list[float] = []
        self._rows: list[list[float]] = []

    @property
    def version(self) -> int:
        return len(self._t)

    def append(self, t_s: float, values: Sequence[float | None] | Mapping[str, float | None]) -> None:
        if isinstance(values, Mapping):
            if set(values) - set(self.columns):
                raise ValueError("no such columns")
            values = [values.get(name) for name in self.columns]
        if len(values) != len(self.columns):
            raise ValueError("one value per column")
        with self._lock:
            if self._t and t_s < self._t[-1]:
                raise ValueError("time goes back")
            self._rows.append([math.nan if value is None else float(value) for value in values])
            self._t.append(float(t_s))

    def append_gap(self, t_s: float) -> None:
        self.append(t_s, [math.nan] * len(self.columns))

    def latest(self) -> Mapping[str, float] | None:
        with self._lock:
            return {"t_s": self._t[-1], **dict(zip(self.columns, self._rows[-1], strict=True))} if self._t else None

    def since(self, version: int) -> Rows:
        with self._lock:
            values = np.array(self._rows[version:], dtype=np.float64).reshape(-1, len(self.columns)).T
            return Rows(len(self._t), np.array(self._t[version:]), values, 0, self.columns)

    def tail(self, n: int, columns: Sequence[str] | None = None) -> Rows:
        rows = self.since(max(0, self.version - n))
        names = self.columns if columns is None else tuple(columns)
        index = [self.columns.index(name) for name in names]
        return Rows(rows.version, rows.t_s, rows.values[index], 0, names)

    def curve(self, column: str, t0_s: float, t1_s: float, *, pixels: int) -> Curve:
        rows = self.since(0)
        low = max(0, bisect.bisect_left(self._t, t0_s) - 1)
        high = bisect.bisect_right(self._t, t1_s) + 1
        y = rows.values[self.columns.index(column), low:high]
        return Curve(rows.t_s[low:high], y, bool(np.isnan(y).any()))

    def bounds(self, column: str, t0_s: float, t1_s: float) -> tuple[float, float] | None:
        y = self.curve(column, t0_s, t1_s, pixels=1000).y
        y = y[np.isfinite(y)]
        return (float(y.min()), float(y.max())) if y.size else None

    def value_at(self, column: str, t_s: float) -> float | None:
        at = bisect.bisect_right(self._t, t_s) - 1
        value = self._rows[at][self.columns.index(column)] if at >= 0 else math.nan
        return None if math.isnan(value) else value


class Cell(Generic[T]):
    """The latest whole value of something, versioned, thread-safe."""

    def __init__(self, value: T) -> None:
        self._lock = threading.Lock()
        self._held = (value, 0)

    @property
    def version(self) -> int:
        """How many times it was set."""
        return self._held[1]

    def get(self) -> T:
        return self._held[0]

    def set(self, value: T) -> None:
        with self._lock:
            self._held = (value, self._held[1] + 1)


class Store:
    """Histories by name, and the cells that count into ``version``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._histories: dict[str, History] = {}
        self._cells: tuple[Cell[object], ...] = ()

    @property
    def version(self) -> int:
        return sum(history.version for history in list(self._histories.values())) + sum(c.version for c in self._cells)

    def declare(self, name: str, columns: Sequence[str], *, capacity: int = 32768) -> History:
        with self._lock:
            if name not in self._histories:
                self._histories[name] = History(columns, capacity=capacity)
            return self._histories[name]

    def history(self, name: str) -> History:
        return self._histories[name]

    def names(self) -> tuple[str, ...]:
        return tuple(self._histories)

    def cell(self, value: T) -> Cell[T]:
        """A new cell whose changes count into ``version``."""
        cell = Cell(value)
        with self._lock:
            self._cells = (*self._cells, cell)  # type: ignore[arg-type]  # only versions are read here
        return cell
