"""What the next steps need on top of what is live between steps, whatever their shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from desktop_app.core.units import MIB
from desktop_app.forecast.evidence import Evidence

# facts/allocator.md rule 5: requests of 1 to 10 MiB ask the driver for this much, so the last of it may lie idle.
SEGMENT_BYTES: Final = 20 * MIB
_HIGH_SHARE: Final = 0.95
_USUAL_SHARE: Final = 0.85  # a last partial batch in every tenth step, or a validation, leaves steps of one shape
_VARIED: Final = 0.1  # of the median: between the shares above and below, from which steps are not of one shape


@dataclass(frozen=True, slots=True)
class Demand:
    """Peak less trough of the newest steps, in bytes: the median, and the height that one step in twenty exceeds.

    ``varied``: the steps are not of one shape.
    """

    typical_bytes: float
    high_bytes: float
    varied: bool


def recent_demand(evidence: Evidence) -> Demand | None:
    """The demand of the newest steps; ``None`` before the first step after start-up."""
    ordered = evidence.demands
    size = len(ordered)
    if not size:
        return None
    typical = (ordered[(size - 1) // 2] + ordered[size // 2]) / 2.0
    low, above, high = (ordered[int(share * size)] for share in (1.0 - _USUAL_SHARE, _USUAL_SHARE, _HIGH_SHARE))
    return Demand(typical, high, varied=above - low > _VARIED * typical)
