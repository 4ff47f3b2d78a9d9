"""Two traces of one training at different batch sizes, side by side. Torch-free.

What storages do is the same in both, and says whether they are the same training. What kernels take for themselves
(staging and sort buffers, workspaces) comes and goes with the size of the launch: it is set aside, and what one trace
lacks takes 0 bytes there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import count

from desktop_app.core.steps import Phase
from desktop_app.memory.convolutions import ConvolutionCall
from desktop_app.memory.estimate_table import is_of_kernel
from desktop_app.memory.trace_data import Trace, TraceEvent, renamed

Calls = tuple[ConvolutionCall, ConvolutionCall]


@dataclass(slots=True)  # not frozen: thousands are made, in a third of the time
class Row:
    """One event of two traces. ``calls``: of a workspace of cuDNN."""

    event: TraceEvent
    size: int
    other_size: int
    calls: Calls | None = None


@dataclass(frozen=True, slots=True)
class TraceParts:
    """A trace taken apart: what storages do, and before each of these events what kernels do for themselves.

    Frees that follow each other are in order of their keys, since among them the order means nothing: in ``main``
    where no kernel stands between them, in ``loose`` even then.
    """

    main: list[TraceEvent]
    loose: list[TraceEvent]
    gaps: list[list[TraceEvent]]
    kernel_ops: dict[int, str]  # by key
    convolutions: tuple[ConvolutionCall, ...]
    batch_size: int

    @classmethod
    def of(cls, trace: Trace) -> TraceParts:
        kernel_ops = _kernel_ops(trace.events)
        main: list[TraceEvent] = []
        gaps: list[list[TraceEvent]] = [[]]
        names: dict[int, int] = {}
        for event in trace.events:
            if abs(event.key) in kernel_ops:
                gaps[-1].append(event)
                continue
            if event.key > 0:
                key = names[event.key] = len(names) + 1
            else:
                key = -names[-event.key]
            main.append(renamed(event, key, step=event.step))
            gaps.append([])
        no_gaps: list[list[TraceEvent]] = [[]] * len(gaps)
        return cls(
            _canonical(main, gaps), _canonical(main, no_gaps), gaps, kernel_ops, trace.convolutions, trace.batch_size
        )

    def call(self, event: TraceEvent) -> ConvolutionCall | None:
        return self.convolutions[event.convolution] if event.convolution >= 0 else None

    def kind(self, event: TraceEvent) -> str:
        """Of an event of a kernel: what it makes, or what it ends."""
        return event.op if event.key > 0 else f"-{self.kernel_ops[-event.key]}"


def merge(parts: TraceParts, others: TraceParts) -> list[Row] | None:
    """The events of both, with the size that each has in either; ``None`` when they are not the same training."""
    for events, other_events in ((parts.main, others.main), (parts.loose, others.loose)):
        if [_signature(event) for event in events] == [_signature(event) for event in other_events]:
            return _Merge(parts, others).rows_of(events, other_events)
    return None


def _kernel_ops(events: Sequence[TraceEvent]) -> dict[int, str]:
    freed = {-event.key for event in events if event.key < 0}
    return {event.key: event.op for event in events if event.key in freed and is_of_kernel(event)}


def _canonical(main: Sequence[TraceEvent], gaps: Sequence[Sequence[TraceEvent]]) -> list[TraceEvent]:
    found: list[TraceEvent] = []
    for run in _runs(main, gaps):
        found.extend(sorted(run, key=lambda event: event.key) if len(run) > 1 else run)
    return found


def _runs(main: Sequence[TraceEvent], gaps: Sequence[Sequence[TraceEvent]]) -> Iterator[list[TraceEvent]]:
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


def _signature(event: TraceEvent) -> tuple[int, str, Phase, int]:
    return event.key, event.op, event.phase, event.step


@dataclass(slots=True)
class _Merge:
    """The rows of two traces as they are put together."""

    parts: TraceParts
    others: TraceParts
    rows: list[Row] = field(default_factory=list)
    names: Iterator[int] = field(default_factory=lambda: count(1 << 40))  # beyond every key of a storage
    keys: dict[int, int] = field(default_factory=dict)  # of kernels' storages, new by old
    other_keys: dict[int, int] = field(default_factory=dict)
    freed: set[int] = field(default_factory=set)

    def rows_of(self, events: Sequence[TraceEvent], others: Sequence[TraceEvent]) -> list[Row] | None:
        for place, (event, other) in enumerate(zip(events, others, strict=True)):
            if not self._merge_gap(place):
                return None
            self.rows.append(Row(event, event.size_bytes, other.size_bytes))
        return self.rows if self._merge_gap(len(events)) else None

    def _merge_gap(self, place: int) -> bool:
        """``False`` when the two have workspaces of different convolutions side by side."""
        return all(self._add(*pair) for pair in self._pairs(self.parts.gaps[place], self.others.gaps[place]))

    def _pairs(
        self, events: Sequence[TraceEvent], others: Sequence[TraceEvent]
    ) -> Iterator[tuple[TraceEvent | None, TraceEvent | None]]:
        kinds = [self.parts.kind(event) for event in events]
        other_kinds = [self.others.kind(event) for event in others]
        if kinds == other_kinds:
            yield from zip(events, others, strict=True)
            return
        matcher = SequenceMatcher(None, kinds, other_kinds, autojunk=False)
        for tag, start, stop, other_start, other_stop in matcher.get_opcodes():
            if tag == "equal":
                yield from zip(events[start:stop], others[other_start:other_stop], strict=True)
            else:
                yield from ((event, None) for event in events[start:stop])
                yield from ((None, other) for other in others[other_start:other_stop])

    def _add(self, event: TraceEvent | None, other: TraceEvent | None) -> bool:
        known = event or other
        assert known is not None
        if known.key < 0:
            self._free(event, self.keys)
            self._free(other, self.other_keys)
            return True
        calls: Calls | None = None
        if event is not None and other is not None:
            call, other_call = self.parts.call(event), self.others.call(other)
            if call is not None and other_call is not None:
                if call != other_call._replace(batch=call.batch):
                    return False
                calls = (call, other_call)
        key = next(self.names)
        size = other_size = 0
        if event is not None:
            self.keys[event.key], size = key, event.size_bytes
        if other is not None:
            self.other_keys[other.key], other_size = key, other.size_bytes
        self.rows.append(Row(renamed(known, key, step=known.step), size, other_size, calls))
        return True

    def _free(self, event: TraceEvent | None, keys: dict[int, int]) -> None:
        """Where one trace frees earlier than the other, the first counts."""
        if event is None:
            return
        key = keys[-event.key]
        if key not in self.freed:
            self.freed.add(key)
            self.rows.append(Row(renamed(event, -key, step=event.step), 0, 0))
