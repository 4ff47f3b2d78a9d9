"""The flood mark: where the peak of the whole card is expected to stand, P50 and P95."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from desktop_app.core.forecasts import Estimate
from desktop_app.forecast.corrected_prior import CorrectedPrior
from desktop_app.forecast.demand import SEGMENT_BYTES
from desktop_app.forecast.environment import Environment
from desktop_app.forecast.evidence import START_UP_STEPS, Evidence
from desktop_app.forecast.outlook import Z95, Outlook

CAP: Final = 1.6  # times capacity: further over the brim says nothing more
_MEASURED_MARGIN: Final = 0.01  # of the peak: workspaces and segments that a later step may still add


def flood_mark(
    evidence: Evidence,
    environment: Environment,
    prior: Estimate | None,
    outlooks: Iterable[Outlook],
    *,
    corrected: CorrectedPrior | None = None,
) -> tuple[int, int] | None:
    """P50 and P95 in bytes of the peak of *device* still to come; ``None`` before anything is known."""
    mark = _calm_mark(evidence, environment, prior, corrected)
    for outlook in outlooks:
        if outlook.peak_low_bytes is None or outlook.peak_high_bytes is None:
            continue
        low, high = mark if mark is not None else (0.0, 0.0)
        mark = max(low, outlook.peak_low_bytes), max(high, outlook.peak_high_bytes)
    if mark is None:
        return None
    brim = CAP * environment.capacity_bytes
    low = min(mark[0], brim)
    return int(low), int(min(max(mark[1], low), brim))


def _calm_mark(
    evidence: Evidence, environment: Environment, prior: Estimate | None, corrected: CorrectedPrior | None
) -> tuple[float, float] | None:
    """Without any cause: what has been measured and a margin that shrinks with every step; at first the estimate.

    Phases that the run has not been through yet are those of the estimate, as the first steps have put it right.
    """
    expected = _estimated(environment, prior)
    if evidence.memory is None:
        return expected
    beside = environment.device_bytes(evidence.memory) - evidence.memory.reserved_bytes
    reserved = max(evidence.memory.reserved_peak_bytes, evidence.memory.reserved_bytes)
    reserved = max(reserved, int(evidence.reserved_peak_bytes))
    low = float(beside + reserved)
    margin = max(SEGMENT_BYTES, _MEASURED_MARGIN * low)
    if expected is not None:
        margin = max(margin, (expected[1] - expected[0]) / (1.0 + evidence.steps_seen))
        if evidence.steps_seen < START_UP_STEPS:
            low = max(low, expected[0])
    high = low + margin
    if corrected is not None and corrected.steps:
        to_come = max((corrected.device_bytes(phase) or 0.0 for phase in corrected.unseen), default=0.0)
        low, high = max(low, to_come), max(high, to_come * math.exp(Z95 * corrected.spread))
    return low, high


def _estimated(environment: Environment, prior: Estimate | None) -> tuple[float, float] | None:
    if prior is None:
        return None
    shift = environment.others_bytes - prior.others_bytes
    return float(prior.device_peak_bytes.p50 + shift), float(prior.device_peak_bytes.p95 + shift)
