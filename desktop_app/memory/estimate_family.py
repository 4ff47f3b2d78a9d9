"""The traces of one training at every batch size, from one or two of them. Torch-free.

While the ops are the same, each single allocation is affine in the batch size, though their peak is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from desktop_app.core.estimates import Int64Array
from desktop_app.core.steps import Category
from desktop_app.memory.estimate_alignment import Calls, Row, TraceParts, merge
from desktop_app.memory.estimate_outlook import FloatArray
from desktop_app.memory.estimate_steady import steady
from desktop_app.memory.estimate_table import EventTable
from desktop_app.memory.trace_data import Trace, TraceEvent

# What grows with the batch, for a guess from a single trace.
_GROWING: Final = frozenset({Category.ACTIVATIONS, Category.INPUTS})


@dataclass(frozen=True, slots=True, eq=False)
class TraceFamily:
    """One table of events whose sizes follow the batch size."""

    batch_size: int
    _table: EventTable
    _sizes: FloatArray
    _slopes: FloatArray
    _calls: tuple[Calls, ...]
    _other_batch: int

    @classmethod
    def between(cls, trace: Trace, other: Trace) -> TraceFamily | None:
        """``None`` when the two do not do the same things in the same order."""
        return cls.of_parts(TraceParts.of(steady(trace)), TraceParts.of(steady(other)))

    @classmethod
    def of_parts(cls, parts: TraceParts, others: TraceParts) -> TraceFamily | None:
        """``between`` for traces that have been taken apart already."""
        if parts.batch_size == others.batch_size:
            raise ValueError(f"both traces are at batch size {parts.batch_size}")
        rows = merge(parts, others)
        return None if rows is None else cls._of(rows, parts.batch_size, others.batch_size)

    @classmethod
    def alone(cls, trace: Trace) -> TraceFamily:
        """A guess from one steady trace: activations and inputs grow with the batch, nothing else does."""
        double = 2 * trace.batch_size
        weights = {event.size_bytes for event in trace.events if event.category is Category.PARAMETERS}
        fixed = weights | {size // 2 for size in weights}  # cast by autocast, and the gradients of such casts
        rows: list[Row] = []
        for event in trace.events:
            call = trace.convolutions[event.convolution] if event.convolution >= 0 and event.key > 0 else None
            grows = call is not None or (event.category in _GROWING and event.size_bytes not in fixed)
            calls = None if call is None else (call, call._replace(batch=2 * call.batch))
            rows.append(Row(event, event.size_bytes, event.size_bytes * (2 if grows else 1), calls))
        return cls._of(rows, trace.batch_size, double)

    @classmethod
    def _of(cls, rows: Sequence[Row], batch_size: int, other_batch: int) -> TraceFamily:
        calls: list[Calls] = []
        events: list[TraceEvent] = []
        for row in rows:
            if row.calls is not None:
                events.append(row.event._replace(convolution=len(calls)))
                calls.append(row.calls)
            else:
                events.append(row.event if row.event.convolution < 0 else row.event._replace(convolution=-1))
        sizes = np.array([row.size for row in rows], dtype=np.float64)
        others = np.array([row.other_size for row in rows], dtype=np.float64)
        table = EventTable.from_events(events, tuple(pair[0] for pair in calls))
        slopes = (others - sizes) / (other_batch - batch_size)
        return cls(batch_size, table, sizes, slopes, tuple(calls), other_batch)

    def at(self, batch_size: int) -> EventTable:
        """The whole table at this batch size."""
        share = (batch_size - self.batch_size) / (self._other_batch - self.batch_size)
        calls = tuple(
            call._replace(batch=max(1, round(call.batch + share * (other.batch - call.batch))))
            for call, other in self._calls
        )
        return self._table.resized(self._sizes_at(batch_size), calls)

    def _sizes_at(self, batch_size: int) -> Int64Array:
        sizes = np.rint(self._sizes + self._slopes * (batch_size - self.batch_size))
        always = (self._sizes > 0) & (self._sizes + self._slopes > 0)
        found: Int64Array = np.maximum(sizes, np.where(always, 1, 0)).astype(np.int64)
        return found
