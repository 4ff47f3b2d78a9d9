"""The traces of one training at every batch size, from one or two of them. Torch-free.

While the ops are the same, each single allocation is affine in the batch size, though their peak is not. Only what a
kernel takes for itself is not: staging buffers and the like come and go with the launch. They live inside one op, so
they are set aside while two traces are aligned, and a kernel that one of them lacks takes 0 bytes there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import count, zip_longest
from typing import Final

import numpy as np

from desktop_app.core.estimates import Int64Array
from desktop_app.core.steps import Category, Phase
from desktop_app.memory.convolutions import ConvolutionCall
from desktop_app.memory.estimate_outlook import FloatArray
from desktop_app.memory.estimate_steady import steady
from desktop_app.memory.estimate_table import KERNEL_MARK, EventTable
from desktop_app.memory.trace_data import Trace, TraceEvent, renamed

# What grows with the batch, for a guess from a single trace. Cast weights are among the activations: it grows a
# little too fast, and the guess is a little too small.
_GROWING: Final = frozenset({Category.ACTIVATIONS, Category.INPUTS})

_Inside = tuple[TraceEvent, ...]  # what one kernel allocates and frees, in order: nothing of it outlives it
_Calls = tuple[ConvolutionCall, ConvolutionCall]


@dataclass(frozen=True, slots=True, eq=False)
class TraceFamily:
    """One table of events whose sizes follow the batch size. ``events`` are the table's rows."""

    events: tuple[TraceEvent, ...]
    batch_size: int
    _table: EventTable
    _sizes: FloatArray
    _slopes: FloatArray
    _calls: tuple[_Calls, ...]
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
        rows = _merged(parts, others)
        return None if rows is None else cls._of(rows, parts.batch_size, others.batch_size)

    @classmethod
    def alone(cls, trace: Trace) -> TraceFamily:
        """A guess from one steady trace: activations and inputs grow with the batch, nothing else does."""
        double = 2 * trace.batch_size
        rows: list[_Row] = []
        for event in trace.events:
            call = trace.convolutions[event.convolution] if event.convolution >= 0 and event.key > 0 else None
            grows = event.category in _GROWING or call is not None
            calls = None if call is None else (call, call._replace(batch=2 * call.batch))
            rows.append(_Row(event, event.size_bytes, event.size_bytes * (2 if grows else 1), calls))
        return cls._of(rows, trace.batch_size, double)

    @classmethod
    def _of(cls, rows: Sequence[_Row], batch_size: int, other_batch: int) -> TraceFamily:
        calls: list[_Calls] = []
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
        return cls(tuple(events), batch_size, table, sizes, slopes, tuple(calls), other_batch)

    def sizes_at(self, batch_size: int) -> list[int]:
        """The size of every event at this batch size, bytes."""
        found: list[int] = self._sizes_at(batch_size).tolist()
        return found

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


@dataclass(slots=True)  # not frozen: thousands are made, in a third of the time
class _Row:
    """One event of two traces."""

    event: TraceEvent
    size: int
    other_size: int
    calls: _Calls | None = None


@dataclass(frozen=True, slots=True)
class TraceParts:
    """A trace taken apart: what storages do, and before each of these events what kernels did inside an op."""

    main: list[TraceEvent]
    gaps: list[list[_Inside]]
    convolutions: tuple[ConvolutionCall, ...]
    batch_size: int

    @classmethod
    def of(cls, trace: Trace) -> TraceParts:
        main: list[TraceEvent] = []
        gaps: list[list[_Inside]] = [[]]
        events = trace.events
        names: dict[int, int] = {}
        index = 0
        while index < len(events):
            event = events[index]
            inside = _inside(events, index)
            if inside:
                gaps[-1].append(tuple(events[index : index + inside]))
                index += inside
                continue
            if event.key > 0:
                key = names[event.key] = len(names) + 1
            else:
                key = -names[-event.key]
            main.append(renamed(event, key, step=event.step))
            gaps.append([])
            index += 1
        return cls(_canonical(main, gaps), gaps, trace.convolutions, trace.batch_size)

    def call(self, event: TraceEvent) -> ConvolutionCall | None:
        return self.convolutions[event.convolution] if event.convolution >= 0 else None


def _inside(events: Sequence[TraceEvent], index: int) -> int:
    """How many events from here on are of one kernel, which frees all it has allocated; 0 when this one is of none."""
    alive: set[int] = set()
    for place in range(index, len(events)):
        event = events[place]
        if event.key > 0:
            if KERNEL_MARK not in event.op:
                return 0
            alive.add(event.key)
        elif -event.key not in alive:
            return 0
        else:
            alive.remove(-event.key)
        if not alive:
            return place + 1 - index
    return 0


def _canonical(main: list[TraceEvent], gaps: list[list[_Inside]]) -> list[TraceEvent]:
    """Frees that follow each other, in order of their keys: among them the order means nothing."""
    found: list[TraceEvent] = []
    for run in _runs(main, gaps):
        found.extend(sorted(run, key=lambda event: event.key) if len(run) > 1 else run)
    return found


def _runs(main: list[TraceEvent], gaps: list[list[_Inside]]) -> Iterator[list[TraceEvent]]:
    frees: list[TraceEvent] = []
    for event, gap in zip(main, gaps, strict=False):
        joins = event.key < 0 and not gap and bool(frees)
        if joins and frees[-1].phase is event.phase:
            frees.append(event)
            continue
        if frees:
            yield frees
        frees = [event] if event.key < 0 else []
        if event.key > 0:
            yield [event]
    if frees:
        yield frees


def _merged(parts: TraceParts, others: TraceParts) -> list[_Row] | None:
    if len(parts.main) != len(others.main):
        return None
    rows: list[_Row] = []
    names = count(len(parts.main) + 1)
    for place, gap in enumerate(parts.gaps):
        for kernel, other_kernel in _paired(gap, others.gaps[place]):
            inside = _kernel_rows(parts, others, kernel, other_kernel, names=names)
            if inside is None:
                return None
            rows += inside
        if place < len(parts.main):
            event, other = parts.main[place], others.main[place]
            if _signature(event) != _signature(other):
                return None
            rows.append(_Row(event, event.size_bytes, other.size_bytes))
    return rows


def _kernel_rows(
    parts: TraceParts, others: TraceParts, kernel: _Inside, other_kernel: _Inside, *, names: Iterator[int]
) -> list[_Row] | None:
    """``None`` when the two are workspaces of different convolutions. One of them may be empty."""
    rows: list[_Row] = []
    keys: dict[int, int] = {}
    for event, other in zip_longest(kernel, other_kernel):
        known = event or other
        if known.key < 0:
            rows.append(_Row(renamed(known, -keys[-known.key], step=known.step), 0, 0))
            continue
        keys[known.key] = next(names)
        calls: _Calls | None = None
        if event is not None and other is not None:
            call, other_call = parts.call(event), others.call(other)
            if call is not None and other_call is not None:
                if call != other_call._replace(batch=call.batch):
                    return None
                calls = (call, other_call)
        sizes = (event.size_bytes if event else 0, other.size_bytes if other else 0)
        rows.append(_Row(renamed(known, keys[known.key], step=known.step), *sizes, calls))
    return rows


def _paired(kernels: Sequence[_Inside], others: Sequence[_Inside]) -> Iterator[tuple[_Inside, _Inside]]:
    """What kernels did in the same gap of two traces, side by side; empty where one has nothing like it."""
    kinds, other_kinds = [_kind(kernel) for kernel in kernels], [_kind(kernel) for kernel in others]
    if kinds == other_kinds:
        yield from zip(kernels, others, strict=True)
        return
    matcher = SequenceMatcher(None, kinds, other_kinds, autojunk=False)
    for tag, start, stop, other_start, other_stop in matcher.get_opcodes():
        if tag == "equal":
            yield from zip(kernels[start:stop], others[other_start:other_stop], strict=True)
        else:
            yield from ((kernel, ()) for kernel in kernels[start:stop])
            yield from (((), kernel) for kernel in others[other_start:other_stop])


def _kind(kernel: _Inside) -> tuple[str, ...]:
    """The ops of its allocations and, for each free, which of them it ends."""
    places = {event.key: str(place) for place, event in enumerate(kernel)}
    return tuple(event.op if event.key > 0 else places[-event.key] for event in kernel)


def _signature(event: TraceEvent) -> tuple[int, str, Phase, int]:
    return event.key, event.op, event.phase, event.step
