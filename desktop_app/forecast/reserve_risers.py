"""How much of the allocator's room a growing run can use before a request finds no place.

Memory that grows by small blocks is cut out of segments which large blocks had to themselves. Time and again a large
block finds no hole left, and the allocator asks the driver for one more segment: what is reserved rises by that block,
always the same one. Memory runs out at the riser that does not fit any more, well before live reaches the brim.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from desktop_app.core.units import MIB
from desktop_app.forecast.demand import SEGMENT_BYTES, Demand
from desktop_app.forecast.evidence import Evidence
from desktop_app.forecast.robust import median

_RISERS_KEPT: Final = 24
_SIZED: Final = 6  # newest of them that say how large the next one is
_STEADY_SHARE: Final = 0.9  # of the risers had more idle before them than the one before: that will go on
_LEAST_RISER_BYTES: Final = 1 * MIB
_ALIKE: Final = 0.15  # of a riser: the risers of one block differ by less, with a small segment now and then
_FEW: Final = 6  # risers that still fit: beyond, how the last one falls is not worth counting
_UNIFORM_SD: Final = 1.0 / math.sqrt(12.0)
# What was idle at the peak when a request found no place, as later risers and the refusal had it: deviation as shares
# of the idle memory and of the riser. From 22 leaks of the tuning half of benchmarks/forecast_corpus.py.
_IDLE_DOUBT: Final = 0.2
_RISER_DOUBT: Final = 0.12
_IDLE_LATER: Final = 1.2  # times what was idle before the first few risers: it grows a little with each
_UNSURE: Final = 1.5  # risers left, of a size that may be another: whether one more fits is open
_UNSURE_LEFT: Final = (0.85, 0.3)
_OWN_RISER: Final = 1.5
# Before the first riser: shares of what is idle at the peak, over the same leaks.
_FIRST_RISER: Final = 1.0
_FIRST_IDLE: Final = (0.55, 0.25)
_OVERDUE_SHARE: Final = 0.6  # of what is idle now, once less is idle than when the risers before came
# Steps of every length: what could not be used when it ran out, over the median of the idle splits and above the
# demand that one step in twenty exceeds: 0.42 to 0.96 in ten leaks of the tuning half.
_SPLITS_WASTED: Final = (0.7, 0.3)
_SPLITS_STEPS: Final = 30


@dataclass(frozen=True, slots=True)
class Brim:
    """The live peak at which a request will find no place, with its deviation. ``peak_bytes`` is that peak now."""

    live_bytes: float
    sd_bytes: float
    peak_bytes: float


@dataclass(frozen=True, slots=True)
class _Riser:
    """One time that more was reserved: by how much, what was idle at the peak before it, and that peak."""

    size_bytes: float
    idle_bytes: float
    live_peak_bytes: float


@dataclass(frozen=True, slots=True)
class _Habit:
    """What the risers so far have in common: their usual size, whether it is always the same, what was idle before
    them, and by how much more each time for each byte that the peak has grown (0 where that just varies)."""

    riser_bytes: float
    regular: bool
    idle_bytes: float
    idle_growth: float


class ReserveRisers:
    """Remembers when the allocator asked for more. The forecaster's lock guards it."""

    def __init__(self) -> None:
        self._reserved: float | None = None
        self._idle_after = 0.0  # at the peak, right after the newest riser
        self._risers: deque[_Riser] = deque(maxlen=_RISERS_KEPT)
        self._habit: _Habit | None = None  # of these risers; None: to be looked at

    def add(self, live_peak_bytes: float, reserved_peak_bytes: float) -> None:
        """Take one step."""
        before = self._reserved
        if before is not None and reserved_peak_bytes - before >= _LEAST_RISER_BYTES:
            self._risers.append(_Riser(reserved_peak_bytes - before, before - live_peak_bytes, live_peak_bytes))
            self._habit = None
        if before is None or reserved_peak_bytes != before:
            self._idle_after = max(0.0, reserved_peak_bytes - live_peak_bytes)
        self._reserved = reserved_peak_bytes

    def brim(
        self, level_bytes: float, demand: Demand, evidence: Evidence, room_bytes: float, *, jump_bytes: float = 0.0
    ) -> Brim | None:
        """``level_bytes`` is live between steps now; ``room_bytes`` the most that the allocator can reserve.

        ``jump_bytes``: live grows by so much at once.
        """
        if self._reserved is None:
            return None
        if demand.varied:
            idle = median(evidence.column("idle_split_bytes")[-_SPLITS_STEPS:])
            share, doubt = _SPLITS_WASTED
            return Brim(room_bytes - share * idle, doubt * idle, level_bytes + demand.high_bytes)
        peak = level_bytes + demand.typical_bytes
        habit = self._habit = self._habit if self._habit is not None else _habit(self._risers)
        riser, regular, growth = _FIRST_RISER * self._idle_after, False, 0.0
        if habit is not None:
            riser, regular, growth = habit.riser_bytes, habit.regular, habit.idle_growth
        if riser <= _OWN_RISER * jump_bytes:  # it is the jump itself that had to be asked for, not a block of the step
            riser = 0.0
        left, left_sd = _left_over(max(room_bytes - self._reserved, 0.0), riser, regular=regular)
        idle, idle_sd = self._idle(peak, riser, habit)
        # What was idle before a riser was seen after the jump that brought it: any share of that may have been needed.
        unseen, unseen_sd = 0.5 * jump_bytes, _UNIFORM_SD * jump_bytes
        headroom = (room_bytes - left - idle - unseen - peak) / (1.0 + growth)
        return Brim(peak + headroom, math.hypot(left_sd, idle_sd, unseen_sd), peak)

    def _idle(self, peak_bytes: float, riser_bytes: float, habit: _Habit | None) -> tuple[float, float]:
        """What will be idle at the peak when the next request finds no place."""
        assert self._reserved is not None
        if habit is not None:
            idle = habit.idle_bytes
            doubt = math.hypot(_IDLE_DOUBT * idle, _RISER_DOUBT * riser_bytes)
        else:
            share, spread = _FIRST_IDLE
            idle, doubt = share * self._idle_after, spread * self._idle_after
        now = self._reserved - peak_bytes
        if now < idle:  # it should have come by now
            idle = _OVERDUE_SHARE * max(now, 0.0)
            doubt = min(doubt, max(now, 0.0) * _UNIFORM_SD)
        return idle, doubt


def _habit(risers: Sequence[_Riser]) -> _Habit | None:
    if not risers:
        return None
    newest = list(risers)[-_SIZED:]
    sizes = np.array([riser.size_bytes for riser in newest])
    usual = median(sizes)
    alike = np.abs(sizes - usual) <= _ALIKE * usual
    idle = max(0.0, float(np.mean([riser.idle_bytes for riser in newest[-3:]])))
    return _Habit(
        riser_bytes=usual,
        regular=sizes.size > 1 and bool(alike.mean() > 0.5),
        idle_bytes=idle if len(risers) >= _SIZED else _IDLE_LATER * idle,
        idle_growth=_idle_growth(risers),
    )


def _idle_growth(risers: Sequence[_Riser]) -> float:
    if len(risers) < _SIZED:
        return 0.0
    idle = np.array([riser.idle_bytes for riser in risers])
    steady = np.count_nonzero(idle[1:] >= idle[:-1]) >= _STEADY_SHARE * (idle.size - 1)
    grown = risers[-1].live_peak_bytes - risers[0].live_peak_bytes
    return max(0.0, float(idle[-1] - idle[0]) / grown) if steady and grown > 0 else 0.0


def _left_over(left_bytes: float, riser_bytes: float, *, regular: bool) -> tuple[float, float]:
    """What of ``left_bytes`` is too little for one more riser, and its deviation."""
    if riser_bytes <= SEGMENT_BYTES:
        return 0.0, 0.0
    if regular and left_bytes < riser_bytes:
        return left_bytes, 0.05 * left_bytes
    if not regular and left_bytes < _UNSURE * riser_bytes:
        share, spread = _UNSURE_LEFT
        return share * left_bytes, spread * left_bytes
    if regular and left_bytes < _FEW * riser_bytes:
        return left_bytes % riser_bytes, _RISER_DOUBT * riser_bytes
    return 0.5 * riser_bytes, riser_bytes * _UNIFORM_SD
