"""The learning rate of each step, from the config alone, so that a resumed run needs no scheduler state."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from desktop_app.training.config import RunConfig

# Share of the peak at the horizon and after it: small enough to settle, large enough that a long run still moves.
_FLOOR: Final = 0.01
# One-cycle as published (Smith and Topin 2018; torch's OneCycleLR defaults): 30 % rise, from 1/25 of the peak.
_RISE_SHARE: Final = 0.3
_RISE_FROM: Final = 1 / 25


class Schedule:
    """Learning rate by step (from 1): a linear warm-up, then the chosen fall until the horizon, then the floor."""

    def __init__(self, config: RunConfig, *, steps_per_epoch: int) -> None:
        self._peak = config.learning_rate
        self._horizon = (config.schedule_epochs or config.epochs) * steps_per_epoch
        rise = config.warmup_steps
        if config.schedule == "one-cycle":
            rise = max(rise, round(_RISE_SHARE * self._horizon))
        self._rise = min(rise, self._horizon - 1)
        self._rise_from = _RISE_FROM if config.schedule == "one-cycle" else 0.0
        self._fall = _FALLS[config.schedule]

    def rate(self, step: int) -> float:
        """Learning rate of ``step``."""
        if step <= self._rise:
            return self._peak * (self._rise_from + (1 - self._rise_from) * step / (self._rise + 1))
        done = min(1.0, (step - self._rise - 1) / max(1, self._horizon - self._rise - 1))
        return self._peak * self._fall(done)


def _cosine(done: float) -> float:
    return _FLOOR + (1 - _FLOOR) * 0.5 * (1 + math.cos(math.pi * done))


def _linear(done: float) -> float:
    return 1 - (1 - _FLOOR) * done


def _constant(_done: float) -> float:
    return 1.0


_FALLS: Final[dict[str, Callable[[float], float]]] = {
    "cosine": _cosine,
    "one-cycle": _cosine,
    "linear": _linear,
    "constant": _constant,
}
