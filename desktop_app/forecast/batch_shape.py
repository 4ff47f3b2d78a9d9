"""Cause ``batch_shape``: a batch of more samples, tokens or pixels than the ones before, and no room for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import BatchShape, Category, MemoryStats, Phase, PhaseSample, StepSample
from desktop_app.forecast.ascent import Ascent, AscentWatch
from desktop_app.forecast.cause_model import CauseModel, View
from desktop_app.forecast.coming_call import (
    Need,
    call_outlook,
    call_severity,
    horizon,
    later_severity,
    short_probability,
    spread_evenly,
    within,
)
from desktop_app.forecast.demand_tail import DemandTail, Tail
from desktop_app.forecast.micro_steps import MicroSteps
from desktop_app.forecast.outlook import WITHIN_STEPS, Z80, Outlook, StepsToGo, worst
from desktop_app.forecast.shape_demand import ShapeDemand, ShapeNeed

URGENT_STEPS: Final = 2  # until the batch comes: no time for a second look
_FEW_STEPS: Final = 8  # of which nothing is concluded about a batch that is further off
_FIRST_STEPS: Final = 4  # a line through so few steps is believed to this share
_FIRST_BELIEF: Final = 0.5
_ANY_TIME: Final = 0.8  # spread of the steps to one that may come at any time
_ASCENT_BELIEF: Final = 0.9  # that a loader which sends its batches in order of size goes on to
_ASCENT_SEEN: Final = 0.25  # of the epoch: less says little about the shape of the rest
# Gott (1993): what has risen for n steps goes on for k more with n / (n + k). A curriculum and a warm-up rise as well,
# and stop: three times as doubtful.
_ASCENT_DOUBT: Final = 3.0
# Of the allocator's room, what is live at the last peak that a sorted epoch had room for; the rest is holes of smaller
# batches. Mean and deviation of 22 epochs of eight models: 0.76 to 0.96 (decision 034).
_BRIM: Final = NormalDist(0.863, 0.048)
_LEAST_LEFT: Final = 0.003  # of the room: so little may always be left
_MOST_IDLE: Final = 0.25  # of a peak: what lies idle beyond that goes back to the driver when memory is short
_TAIL_EVERY: Final = 16  # steps that a look at the tail may be old
_TAIL_LIKELY_P: Final = 0.8  # by the cautious tail: no alarm from a guess
_TAIL_WATCH_P: Final = 0.3
_TAIL_SAME_AGAIN: Final = 2.0  # times as many steps as were seen: further ahead a tail says nothing
# Of the model: at a step's peak, early in backward, gradients are between none and all of it. In eight models 0.95 to
# 1.00 of the demand grew with the batch, within 0.06 of what this leaves (decision 037).
_GRADIENTS_AT_PEAK: Final = 0.5
_OWN_SHARE: Final = 0.3  # of the growth: with less, batches are not what brings the danger
_SHAPES: Final = ("samples", "tokens", "pixels")


@dataclass(frozen=True, slots=True)
class _Coming:
    """The batch of ``step`` as it was judged just before its forward pass."""

    step: int
    outlook: Outlook | None


class BatchShapeCause(CauseModel):
    """Learns what batches demand, and judges those to come: the next, the longest, the last and the unlikely."""

    cause = Cause.BATCH_SHAPE

    def __init__(self) -> None:
        self._demand = ShapeDemand()
        self._micro_steps = MicroSteps()
        self._ascent = AscentWatch()
        self._tail = DemandTail()
        self._tail_now: Tail | None = None
        self._epochs: tuple[int, int] | None = None  # first epoch seen, newest
        self._step = 0
        self._trough_bytes = 0
        self._gradients_bytes = 0.0  # at a step's peak, by what the model takes
        self._lowest_bytes = math.inf  # trough
        self._holes_bytes = 0
        self._fewest_holes_bytes = math.inf
        self._least_demand_bytes = math.inf
        self._highest_bytes = 0.0
        self._borne_bytes: float | None = None  # highest peak of live memory so far, above the room of its time
        self._idle_share = _MOST_IDLE  # of the live peak, when it was the highest so far
        self._reserved_bytes = 0
        self._retries = 0
        self._refused_bytes: float | None = None
        self._coming: _Coming | None = None
        self._longest: tuple[object, ShapeNeed | None] = (None, None)

    def take_step(self, sample: StepSample, view: View) -> None:
        """Take one step; the first one has no optimizer state at its peak and says nothing of the others."""
        memory = sample.memory
        if self._coming is not None and sample.step >= self._coming.step:
            self._coming = None
        if memory is None or view.evidence.steps_seen <= 1:
            return
        if sample.step < self._step:  # the run went back: its epoch begins anew
            self._ascent.restart()
        self._step, self._trough_bytes = sample.step, memory.live_bytes
        self._lowest_bytes = min(self._lowest_bytes, memory.live_bytes)
        self._holes_bytes = memory.idle_split_bytes
        self._fewest_holes_bytes = min(self._fewest_holes_bytes, self._holes_bytes)
        self._note_epoch(sample.epoch)
        demand = float(max(memory.live_peak_bytes - memory.live_bytes, 0))
        self._least_demand_bytes = min(self._least_demand_bytes, demand)
        self._note_peak(memory, demand, view)
        self._demand.fixed_bytes = float(memory.peak_categories.get(Category.GRADIENTS, 0)) or self._gradients_bytes
        samples = sample.micro_batch_samples or sample.batch_samples
        self._demand.add(BatchShape(samples, sample.batch_tokens, sample.batch_pixels), demand)
        self._ascent.add(sample.step, demand, left_steps=_left(view, sample.step))
        if self._epochs is None or self._epochs[0] == self._epochs[1]:
            self._tail.add(demand)
        if self._tail.steps % _TAIL_EVERY == 0:
            self._tail_now = self._tail.tail()

    def take_phase(self, sample: PhaseSample, view: View) -> None:
        """Judge the micro-batch that comes next; one that is no larger than others before needs nothing new."""
        if sample.phase is Phase.BUILD and sample.memory is not None:
            self._gradients_bytes = _GRADIENTS_AT_PEAK * sample.memory.live_bytes
        if sample.phase is not Phase.FORWARD or sample.ended or sample.batch is None or sample.memory is None:
            return
        need = self._demand.need(sample.batch)
        more = self._micro_steps.take(step=sample.step, done=sample.done, live_bytes=sample.memory.live_bytes)
        if need is None or (need.seen_bytes is not None and more is None):
            return
        if more is not None:
            need = replace(need, need=need.need.plus(more))
        # From the second micro-step on gradients are live already, and they are part of the demand.
        base = sample.memory.live_bytes if sample.done == 0 else self._trough_bytes
        self._coming = _Coming(sample.step, self._judge_next(sample.batch, need, base, sample.memory, view))

    def outlook(self, view: View, *, known: bool) -> Outlook | None:
        """The worst of what batches to come may bring."""
        memory = view.evidence.memory
        if memory is None:
            return None
        coming = self._coming.outlook if self._coming is not None else None
        found = (
            coming,
            self._of_longest(memory, view),
            self._of_ascent(self._ascent.ascent(), memory, view),
            self._of_tail(memory, view),
        )
        return worst(outlook for outlook in found if outlook is not None)

    def _note_epoch(self, epoch: int) -> None:
        if self._epochs is None:
            self._epochs = epoch, epoch
        elif epoch != self._epochs[1]:
            self._epochs = self._epochs[0], epoch
            self._ascent.restart()

    def _note_peak(self, memory: MemoryStats, demand: float, view: View) -> None:
        """What the card has borne, and how much of it lay idle when it was the most so far."""
        above = float(memory.live_peak_bytes - view.environment.allocator_room(memory))
        if self._borne_bytes is None or above > self._borne_bytes:
            self._borne_bytes = above
        idle = max(memory.reserved_peak_bytes / max(memory.live_peak_bytes, 1) - 1.0, 0.0)
        self._reserved_bytes = max(self._reserved_bytes, memory.reserved_peak_bytes)
        if memory.alloc_retries > self._retries:  # the driver has refused
            self._retries = memory.alloc_retries
            self._refused_bytes = float(self._reserved_bytes)
        if demand >= self._highest_bytes:
            self._idle_share = min(idle, self._idle_share)
        self._highest_bytes = max(self._highest_bytes, demand)

    def _short(self, need: Need, memory: MemoryStats, view: View) -> float:
        room = view.environment.allocator_room(memory)
        borne = 0.0 if self._borne_bytes is None else room + self._borne_bytes
        return short_probability(
            need,
            memory,
            view.environment,
            survived_bytes=borne,
            idle_bytes=self._idle_share * need.mean_bytes,
            refused_bytes=self._refused(view),
        )

    def _refused(self, view: View) -> float | None:
        """The driver's refusal tells the brim where what lies outside the allocator is not known."""
        known = view.environment.outside(view.evidence.memory) > 0
        return None if known else self._refused_bytes

    def _judge_next(
        self, shape: BatchShape, found: ShapeNeed, base_bytes: int, memory: MemoryStats, view: View
    ) -> Outlook | None:
        need = found.need.plus(base_bytes)
        probability = self._short(need, memory, view)
        if self._demand.steps < _FIRST_STEPS:
            probability *= _FIRST_BELIEF
        severity = call_severity(probability)
        if severity is None:
            return None
        return self._outlook(
            severity,
            within(probability, 1),
            probability,
            StepsToGo(0.0, 0.0),
            need,
            memory,
            view,
            action=_action(found),
            urgent=True,
            figures=self._figures(shape, found),
        )

    def _of_longest(self, memory: MemoryStats, view: View) -> Outlook | None:
        """The longest batch of all, known from the loader; looked at again when something has changed."""
        environment = view.environment
        shape, at = environment.longest_batch, environment.longest_batch_step
        if shape is None or (at is not None and at <= self._step):
            return None
        if self._demand.steps < _FEW_STEPS and (at is None or at - self._step > URGENT_STEPS):
            return None
        if self._longest[0] != (shape, self._demand.version):
            self._longest = (shape, self._demand.version), self._demand.need(shape)
        found = self._longest[1]
        if found is None or found.seen_bytes is not None:
            return None
        return self._judge_longest(shape, at, found, memory, view)

    def _judge_longest(
        self, shape: BatchShape, at: int | None, found: ShapeNeed, memory: MemoryStats, view: View
    ) -> Outlook | None:
        need = found.need.plus(self._trough_bytes)
        probability = self._short(need, memory, view)
        if at is not None:
            steps = float(at - self._step)
            to_go, chances = StepsToGo(steps - 1.0, 0.0), within(probability, steps)
            severity = call_severity(probability) if steps <= URGENT_STEPS else later_severity(probability, steps)
        else:
            steps = max(1.0, horizon(view.environment, self._step, otherwise=float(self._step)))
            to_go, chances = StepsToGo(steps / 2.0, _ANY_TIME), spread_evenly(probability, steps)
            severity = later_severity(probability, steps / 2.0)
        if severity is None:
            return None
        figures = self._figures(shape, found)
        if at is not None:
            figures = {**figures, "longest_batch_step": float(at)}
        return self._outlook(
            severity,
            chances,
            probability,
            to_go,
            need,
            memory,
            view,
            action=_action(found),
            urgent=at is not None and at - self._step <= URGENT_STEPS,
            figures=figures,
        )

    def _of_ascent(self, ascent: Ascent | None, memory: MemoryStats, view: View) -> Outlook | None:
        if ascent is None:
            return None
        room = float(view.environment.allocator_room(memory))
        refused = self._refused(view)
        if refused is not None:
            room = min(room, refused)
        left, spread = _left_to_brim((self._trough_bytes + ascent.level_bytes) / max(room, 1.0))
        headroom = left * room
        to_go = ascent.to_go(headroom, spread=spread)
        probability = _ASCENT_BELIEF * ascent.probability_over(headroom)
        if to_go is None:
            to_go = StepsToGo(float(ascent.steps_ahead[-1]), _ANY_TIME)
        if ascent.seen_share < _ASCENT_SEEN:
            probability *= ascent.steps / (ascent.steps + _ASCENT_DOUBT * to_go.median)
        chances = {steps: probability * to_go.probability_within(steps) for steps in WITHIN_STEPS}
        severity = later_severity(probability, to_go.median)
        if severity is None:
            return None
        need = Need(self._trough_bytes + ascent.end_bytes)
        return self._outlook(
            severity,
            chances,
            probability,
            to_go,
            need,
            memory,
            view,
            action="reduce_batch",
            urgent=to_go.low <= URGENT_STEPS,
            figures={
                "demand_slope_bytes_per_step": ascent.slope,
                "demand_rise_bytes": ascent.rise_bytes,
                "explained_share": self._explained_share(ascent.end_bytes),
                "rising_steps": ascent.steps,
                "headroom_bytes": float(headroom),
            },
        )

    def _of_tail(self, memory: MemoryStats, view: View) -> Outlook | None:
        """Batches are drawn by chance: one that is longer than all so far. Within the first epoch only: later ones
        bring the same data again."""
        tail = self._tail_now
        if tail is None or self._epochs is None or self._epochs[0] != self._epochs[1]:
            return None
        room = view.environment.allocator_room(memory)
        allowed = float(room - self._trough_bytes)
        if self._borne_bytes is not None:  # it is not lower than what was borne
            allowed = max(allowed, room + self._borne_bytes - self._trough_bytes)
        left = horizon(view.environment, self._step, otherwise=float("inf"))
        steps = min(left, _TAIL_SAME_AGAIN * tail.steps)
        cautious = tail.within(allowed, steps, cautious=True)
        likely = tail.within(allowed, steps)
        severity = AlertSeverity.LIKELY if cautious >= _TAIL_LIKELY_P else None
        if severity is None and likely >= _TAIL_WATCH_P:
            severity = AlertSeverity.WATCH
        if severity is None:
            return None
        median = 0.7 / max(tail.exceedance(allowed), 1e-12)
        return self._outlook(
            severity,
            {k: tail.within(allowed, min(k, steps), cautious=True) for k in WITHIN_STEPS},
            cautious,
            StepsToGo(median, _ANY_TIME),
            Need(self._trough_bytes + tail.highest_bytes),
            memory,
            view,
            action="split_batch",
            urgent=False,
            figures={
                "demand_highest_bytes": tail.highest_bytes,
                "demand_allowed_bytes": allowed,
                "tail_shape": tail.shape,
                "explained_share": self._explained_share(allowed),
                "tail_steps": float(tail.steps),
            },
        )

    def _figures(self, shape: BatchShape, found: ShapeNeed) -> Mapping[str, float]:
        figures = {
            "demand_bytes": found.need.mean_bytes,
            "demand_sd_bytes": found.need.sd_bytes,
            "demand_highest_bytes": self._highest_bytes,
            "explained_share": self._explained_share(found.need.mean_bytes),
            "largest_seen": found.largest_seen,
            "size": found.size,
        }
        figures |= {f"batch_{name}": float(size) for name in _SHAPES if (size := getattr(shape, name)) is not None}
        return figures

    def _explained_share(self, demand_bytes: float) -> float:
        """Of all growth that brings the danger, from the least demand to this one: the rest is what stays live, or
        holes, and another cause's."""
        growth = max(demand_bytes - self._least_demand_bytes, 0.0)
        others = (self._trough_bytes - self._lowest_bytes) + (self._holes_bytes - self._fewest_holes_bytes)
        return growth / max(growth + max(others, 0.0), 1.0)

    def _outlook(
        self,
        severity: AlertSeverity,
        chances: Mapping[int, float],
        probability: float,
        to_go: StepsToGo,
        need: Need,
        memory: MemoryStats,
        view: View,
        *,
        action: str,
        urgent: bool,
        figures: Mapping[str, float],
    ) -> Outlook | None:
        if figures["explained_share"] < _OWN_SHARE:
            return None
        return call_outlook(
            self.cause,
            severity=severity,
            chances=chances,
            probability=probability,
            to_go=to_go,
            need=need,
            memory=memory,
            view=view,
            action=action,
            urgent=urgent,
            figures=figures,
            live_bytes=float(self._trough_bytes),
        )


def _left_to_brim(share: float) -> tuple[float, float]:
    """What a sorted epoch can still grow by, as a share of the room, when ``share`` of it has been borne: the median,
    and the deviation of its logarithm. That it has been borne shows that the brim is not below it."""
    if share >= 1.0:
        return 0.0, 0.0
    below, most = _BRIM.cdf(share), _BRIM.cdf(1.0)
    low, median, high = (
        max(_BRIM.inv_cdf(below + part * (most - below)) - share, _LEAST_LEFT) for part in (0.1, 0.5, 0.9)
    )
    return median, math.log(high / low) / (2.0 * Z80)


def _left(view: View, step: int) -> int | None:
    """Steps to the end of the epoch; where epochs are not known, the run may be one."""
    left = view.environment.steps_to_epoch_end(step)
    return view.environment.steps_left(step) if left is None else left


def _action(found: ShapeNeed) -> str:
    """One long batch is cut or split; one of more samples needs fewer."""
    return "reduce_batch" if found.regressor == "samples" else "split_batch"
