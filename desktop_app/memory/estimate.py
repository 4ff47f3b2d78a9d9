"""What a training will need on a card before its first step: a distribution, a verdict and the largest batch.

Two steps are traced on meta tensors, replayed in the allocator replica, and convolved with what is not known: the
context (``overheads.ContextPrior``) and cuDNN's workspace (``overheads.CUDNN_SCALES``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from desktop_app.core.forecasts import Estimate, Quantiles, Verdict
from desktop_app.core.steps import Category, Phase
from desktop_app.memory.overheads import CUDNN_SCALES, CardSpec, ContextPrior
from desktop_app.memory.trace_events import ReplayedPeaks, Trace, TraceEvent, TraceFamily, replay_peaks

if TYPE_CHECKING:
    from desktop_app.memory.trace import TraceTarget

_LARGEST_BATCH: Final = 1 << 20  # where the search ends for a training whose memory does not grow
_REAL_TRACES: Final = 24  # at most, where batch sizes cannot be interpolated: halving 2^20 takes 20
_MIDDLE_SCALE: Final = 1.0

_RUNG_TRACED: Final = "trace"
_RUNG_NONE: Final = "none"
WARN_UNTRACEABLE: Final = "untraceable"
WARN_NOT_INTERPOLATED: Final = "batch_search_limited"


@dataclass(frozen=True, slots=True)
class _Case:
    """One point of the joint grid: bytes outside the allocator, the allocator's peak, and its probability."""

    context_bytes: int
    reserved_bytes: int
    scale: float
    weight: float

    @property
    def device_bytes(self) -> int:
        return self.context_bytes + self.reserved_bytes


class _Outlook:
    """The distribution of one trace's peaks on one card."""

    def __init__(
        self, events: Sequence[TraceEvent], contexts: Sequence[int], sizes_bytes: Sequence[int] | None = None
    ) -> None:
        self._events = events
        self._sizes = sizes_bytes
        self._contexts = contexts
        self.by_scale = {scale: replay_peaks(events, sizes_bytes, cudnn_scale=scale) for scale, _ in CUDNN_SCALES}
        self.cases = sorted(
            (
                _Case(context, self.by_scale[scale].reserved_peak_bytes, scale, weight / len(contexts))
                for scale, weight in CUDNN_SCALES
                for context in contexts
            ),
            key=lambda case: case.device_bytes,
        )

    @property
    def middle(self) -> ReplayedPeaks:
        """With the middle workspace: what the simulated card shows."""
        return self.by_scale[_MIDDLE_SCALE]

    @property
    def context_bytes(self) -> int:
        return self._contexts[len(self._contexts) // 2]

    def device_quantile(self, probability: float) -> int:
        passed = 0.0
        for case in self.cases:
            passed += case.weight
            if passed >= probability - 1e-9:
                return case.device_bytes
        return self.cases[-1].device_bytes

    def device(self) -> Quantiles:
        """P50 is the middle of both distributions, which is where a simulated card stands."""
        middle = self.context_bytes + self.middle.reserved_peak_bytes
        return Quantiles(
            p50=middle, p90=max(middle, self.device_quantile(0.9)), p95=max(middle, self.device_quantile(0.95))
        )

    def peaks(self, read: Callable[[ReplayedPeaks], int]) -> Quantiles:
        """Quantiles of a peak that depends on the workspace only."""
        values = [(read(self.by_scale[scale]), weight) for scale, weight in CUDNN_SCALES]
        middle = read(self.middle)
        return Quantiles(p50=middle, p90=max(middle, _quantile(values, 0.9)), p95=max(middle, _quantile(values, 0.95)))

    def survives(self, context_bytes: int, scale: float, room_bytes: int) -> bool:
        """Whether the training runs in this room: it fits, or the allocator finds a way by giving its cache back."""
        limit_bytes = room_bytes - context_bytes
        peaks = self.by_scale[scale]
        if peaks.reserved_peak_bytes <= limit_bytes:
            return True
        if limit_bytes < peaks.live_peak_bytes and not scale:
            return False
        replayed = replay_peaks(self._events, self._sizes, limit_bytes=max(0, limit_bytes), cudnn_scale=scale)
        return not replayed.out_of_memory

    def fits_probability(self, room_bytes: int) -> float:
        """A larger context never helps: per workspace the contexts that survive are found by halving."""
        total = 0.0
        contexts = sorted(self._contexts)
        for scale, weight in CUDNN_SCALES:
            low, high = 0, len(contexts)
            while low < high:
                middle = (low + high) // 2
                if self.survives(contexts[middle], scale, room_bytes):
                    low = middle + 1
                else:
                    high = middle
            total += weight * low / len(contexts)
        return min(1.0, total)


def estimate(
    target: TraceTarget,
    card: CardSpec,
    *,
    batch_size: int,
    others_bytes: int = 0,
    risk: float = 0.05,
    context_bytes: int | None = None,
) -> Estimate:
    """Estimate one training on one card. Never raises for what cannot be traced: the verdict is ``CANNOT_SAY``.

    ``others_bytes``: held by other processes now. ``risk``: accepted probability that the largest batch does not fit.
    ``context_bytes`` replaces the prior where it has been read from the real card. About 0.1 s per 1,000 events.
    """
    started_s = time.perf_counter()
    from desktop_app.memory.trace import UntraceableError

    contexts = ContextPrior.of(card).grid() if context_bytes is None else (context_bytes,)
    try:
        trace = _trace(target, card, batch_size)
    except UntraceableError as error:
        return _abstention(
            card, batch_size, others_bytes, contexts, op=error.op, seconds=time.perf_counter() - started_s
        )
    outlook = _Outlook(trace.events, contexts)
    room_bytes = card.capacity_bytes - others_bytes
    search = _BatchSearch(target, card, trace, contexts=contexts, room_bytes=room_bytes, risk=risk)
    largest = search.run()
    device = outlook.device()
    detail = replay_peaks(trace.events, detail=True)
    reserved = outlook.peaks(lambda peaks: peaks.reserved_peak_bytes)
    return Estimate(
        live_peak_bytes=outlook.peaks(lambda peaks: peaks.live_peak_bytes),
        reserved_peak_bytes=reserved,
        device_peak_bytes=device,
        capacity_bytes=card.capacity_bytes,
        others_bytes=others_bytes,
        fits_probability=outlook.fits_probability(room_bytes),
        verdict=_verdict(outlook, device, room_bytes),
        batch_size=batch_size,
        largest_batch=largest,
        peak_phase=trace.events[detail.live_peak_index].phase,
        phases={phase: outlook.context_bytes + needed for phase, needed in detail.phases.items()},
        categories=detail.categories,
        context_bytes=outlook.context_bytes,
        idle_bytes=reserved.p50 - detail.live_peak_bytes,
        optimizer_demand_bytes=trace.optimizer_demand_bytes(),
        rung=_RUNG_TRACED,
        seconds=time.perf_counter() - started_s,
        warnings=search.warnings,
    )


def device_peak_p50(target: TraceTarget, card: CardSpec, *, batch_size: int, context_bytes: int | None = None) -> int:
    """Only the median of the device's peak, bytes: what advice compares. Raises ``UntraceableError``."""
    context = ContextPrior.of(card).quantile(0.5) if context_bytes is None else context_bytes
    return context + replay_peaks(_trace(target, card, batch_size).events).reserved_peak_bytes


class _BatchSearch:
    """The largest batch whose device peak stays inside the room with probability 1 − ``risk``."""

    def __init__(
        self,
        target: TraceTarget,
        card: CardSpec,
        trace: Trace,
        *,
        contexts: Sequence[int],
        room_bytes: int,
        risk: float,
    ) -> None:
        self.warnings: tuple[str, ...] = ()
        self._target = target
        self._card = card
        self._trace = trace
        self._contexts = contexts
        self._room_bytes = room_bytes
        self._certainty = 1.0 - risk
        self._traces = 0

    def run(self) -> int | None:
        """``None`` when not even one sample fits, or nothing could be found out."""
        from desktop_app.memory.trace import UntraceableError

        base = self._trace.batch_size
        try:
            family = TraceFamily.between(self._trace, _trace(self._target, self._card, 2 * base))
            if family is None:
                return self._by_real_traces(base)
            found = _largest(lambda batch: self._fits(family.events, family.sizes_at(batch)), start=base)
            if found is None or self._fits_really(found):
                return found
            return self._by_real_traces(found)
        except UntraceableError:
            self.warnings = (WARN_NOT_INTERPOLATED,)
            return None

    def _by_real_traces(self, start: int) -> int | None:
        found = _largest(self._fits_really, start=start)
        if self._traces >= _REAL_TRACES:
            self.warnings = (WARN_NOT_INTERPOLATED,)
        return found

    def _fits_really(self, batch_size: int) -> bool:
        if batch_size == self._trace.batch_size:
            return self._fits(self._trace.events, None)
        if self._traces >= _REAL_TRACES:
            return False
        self._traces += 1
        return self._fits(_trace(self._target, self._card, batch_size).events, None)

    def _fits(self, events: Sequence[TraceEvent], sizes_bytes: Sequence[int] | None) -> bool:
        return _Outlook(events, self._contexts, sizes_bytes).device_quantile(self._certainty) <= self._room_bytes


def _largest(fits: Callable[[int], bool], *, start: int) -> int | None:
    """The largest batch that fits, by doubling or halving away from ``start`` and then halving the gap."""
    if fits(start):
        low, high = start, min(start * 2, _LARGEST_BATCH)
        while fits(high):
            if high == _LARGEST_BATCH:
                return high
            low, high = high, min(high * 2, _LARGEST_BATCH)
    else:
        high, low = start, start // 2
        while low >= 1 and not fits(low):
            high, low = low, low // 2
        if low < 1:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def _verdict(outlook: _Outlook, device: Quantiles, room_bytes: int) -> Verdict:
    if device.p95 <= room_bytes:
        return Verdict.FITS
    likely = outlook.survives(outlook.context_bytes, _MIDDLE_SCALE, room_bytes)
    return Verdict.TIGHT if likely else Verdict.DOES_NOT_FIT


def _quantile(values: Sequence[tuple[int, float]], probability: float) -> int:
    passed = 0.0
    for value, weight in sorted(values):
        passed += weight
        if passed >= probability - 1e-9:
            return value
    return max(values)[0]


def _trace(target: TraceTarget, card: CardSpec, batch_size: int) -> Trace:
    from desktop_app.memory.trace import trace_training

    return trace_training(target, batch_size=batch_size, card=card)


def _abstention(
    card: CardSpec, batch_size: int, others_bytes: int, contexts: Sequence[int], *, op: str, seconds: float
) -> Estimate:
    """Says aloud that nothing is known, and which op is the reason."""
    context_bytes = contexts[len(contexts) // 2]
    nothing = Quantiles(0, 0, 0)
    return Estimate(
        live_peak_bytes=nothing,
        reserved_peak_bytes=nothing,
        device_peak_bytes=nothing,
        capacity_bytes=card.capacity_bytes,
        others_bytes=others_bytes,
        fits_probability=0.0,
        verdict=Verdict.CANNOT_SAY,
        batch_size=batch_size,
        largest_batch=None,
        peak_phase=Phase.BUILD,
        phases={},
        categories=dict.fromkeys(Category, 0),
        context_bytes=context_bytes,
        idle_bytes=0,
        optimizer_demand_bytes=0,
        rung=_RUNG_NONE,
        seconds=seconds,
        warnings=(f"{WARN_UNTRACEABLE}:{op}",),
    )
