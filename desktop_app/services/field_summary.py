"""Lowest, mean and highest value of one field over a stretch of its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from desktop_app.core.store import History

_PIXELS: Final = 2048  # bins of the older part, whose rows are no longer held


@dataclass(frozen=True, slots=True)
class Summary:
    """Of the values measured in the stretch. ``first`` and ``last`` are its oldest and newest.

    ``exact`` is false where single rows are no longer held: the mean is then that of the kept minima and maxima.
    """

    low: float
    mean: float
    high: float
    first: float
    last: float
    exact: bool


def share_of_bits(history: History, column: str, t0_s: float, t1_s: float) -> dict[int, float]:
    """For each bit that was set in ``column`` from ``t0_s`` to ``t1_s``: the share of the readings, most first.

    Only of rows that are held one by one: minima and maxima of sets of bits say nothing.
    """
    rows = history.tail(history.capacity, (column,))
    start, stop = rows.t_s.searchsorted(t0_s, side="left"), rows.t_s.searchsorted(t1_s, side="right")
    values = rows.values[0, start:stop]
    bits = values[np.isfinite(values)].astype(np.int64)
    shares = {1 << place: float(np.mean((bits >> place) & 1)) for place in range(63) if np.any((bits >> place) & 1)}
    return dict(sorted(shares.items(), key=lambda pair: -pair[1]))


def summarise(history: History, column: str, t0_s: float, t1_s: float) -> Summary | None:
    """The summary of ``column`` from ``t0_s`` to ``t1_s`` (session seconds); ``None`` where nothing was measured."""
    rows = history.tail(history.capacity, (column,))
    held = rows.t_s.size == history.version or (rows.t_s.size > 0 and rows.t_s[0] <= t0_s)
    if held:
        start, stop = rows.t_s.searchsorted((t0_s, t1_s), side="left")
        stop = rows.t_s.searchsorted(t1_s, side="right")
        values = rows.values[0, start:stop]
    else:
        values = history.curve(column, t0_s, t1_s, pixels=_PIXELS).y
    values = values[np.isfinite(values)]
    if not values.size:
        return None
    low, high = float(values.min()), float(values.max())
    return Summary(low, float(values.mean()), high, float(values[0]), float(values[-1]), held)
