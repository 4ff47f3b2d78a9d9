"""The parts of an estimate that windows and reports draw: peaks by phase, memory by module, one step over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from desktop_app.core.steps import Category, Phase

Int64Array = np.ndarray[tuple[int], np.dtype[np.int64]]
Int32Array = np.ndarray[tuple[int], np.dtype[np.int32]]

ALIVE: Final = np.iinfo(np.int64).max  # ``Timeline.died`` of a block that outlives the timeline


@dataclass(frozen=True, slots=True)
class Quantiles:
    """A distribution in bytes by three of its quantiles."""

    p50: int
    p90: int
    p95: int


@dataclass(frozen=True, slots=True)
class PhasePeaks:
    """The largest memory while a phase runs. Bytes."""

    live: Quantiles
    reserved: Quantiles
    device: Quantiles


@dataclass(frozen=True, slots=True)
class ModuleMemory:
    """One module of the model at the live peak of the step, its children included. Bytes, in blocks of the allocator.

    ``path`` is the name in ``model.named_modules()``; the model itself is "". Parents come before their children.
    """

    path: str
    kind: str  # class name
    parameters: int
    categories: Mapping[Category, int] = field(default_factory=dict)

    @property
    def total_bytes(self) -> int:
        return sum(self.categories.values())


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """Events ``first`` to ``last`` (inclusive) of a timeline are of one phase."""

    phase: Phase
    first: int
    last: int


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """Every block that lives during one step, over the step's events: what memory_viz draws.

    x is the index of an allocator event (0 … ``event_count`` − 1). Blocks are columns of equal length, in order of
    birth; those alive before the step come first, with ``born`` 0. ``died`` is the index of the free, or ``ALIVE``.
    ``owner`` and ``op`` index ``owners`` (module path, or a frame "file.py:12 function") and ``ops``.
    """

    live_bytes: Int64Array  # (event_count,) after each event
    reserved_bytes: Int64Array  # (event_count,)
    phases: tuple[PhaseSpan, ...]
    born: Int64Array  # (blocks,)
    died: Int64Array
    size_bytes: Int64Array
    category: Int32Array  # position in ``tuple(Category)``
    owner: Int32Array
    op: Int32Array
    owners: tuple[str, ...]
    ops: tuple[str, ...]
    title: str = ""

    @property
    def event_count(self) -> int:
        return len(self.live_bytes)
