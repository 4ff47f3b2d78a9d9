"""Made-up runs with a computer around them: one step after another, telemetry once a second."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from desktop_app.core.forecasts import AlertSeverity, Cause
from desktop_app.core.steps import StepSample, Surroundings
from desktop_app.core.units import GIB
from desktop_app.forecast.forecaster import Forecaster

from .traces import BASE, DEMAND, Floats, Replay, memory, step

CAPACITY = 24 * GIB
RESERVED = BASE + DEMAND


def flat(number: int, *, step_s: float = 0.5, outside: int = 0) -> StepSample:
    """A step like all others, which takes ``BASE + DEMAND``."""
    return step(number, memory(BASE, outside=outside), step_s=step_s)


def live_with(
    surroundings: Sequence[dict[str, Any]] | dict[str, Floats],
    *,
    steps_per_second: float = 2.0,
    make_step: Callable[[int], StepSample] | None = None,
    capacity: int = CAPACITY,
    first_s: float = 0.0,
    **environment: Any,
) -> Replay:
    """One row of ``surroundings`` a second, and the steps of that second before it. ``first_s``: steps begin then."""
    rows = surroundings
    if isinstance(rows, dict):
        columns = rows
        rows = [
            {name: int(values[at]) for name, values in columns.items()}
            for at in range(len(next(iter(columns.values()))))
        ]
    step_s = 1.0 / steps_per_second
    make = make_step or (lambda number: flat(number, step_s=step_s))
    forecaster = Forecaster(capacity_bytes=capacity, **environment)
    told, number = Replay(), 0
    for second, row in enumerate(rows, start=1):
        while first_s + (number + 1) * step_s <= second:
            number += 1
            sample = make(number)
            update = forecaster.update_step(
                StepSample(**{**{f: getattr(sample, f) for f in sample.__slots__}, "t_s": first_s + number * step_s})
            )
            told.forecasts.append(update.forecast)
            told.raised += update.changes.raised
            told.cleared += update.changes.cleared
        update = forecaster.update_surroundings(Surroundings(t_s=float(second), **row))
        told.forecasts.append(update.forecast)
        told.raised += update.changes.raised
        told.cleared += update.changes.cleared
    return told


def first_of(told: Replay, cause: Cause) -> Any:
    """The first alert of a cause, or ``None``."""
    return next((alert for alert in told.raised if alert.cause is cause), None)


def noise(seed: int, count: int, sd: float) -> Floats:
    return np.random.default_rng(seed).normal(0.0, sd, count)


def severities(told: Replay) -> list[AlertSeverity]:
    return [alert.severity for alert in told.raised]
