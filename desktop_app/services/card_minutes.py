"""The last minute of each card out of its histories, for the comparison of cards."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from desktop_app.core.missing import Floats
from desktop_app.core.store import History, Store
from desktop_app.core.telemetry import Card, ProcessSample
from desktop_app.services.same_job import job_of, others_percent
from desktop_app.services.stragglers import MINUTE_S, Level, Work
from desktop_app.services.telemetry_feed import details_name, history_name

_FIELDS: Final = (
    "utilization_percent",
    "memory_used_bytes",
    "power_w",
    "temperature_c",
    "sm_clock_mhz",
    "throttle_power_percent",
    "throttle_thermal_percent",
    "pcie_rx_bytes_per_s",
    "pcie_tx_bytes_per_s",
    "pcie_generation",
    "pcie_width",
)
_DETAILS: Final = ("sm_activity_percent",)
_ROWS: Final = 1024  # a minute at 16 Hz; where sampling is quicker, as much of the minute as they hold
# A mean over the steps of a training has an error that single samples hide: they hang together. So it is taken from
# the means of stretches, which are longer than most steps.
_STRETCH_S: Final = 10.0
_LEAST_STRETCHES: Final = 4


def card_minutes(
    store: Store, cards: Sequence[Card], processes: Mapping[str, tuple[ProcessSample, ...]], *, now_s: float
) -> tuple[Work, ...]:
    """What each card did in the minute before ``now_s`` (session seconds)."""
    names = store.names()
    return tuple(_work(store, names, card, processes.get(card.uuid, ()), now_s) for card in cards)


def _work(store: Store, names: Sequence[str], card: Card, processes: Sequence[ProcessSample], now_s: float) -> Work:
    levels: dict[str, Level] = {}
    newest: dict[str, float] = {}
    for name, fields in ((history_name(card.uuid), _FIELDS), (details_name(card.uuid), _DETAILS)):
        if name in names:
            _take(store.history(name), fields, now_s, levels, newest)
    job = job_of(processes)
    return Work(
        uuid=card.uuid,
        model=card.name,
        levels=levels,
        generation=newest.get("pcie_generation"),
        width=newest.get("pcie_width"),
        job=job,
        others_percent=others_percent(processes, job),
    )


def _take(
    history: History, fields: Sequence[str], now_s: float, levels: dict[str, Level], newest: dict[str, float]
) -> None:
    rows = history.tail(_ROWS, fields)
    recent = rows.t_s >= now_s - MINUTE_S
    t_s = rows.t_s[recent]
    for name, values in zip(fields, rows.values[:, recent], strict=True):
        measured = np.isfinite(values)
        level = level_of(t_s[measured], values[measured])
        if level is not None:
            levels[name] = level
        if measured.any():
            newest[name] = float(values[measured][-1])


def level_of(t_s: Floats, values: Floats) -> Level | None:
    """Mean and standard error of samples at ``t_s``; ``None`` for less than four stretches of ten seconds."""
    if not values.size:
        return None
    stretch = np.floor((t_s - t_s[0]) / _STRETCH_S).astype(int)
    counts = np.bincount(stretch)
    sums = np.bincount(stretch, weights=values)
    means = sums[counts > 0] / counts[counts > 0]
    if means.size < _LEAST_STRETCHES:
        return None
    return Level(float(values.mean()), float(means.std(ddof=1)) / math.sqrt(means.size))
