"""A utilisation that stays at 0 while the card works is not reported (WSL and drivers 470 to 510 do so)."""

from __future__ import annotations

from typing import Final

from desktop_app.core.telemetry import Reading
from desktop_app.telemetry.plausibility import IMPLAUSIBLE

# Work that shows: more than half of the power limit (idle cards that hold a context draw up to 40 % of theirs: 28 of
# 70 W on a T4), or memory moved in a fifth of the time.
_BUSY_POWER_SHARE: Final = 0.5
_BUSY_MEMORY_PERCENT: Final = 20.0
_DOUBT_AFTER_S: Final = 60.0  # of work; the driver's own window is at most a second
_LONGEST_TICK_S: Final = 5.0  # what lies behind a longer gap is not known


class StuckLoad:
    """Watches one card's utilisation beside what else shows that it works."""

    def __init__(self, *, power_limit_w: float | None) -> None:
        self._power_limit_w = power_limit_w
        self._before_s: float | None = None
        self._worked_s = 0.0

    def judge(self, t_s: float, utilization: Reading, *, memory_percent: Reading, power_w: Reading) -> Reading:
        """The utilisation, or ``implausible`` once it was 0 for a minute of work. Any other value ends the doubt."""
        elapsed_s = 0.0 if self._before_s is None else min(t_s - self._before_s, _LONGEST_TICK_S)
        self._before_s = t_s
        if utilization.value is None:
            return utilization
        if utilization.value > 0:
            self._worked_s = 0.0
        elif self._is_working(memory_percent, power_w):
            self._worked_s += elapsed_s
        return IMPLAUSIBLE if self._worked_s >= _DOUBT_AFTER_S else utilization

    def _is_working(self, memory_percent: Reading, power_w: Reading) -> bool:
        limit_w = self._power_limit_w
        by_power = limit_w is not None and power_w.value is not None and power_w.value > _BUSY_POWER_SHARE * limit_w
        return by_power or (memory_percent.value or 0.0) >= _BUSY_MEMORY_PERCENT
