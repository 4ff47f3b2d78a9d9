"""A recording next to a trace of the same training: the first allocation that the trace does not know.

Both are lists of requested bytes in the order in which they were asked for. The recording may begin anywhere in a
training and hold many steps; the trace has what is built, a first step, and a second one that all later ones repeat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from desktop_app.memory.overheads import CUDNN_OP
from desktop_app.memory.snapshot import Action, Snapshot
from desktop_app.memory.snapshot_frames import op_of, owner_of
from desktop_app.memory.trace_data import Trace, TraceEvent

_ANCHOR: Final = 8  # so many sizes in a row do not agree by chance
_AGREE: Final = 3  # so many again, and the two are at the same place
_LOOK_AHEAD: Final = 32


@dataclass(frozen=True, slots=True)
class Unknown:
    """One place where the two part. ``recorded`` is a position in the snapshot's events, ``None`` at their end.

    ``owner`` and ``op`` are read from the recorded stack; ``expected`` is what the trace has there, ``after`` what it
    had last in common with the recording.
    """

    recorded: int | None
    size_bytes: int
    owner: str
    op: str
    expected: TraceEvent | None
    after: TraceEvent | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """``matched`` of ``recorded`` allocations are in the trace, in its order; ``missing`` of the trace never came.

    ``begins`` is the event of the recording where the two first agree; ``None``: nowhere. ``first`` is the first
    unknown allocation from there on. ``unknown_bytes`` adds up all unknown ones, by owner the largest first.
    """

    recorded: int
    matched: int
    unknown: int
    missing: int
    begins: int | None
    first: Unknown | None
    by_op: tuple[tuple[str, int, int], ...]  # op or owner, allocations, bytes; the most bytes first


def compare_with_trace(snapshot: Snapshot, trace: Trace) -> Comparison:
    """Walk along both from the place where they first agree."""
    recorded = [
        (position, event.size_bytes) for position, event in enumerate(snapshot.events) if event.action is Action.ALLOC
    ]
    course = _Course(trace)
    # The first step and a later one begin alike: whichever explains more of the recording is meant.
    walks = [_Walk(snapshot, recorded, course, steady=steady).result() for steady in (False, True)]
    return min(walks, key=lambda comparison: comparison.unknown + comparison.missing - comparison.matched)


class _Course:
    """The allocations of a training by their number: build, first step, then the second one again and again."""

    def __init__(self, trace: Trace) -> None:
        asked = [event for event in trace.events if event.key > 0 and event.size_bytes > 0]
        self.once: Final = [event for event in asked if event.step < 2]
        self.cycle: Final = [event for event in asked if event.step == 2]

    def __getitem__(self, number: int) -> TraceEvent | None:
        if number < len(self.once):
            return self.once[number]
        if not self.cycle:
            return None
        return self.cycle[(number - len(self.once)) % len(self.cycle)]

    def agrees(self, number: int, size_bytes: int) -> bool:
        event = self[number]
        return event is not None and event.size_bytes == size_bytes

    def is_guess(self, number: int) -> bool:
        """The size of a convolution's workspace is cuDNN's secret."""
        event = self[number]
        return event is not None and event.op == CUDNN_OP

    def sizes(self) -> list[int]:
        events = self.once + self.cycle + self.cycle[:_ANCHOR]
        return [event.size_bytes for event in events]


class _Walk:
    """``steady``: a run of sizes that is in both steps of the trace is taken for one of the second."""

    def __init__(
        self, snapshot: Snapshot, recorded: Sequence[tuple[int, int]], course: _Course, *, steady: bool
    ) -> None:
        self.snapshot: Final = snapshot
        self.recorded: Final = recorded
        self.sizes: Final = [size for _, size in recorded]
        self.course: Final = course
        self.matched = self.missing = 0
        self.unknown: list[int] = []  # positions in ``recorded``
        self.first: Unknown | None = None
        self.after: TraceEvent | None = None
        self._grams: dict[tuple[int, ...], int] = {}
        sizes = course.sizes()
        starts = range(len(sizes) - _ANCHOR + 1)
        for start in starts if steady else reversed(starts):  # of equal runs the one seen last counts
            self._grams[tuple(sizes[start : start + _ANCHOR])] = start

    def result(self) -> Comparison:
        begins: int | None = None
        here, there = self._anchor(0)
        while here < len(self.sizes):
            begins = self.recorded[here][0] if begins is None else begins
            here, there = self._step(here, there)
        totals: dict[str, list[int]] = {}
        for number in self.unknown:
            name = self._blame(number)
            entry = totals.setdefault(name, [0, 0])
            entry[0] += 1
            entry[1] += self.sizes[number]
        by_op = sorted(((name, count, size) for name, (count, size) in totals.items()), key=lambda entry: -entry[2])
        return Comparison(
            recorded=len(self.sizes),
            matched=self.matched,
            unknown=len(self.unknown),
            missing=self.missing,
            begins=begins,
            first=self.first,
            by_op=tuple(by_op),
        )

    def _step(self, here: int, there: int) -> tuple[int, int]:
        """From one place to the next: both one on, or past what only one of them has."""
        if self.course.agrees(there, self.sizes[here]):
            self.matched += 1
            self.after = self.course[there]
            return here + 1, there + 1
        if self.course.is_guess(there):  # its size is unknown: it is there if what follows agrees, else it is not
            there += 1
            if here + 1 < len(self.sizes) and self.course.agrees(there, self.sizes[here + 1]):
                self.matched += 1
                return here + 1, there
            return here, there
        for extra, skipped in _detours():
            if self._agree(here + extra, there + skipped):
                self._note(here, extra, there)
                self.missing += skipped
                return here + extra, there + skipped
        next_here, next_there = self._anchor(here + 1)
        self._note(here, next_here - here, there)
        return next_here, next_there

    def _agree(self, here: int, there: int) -> bool:
        rest = self.sizes[here : here + _AGREE]
        return len(rest) == _AGREE and all(self.course.agrees(there + number, size) for number, size in enumerate(rest))

    def _anchor(self, start: int) -> tuple[int, int]:
        """Where the recording, from ``start`` on, first has a run of sizes that the trace has too."""
        for here in range(start, len(self.sizes) - _ANCHOR + 1):
            there = self._grams.get(tuple(self.sizes[here : here + _ANCHOR]))
            if there is not None:
                return here, there
        return len(self.sizes), 0

    def _note(self, here: int, extra: int, there: int) -> None:
        self.unknown += range(here, here + extra)
        if self.first is None:
            position, size = self.recorded[here] if extra else (None, 0)
            stack = () if position is None else self.snapshot.stacks[self.snapshot.events[position].stack]
            self.first = Unknown(
                recorded=position,
                size_bytes=size,
                owner=owner_of(stack) if position is not None else "",
                op=op_of(stack),
                expected=self.course[there],
                after=self.after,
            )

    def _blame(self, number: int) -> str:
        stack = self.snapshot.stacks[self.snapshot.events[self.recorded[number][0]].stack]
        return op_of(stack) or owner_of(stack)


def _detours() -> Iterator[tuple[int, int]]:
    """(allocations only the recording has, allocations only the trace has), the shortest detour first."""
    for together in range(1, _LOOK_AHEAD):
        for extra in range(together, -1, -1):
            yield extra, together - extra
