"""Growth that falls back (a saw-tooth, an epoch's meters): where a rise ended, and how high rises usually go."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from desktop_app.core.units import MIB
from desktop_app.forecast.robust import RollingOrder

_KEPT: Final = 64
_MIN_STEPS: Final = 8  # a rise shorter than this is noise to every fit anyway
_DROP_MIN_BYTES: Final = MIB
_OUTSTANDING: Final = 8.0  # a fall or a riser is this many times the ordinary change of a step
_ALIKE: Final = 0.35  # lengths of ramps may differ from their median by this share
_NEWEST: Final = 5
_RESET_SHARE: Final = 0.5  # of the rise: a larger drop ends the ramp, a smaller one only shifts it


@dataclass(frozen=True, slots=True)
class Change:
    """From one trough to the next, in bytes; ``outstanding`` when far larger than changes usually are."""

    size_bytes: float
    outstanding: bool


class OrdinaryChange:
    """The usual change of a trough from step to step: the median of the newest 16."""

    def __init__(self) -> None:
        self._sizes = RollingOrder(16)
        self._previous: float | None = None

    def add(self, trough: float) -> Change:
        """Take the next trough."""
        size = 0.0 if self._previous is None else trough - self._previous
        self._previous = trough
        change = Change(size, self.stands_out(size))
        self._sizes.add(abs(size))
        return change

    def stands_out(self, size: float) -> bool:
        """A change of ``size`` bytes would be outstanding now."""
        sizes = self._sizes.ordered
        if abs(size) < _DROP_MIN_BYTES or len(sizes) < _MIN_STEPS:
            return False
        return abs(size) >= _OUTSTANDING * sizes[len(sizes) // 2]


@dataclass(frozen=True, slots=True)
class Ramp:
    """One rise that fell back. Steps are run steps, sizes bytes."""

    first_step: int
    last_step: int
    bottom_bytes: float
    rise_bytes: float


class RampWatch:
    """Follows the troughs step by step and tells where a rise has fallen back."""

    def __init__(self) -> None:
        self.ramps: deque[Ramp] = deque(maxlen=_KEPT)
        self.first_step: int | None = None
        self.bottom_bytes = 0.0  # lowest trough since the last fall
        self.usual_rise_bytes = 0.0  # the highest rise that has fallen back so far; 0 when none has
        self._previous = (0, 0.0)
        self._steps = 0

    @property
    def longest_steps(self) -> int:
        """Steps of the longest rise that has fallen back so far."""
        return max((ramp.last_step - ramp.first_step for ramp in self.ramps), default=0)

    @property
    def regular_steps(self) -> float | None:
        """Steps from one fall to the next where the newest ramps are alike in length: an epoch, for instance."""
        lengths = [ramp.last_step - ramp.first_step + 1 for ramp in list(self.ramps)[-_NEWEST:]]
        if not lengths:
            return None
        usual = float(sorted(lengths)[len(lengths) // 2])
        return usual if max(abs(length - usual) for length in lengths) <= _ALIKE * usual else None

    def fell(self, step: int, trough: float, change: Change) -> bool:
        """Take the next trough; true when a rise ended before it, so that what grows from here on is new."""
        falls = self.first_step is not None and change.outstanding and self._falls_to(trough)
        if self.first_step is None or falls:
            self.first_step, self.bottom_bytes, self._steps = step, trough, 0
        self.bottom_bytes = min(self.bottom_bytes, trough)
        self._previous = (step, trough)
        self._steps += 1
        return falls

    def _falls_to(self, trough: float) -> bool:
        last_step, top = self._previous
        rise, drop = top - self.bottom_bytes, top - trough
        if self._steps < _MIN_STEPS or drop < _RESET_SHARE * rise:
            return False
        if rise > 0 and self.first_step is not None:
            self.ramps.append(Ramp(self.first_step, last_step, self.bottom_bytes, rise))
            self.usual_rise_bytes = max(ramp.rise_bytes for ramp in self.ramps)
        return True
