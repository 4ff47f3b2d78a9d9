"""What one cause says about the future: the same shape for every cause."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from desktop_app.core.forecasts import AlertSeverity, Cause

SEVERITIES: Final = (None, AlertSeverity.WATCH, AlertSeverity.LIKELY, AlertSeverity.IMMINENT)  # by rank
WITHIN_STEPS: Final = (1, 10, 100)  # horizons of P(OOM within k steps), design.md §6
Z80: Final = 1.2816  # normal quantile of 0.9: half-width of an 80 % interval in standard deviations
Z95: Final = 1.6449  # normal quantile of 0.95


def normal_cdf(z: float) -> float:
    """P(Z ≤ z) of the standard normal distribution."""
    return 0.5 * (1.0 + math.erf(z / math.sqrt(2.0)))


@dataclass(frozen=True, slots=True)
class StepsToGo:
    """A log-normal distribution of the steps left until memory runs out. ``spread`` is the sd of its logarithm."""

    median: float
    spread: float

    @property
    def low(self) -> float:
        """P10."""
        return self.median * math.exp(-Z80 * self.spread)

    @property
    def high(self) -> float:
        """P90."""
        return self.median * math.exp(Z80 * self.spread)

    def probability_within(self, steps: float) -> float:
        if steps <= 0:
            return 0.0
        if self.median <= 0:
            return 1.0
        if self.spread <= 0:
            return float(steps >= self.median)
        return normal_cdf(math.log(steps / self.median) / self.spread)


@dataclass(frozen=True, slots=True)
class Outlook:
    """One cause's view after one sample.

    ``p_within`` has the keys of ``WITHIN_STEPS``; ``p_run`` is to the end of the run (24 h when its length is
    unknown). ``severity`` is a candidate: the policy decides. ``urgent`` asks the policy not to wait for a second
    sample. ``peak_low_bytes`` and ``peak_high_bytes`` are P50 and P95 of the peak of *device* that this cause brings.
    """

    cause: Cause
    severity: AlertSeverity | None
    p_within: Mapping[int, float]
    p_run: float
    to_go: StepsToGo | None = None
    urgent: bool = False
    action: str = "save_and_pause"
    evidence: Mapping[str, float] = field(default_factory=dict)
    peak_low_bytes: float | None = None
    peak_high_bytes: float | None = None
    pace_s: float | None = None  # seconds per step of ``to_go``, where those are no steps of the training


def probability_within(outlook: Outlook, steps: float) -> float:
    """P(OOM within any number of steps): never falling with it, and in keeping with the horizons that are given."""
    least = max((p for k, p in outlook.p_within.items() if k <= steps), default=0.0)
    most = min((p for k, p in outlook.p_within.items() if k >= steps), default=outlook.p_run)
    most = max(least, min(most, outlook.p_run))
    by_time = outlook.p_run if outlook.to_go is None else outlook.p_run * outlook.to_go.probability_within(steps)
    return min(max(by_time, least), most)


def worst(outlooks: Iterable[Outlook]) -> Outlook | None:
    """The outlook to put first: by severity, then by the probability that memory runs out."""
    return max(outlooks, key=lambda one: (SEVERITIES.index(one.severity), one.p_run), default=None)


def combined(probabilities: Iterable[float]) -> float:
    """P(any of independent causes)."""
    return 1.0 - math.prod(1.0 - probability for probability in probabilities)
