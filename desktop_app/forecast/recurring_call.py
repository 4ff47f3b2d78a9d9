"""A phase that comes again and again (validation, saving): what it took the last times, and when it comes next."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from desktop_app.core.steps import MemoryStats, PhaseSample
from desktop_app.core.units import MIB
from desktop_app.forecast.cause_model import View
from desktop_app.forecast.coming_call import Need, short_probability, usual_idle_bytes
from desktop_app.forecast.demand import recent_demand
from desktop_app.forecast.environment import Environment
from desktop_app.forecast.evidence import Evidence

_KEPT: Final = 8
_LEAST_KEPT_BYTES: Final = 16 * MIB
_RISES: Final = 3  # in a row, of the demand, until one more is expected
_EVEN: Final = 0.3  # the smallest of them against the largest: others are noise
_STEP_SPREAD: Final = 0.005  # of the demand of steps like the ones before
_LEAST_ROWS: Final = 16  # of troughs before their growth counts


@dataclass(frozen=True, slots=True)
class PastCall:
    """One call that is over. ``demand_bytes``: its peak above what was live before; ``samples`` of its batches."""

    step: int
    demand_bytes: float
    parts: int
    samples: int | None


class OpenCall:
    """The call that is under way. ``live_bytes`` before it, ``peak_bytes`` in it."""

    __slots__ = ("live_bytes", "memory", "parts", "peak_bytes", "samples", "step")

    def __init__(self, sample: PhaseSample, memory: MemoryStats) -> None:
        self.step = sample.step
        self.live_bytes = memory.live_bytes
        self.peak_bytes = memory.live_bytes
        self.memory = memory
        self.parts = 0
        self.samples = sample.batch.samples if sample.batch is not None else None


class RecurringCall:
    """Follows the samples of one phase. Not thread-safe."""

    def __init__(self) -> None:
        self.past: deque[PastCall] = deque(maxlen=_KEPT)
        self.now: OpenCall | None = None
        self.kept_bytes = 0.0  # by the newest call, as seen at its end

    def take(self, sample: PhaseSample, memory: MemoryStats) -> bool:
        """Take a sample of the phase; true when the call is about to begin."""
        if sample.ended:
            self._note(sample, memory)
            self.kept_bytes = float(memory.live_bytes - self.now.live_bytes) if self.now is not None else 0.0
            self._close(sample.step)
            return False
        if self.now is None:
            self.now = OpenCall(sample, memory)
            if sample.done == 0:
                return True
        self._note(sample, memory)
        return False

    def leave(self) -> None:
        """Something else has begun: the call is over, its end was not told."""
        if self.now is not None:
            self._close(self.now.step)

    @property
    def demand_bytes(self) -> float | None:
        """The most that such a call took lately; ``None`` before the first one whose peak is known."""
        return max((call.demand_bytes for call in self.past), default=None)

    @property
    def next_demand_bytes(self) -> float | None:
        """What the next one will take: as much as before, and as much more again as each of the last ones took more
        than the one before it. ``None`` before the first one whose peak is known."""
        most = self.demand_bytes
        if most is None or len(self.past) <= _RISES:
            return most
        newest = [call.demand_bytes for call in self.past][-_RISES - 1 :]
        rises = [after - before for before, after in pairwise(newest)]
        return most + median(rises) if min(rises) >= max(_LEAST_KEPT_BYTES, _EVEN * max(rises)) else most

    def parts(self) -> int | None:
        """How many parts the call before had."""
        known = [call.parts for call in self.past if call.parts]
        return known[-1] if known else None

    def steps_to_next(self, step: int, environment: Environment) -> float | None:
        """From the distance of the last two; of one, the end of the epoch."""
        if len(self.past) >= 2:
            distance = self.past[-1].step - self.past[-2].step
            if distance > 0:
                left = self.past[-1].step + distance - step
                return float(left) if left >= 0 else None
        left_of_epoch = environment.steps_to_epoch_end(step)
        return None if left_of_epoch is None else float(left_of_epoch)

    def _note(self, sample: PhaseSample, memory: MemoryStats) -> None:
        if self.now is None:
            return
        self.now.memory = memory
        self.now.parts = max(self.now.parts + (not sample.ended), sample.done)
        self.now.peak_bytes = max(self.now.peak_bytes, memory.live_peak_bytes, memory.live_bytes)
        if sample.batch is not None:
            self.now.samples = max(self.now.samples or 0, sample.batch.samples)

    def _close(self, step: int) -> None:
        call, self.now = self.now, None
        if call is not None and call.peak_bytes > call.live_bytes:
            demand = float(call.peak_bytes - call.live_bytes)
            self.past.append(PastCall(step, demand, call.parts, call.samples))


def next_step_need(view: View, memory: MemoryStats, kept_bytes: float) -> tuple[Need, float] | None:
    """What live memory will reach in the next step beside what a call has kept, and P(it runs out).

    ``None`` when too little was kept to matter, or no step is known yet.
    """
    demand = recent_demand(view.evidence)
    if demand is None or kept_bytes < _LEAST_KEPT_BYTES:
        return None
    need = Need(memory.live_bytes + demand.typical_bytes, _STEP_SPREAD * demand.typical_bytes)
    borne = float(view.evidence.column("live_peak_bytes").max())
    idle = usual_idle_bytes(view.evidence)
    return need, short_probability(need, memory, view.environment, survived_bytes=borne, idle_bytes=idle)


def trough_growth(evidence: Evidence, ahead: float) -> float:
    """How much the troughs will have grown in ``ahead`` steps, if they go on as they have lately; never below 0."""
    if evidence.rows < _LEAST_ROWS:
        return 0.0
    return max(0.0, evidence.trough_slope()) * ahead
