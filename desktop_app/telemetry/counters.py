"""Cumulative counters of the driver turned into rates, shares and energy."""

from __future__ import annotations

import math
from typing import Final

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry.plausibility import POWER_W, is_running_total

_NOT_YET: Final = Reading(None, Reason.NOT_READ_YET)
_IMPLAUSIBLE: Final = Reading(None, Reason.IMPLAUSIBLE)
# A 32-bit byte counter wraps after 4 GiB: past this interval a busy link may have wrapped twice unseen (8.6 GB/s).
_MAX_WRAP_INTERVAL_S: Final = 0.5
_NS_PER_S: Final = 1e9
_STEPS_S: Final = 5.0  # by so much a share's counter may be ahead: far more than its steps, and no jump of a broken one
# An interval this many times longer than the one before it is a gap: nobody knows the power inside.
_GAP_FACTOR: Final = 4.0
_LONGEST_FIRST_INTERVAL_S: Final = 5.0


class ByteRate:
    """Bytes per second between two readings of a counter (NVML fields 197 and 198: "value can be wrapped").

    With 32 bits and ticks of dt seconds, rates from 2**32 / dt bytes per second up cannot be told apart from lower
    ones (21 GB/s at 5 Hz). ``unit_bytes``: what one count is; ``most_per_s``: what the link can carry at all.
    """

    def __init__(self, *, unit_bytes: int = 1, most_per_s: float = math.inf) -> None:
        self._unit_bytes = unit_bytes
        self._most_per_s = most_per_s
        self._before: tuple[float, int] | None = None

    def update(self, t_s: float, count: int, *, bits: int) -> Reading:
        before, self._before = self._before, (t_s, count)
        if before is None or t_s <= before[0]:
            return _NOT_YET
        elapsed_s, moved = t_s - before[0], count - before[1]
        if bits == 32:
            if elapsed_s > _MAX_WRAP_INTERVAL_S * self._unit_bytes:
                return _IMPLAUSIBLE
            moved %= 2**32
        rate = moved * self._unit_bytes / elapsed_s
        return Reading(rate) if 0 <= rate <= self._most_per_s else _IMPLAUSIBLE

    def judge(self, t_s: float, count: float, *, bits: int) -> Reading:
        """``update``, unless the driver's number is no count."""
        if not is_running_total(count):
            self._before = None
            return _IMPLAUSIBLE
        return self.update(t_s, int(count), bits=bits)

    def forget(self) -> None:
        """A reading is missing: the next one starts anew."""
        self._before = None


class BusyShare:
    """Percent of the interval that a nanosecond counter has moved (throttle counters: no episode is lost).

    The driver moves these counters in steps of about 100 ms, so a share can seem to pass 100 %: it is cut there.
    """

    def __init__(self) -> None:
        self._before: tuple[float, int] | None = None

    def update(self, t_s: float, count_ns: int) -> Reading:
        before, self._before = self._before, (t_s, count_ns)
        if before is None or t_s <= before[0]:
            return _NOT_YET
        moved_s, elapsed_s = (count_ns - before[1]) / _NS_PER_S, t_s - before[0]
        if not 0 <= moved_s <= elapsed_s + _STEPS_S:
            return _IMPLAUSIBLE
        return Reading(min(100.0, 100.0 * moved_s / elapsed_s))

    def judge(self, t_s: float, count_ns: float) -> Reading:
        """``update``, unless the driver's number is no count."""
        if not is_running_total(count_ns):
            self._before = None
            return _IMPLAUSIBLE
        return self.update(t_s, int(count_ns))

    def forget(self) -> None:
        """A reading is missing: the next one starts anew."""
        self._before = None


class EnergyCounter:
    """Joules since the first reading of a counter that may start again (driver reloaded)."""

    def __init__(self) -> None:
        self._before: tuple[float, float] | None = None
        self._total_j = 0.0

    def update(self, t_s: float, count_j: float) -> Reading:
        """The total so far. What was used between a restart and its first reading is unknown and left out; a leap that
        no card can draw is none of it."""
        before, self._before = self._before, (t_s, count_j)
        if before is not None:
            used_j, most_j = count_j - before[1], POWER_W.high * (t_s - before[0] + _STEPS_S)
            if used_j > most_j:
                return _IMPLAUSIBLE
            self._total_j += max(0.0, used_j)
        return Reading(self._total_j)


class EnergyIntegral:
    """Joules as the integral of power by trapezoids, gaps left out."""

    def __init__(self) -> None:
        self._before: tuple[float, float] | None = None
        self._usual_s = _LONGEST_FIRST_INTERVAL_S / _GAP_FACTOR
        self.total_j: float | None = None

    def update(self, t_s: float, power_w: float | None) -> None:
        """Add the power at ``t_s``; ``None`` or an unusually long interval is a gap."""
        if power_w is None:
            self._before = None
            return
        before, self._before = self._before, (t_s, power_w)
        if before is None or t_s <= before[0]:
            return
        elapsed_s = t_s - before[0]
        if elapsed_s <= _GAP_FACTOR * self._usual_s:
            self.total_j = (self.total_j or 0.0) + elapsed_s * (before[1] + power_w) / 2
        self._usual_s = elapsed_s
