"""One step of a trace as a picture of its blocks over time. Torch-free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from desktop_app.core.estimates import ALIVE, Int32Array, Int64Array, PhaseSpan, Timeline
from desktop_app.core.steps import Phase
from desktop_app.memory.estimate_replay import Curves, block_bytes
from desktop_app.memory.estimate_table import PHASES, EventTable

_OUTSIDE: Final = tuple(PHASES.index(phase) for phase in (Phase.BUILD, Phase.VALIDATION, Phase.SAVE))


def step_timeline(table: EventTable, curves: Curves, *, step: int = 2, title: str = "") -> Timeline | None:
    """The blocks that live during one step, without validation and saving; ``None`` where there is no such step.

    Events that did nothing, such as a workspace that is not needed, are left out. Sizes are those of the allocator's
    blocks, so that the blocks alive at an event sum up to the live bytes there.
    """
    sizes = block_bytes(curves)
    count = len(sizes)
    acts = sizes > 0
    frees = ~table.allocates[:count]
    acts[frees] = sizes[table.partners[:count][frees]] > 0
    inside = (table.steps[:count] == step) & ~np.isin(table.phases[:count], _OUTSIDE)
    rows = np.flatnonzero(acts & inside)
    if not rows.size:
        return None
    places = np.full(len(table) + 1, -1, dtype=np.int64)  # of a row on the timeline
    places[rows] = np.arange(rows.size)
    before = np.flatnonzero((sizes > 0) & (np.arange(count) < rows[0]) & (table.partners[:count] >= rows[0]))
    blocks = np.concatenate([before, rows[sizes[rows] > 0]])
    owners, owner = _indexed([table.modules[row] for row in blocks])
    ops, op = _indexed([table.ops[row] for row in blocks])
    return Timeline(
        live_bytes=curves.live_bytes[rows],
        reserved_bytes=curves.reserved_bytes[rows],
        phases=_phase_spans(table, rows),
        born=np.concatenate([np.zeros(before.size, dtype=np.int64), places[blocks[before.size :]]]),
        died=_deaths(places[table.partners[blocks]]),
        size_bytes=sizes[blocks],
        category=table.categories[blocks],
        owner=owner,
        op=op,
        owners=owners,
        ops=ops,
        title=title,
    )


def _deaths(places: Int64Array) -> Int64Array:
    deaths: Int64Array = np.where(places >= 0, places, ALIVE)
    return deaths


def _phase_spans(table: EventTable, rows: Int64Array) -> tuple[PhaseSpan, ...]:
    runs = table.runs[rows]
    starts = np.flatnonzero(np.diff(runs, prepend=-1))
    stops = np.append(starts[1:], rows.size)
    return tuple(
        PhaseSpan(PHASES[int(table.phases[rows[start]])], int(start), int(stop) - 1)
        for start, stop in zip(starts, stops, strict=True)
    )


def _indexed(names: Sequence[str]) -> tuple[tuple[str, ...], Int32Array]:
    """Every name once, in order of appearance, and the position of each."""
    positions: dict[str, int] = {}
    index = np.array([positions.setdefault(name, len(positions)) for name in names], dtype=np.int32)
    return tuple(positions), index
