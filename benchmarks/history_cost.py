"""What a history costs as it grows: appending a row, drawing a curve of it, and the memory it holds.

``python benchmarks/history_cost.py [--rows 10000000] [--columns 23] [--pixels 750]``

Costs are ratios to those at 1,000 rows in the same run; the microseconds beside them are for this machine only. Of each
cost the least of several batches is taken, because anything else on the machine only adds to it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import numpy as np
import psutil

from desktop_app.core.store import History
from desktop_app.core.units import format_bytes

INTERVAL_S = 0.2  # the default sampling rate, 5 Hz
FIRST_SIZE = 1000
BATCH_ROWS = 500
BATCHES = 60


@dataclass(frozen=True, slots=True)
class Cost:
    """At one length of the history: microseconds, points, and bytes."""

    rows: int
    append_us: float
    whole_us: float
    recent_us: float
    past_us: float
    points: int
    held_bytes: int
    resident_bytes: int


def least_us(action: Callable[[], object], *, calls: int = 10) -> float:
    """Microseconds of one call, in the quickest of ``BATCHES`` batches."""
    best_s = min(_batch_s(action, calls) for _ in range(BATCHES))
    return best_s / calls * 1e6


def _batch_s(action: Callable[[], object], calls: int) -> float:
    begin_s = time.thread_time()
    for _ in range(calls):
        action()
    return time.thread_time() - begin_s


def grow(history: History, values: list[list[float]], *, rows: int) -> float:
    """Append up to ``rows`` rows; microseconds of one append in the quickest batch."""
    best_s = float("inf")
    while history.version < rows:
        start = history.version
        batch = list(islice(values, min(BATCH_ROWS, rows - start)))
        begin_s = time.thread_time()
        for number, row in enumerate(batch, start=start):
            history.append(number * INTERVAL_S, row)
        best_s = min(best_s, (time.thread_time() - begin_s) / len(batch))
    return best_s * 1e6


def measure(history: History, *, append_us: float, pixels: int, before_bytes: int) -> Cost:
    rows = history.version
    end_s, column = rows * INTERVAL_S, history.columns[-1]
    middle_s = end_s / 2
    return Cost(
        rows=rows,
        append_us=append_us,
        whole_us=least_us(lambda: history.curve(column, 0.0, end_s, pixels=pixels)),
        recent_us=least_us(lambda: history.curve(column, end_s - 600.0, end_s, pixels=pixels)),
        past_us=least_us(lambda: history.curve(column, middle_s - 60.0, middle_s + 60.0, pixels=pixels)),
        points=len(history.curve(column, 0.0, end_s, pixels=pixels).x),
        held_bytes=history.nbytes,
        resident_bytes=psutil.Process().memory_info().rss - before_bytes,
    )


def show(cost: Cost, first: Cost) -> None:
    def ratio(us: float, first_us: float) -> str:
        return f"{us / first_us:6.2f} ({us:5.1f} µs)"

    print(
        f"{cost.rows:>10,}",
        ratio(cost.append_us, first.append_us),
        ratio(cost.whole_us, first.whole_us),
        ratio(cost.recent_us, first.recent_us),
        ratio(cost.past_us, first.past_us),
        f"{cost.points:>7,}",
        f"{format_bytes(cost.resident_bytes):>10}",
        f"{format_bytes(cost.held_bytes):>10}",
        sep="  ",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="longest history (default: 10,000,000)")
    parser.add_argument("--columns", type=int, default=23, help="as many as a card has fields (default: 23)")
    parser.add_argument("--pixels", type=int, default=750, help="width of the panel (default: 750)")
    options = parser.parse_args()
    values = np.random.default_rng(0).normal(size=(BATCH_ROWS, options.columns)).tolist()
    before_bytes = psutil.Process().memory_info().rss
    history = History([f"field_{i}" for i in range(options.columns)])
    print(f"{options.columns} columns, {options.pixels} pixels; ratios to the first row")
    heads = ("append a row", "curve of all", "last 10 min", "2 min, half-way")
    print(f"{'rows':>10}", *(f"{head:<17}" for head in heads), " points", "  resident", "      held", sep="  ")
    first: Cost | None = None
    rows = FIRST_SIZE
    while rows <= options.rows:
        append_us = grow(history, values, rows=rows)
        cost = measure(history, append_us=append_us, pixels=options.pixels, before_bytes=before_bytes)
        first = first or cost
        show(cost, first)
        rows *= 10


if __name__ == "__main__":
    main()
