"""A call that will be made: what live memory will reach in it, and whether the card has that much."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import MemoryStats
from desktop_app.forecast.cause_model import View
from desktop_app.forecast.demand import SEGMENT_BYTES
from desktop_app.forecast.environment import Environment
from desktop_app.forecast.evidence import Evidence
from desktop_app.forecast.outlook import WITHIN_STEPS, Outlook, StepsToGo, normal_cdf
from desktop_app.forecast.robust import median

# As for the first optimizer step: the warning comes moments before the call, a miss cannot be made good.
CALL_LIKELY_P: Final = 0.3
CALL_IMMINENT_P: Final = 0.7
LIKELY_P: Final = 0.5  # of what is further off
WATCH_P: Final = 0.1
SOON_STEPS: Final = 20
# Holes in split segments have the sizes of what was freed: between this share of them and all get used again.
_LEAST_USED_SHARE: Final = 0.5
_HIGH_SHARE: Final = 0.95
_LEVELS: Final = 9  # of the limit's quadrature
_SURELY: Final = 5.0  # deviations: 3e-7


@dataclass(frozen=True, slots=True)
class Need:
    """The peak of live memory in a call, as a normal distribution in bytes; what is live before it is counted."""

    mean_bytes: float
    sd_bytes: float = 0.0

    @property
    def high_bytes(self) -> float:
        """P95."""
        return self.mean_bytes + 1.6449 * self.sd_bytes

    def plus(self, size_bytes: float) -> Need:
        """The same on top of ``size_bytes`` more."""
        return Need(self.mean_bytes + size_bytes, self.sd_bytes)


def short_probability(
    need: Need,
    memory: MemoryStats,
    environment: Environment,
    *,
    survived_bytes: float = 0.0,
    idle_bytes: float = 0.0,
    refused_bytes: float | None = None,
) -> float:
    """P(the call runs out). ``survived_bytes``: the highest peak of live memory that this card has just borne.

    The limit lies between all of the allocator's room and that less the holes of no use, the rest of one segment and
    ``idle_bytes``, which such calls leave idle at their peak; a peak that was borne says that it is no lower than that.
    ``refused_bytes``: the most that was reserved when the driver refused once, where that is known.
    """
    room = float(environment.allocator_room(memory))
    if refused_bytes is not None:
        room = min(room, refused_bytes + SEGMENT_BYTES)
    lowest = room - (1.0 - _LEAST_USED_SHARE) * memory.idle_split_bytes - SEGMENT_BYTES - idle_bytes
    lowest = min(max(lowest, survived_bytes), room)
    if need.sd_bytes <= 0.0:
        span = room - lowest
        return float(need.mean_bytes > room) if span <= 0.0 else min(1.0, max(0.0, (need.mean_bytes - lowest) / span))
    if need.mean_bytes + _SURELY * need.sd_bytes < lowest:
        return 0.0
    parts = (lowest + (room - lowest) * (level + 0.5) / _LEVELS for level in range(_LEVELS))
    return sum(normal_cdf((need.mean_bytes - limit) / need.sd_bytes) for limit in parts) / _LEVELS


def usual_idle_bytes(evidence: Evidence) -> float:
    """What lies idle in the allocator at the peak of the newest high steps, in bytes."""
    if not evidence.rows:
        return 0.0
    peaks, reserved = evidence.column("live_peak_bytes"), evidence.column("reserved_peak_bytes")
    high = peaks >= _HIGH_SHARE * peaks.max()
    return max(0.0, median(reserved[high] - peaks[high]))


def device_peak(need_bytes: float, memory: MemoryStats, environment: Environment) -> float:
    """The whole card's use when live memory reaches ``need_bytes``."""
    beside = environment.device_bytes(memory) - memory.reserved_bytes
    return beside + max(need_bytes, float(memory.reserved_bytes - memory.returnable_bytes))


def call_outlook(
    cause: Cause,
    *,
    severity: AlertSeverity,
    chances: Mapping[int, float],
    probability: float,
    to_go: StepsToGo,
    need: Need,
    memory: MemoryStats,
    view: View,
    action: str,
    urgent: bool,
    figures: Mapping[str, float],
    live_bytes: float | None = None,
    pace_s: float | None = None,
) -> Outlook:
    """What one call leads to. ``figures`` are evidence beside live memory, room and capacity; ``live_bytes`` where
    what is live before the call is not what ``memory`` says; ``pace_s`` as in ``Outlook``."""
    environment = view.environment
    return Outlook(
        cause=cause,
        severity=severity,
        p_within=chances,
        p_run=probability,
        to_go=to_go,
        urgent=urgent,
        action=action,
        pace_s=pace_s,
        evidence={
            **figures,
            "live_bytes": float(memory.live_bytes) if live_bytes is None else live_bytes,
            "room_bytes": float(environment.allocator_room(memory)),
            "capacity_bytes": float(environment.capacity_bytes),
        },
        peak_low_bytes=device_peak(need.mean_bytes, memory, environment),
        peak_high_bytes=device_peak(need.high_bytes, memory, environment),
    )


def call_severity(probability: float) -> AlertSeverity | None:
    """Of a call that comes next."""
    if probability >= CALL_IMMINENT_P:
        return AlertSeverity.IMMINENT
    if probability >= CALL_LIKELY_P:
        return AlertSeverity.LIKELY
    return AlertSeverity.WATCH if probability >= WATCH_P else None


def later_severity(probability: float, steps: float) -> AlertSeverity | None:
    """Of what comes in ``steps`` steps."""
    if probability >= LIKELY_P:
        return AlertSeverity.IMMINENT if steps <= SOON_STEPS else AlertSeverity.LIKELY
    return AlertSeverity.WATCH if probability >= WATCH_P else None


def within(probability: float, steps: float) -> dict[int, float]:
    """P(out of memory within k steps) of one call that comes in ``steps`` steps: 1 is the next."""
    return {k: probability if k >= steps else 0.0 for k in WITHIN_STEPS}


def spread_evenly(probability: float, steps: float) -> dict[int, float]:
    """The same of one call that comes at some time within ``steps`` steps, each as likely."""
    return {k: probability * min(1.0, k / max(steps, 1.0)) for k in WITHIN_STEPS}


def horizon(environment: Environment, step: int, *, otherwise: float) -> float:
    """Steps to the end of the epoch, or else of the run; ``otherwise`` when neither is known."""
    left = environment.steps_to_epoch_end(step)
    if left is None:
        left = environment.steps_left(step)
    return otherwise if left is None else float(left)


def finite(value: float) -> float:
    """For figures of evidence: infinity becomes −1."""
    return value if math.isfinite(value) else -1.0
