"""What the allocator replica makes of a trace: memory after every event, and what is read off it. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from desktop_app.core.estimates import Int64Array
from desktop_app.core.steps import Category, Phase
from desktop_app.memory.allocator_settings import DEFAULT_SETTINGS, AllocatorSettings
from desktop_app.memory.estimate_table import CATEGORIES, PHASES, EventTable


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Bytes after every event that was carried out. ``out_of_memory``: there was no room for the next one."""

    live_bytes: Int64Array
    reserved_bytes: Int64Array
    out_of_memory: bool

    @property
    def live_peak_bytes(self) -> int:
        return int(self.live_bytes.max(initial=0))

    @property
    def reserved_peak_bytes(self) -> int:
        return int(self.reserved_bytes.max(initial=0))

    @property
    def peak_index(self) -> int:
        """The first event at the live peak; −1 without events."""
        return int(self.live_bytes.argmax()) if len(self.live_bytes) else -1


def replay_table(
    table: EventTable,
    sizes_bytes: Int64Array | None = None,
    *,
    limit_bytes: int | None = None,
    settings: AllocatorSettings = DEFAULT_SETTINGS,
    apart: bool = False,
) -> Curves:
    """Replay in a fresh allocator. ``sizes_bytes`` replaces the table's own; rows of 0 bytes do nothing.

    ``apart``: the cache is emptied before every phase, so that each shows what it needs itself.
    """
    found = table.plan.run(
        table.sizes_bytes if sizes_bytes is None else sizes_bytes,
        limit_bytes=limit_bytes,
        settings=settings,
        empty_before=[start for start, _ in spans(table)] if apart else (),
        curves=True,
    )
    assert found.live_curve_bytes is not None
    assert found.reserved_curve_bytes is not None
    return Curves(found.live_curve_bytes, found.reserved_curve_bytes, out_of_memory=found.oom_index is not None)


def spans(table: EventTable) -> list[tuple[int, int]]:
    """First row and the row after the last of every uninterrupted stretch of one phase."""
    edges = [0, *(np.flatnonzero(np.diff(table.runs)) + 1).tolist(), len(table)]
    return [(start, stop) for start, stop in pairwise(edges) if stop > start]


def phase_maxima(table: EventTable, levels_bytes: Int64Array) -> dict[Phase, int]:
    """The largest level in each phase that occurs, in the order of ``Phase``. Levels are those after every event."""
    phases = table.phases[: len(levels_bytes)]
    return {
        phase: int(levels_bytes[here].max())
        for index, phase in enumerate(PHASES)
        if (here := np.flatnonzero(phases == index)).size
    }


def block_bytes(curves: Curves) -> Int64Array:
    """What each allocation took as a block of the allocator: rounded, with a tail too small to split; 0 in frees."""
    steps: Int64Array = np.maximum(np.diff(curves.live_bytes, prepend=0), 0)
    return steps


def alive_at(table: EventTable, index: int) -> Int64Array:
    """The rows of the allocations that live after the event ``index``."""
    rows: Int64Array = np.flatnonzero(table.allocates[: index + 1] & (table.partners[: index + 1] > index))
    return rows


def owners_at(table: EventTable, curves: Curves, index: int) -> dict[Category, int]:
    """Live bytes by owner after the event ``index``: every category, in order. Their sum is the live level there."""
    rows = alive_at(table, index)
    sums = np.zeros(len(CATEGORIES), dtype=np.int64)
    np.add.at(sums, table.categories[rows], block_bytes(curves)[rows])
    return dict(zip(CATEGORIES, sums.tolist(), strict=True))
