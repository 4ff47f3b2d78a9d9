"""Which estimate answers what the form says now: the last one stays on show while the next is worked out."""

from __future__ import annotations

from typing import Final

from desktop_app.core.forecasts import Estimate
from desktop_app.services.facade import EstimateState, EstimateStatus

_PENDING: Final = "pending"  # memory.estimate.PENDING


def is_searching(estimate: Estimate) -> bool:
    """The largest batch is still being searched."""
    return _PENDING in estimate.warnings


def answer_of(status: EstimateStatus) -> Estimate | None:
    """The estimate of ``status.config``; ``None`` while there is only that of an earlier form, or none."""
    estimate = status.estimate
    if estimate is None or status.state is EstimateState.READY:
        return estimate
    # The first part of an answer comes while the rest is worked out.
    early = status.state is EstimateState.WORKING and status.levers_pending and is_searching(estimate)
    return estimate if early else None
