"""How fast a run goes and when it will be done, from recent step times and robust against single slow ones."""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass
from typing import Final

# Steps remembered: long enough to smooth, short enough to follow a change of speed.
_RECENT: Final = 200
# The interval comes from medians of blocks: a block median moves with the speed, not with one slow step.
_BLOCK: Final = 10
# Blocks' 10th and 90th percentile: 8 of 10, as everywhere in the window.
_LOW_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Eta:
    """Seconds to the end of the run; ``low`` to ``high`` holds 80 %."""

    eta_s: float
    low_s: float
    high_s: float


class Pace:
    """Recent step times, from the end of one step to the end of the next, validation and pauses taken out."""

    def __init__(self) -> None:
        self._steps_s: deque[float] = deque(maxlen=_RECENT)
        self._validations_s: deque[float] = deque(maxlen=10)

    def add_step(self, seconds: float) -> None:
        self._steps_s.append(seconds)

    def add_validation(self, seconds: float) -> None:
        self._validations_s.append(seconds)

    def median_step_s(self) -> float | None:
        """Seconds of one step; ``None`` before the first."""
        return statistics.median(self._steps_s) if self._steps_s else None

    def eta(self, *, steps: int, validations: int) -> Eta | None:
        """Time for the steps and validations to come; ``None`` before anything is known."""
        if not self._steps_s:
            return None
        recent = list(self._steps_s)
        medians = sorted(statistics.median(recent[start : start + _BLOCK]) for start in range(0, len(recent), _BLOCK))
        spare = round(_LOW_SHARE * (len(medians) - 1))
        middle = statistics.median(recent)
        extra_s = validations * (statistics.median(self._validations_s) if self._validations_s else 0.0)
        return Eta(
            eta_s=steps * middle + extra_s,
            low_s=steps * min(middle, medians[spare]) + extra_s,
            high_s=steps * max(middle, medians[-1 - spare]) + extra_s,
        )
