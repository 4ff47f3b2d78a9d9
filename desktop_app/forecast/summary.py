"""From what all causes say to one forecast: probabilities by horizon, the cause to put first, the flood mark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from desktop_app.core.forecasts import Cause, Forecast
from desktop_app.core.steps import Phase
from desktop_app.forecast.cause_model import View
from desktop_app.forecast.evidence import START_UP_STEPS
from desktop_app.forecast.flood import flood_mark
from desktop_app.forecast.outlook import WITHIN_STEPS, Outlook, combined, probability_within, worst
from desktop_app.forecast.policy import in_seconds

_OF_A_STEP: Final = frozenset({Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER})


def summarize(
    view: View, outlooks: Mapping[Cause, Outlook], *, t_s: float, step: int, pace_s: float | None
) -> Forecast:
    """The forecast at ``t_s`` after ``step``. ``pace_s``: seconds per step."""
    flood = flood_mark(view.evidence, view.environment, view.prior, outlooks.values(), corrected=view.corrected)
    within, p_epoch, p_run = _probabilities(view, step, outlooks)
    first = worst(outlooks.values()) if outlooks else None
    if first is None or first.severity is None:
        of_cause: dict[str, Any] = {}
    else:
        of_cause = _of_cause(first, sum(outlook.p_run for outlook in outlooks.values()), pace_s)
    return Forecast(
        t_s=t_s,
        step=step,
        device_bytes=view.environment.device_bytes(view.evidence.memory),
        capacity_bytes=view.environment.capacity_bytes,
        p_oom=within,
        p_oom_run=p_run,
        p_oom_epoch=p_epoch,
        flood_low_bytes=flood[0] if flood is not None else None,
        flood_high_bytes=flood[1] if flood is not None else None,
        **of_cause,
    )


def _probabilities(
    view: View, step: int, outlooks: Mapping[Cause, Outlook]
) -> tuple[dict[int, float], float | None, float]:
    """P(OOM) within k steps, to the end of the epoch and of the run; never falling with the horizon."""
    unseen = _p_unseen(view)
    if not outlooks and unseen == 0.0:
        calm = None if view.environment.steps_to_epoch_end(step) is None else 0.0
        return dict.fromkeys(WITHIN_STEPS, 0.0), calm, 0.0
    p_run = combined([unseen, *(outlook.p_run for outlook in outlooks.values())])
    within: dict[int, float] = {}
    least = 0.0
    for steps in WITHIN_STEPS:
        chances = [outlook.p_within[steps] for outlook in outlooks.values()]
        least = min(max(least, combined([unseen, *chances])), p_run)
        within[steps] = least
    left = view.environment.steps_to_epoch_end(step)
    if left is None:
        return within, None, p_run
    chance = combined([unseen, *(probability_within(outlook, left) for outlook in outlooks.values())])
    least = max((p for k, p in within.items() if k <= left), default=0.0)
    most = min((p for k, p in within.items() if k >= left), default=p_run)
    return within, min(max(chance, least), most), p_run


def _p_unseen(view: View) -> float:
    """P(a whole step does not fit) while none has been seen: by the estimate, or as the first step has corrected it."""
    prior, corrected, evidence = view.prior, view.corrected, view.evidence
    if prior is None or evidence.steps_seen >= START_UP_STEPS:
        return 0.0
    if corrected is None or not corrected.steps:
        return 1.0 - prior.fits_probability
    capacity = view.environment.capacity_bytes
    return max(
        (corrected.probability_over(capacity, phase) or 0.0 for phase in _OF_A_STEP & corrected.unseen), default=0.0
    )


def _of_cause(outlook: Outlook, total_p: float, pace_s: float | None) -> dict[str, Any]:
    """The fields of a forecast that tell its cause."""
    to_go = outlook.to_go
    pace_s = pace_s if outlook.pace_s is None else outlook.pace_s
    fields = {
        "cause": outlook.cause,
        "cause_share": outlook.p_run / total_p if total_p > 0 else 1.0,
        "severity": outlook.severity,
        "evidence": dict(outlook.evidence),
    }
    if to_go is None:
        return fields
    low, high = to_go.low, to_go.high
    return fields | {
        "eta_steps": to_go.median,
        "eta_steps_low": low,
        "eta_steps_high": high,
        "eta_s": in_seconds(to_go.median, pace_s),
        "eta_low_s": in_seconds(low, pace_s),
        "eta_high_s": in_seconds(high, pace_s),
    }
