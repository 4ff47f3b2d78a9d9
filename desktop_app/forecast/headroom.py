"""Memory of the card that is taken from outside the allocator, and what the run will still ask for.

Shared by the causes ``neighbour`` and ``outside_allocator``. What the allocator has reserved nobody can take: a card
that others fill is a danger to what the run has still to *get*. That is what it has had before and given back
(``empty_cache``, a retry), phases that have not been seen yet, and growth of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from desktop_app.core.forecasts import AlertSeverity
from desktop_app.core.steps import MemoryStats, Phase, PhaseSample, StepSample
from desktop_app.core.units import MIB
from desktop_app.forecast.cause_model import CauseModel, View
from desktop_app.forecast.demand import SEGMENT_BYTES
from desktop_app.forecast.evidence import START_UP_STEPS
from desktop_app.forecast.outlook import WITHIN_STEPS, Z95, Outlook, StepsToGo, normal_cdf
from desktop_app.forecast.sampled_growth import LEAST_COME, Growth, SampledGrowth

LIKELY_P: Final = 0.5
WATCH_P: Final = 0.15
_IMMINENT_STEPS: Final = 20.0
_IMMINENT_S: Final = 10.0
# P(the run asks for more once the card is full), when it has reserved all that it has needed so far: workspaces of a
# new shape, a save, fragments. Below 1 because a run of one shape may go on for ever on a full card.
_ASKS_FOR_MORE: Final = 0.85
_BRIM_SHARE: Final = 0.01  # of the card: with less left, a retry is due to whoever took the rest
_RETRY_STEPS: Final = 20
_LIKE_THE_HIGHEST: Final = 0.98
_UNIFORM_SD: Final = 1.0 / math.sqrt(12.0)
_SURE: Final = 0.95
_TWICE: Final = 2  # samples that must agree: parts of the card's use are read at different moments
_SLACK_BYTES: Final = 32 * MIB  # what readings of driver and allocator may differ by
_UNTOUCHED_PHASES: Final = frozenset({Phase.VALIDATION, Phase.SAVE})


@dataclass(frozen=True, slots=True)
class Need:
    """What the allocator must hold. Bytes.

    ``held`` now. A step's peak needs between ``low`` (what is live then) and ``high``: what was reserved at the highest
    peak, or the least room in which a step like that has succeeded, as what lies idle is used or given back when the
    driver refuses. ``to_come``: in phases that the run has not been through, by its estimate, with deviation
    ``to_come_sd``.
    """

    held: float
    low: float
    high: float
    to_come: float = 0.0
    to_come_sd: float = 1.0

    @property
    def given_back(self) -> bool:
        """It has had more than it holds now, and will want it again."""
        return self.high > self.held + _SLACK_BYTES

    @property
    def middle(self) -> float:
        """What it must be able to hold, in the middle of what is possible."""
        if self.given_back:
            return max(self.held, (self.low + self.high) / 2.0, self.to_come)
        return max(self.held, self.to_come)

    @property
    def deviation(self) -> float:
        """Of a uniform distribution from ``low`` to ``high``."""
        return (self.high - self.low) * _UNIFORM_SD if self.given_back and self.to_come < self.high else 0.0


class NeedWatch:
    """Remembers the peaks of what was reserved. Start-up steps do not count: algorithm search ends with them."""

    def __init__(self) -> None:
        self._most = 0.0
        self._live = 0.0
        self._managed = math.inf
        self._step = 0
        self._batch: int | None = None
        self._seen: set[Phase] = set()

    def take_step(self, sample: StepSample, view: View) -> None:
        """Take a step; a run that went back or has another batch size starts anew."""
        evidence, memory = view.evidence, sample.memory
        if memory is None:
            return
        if sample.step < self._step or evidence.usual_batch != self._batch:
            self._most, self._live, self._managed = 0.0, 0.0, math.inf
            self._batch = evidence.usual_batch
        self._step = sample.step
        if evidence.starting_up:
            return
        peak = float(memory.live_peak_bytes)
        if peak > self._live + _SLACK_BYTES:
            self._managed = math.inf
        self._live = max(self._live, peak)
        self._most = max(self._most, float(memory.reserved_peak_bytes))
        if peak >= _LIKE_THE_HIGHEST * self._live:
            room = max(view.environment.allocator_room(memory), memory.reserved_peak_bytes)
            self._managed = min(self._managed, float(room))

    @property
    def most_bytes(self) -> float:
        """No less than the need of a step."""
        return max(self._most, self._live)

    def foresees_phases(self, view: View) -> bool:
        """The estimate tells of phases that have not been seen yet."""
        return view.corrected is not None and not self._seen >= _UNTOUCHED_PHASES

    def take_phase(self, sample: PhaseSample) -> None:
        """Take a phase: its demand is known once it is over."""
        if sample.ended or sample.done:
            self._seen.add(sample.phase)

    def need(self, view: View) -> Need | None:
        """``None`` before the first figures of the allocator."""
        evidence, corrected = view.evidence, view.corrected
        memory = evidence.memory
        if memory is None:
            return None
        held = float(memory.reserved_bytes)
        to_come, deviation = 0.0, 1.0
        if corrected is not None and evidence.steps_seen >= START_UP_STEPS:
            unseen = [corrected.device_bytes(phase) or 0.0 for phase in _UNTOUCHED_PHASES - self._seen]
            peak = max(unseen, default=0.0)
            to_come, deviation = peak - corrected.beside_bytes, max(corrected.spread * peak, 1.0)
        high = max(min(self._most, self._managed), self._live)
        return Need(held, self._live, high, max(to_come, 0.0), deviation)


@dataclass(frozen=True, slots=True)
class _Danger:
    p_within: Mapping[int, float]
    p_run: float
    to_go: StepsToGo | None
    certain: bool = False  # it is here, not to come
    growth: Growth | None = None


def _peaks(
    danger: _Danger, severity: AlertSeverity | None, needed_bytes: float, view: View
) -> tuple[float, float] | None:
    """P50 and P95 of the peak of the card. What grows takes the rest of the card by its median time: by then the peak
    stands at the brim, over it by the segment that is refused, and by as much more as the time may be shorter."""
    if danger.certain:
        return needed_bytes, needed_bytes
    if danger.to_go is None or severity not in {AlertSeverity.LIKELY, AlertSeverity.IMMINENT}:
        return None
    brim = float(view.environment.capacity_bytes)
    left = max(brim - needed_bytes, 0.0)
    low = max(needed_bytes, brim) + (SEGMENT_BYTES if danger.p_run > 0.5 else 0)
    return low, low + left * Z95 * min(danger.to_go.spread, 1.0)


class HeadroomCause(CauseModel):
    """One kind of memory beside the allocator. Subclasses say which, and what to do about it."""

    action: ClassVar[str]
    figure: ClassVar[str]  # its name in the evidence
    turn: ClassVar[int] = 0

    def __init__(self) -> None:
        self.series = SampledGrowth(turn=self.turn)
        self._need = NeedWatch()
        self._agreeing = 0

    def details(self) -> Mapping[str, float]:
        """Further evidence."""
        return {}

    def take_step(self, sample: StepSample, view: View) -> None:
        """Take a step: what it needed."""
        self._need.take_step(sample, view)

    def take_phase(self, sample: PhaseSample, view: View) -> None:
        """Take a phase that is over."""
        self._need.take_phase(sample)

    def note(self, t_s: float, value_bytes: float, view: View) -> None:
        """Take a figure of what is taken."""
        self.series.add(t_s, value_bytes)
        need = self._need.need(view)
        short = need is not None and self._missing(need, view) > _SLACK_BYTES
        self._agreeing = self._agreeing + 1 if short else 0

    def outlook(self, view: View, *, known: bool) -> Outlook | None:
        """What will happen to what the run has still to get; ``None`` while there is enough for it."""
        memory = view.evidence.memory
        if memory is None or not self.series.samples or self._is_calm(memory, view):
            return None
        need = self._need.need(view)
        if need is None:
            return None
        room = float(view.environment.allocator_room(view.evidence.memory))
        danger = self._worst(need, room, view, known=known)
        if danger is None:
            return None
        severity = _severity(danger, view.evidence.seconds_per_step())
        peaks = _peaks(danger, severity, view.environment.capacity_bytes - room + need.middle, view)
        return Outlook(
            cause=self.cause,
            severity=severity,
            p_within=danger.p_within,
            p_run=danger.p_run,
            to_go=danger.to_go if severity is not None else None,
            action=self.action,
            evidence=self._figures(danger, need, room, view),
            peak_low_bytes=peaks[0] if peaks is not None else None,
            peak_high_bytes=peaks[1] if peaks is not None else None,
        )

    def _is_calm(self, memory: MemoryStats, view: View) -> bool:
        """What all the dangers ask for is missing; the usual case, and cheap to see."""
        evidence = view.evidence
        retried = evidence.retried_at_step
        if retried is not None and evidence.step - retried <= _RETRY_STEPS:
            return False
        most = max(float(memory.reserved_bytes), self._need.most_bytes)
        left = view.environment.allocator_room(memory) - most
        return left > 0.0 and self._rise() < LEAST_COME * left and not self._need.foresees_phases(view)

    def _worst(self, need: Need, room: float, view: View, *, known: bool) -> _Danger | None:
        found = (
            self._given_back(need, view),
            self._refused(need, room, view),
            self._phase_to_come(need, room),
            self._growing(need, room, view, known=known),
        )
        return max((one for one in found if one is not None), key=lambda one: one.p_run, default=None)

    def _missing(self, need: Need, view: View) -> float:
        """Bytes by which a peak that did fit may not fit any more: the allocator has given back."""
        room = float(view.environment.allocator_room(view.evidence.memory))
        return need.high - max(room, need.held)

    def _given_back(self, need: Need, view: View) -> _Danger | None:
        """The allocator held more before than it could get now."""
        missing = self._missing(need, view)
        if self._agreeing < _TWICE or self._rise() <= _SLACK_BYTES or missing <= _SLACK_BYTES:
            return None
        p_run = _SURE * min(missing / max(need.high - need.low, 1.0), 1.0)
        return _Danger(dict.fromkeys(WITHIN_STEPS, p_run), p_run, StepsToGo(1.0, 0.5), certain=True)

    def _refused(self, need: Need, room: float, view: View) -> _Danger | None:
        """The driver has just refused once, and it was others who had taken the rest."""
        evidence, capacity = view.evidence, view.environment.capacity_bytes
        retried = evidence.retried_at_step
        if retried is None or evidence.step - retried > _RETRY_STEPS:
            return None
        left = room - need.held
        if left > _BRIM_SHARE * capacity or self._rise() < max(_BRIM_SHARE * capacity, left):
            return None
        to_go = StepsToGo(10.0, 1.0)
        return _Danger({steps: 0.8 * to_go.probability_within(steps) for steps in WITHIN_STEPS}, 0.8, to_go)

    def _phase_to_come(self, need: Need, room: float) -> _Danger | None:
        """A phase not seen yet, by the estimate: it would fit had nothing been taken since the run began."""
        missing = need.to_come - max(room, need.held)
        if missing > self._rise():
            return None
        p_run = normal_cdf(missing / need.to_come_sd)
        return _Danger(dict.fromkeys(WITHIN_STEPS, 0.0), p_run, None) if p_run >= WATCH_P else None

    def _growing(self, need: Need, room: float, view: View, *, known: bool) -> _Danger | None:
        """What is taken grows on until the card is full."""
        limit = self.series.value + room - need.middle
        growth = self.series.towards(limit, view=view, known=known, limit_sd_bytes=need.deviation)
        if growth is None:
            return None
        if not need.given_back and need.to_come <= need.held + _SLACK_BYTES:
            growth = replace(growth, belief=_ASKS_FOR_MORE * growth.belief)
        p_within, to_go = growth.by_steps(view.evidence.seconds_per_step())
        return _Danger(p_within, growth.probability_within(growth.horizon_s), to_go, growth=growth)

    def _rise(self) -> float:
        """What has been taken since the lowest figure of the run."""
        return self.series.value - (self.series.lowest or 0.0)

    def _figures(self, danger: _Danger, need: Need, room: float, view: View) -> Mapping[str, float]:
        figures = {
            self.figure: self.series.value,
            "risen_bytes": self._rise(),
            "room_bytes": room,
            "headroom_bytes": room - need.middle,
            "reserved_bytes": need.held,
            "need_bytes": need.middle,
            "capacity_bytes": float(view.environment.capacity_bytes),
        }
        if danger.growth is not None:
            figures |= {
                "slope_bytes_per_s": danger.growth.slope_bytes_per_s,
                "grown_bytes": danger.growth.grown_bytes,
                "grown_s": danger.growth.lasted_s,
                "significance": danger.growth.trend.significance,
            }
        return {**figures, **self.details()}


def _severity(danger: _Danger, pace_s: float | None) -> AlertSeverity | None:
    if danger.p_run < LIKELY_P:
        return AlertSeverity.WATCH if danger.p_run >= WATCH_P else None
    steps = danger.to_go.median if danger.to_go is not None else None
    if steps is None:
        return AlertSeverity.LIKELY
    soon = steps <= _IMMINENT_STEPS or steps * (pace_s or 0.0) <= _IMMINENT_S
    return AlertSeverity.IMMINENT if soon and pace_s else AlertSeverity.LIKELY
