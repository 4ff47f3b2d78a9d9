"""A phase that comes again and again (validation, saving): what it took the last times, and when it comes next."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from desktop_app.core.forecasts import Cause
from desktop_app.core.steps import MemoryStats, PhaseSample
from desktop_app.core.units import MIB
from desktop_app.forecast.cause_model import View
from desktop_app.forecast.coming_call import (
    Need,
    call_outlook,
    call_severity,
    later_severity,
    short_probability,
    usual_idle_bytes,
    within,
)
from desktop_app.forecast.demand import recent_demand
from desktop_app.forecast.environment import Environment
from desktop_app.forecast.evidence import Evidence
from desktop_app.forecast.outlook import Outlook, StepsToGo

_KEPT: Final = 8
_LEAST_KEPT_BYTES: Final = 16 * MIB
# Judgements, not measurements (decision 034): of four calls three rises in a row are one order of 24, and what adds an
# object each time adds about the same. No run of the corpus has a demand that grows from call to call.
_RISES: Final = 3  # in a row, of the demand, until one more is expected
_EVEN: Final = 0.3  # the smallest of them against the largest: others are noise
_STEP_SPREAD: Final = 0.005  # of the demand of steps like the ones before
_LEAST_ROWS: Final = 16  # of troughs before their growth counts
_NEAR_SHARE: Final = 0.25  # of the room: further off, the next call is not looked at


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
        # The most that such a call took lately, and what the next one will take: as much, and as much more again as
        # each of the last ones took more than the one before it. None before the first one whose peak is known.
        self.demand_bytes: float | None = None
        self.next_demand_bytes: float | None = None

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

    def outlook_of_next(self, cause: Cause, view: View, *, action: str, figure: str) -> Outlook | None:
        """The next one takes what the last ones took, on top of what is live by then. ``figure`` names the steps to it
        in the evidence."""
        demand, memory = self.next_demand_bytes, view.evidence.memory
        if demand is None or memory is None or not view.evidence.rows:
            return None
        steps = self.steps_to_next(view.evidence.step, view.environment)
        trough = view.evidence.trough_bytes
        room = view.environment.allocator_room(memory)
        if steps is None or room - trough - demand > _NEAR_SHARE * room:
            return None
        growth = _trough_growth(view.evidence, steps)
        need = Need(trough + demand + growth, 0.5 * growth)
        borne = view.evidence.live_peak_bytes
        probability = short_probability(need, memory, view.environment, survived_bytes=borne)
        severity = later_severity(probability, steps)
        if severity is None:
            return None
        return call_outlook(
            cause,
            severity=severity,
            chances=within(probability, steps + 1.0),
            probability=probability,
            to_go=StepsToGo(steps, 0.0),
            need=need,
            memory=memory,
            view=view,
            action=action,
            urgent=steps <= 1,
            figures={"demand_bytes": demand, "growth_bytes": growth, figure: steps},
        )

    def outlook_of_kept(self, cause: Cause, memory: MemoryStats, view: View, *, action: str) -> Outlook | None:
        """It is over and has left something: the next step may have no room for its peak."""
        found = _next_step_need(view, memory, self.kept_bytes)
        severity = call_severity(found[1]) if found is not None else None
        if found is None or severity is None:
            return None
        need, probability = found
        return call_outlook(
            cause,
            severity=severity,
            chances=within(probability, 1),
            probability=probability,
            to_go=StepsToGo(1.0, 0.0),
            need=need,
            memory=memory,
            view=view,
            action=action,
            urgent=True,
            figures={"kept_bytes": self.kept_bytes, "demand_bytes": need.mean_bytes - memory.live_bytes},
        )

    def _next_demand(self) -> float | None:
        most = self.demand_bytes
        if most is None or len(self.past) <= _RISES:
            return most
        newest = [call.demand_bytes for call in self.past][-_RISES - 1 :]
        rises = [after - before for before, after in pairwise(newest)]
        return most + median(rises) if min(rises) >= max(_LEAST_KEPT_BYTES, _EVEN * max(rises)) else most

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
            self.demand_bytes = max(past.demand_bytes for past in self.past)
            self.next_demand_bytes = self._next_demand()


def _next_step_need(view: View, memory: MemoryStats, kept_bytes: float) -> tuple[Need, float] | None:
    """What live memory will reach in the next step beside what a call has kept, and P(it runs out).

    ``None`` when too little was kept to matter, or no step is known yet.
    """
    demand = recent_demand(view.evidence)
    if demand is None or kept_bytes < _LEAST_KEPT_BYTES:
        return None
    need = Need(memory.live_bytes + demand.typical_bytes, _STEP_SPREAD * demand.typical_bytes)
    borne = view.evidence.live_peak_bytes
    idle = usual_idle_bytes(view.evidence)
    return need, short_probability(need, memory, view.environment, survived_bytes=borne, idle_bytes=idle)


def _trough_growth(evidence: Evidence, ahead: float) -> float:
    """How much the troughs will have grown in ``ahead`` steps, if they go on as they have lately; never below 0."""
    if evidence.rows < _LEAST_ROWS:
        return 0.0
    return max(0.0, evidence.trough_slope()) * ahead
