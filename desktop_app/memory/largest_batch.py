"""The largest batch that fits, found by interpolating single allocations and confirmed by full traces. Torch-free.

A line through two peaks is off by up to half, but every single allocation is affine in the batch size while the ops
are the same. So each trace predicts where the limit lies, a trace there says whether it does, and the search ends
when one batch size fits and the next does not, both by a full trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from desktop_app.memory.allocator_settings import DEFAULT_SETTINGS, AllocatorSettings
from desktop_app.memory.estimate_alignment import TraceParts
from desktop_app.memory.estimate_family import TraceFamily
from desktop_app.memory.estimate_outlook import Outlook, Unknowns
from desktop_app.memory.estimate_steady import steady
from desktop_app.memory.estimate_table import EventTable
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.trace_errors import TracerError, UntraceableError

MOST: Final = 1 << 20  # where the search ends for a training whose memory does not grow
_REAL_TRACES: Final = 24  # at most: halving 2^20 takes 20
# What a model may say to one batch size and not to another, as batch norm does to a single sample.
_REFUSED: Final = frozenset({"bad_model", "bad_spec", "needs_data", "failed"})
_NEAREST: Final = 4  # traces that are tried for two that align
_TRUSTED: Final = 6  # predictions that may fail before the gap is halved instead

TraceAt = Callable[[int], Trace]


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """``largest`` is ``None`` when not even one sample fits. ``next_batch`` is the smallest that was seen not to fit,
    ``None`` where the search ended at ``most``. ``confirmed``: both by full traces."""

    largest: int | None
    next_batch: int | None
    confirmed: bool
    traces: int


class BatchSearch:
    """One search, in one room and at one risk. ``trace_at`` gives the training's trace at a batch size."""

    def __init__(
        self,
        trace_at: TraceAt,
        unknowns: Unknowns,
        *,
        room_bytes: int,
        risk: float,
        most: int = MOST,
        settings: AllocatorSettings = DEFAULT_SETTINGS,
    ) -> None:
        self._trace_at: Final = trace_at
        self._unknowns: Final = unknowns
        self._room_bytes: Final = room_bytes
        self._risk: Final = risk
        self._most: Final = most
        self._settings: Final = settings
        self._first: Trace | None = None
        self._known: Final[dict[int, TraceParts]] = {}
        self._low = 0  # fits
        self._high = most + 1  # does not, or may not be asked for
        self._guess = 0
        self._failed = 0  # predictions

    def run(self, base: Trace) -> BatchAnswer:
        """From a trace that is there already. A batch size that cannot be traced is none that could be trained."""
        confirmed = True
        self._learn(base)
        while self._high - self._low > 1 and len(self._known) <= _REAL_TRACES:
            batch = self._next()
            try:
                self._learn(self._trace_at(batch))
            except (UntraceableError, TracerError) as error:
                if isinstance(error, TracerError) and error.kind not in _REFUSED:
                    raise
                self._high, confirmed = batch, False
        confirmed = confirmed and self._high - self._low == 1
        return BatchAnswer(
            largest=self._low or None,
            next_batch=self._high if self._high <= self._most else None,
            confirmed=confirmed,
            traces=len(self._known),
        )

    def _learn(self, trace: Trace) -> None:
        batch = trace.batch_size
        whole = steady(trace)
        if self._first is None:
            self._first, self._guess = whole, batch
        self._known[batch] = TraceParts.of(whole)
        if batch > self._most:
            return
        if self._fits(EventTable.of(whole), self._unknowns):
            self._low = max(self._low, batch)
        else:
            self._high = min(self._high, batch)

    def _next(self) -> int:
        """The batch size to trace: where the limit should lie, then the one above."""
        predicted = None if self._failed >= _TRUSTED else self._predict()
        if predicted is None:
            return self._halfway()
        self._failed += 1
        self._guess = predicted
        return max(predicted, self._low + 1)

    def _predict(self) -> int | None:
        """The largest batch within the open gap that should fit; ``None`` where the traces nearby do not align."""
        if len(self._known) == 1:
            assert self._first is not None
            family: TraceFamily | None = TraceFamily.alone(self._first)
        else:
            family = self._family()
        if family is None:
            return None
        guess = self._guess
        if self._failed <= 1:  # it may be far off: one replay per step until it is near
            guess = self._within_gap(family, self._typical(), guess, stride=16)
        return self._within_gap(family, self._unknowns, guess, stride=256)

    def _family(self) -> TraceFamily | None:
        """Of the two traces nearest to where the limit should lie that do the same things."""
        nearest = sorted(self._known, key=lambda batch: abs(batch - self._guess))[:_NEAREST]
        for place, second in enumerate(nearest[1:], 1):
            for first in nearest[:place]:
                family = TraceFamily.of_parts(self._known[second], self._known[first])
                if family is not None:
                    return family
        return None

    def _within_gap(self, family: TraceFamily, unknowns: Unknowns, guess: int, *, stride: int) -> int:
        start = min(max(guess, self._low + 1), self._high - 1)
        return _boundary(
            lambda batch: self._fits(family.at(batch), unknowns),
            start,
            step=max(1, start // stride),
            low=self._low,
            high=self._high,
        )

    def _typical(self) -> Unknowns:
        """One replay instead of one per scenario: the likeliest workspaces, and a context at the edge of the risk."""
        contexts = self._unknowns.contexts
        place = min(len(contexts) - 1, int((1.0 - self._risk) * len(contexts)))
        likeliest = max(self._unknowns.workspaces, key=lambda workspaces: workspaces.probability)
        return Unknowns(contexts=(contexts[place],), workspaces=(likeliest,))

    def _halfway(self) -> int:
        if self._high > self._most and self._low:
            return min(self._low * 2, self._most)
        return (self._low + self._high) // 2

    def _fits(self, table: EventTable, unknowns: Unknowns) -> bool:
        outlook = Outlook(table, unknowns, room_bytes=self._room_bytes, settings=self._settings)
        return outlook.fits(risk=self._risk)


def _boundary(fits: Callable[[int], bool], start: int, *, step: int, low: int, high: int) -> int:
    """The largest batch that fits, between ``low``, which does, and ``high``, which does not; both are given.

    Strides away from ``start``, the first of ``step``, get longer until the limit lies between two of them.
    """
    if fits(start):
        low = start
        while low + step < high and fits(low + step):
            low += step
            step *= 2
        high = min(high, low + step)
    else:
        high = start
        while high - step > low and not fits(high - step):
            high -= step
            step *= 2
        low = max(low, high - step)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
