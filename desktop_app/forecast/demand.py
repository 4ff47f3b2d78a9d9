"""What a step needs on top of what is live between steps, and how much reserved memory cannot be used for it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from desktop_app.core.units import MIB
from desktop_app.forecast.evidence import Evidence
from desktop_app.forecast.robust import Floats, median

# facts/allocator.md rule 5: requests of 1 to 10 MiB ask the driver for this much, so the last of it may lie idle.
SEGMENT_BYTES: Final = 20 * MIB
_GROWTHS_KEPT: Final = 8
_IDLE_SHARE_UNKNOWN: Final = 0.5  # before the allocator has grown once under the leak: any share, so the middle


@dataclass(frozen=True, slots=True)
class Demand:
    """Bytes that recent steps needed on top of their trough, one value per step; and idle bytes that were no use.

    ``unusable_bytes`` is the idle memory left over at a peak because nothing requested fitted into it;
    ``unusable_sd_bytes`` its standard deviation.
    """

    bytes_per_step: Floats
    unusable_bytes: float
    unusable_sd_bytes: float

    @property
    def typical_bytes(self) -> float:
        return median(self.bytes_per_step)

    def steps_until(self, room_bytes: float, slope: float, *, expected: float) -> float:
        """Steps until the demands, lifted by ``slope`` bytes per step, have overflowed ``expected`` times.

        Each past demand d is as likely as any other in a coming step and no longer fits from j_d = (room − d) / slope
        on, so the expected number of overflows by step j is the mean over d of max(0, j − j_d). For sorted j_d that
        is the maximum over r of (r·j − Σ of the first r) / n, hence the minimum below.
        """
        fits_until = np.sort((room_bytes - self.bytes_per_step) / slope)
        ranks = np.arange(1, fits_until.size + 1)
        return float(np.min((expected * fits_until.size + np.cumsum(fits_until)) / ranks))


def recent_demand(evidence: Evidence) -> Demand | None:
    """The demand of the newest steps; ``None`` before the first step after start-up."""
    if not evidence.rows:
        return None
    demands = np.maximum(evidence.column("live_peak_bytes") - evidence.column("live_after_bytes"), 0.0)
    unusable, deviation = _unusable_idle(evidence)
    return Demand(demands, unusable, deviation)


def _unusable_idle(evidence: Evidence) -> tuple[float, float]:
    """Mean and deviation of the idle bytes at a peak that no request can use.

    When the allocator asks the driver for more, nothing idle was good enough: what was idle then is what will be
    idle when the driver refuses. Before it has asked once, any part of what is idle now may turn out useless.
    """
    live_peak = evidence.column("live_peak_bytes")
    reserved_peak = evidence.column("reserved_peak_bytes")
    grew = np.flatnonzero(reserved_peak[1:] > reserved_peak[:-1])[-_GROWTHS_KEPT:]
    if grew.size:
        left_over = np.maximum(reserved_peak[grew] - live_peak[grew + 1], 0.0)
        return median(left_over), float(np.std(left_over)) + SEGMENT_BYTES / math.sqrt(12.0)
    idle = max(median(reserved_peak - live_peak), 0.0)
    return _IDLE_SHARE_UNKNOWN * idle, (idle + SEGMENT_BYTES) / math.sqrt(12.0)
